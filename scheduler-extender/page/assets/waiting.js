/* What waits, why, and what would help; beside it a question: where would this go? */
import { age, badge, cells, clock, count, duration, el, empty, keyed, name, now, setText, several, table } from "./dom.js";
import { ask } from "./live.js";

const COLUMNS = [
  ["Pod", "wide"],
  ["Waits for", "number"],
  ["Chips", "number"],
  ["Why", "wide"],
  ["What would help", "wide"],
  ["Would start", "medium"],
];
const REMEDIES_SHOWN = 2;
/* The sentence without the reasons at its end, where they stand below it. */
const sentenceOf = (pod) => (pod.reasons?.length ? (pod.summary ?? "").replace(/: \d+ \w+(, \d+ \w+)*\.?$/, "") : pod.summary);
const wordOf = (reason) => reason.word || reason.verdict || "no reason told";
const pills = (reasons) =>
  el(
    "ul",
    { class: "pills" },
    reasons.map((reason) => el("li", { title: reason.message }, el("b", {}, count(reason.count)), " ", name(wordOf(reason)))),
  );

/* "now", a moment, or words such as "when ns/pod ends". */
function effect(when) {
  if (!when) return "";
  if (when === "now") return badge("now", "good");
  return Number.isNaN(Date.parse(when)) ? el("span", { class: "soft" }, name(when)) : age(when, "in");
}
function remedy(one) {
  return el(
    "li",
    {},
    name(one.message),
    " ",
    effect(one.takesEffect),
    one.who
      ? el(
          "span",
          { class: "soft" },
          " (",
          one.who === "nobody" ? "by itself" : name(one.who),
          one.untried ? [", not tried: ", name(one.untried)] : ", tried",
          ")",
        )
      : "",
  );
}
function folded(shown, items, words) {
  if (items.length <= shown) return [el("ul", { class: "plainlist" }, items)];
  return [
    el("ul", { class: "plainlist" }, items.slice(0, shown)),
    el("details", {}, el("summary", {}, words(items.length - shown)), el("ul", { class: "plainlist" }, items.slice(shown))),
  ];
}

export class WaitingView {
  constructor(host, context) {
    this.context = context;
    this.words = el("p", { class: "summary" });
    this.refusal = el("p", { class: "refusal", hidden: true });
    this.none = empty(
      "No pod waits. A pod that finds no chips would be a row here: since when, for which reasons on how many nodes, and which remedies were tried on a copy of the cluster.",
    );
    const { table: whole, body } = table("Pods that wait for chips", COLUMNS);
    Object.assign(this, { whole, body });
    host.append(
      el("h2", { class: "unseen" }, "Waiting"),
      this.refusal,
      this.words,
      el("div", { class: "beside" }, el("div", {}, this.none, whole), this.whatif()),
    );
    this.none.hidden = whole.hidden = true;
  }

  refused(sentence) {
    this.refusal.hidden = false;
    setText(this.refusal, sentence);
  }
  draw() {
    const answer = this.context.answers.waiting,
      pods = answer?.pods ?? [];
    if (!answer) return;
    this.refusal.hidden = true;
    this.none.hidden = pods.length > 0;
    this.whole.hidden = pods.length === 0;
    const chips = pods.reduce((sum, pod) => sum + (pod.chips ?? 0), 0),
      total = answer.total ?? pods.length;
    this.words.replaceChildren(
      ...(total === 0
        ? ["No pod waits."]
        : [
            el("strong", {}, `${several(total, "pod")} ${total === 1 ? "waits" : "wait"}`),
            ` for ${several(chips, "chip")}`,
            pods[0]?.since ? `, the oldest for ${duration((now() - Date.parse(pods[0].since)) / 1000)}` : "",
            ".",
            pods.length < total ? ` The oldest ${count(pods.length)} are told of here.` : "",
          ]),
    );
    keyed(
      this.body,
      pods,
      (pod) => pod.pod,
      () => el("tr", { role: "row" }),
      (row, pod) => this.fill(row, pod),
    );
  }
  fill(row, pod) {
    const text = JSON.stringify(pod);
    if (row.told === text) return;
    row.told = text;
    const open = [...row.querySelectorAll("details")].map((details) => details.open);
    const reasons = pod.reasons ?? [],
      remedies = (pod.remedies ?? []).map(remedy);
    row.replaceChildren(
      ...cells(COLUMNS, [
        [name(pod.pod), pod.urgency === "emergency" ? [" ", badge("emergency", "bad")] : "", this.parts(pod)],
        age(pod.since, "for"),
        [el("b", {}, pod.chips === undefined ? "" : count(pod.chips)), el("span", { class: "soft unit" }, name(pod.resource))],
        [
          name(sentenceOf(pod)),
          pod.note ? el("div", { class: "soft" }, name(pod.note)) : "",
          reasons.length
            ? [
                pills(reasons),
                el(
                  "details",
                  {},
                  el("summary", {}, "Each reason"),
                  el(
                    "ul",
                    { class: "plainlist" },
                    reasons.map((reason) =>
                      el(
                        "li",
                        {},
                        el("b", {}, name(wordOf(reason))),
                        ` on ${several(reason.count, "node")}`,
                        reason.message ? [": ", name(reason.message), reason.node ? [" (as ", name(reason.node), ")"] : ""] : "",
                      ),
                    ),
                  ),
                ),
              ]
            : "",
        ],
        remedies.length
          ? folded(REMEDIES_SHOWN, remedies, (more) => `${more} more`)
          : el(
              "span",
              { class: "soft" },
              pod.remedies
                ? pod.verdict === "fits"
                  ? "It fits: kube-scheduler takes it at its next try."
                  : "No remedy was found."
                : "No remedy was tried yet: others wait longer.",
            ),
        pod.startsAt
          ? [age(pod.startsAt, "in"), el("span", { class: "soft" }, ` (${clock(pod.startsAt)})`), pod.startsIf ? [el("br"), name(pod.startsIf)] : ""]
          : pod.startsIf
            ? name(pod.startsIf)
            : el("span", { class: "soft" }, "not known"),
      ]),
    );
    row.querySelectorAll("details").forEach((details, i) => (details.open = open[i] ?? false));
  }
  parts(pod) {
    const of = [
      pod.job && ["job ", name(pod.job)],
      pod.gang && pod.gang !== pod.job && ["gang ", name(pod.gang)],
      pod.gangSize && `of a gang of ${count(pod.gangSize)}`,
    ].filter(Boolean);
    return of.map((words) => el("div", { class: "soft" }, words));
  }

