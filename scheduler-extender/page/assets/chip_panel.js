/* What is known of one chip: beside the map, and kept true while it is open. */
import { age, badge, clock, el, empty, name, now } from "./dom.js";

export const MEANS = {
  free: "can be had",
  held: "a pod has it",
  borrowed: "a regular pod on a reserved node",
  degraded: "works, below its promise",
  sick: "must not be used",
  quarantined: "turned bad and good too often",
  unknown: "nobody knows: it could not be asked, or its agent is silent",
};

const soft = (...words) => el("span", { class: "soft" }, ...words);

export class ChipPanel {
  /* @back: puts the focus on a chip's cell again. */
  constructor(host, details, back) {
    Object.assign(this, { host, details, fleet: details.fleet, back });
  }

  /* @from: what was pressed, and gets the focus back. */
  open(key, from) {
    this.key = key;
    this.from = from;
    this.look();
    this.host.hidden = false;
    this.host.querySelector("h2").focus({ preventScroll: true });
  }
  /* What is known at once, and the rest when its node has told it. */
  async look() {
    const { key } = this;
    this.fill();
    if ((await this.details.learn(key.slice(0, key.indexOf("/")))) && this.key === key) this.fill();
  }
  close() {
    if (!this.key) return;
    const { key, from } = this,
      focused = this.host.contains(document.activeElement);
    this.key = undefined;
    this.host.hidden = true;
    if (!focused) return;
    if (from?.isConnected && (from.dataset.chip ?? from.dataset.opens) === key) from.focus({ preventScroll: true });
    else this.back(key);
  }
  refresh(names) {
    if (this.key && names.includes(this.key.slice(0, this.key.indexOf("/")))) this.look();
  }

  fill() {
    const found = this.details.find(this.key),
      focused = this.host.contains(document.activeElement) ? document.activeElement.id : undefined;
    const title = el("h2", { id: "panel-title", tabindex: "-1" }, name(this.key.slice(this.key.indexOf("/") + 1)));
    const close = el("button", { type: "button", id: "panel-close", class: "plain", onclick: () => this.close() }, "Close ", el("kbd", {}, "Esc"));
    const told = found
      ? [this.tell(found), el("h3", {}, "Last hour"), this.history(found)]
      : [empty("This chip is gone: its node does not tell of it any more.")];
    this.host.replaceChildren(title, close, ...told);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }
  tell({ node, group, chip, whole }) {
    const { state } = chip,
      rows = [],
      row = (term, ...what) => rows.push(el("dt", {}, term), el("dd", {}, ...what));
    row("State", el("span", { class: "swatch", "data-state": state }), el("b", {}, state), `: ${MEANS[state]}`);
    if (node.reason) row("Node", name(node.reason));
    if (chip.reason) row("Reason", el("span", { class: "reason" }, name(chip.reason)), " ", name(chip.message));
    else if (chip.message) row("Note", name(chip.message));
    if (chip.since) row("Since", age(chip.since, "for"), soft(` (${clock(chip.since, true)})`));
    if (chip.runbook) row("Runbook", el("a", { href: `/runbooks/${encodeURIComponent(chip.runbook)}` }, name(chip.runbook)));
    row(
      "Pod",
      chip.pod ? name(chip.pod) : soft(whole ? "none" : this.details.failed(node.node) ? "the server does not tell now" : "…"),
      chip.pod && group.counted ? el("div", {}, soft("It has a chip of this group; which one, nobody tells.")) : "",
    );
    if (chip.job) row("Job", el("a", { href: "#jobs" }, name(chip.job)));
    if (chip.shares) row("Shares", `${chip.shares.used} of ${chip.shares.of} used`);
    row("On", name(node.node), node.stale ? [" ", badge("silent", "bad")] : "");
    if (node.heard) row("Heard of", age(node.heard));
    if (node.pool || node.class) row("Pool, class", [node.pool, node.class].filter(Boolean).join(", "));
    row("Group", name(group.group), group.fabric ? soft(", joined by ", name(group.fabric)) : "");
    row("Model", name(group.model));
    row("Runtime", name([group.runtime, group.resource].filter(Boolean).join(", ")));
    return el("dl", {}, rows);
  }
  history({ node, chip }) {
    const own = this.fleet.lastHour(now()).filter((fault) => fault.node === node.node && fault.device === chip.id);
    if (own.length === 0) return empty("Nothing befell it in the last hour.");
    const line = (fault) => el("li", {}, clock(fault.at, true), " ", el("b", {}, fault.to), " ", name(fault.reason), " ", name(fault.message));
    return el("ol", { class: "plainlist" }, own.reverse().map(line));
  }
}
