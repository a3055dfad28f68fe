/* What is known of the fleet: nodes, their groups and chips, totals, the last hour's faults. No element is touched here. */
export const STATES = ["free", "held", "borrowed", "degraded", "sick", "quarantined", "unknown"];
export const NOT_WELL = ["sick", "quarantined", "degraded", "unknown"];
const FAULTS_MAX = 1000,
  HOUR_MS = 3600e3;
const place = Object.fromEntries(STATES.map((state, i) => [state, i]));
export const chipKey = (node, chip) => `${node.node}/${chip.id}`;

/* n2 and n02 before n10, as the server sorts (page_kept.c). */
const natural = (text) => text.replace(/\d+/g, (digits) => digits.padStart(12, "0"));

/* What a letter of a group's chips means, by its code: the place of the state whose first letter it is. */
const placeOf = new Uint8Array(128).fill(place.unknown);
STATES.forEach((state, i) => (placeOf[state.charCodeAt(0)] = i));

const NOTHING = { group: "", vendor: "unknown", model: "unknown" };
const plain = (id) => (id.includes("%") ? decodeURIComponent(id) : id);

/* The chips of a group on a node. An object for each is made once somebody looks at one: of most nobody does. */
class Group {
  constructor(node, at, kind, letters) {
    this.of = node;
    this.at = at;
    this.kind = kind;
    this.letters = letters;
    this.ill = this.made = undefined;
    this.counts = [0, 0, 0, 0, 0, 0, 0];
    for (let i = 0; i < letters.length; i++) this.counts[placeOf[letters.charCodeAt(i)] ?? place.unknown]++;
  }
  get group() {
    return this.kind.group;
  }
  get vendor() {
    return this.kind.vendor ?? "unknown";
  }
  get model() {
    return this.kind.model ?? "unknown";
  }
  get resource() {
    return this.kind.resource;
  }
  get size() {
    return this.letters.length;
  }
  get chips() {
    if (this.made) return this.made;
    const ids = (this.of.ids.split(",")[this.at] ?? "").split(" ");
    /* Chips that are told by their number alone get a name of their own: their group's, and which of it. */
    this.made = Array.from(this.letters, (letter, i) => ({
      id: ids[i] ? plain(ids[i]) : `${this.group} #${i + 1}`,
      state: STATES[placeOf[letter.charCodeAt(0)] ?? place.unknown],
    }));
    for (const { chip, reason, message, since, runbook } of this.ill ?? [])
      if (this.made[chip]) Object.assign(this.made[chip], { reason, message, since, runbook });
    return this.made;
  }
}

/* A row of an answer's columns. @old: the same node before, whose ids hold where none are told. */
class Node {
  constructor(said, i, old) {
    this.node = said.nodes[i];
    this.ids = said.ids?.[i] || (old?.ids ?? "");
    this.groups = [];
    this.stale = this.reason = this.counts = undefined;
    this.sorts = old?.sorts;
    this.place = 0;
    const text = said.chips?.[i] ?? "";
    for (let from = 0; from < text.length;) {
      let at = from,
        kind = 0,
        to = text.indexOf(" ", from);
      if (to < 0) to = text.length;
      for (let digit; (digit = text.charCodeAt(at) - 48) >= 0 && digit < 10; at++) kind = kind * 10 + digit;
      this.groups.push(new Group(this, this.groups.length, said.kinds?.[kind] ?? NOTHING, text.slice(at, to)));
      from = to + 1;
    }
    this.counts = this.groups[0]?.counts ?? STATES.map(() => 0);
    if (this.groups.length > 1) this.counts = this.counts.map((_, state) => this.groups.reduce((sum, group) => sum + group.counts[state], 0));
  }
}

/* What few nodes have is told beside the columns. nodeOf: by name, of those of this answer. */
function readFew(said, nodeOf) {
  for (const { node: name, reason } of said.stale ?? []) {
    const node = nodeOf(name);
    if (node) Object.assign(node, { stale: true, reason });
  }
  for (const ill of said.ill ?? []) {
    const group = nodeOf(ill.node)?.groups[ill.group];
    if (!group) continue;
    if (group.ill) group.ill.push(ill);
    else group.ill = [ill];
  }
}

