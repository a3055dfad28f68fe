/* What the picture of the fleet leaves out is asked node by node, when somebody looks at one of its chips: who has it, and since when. */
import { ask } from "./live.js";

const NODES_KEPT = 200;

export class Details {
  constructor(fleet) {
    this.fleet = fleet;
    this.kept = new Map(); /* by name: {of: the node in the fleet as it was then, told, asking} */
  }

  /* What is known of a chip: {node, group, chip}, as the fleet has it, and of it what its node told last. */
  find(key) {
    const found = this.fleet.find(key),
      told = found && this.kept.get(found.node.node)?.told;
    const group = told?.groups.find((one) => one.group === found.group.group),
      chip = group?.chips[found.group.chips.indexOf(found.chip)];
    if (!chip || (chip.id ?? found.chip.id) !== found.chip.id) return found;
    return { node: { ...told, stale: found.node.stale, reason: found.node.reason }, group, chip: { ...chip, ...found.chip }, whole: true };
  }

  /* Asks the node, unless what it told is of the fleet's present picture of it. True where something new was told. */
  async learn(name) {
    const of = this.fleet.nodes.get(name),
      kept = this.kept.get(name);
    if (!of) return false;
    if (kept?.of === of) return kept.asking;
    const entry = { of, told: kept?.told };
    this.kept.delete(name); /* the last one in is the last one out */
    this.kept.set(name, entry);
    if (this.kept.size > NODES_KEPT) this.kept.delete(this.kept.keys().next().value);
    entry.asking = ask(`/v1/node?name=${encodeURIComponent(name)}`).then(
      (text) => {
        entry.told = JSON.parse(text).node;
        entry.asking = false;
        return true;
      },
      () => {
        entry.of = undefined; /* asked anew by the next who looks */
        entry.failed = true;
        return true;
      },
    );
    return entry.asking;
  }

  /* In words, who has it; nothing where nobody has, or nobody tells. */
  async holder(key) {
    const on = this.fleet.find(key)?.node.node;
    if (on === undefined) return "";
    await this.learn(on);
    const { chip } = this.find(key) ?? {};
    return [chip?.pod && `pod ${chip.pod}`, chip?.job && `job ${chip.job}`].filter(Boolean).join(", ");
  }
  failed(name) {
    return this.kept.get(name)?.failed === true;
  }
}