  whatif() {
    this.box = el("textarea", {
      id: "whatif-text",
      rows: "12",
      spellcheck: "false",
      autocomplete: "off",
      "aria-describedby": "whatif-how",
      onkeydown: (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.ask(event),
    });
    this.said = el("div", { class: "said", id: "whatif-answer", role: "status", "aria-live": "polite" });
    this.button = el("button", { type: "submit" }, "Ask");
    return el(
      "section",
      { class: "box whatif", "aria-labelledby": "whatif-title" },
      el("h3", { id: "whatif-title" }, "What if"),
      el(
        "form",
        { onsubmit: (event) => this.ask(event) },
        el("label", { for: "whatif-text" }, "Pods or TrainingJobs, as YAML or JSON"),
        this.box,
        el("p", { class: "soft", id: "whatif-how" }, "Placed on a copy of the cluster with the scheduler's own code. Nothing is written."),
        el("div", { class: "row" }, this.button, el("button", { type: "button", class: "plain", onclick: () => this.example() }, "An example")),
      ),
      this.said,
    );
  }
  example() {
    const resource = this.context.fleet.order.flatMap((node) => node.groups ?? []).find((group) => group.resource)?.resource ?? "nvidia.com/gpu";
    this.box.value = `kind: Pod\nmetadata:\n  name: trial\nspec:\n  containers:\n  - name: main\n    resources:\n      limits:\n        ${resource}: 8\n`;
    this.box.focus();
  }
  async ask(event) {
    event.preventDefault();
    if (!this.box.value.trim())
      return this.said.replaceChildren(el("p", { class: "soft" }, 'There is nothing in the box. "An example" puts a pod there.'));
    this.button.disabled = true;
    const json = this.box.value.trim().startsWith("{");
    try {
      const text = await ask("/v1/whatif", {
        method: "POST",
        body: this.box.value,
        headers: { "Content-Type": json ? "application/json" : "application/yaml" },
      });
      this.answer(JSON.parse(text));
    } catch (error) {
      this.said.replaceChildren(el("p", { class: "refusal" }, error.status ? sentence(error.message) : "The server did not answer."));
    }
    this.button.disabled = false;
  }
  answer(said) {
    const placements = said.placements ?? [];
    this.said.replaceChildren(
      el(
        "p",
        { class: "summary" },
        el("strong", {}, `${count(said.placed ?? 0)} placed`),
        `, ${count(said.waiting ?? 0)} ${said.waiting === 1 ? "waits" : "wait"}.`,
      ),
      el(
        "ul",
        { class: "placements" },
        placements.map((placement) => el("li", { "data-placed": String(Boolean(placement.node)) }, this.placement(placement))),
      ),
    );
  }
  placement(placement) {
    const lines = [
      el(
        "p",
        {},
        name(placement.pod),
        placement.node ? [" on ", el("b", {}, name(placement.node))] : [" ", badge("waits", "warn")],
        " ",
        placement.when ? effect(placement.when) : placement.node ? "" : el("span", { class: "soft" }, "no end of it is known"),
      ),
    ];
    if (placement.message)
      lines.push(
        el(
          "p",
          { class: "soft" },
          name(placement.message),
          placement.batch !== undefined ? `; ${count(placement.batch)} of the batch, by speeds ${placement.speedSource ?? "not known"}` : "",
        ),
      );
    if (placement.remark) lines.push(el("p", {}, name(placement.remark)));
    const reasons = Object.entries(placement.reasons ?? {}).map(([word, n]) => ({ word, count: n }));
    if (reasons.length) lines.push(pills(reasons));
    if (placement.missing?.length)
      lines.push(el("p", {}, "What would help:"), ...folded(REMEDIES_SHOWN, placement.missing.map(remedy), (more) => `${more} more`));
    return lines;
  }
}

/* A refusal is a sentence, or an object with one. */
function sentence(text) {
  try {
    const said = JSON.parse(text);
    return String(said.error ?? said.message ?? text);
  } catch {
    return text;
  }
}