/* The same groups with as many chips each: then nothing has to move. */
function sameShape(a, b) {
  const same = (x, y) => x.group === y.group && x.model === y.model && x.vendor === y.vendor && x.size === y.size;
  return a.groups.length === b.groups.length && a.groups.every((group, i) => same(group, b.groups[i]));
}

/* Which chips of a node have another state than before. */
function compare(old, node, turned) {
  const before = new Map(),
    alike = (group, was) => was?.letters === group.letters && was.of.ids === group.of.ids;
  if (node.groups.every((group, i) => alike(group, old.groups[i]))) return;
  for (const group of old.groups) for (const chip of group.chips) before.set(chip.id, chip.state);
  for (const group of node.groups)
    for (const chip of group.chips) {
      const was = before.get(chip.id);
      if (was !== undefined && was !== chip.state) turned.push({ node: node.node, chip, was, is: chip.state });
    }
}

/* A group in the picture: of its chips those that the filter lets through, all where @states is empty. */
class Tile {
  constructor(node, at, states) {
    this.node = node;
    this.at = at;
    this.states = states;
    this.index = this.top = this.left = this.row = this.column = 0;
  }
  get group() {
    return this.node.groups[this.at];
  }
  get counts() {
    return this.states.size ? this.group.counts.map((n, i) => (this.states.has(STATES[i]) ? n : 0)) : this.group.counts;
  }
  get size() {
    return this.states.size ? this.counts.reduce((sum, n) => sum + n, 0) : this.group.size;
  }
  get chips() {
    return this.states.size ? this.group.chips.filter((chip) => this.states.has(chip.state)) : this.group.chips;
  }
}

export class Fleet {
  constructor() {
    this.nodes = new Map();
    this.order = [];
    this.counts = new Array(STATES.length).fill(0);
    this.faults = [];
    this.known = false;
    this.generation = 0;
  }

  get chips() {
    return this.counts.reduce((sum, n) => sum + n, 0);
  }
  count(state) {
    return this.counts[place[state]];
  }

  replace(answer) {
    this.known = true;
    this.cluster = answer.cluster ?? "";
    this.ready = answer.ready !== false;
    this.generation = answer.generation ?? 0;
    this.faults = answer.faults ?? [];
    this.nodes = new Map();
    this.counts.fill(0);
    const names = answer.nodes ?? [];
    for (let i = 0; i < names.length; i++) this.put(new Node(answer, i));
    readFew(answer, (name) => this.nodes.get(name));
    this.order = [...this.nodes.values()]; /* an answer has them sorted */
    this.order.forEach((node, i) => (node.place = i));
  }

  put(node) {
    for (let i = 0; i < node.counts.length; i++) this.counts[i] += node.counts[i];
    this.nodes.set(node.node, node);
  }
  take(node) {
    node.counts.forEach((n, i) => (this.counts[i] -= n));
    this.nodes.delete(node.node);
  }
  sort() {
    this.order = [...this.nodes.values()];
    for (const node of this.order) node.sorts = node.sorts ?? natural(node.node);
    const before = (a, b) => a.sorts < b.sorts || (a.sorts === b.sorts && a.node < b.node);
    this.order.sort((a, b) => (before(a, b) ? -1 : 1));
    this.order.forEach((node, i) => (node.place = i));
  }

  /* A message of /v1/changes. Returns which nodes look different, which chips changed their state, whether anything moves, and whether there are new faults. */
  change(message) {
    const changed = [],
      turned = [];
    let moved = false;

    /* One that went and is there again is in both. */
    for (const gone of message.gone ?? []) {
      const old = this.nodes.get(gone);
      if (old) this.take(old);
      moved ||= old !== undefined;
    }
    const told = new Map((message.nodes ?? []).map((name, i) => [name, new Node(message, i, this.nodes.get(name))]));
    readFew(message, (name) => told.get(name));
    for (const node of told.values()) {
      const old = this.nodes.get(node.node);
      if (old) {
        compare(old, node, turned);
        this.take(old);
      }
      this.put(node);
      if (old && sameShape(old, node)) this.order[(node.place = old.place)] = node;
      else moved = true;
      changed.push(node.node);
    }
    this.generation = Math.max(this.generation, message.generation ?? 0);
    if (moved) this.sort();
    return { changed, turned, moved, faulted: this.note(message.faults ?? []) };
  }

