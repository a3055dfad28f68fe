/* Agents: who tells of each node, since when, and whether what it tells can be relied on. What is not well comes first. */
import { age, badge, cells, count, el, empty, keyed, name, setText, several, table } from "./dom.js";

const COLUMNS = [
  ["Node", "wide"],
  ["Last heard of", "number"],
  ["Registered with the kubelet", ""],
  ["Vendors' libraries", "wide"],
  ["Chips", "number"],
  ["Faults", "number"],
  ["Version", ""],
];
const PAGE = 200;
/* What a library's state is called here, how it is coloured, and what follows from it for whoever does not know. */
const LIBRARY = {
  answers: ["answers", "good", ""],
  silent: ["does not answer", "warn", "until it does, its chips are judged by what the kernel says alone"],
  absent: ["not installed", "plain", "no error: chips are judged by what the kernel says, without temperature and load"],
  starting: ["asked", "plain", "it has not answered yet"],
};
const silentLibraries = (agent) => (agent.libraries ?? []).filter((library) => library.state === "silent").length;
const isOther = (agent, usual) => agent.version !== undefined && agent.version !== usual;
const rank = (agent, usual) =>
  (agent.stale ? 16 : 0) +
  (agent.registered === false ? 8 : 0) +
  (silentLibraries(agent) ? 4 : 0) +
  (agent.faults > 0 ? 2 : 0) +
  (isOther(agent, usual) ? 1 : 0);
/* How many agents are of each version, those of most first. */
function versionsOf(agents) {
  const versions = new Map();
  for (const { version } of agents) versions.set(version, (versions.get(version) ?? 0) + 1);
  return [...versions].sort((a, b) => b[1] - a[1]);
}
const runbook = ({ runbook: page }) => (page ? [" ", el("a", { href: `/runbooks/${encodeURIComponent(page)}` }, name(page))] : "");
const soft = (...what) => el("span", { class: "soft" }, ...what);

export class AgentsView {
  constructor(host, context) {
    this.context = context;
    this.words = el("p", { class: "summary" });
    this.refusal = el("p", { class: "refusal", hidden: true });
    this.none = empty();
    this.none.hidden = true;
    this.shown = PAGE;
    const { table: whole, body } = table("Agents, those with trouble first", COLUMNS);
    Object.assign(this, { whole, body });
    this.field = el("input", {
      type: "search",
      id: "agents-node",
      placeholder: "part of its name  ( / )",
      oninput: () => ((this.shown = PAGE), this.draw()),
    });
    this.more = el("button", { type: "button", class: "plain", hidden: true, onclick: () => ((this.shown += PAGE), this.draw()) });
    host.append(
      el("h2", { class: "unseen" }, "Agents"),
      this.refusal,
      this.words,
      el(
        "div",
        { class: "filters", role: "search", "aria-label": "Which agents are shown" },
        el("label", { for: "agents-node" }, "Node ", this.field),
      ),
      this.none,
      whole,
      this.more,
    );
  }

  refused(sentence) {
    this.refusal.hidden = false;
    setText(this.refusal, sentence);
  }
  draw() {
    const agents = this.context.answers.agents?.agents;
    if (!agents) return;
    const versions = versionsOf(agents),
      usual = versions.find(([version]) => version !== undefined)?.[0];
    const text = this.field.value.trim().toLowerCase();
    const wanted = agents.filter((agent) => !text || agent.node.toLowerCase().includes(text)).sort((a, b) => rank(b, usual) - rank(a, usual));
    this.refusal.hidden = true;
    this.summary(agents, versions, usual);
    this.whole.dataset.libraries = agents.some((agent) => agent.libraries) ? "told" : "none"; /* a column of which nobody tells is none */
    this.whole.dataset.versions = agents.some((agent) => agent.version) ? "told" : "none";
    this.none.hidden = wanted.length > 0;
    this.whole.hidden = wanted.length === 0;
    setText(
      this.none,
      agents.length ? "No agent's node is called so." : "No agent has been heard of. Each node on which remuda-agent runs would be a row here.",
    );
    keyed(
      this.body,
      wanted.slice(0, this.shown),
      (agent) => agent.node,
      () => el("tr", { role: "row" }),
      (row, agent) => this.fill(row, agent, usual),
    );
    this.more.hidden = wanted.length <= this.shown;
    setText(this.more, `${count(Math.min(PAGE, wanted.length - this.shown))} more, of ${count(wanted.length)}`);
  }
  summary(agents, versions, usual) {
    const of = (test) => agents.filter(test).length,
      own = this.context.answers.agents.version;
    const parts = [
      [of((a) => a.stale), "silent"],
      [of((a) => a.registered === false), "not registered with the kubelet"],
      [of(silentLibraries), "with a vendor's library that does not answer"],
      [of((a) => a.faults > 0), "with faults"],
    ].filter(([n]) => n > 0);
    const told = versions.map(([version, n]) => (version ?? "not known") + (versions.length > 1 ? ` (${count(n)})` : "")).join(", ");
    this.words.replaceChildren(
      ...(agents.length
        ? [
            el("strong", {}, several(agents.length, "agent")),
            ": ",
            parts.map(([n, words]) => `${count(n)} ${words}`).join(", ") || "all are heard of and well",
            usual ? `. Version ${told}` : "",
            usual && own && own !== usual ? `; this page is served by version ${own}.` : ".",
          ]
        : []),
    );
  }
  fill(row, agent, usual) {
    const text = JSON.stringify([agent, usual]);
    if (row.told === text) return;
    row.told = text;
    const unknown = () => soft("not known");
    const library = (told) => {
      const [word, kind, follows] = LIBRARY[told.state] ?? ["not known here", "plain", "this agent is newer than the page"];
      const why = [told.message, follows].filter(Boolean).join("; ");
      return el("li", {}, name(told.vendor), " ", badge(word, kind), why ? [" ", soft(name(why))] : "", runbook(told));
    };
    const offer = (told) => el("li", {}, name(told.name), " ", told.registered ? badge("yes", "good") : badge("no", "bad"), runbook(told));
    const list = (items, of) => el("ul", { class: "plainlist" }, items.map(of));
    const trust = () => [" ", badge("silent", "bad"), agent.reason ? el("div", { class: "soft" }, name(agent.reason), runbook(agent)) : ""];
    const registered = () => (agent.registered === undefined ? unknown() : agent.registered ? "yes" : badge("no", "bad"));
    row.replaceChildren(
      ...cells(COLUMNS, [
        name(agent.node),
        [age(agent.heard), agent.stale ? trust() : ""],
        agent.kubelet?.length ? list(agent.kubelet, offer) : registered(),
        agent.libraries?.length ? list(agent.libraries, library) : agent.libraries ? soft("none is asked") : unknown(),
        agent.chips === undefined ? unknown() : count(agent.chips),
        agent.faults ? el("b", {}, count(agent.faults)) : "0",
        agent.version ? [name(agent.version), isOther(agent, usual) ? [" ", badge("not as most", "warn")] : ""] : unknown(),
      ]),
    );
  }
}