  /* What a fault is, is decided by who serves the page. One that came with an answer may come with a message, too. */
  note(faults) {
    const key = (fault) => [fault.at, fault.node, fault.device, fault.to].join("\n"),
      known = new Set(faults.length ? this.faults.map(key) : []),
      fresh = faults.filter((fault) => !known.has(key(fault)));
    this.faults.push(...fresh);
    if (this.faults.length > FAULTS_MAX) this.faults.splice(0, this.faults.length - FAULTS_MAX);
    return fresh.length > 0;
  }

  lastHour(now) {
    return this.faults.filter((fault) => Date.parse(fault.at) > now - HOUR_MS);
  }

  find(key) {
    const slash = key.indexOf("/"),
      node = this.nodes.get(key.slice(0, slash)),
      id = key.slice(slash + 1);
    for (const group of node?.groups ?? []) for (const chip of group.chips) if (chip.id === id) return { node, group, chip };
    return undefined;
  }

  /* Vendors and models that there are, each with its chips. */
  kinds() {
    const vendors = new Map(),
      models = new Map(),
      chips = new Map();
    for (const node of this.order) for (const group of node.groups) chips.set(group.kind, (chips.get(group.kind) ?? 0) + group.size);
    for (const [{ vendor = "unknown", model = "unknown" }, n] of chips) {
      vendors.set(vendor, (vendors.get(vendor) ?? 0) + n);
      models.set(model, { vendor, chips: (models.get(model)?.chips ?? 0) + n });
    }
    return { vendors, models };
  }

  /* vendor x model, then node x group, of what the filter lets through: {vendor, model, node, states: Set}. */
  select(filter) {
    const sections = new Map(),
      text = (filter.node ?? "").toLowerCase();
    let section;
    for (const node of this.order) {
      if (text && !node.node.toLowerCase().includes(text)) continue;
      for (let i = 0; i < node.groups.length; i++) {
        const { vendor, model } = node.groups[i];
        if ((filter.vendor && vendor !== filter.vendor) || (filter.model && model !== filter.model)) continue;
        const tile = new Tile(node, i, filter.states);
        const size = tile.size;
        if (size === 0) continue;
        if (!section || section.vendor !== vendor || section.model !== model) {
          const key = `${vendor}\n${model}`;
          section = sections.get(key) ?? { key, vendor, model, tiles: [], chips: 0, nodes: 0 };
          sections.set(key, section);
        }
        if (section.tiles.at(-1)?.node !== node) section.nodes++;
        section.tiles.push(tile);
        section.chips += size;
      }
    }
    return [...sections.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /* What is not well, as a person would say it: of each state and reason the chips, the worst and most first. */
  troubles() {
    const troubles = new Map();
    for (const node of this.order) {
      if (!NOT_WELL.some((state) => node.counts[place[state]] > 0)) continue;
      for (const group of node.groups) {
        for (const chip of group.chips) {
          const state = chip.state;
          if (!NOT_WELL.includes(state)) continue;
          const reason = chip.reason ?? "",
            key = `${state}\n${reason}`;
          let trouble = troubles.get(key);
          if (!trouble) troubles.set(key, (trouble = { key, state, reason, message: (node.stale && node.reason) || chip.message || "", where: [] }));
          trouble.where.push({ node, chip });
        }
      }
    }
    return [...troubles.values()].sort((a, b) => NOT_WELL.indexOf(a.state) - NOT_WELL.indexOf(b.state) || b.where.length - a.where.length);
  }
}

/* How many chips of each state tiles have, in the order of STATES. */
export function countOf(tiles) {
  const sums = STATES.map(() => 0);
  for (const { counts } of tiles) for (let i = 0; i < sums.length; i++) sums[i] += counts[i];
  return sums;
}
