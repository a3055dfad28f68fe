/* Jobs: how far, how fast, how much longer; who does how much of it; what befell them, on one clock. */
import { age, badge, cells, clock, count, duration, el, empty, figure, keyed, name, now, setText, several, svg, table } from "./dom.js";
import { JobLog } from "./logs.js";
import { hasEnded, jobEvents } from "./timeline.js";

const RANKS_SHOWN = 64,
  EVENTS_SHOWN = 50;
const KINDS = { Running: "good", Succeeded: "good", Failed: "bad", Cancelled: "soft" };
const OF_WEIGHT = { measured: "measured", table: "from the table of device models", assumed: "assumed", kernel: "by a kernel's measurement" };

export class JobsView {
  constructor(host, context) {
    this.context = context;
    this.words = el("p", { class: "summary" });
    this.refusal = el("p", { class: "refusal", hidden: true });
    this.none = empty("No training job. Each TrainingJob would stand here with its phase, rate, time left, ranks and what befell them.");
    this.list = el("div", { class: "jobs" });
    this.endedList = el("div", { class: "jobs" });
    this.ended = el("details", { class: "ended", hidden: true }, el("summary"), this.endedList);
    this.none.hidden = true;
    host.append(el("h2", { class: "unseen" }, "Jobs"), this.refusal, this.words, this.none, this.list, this.ended);
  }

  refused(sentence) {
    this.refusal.hidden = false;
    setText(this.refusal, sentence);
  }
  draw() {
    const jobs = this.context.answers.jobs?.jobs;
    if (!jobs) return;
    const live = jobs.filter((job) => !hasEnded(job)),
      ended = jobs.filter(hasEnded);
    this.refusal.hidden = true;
    this.none.hidden = jobs.length > 0;
    const phases = new Map();
    for (const job of jobs) phases.set(job.phase ?? "not known", (phases.get(job.phase ?? "not known") ?? 0) + 1);
    this.words.replaceChildren(
      jobs.length ? el("strong", {}, several(jobs.length, "job")) : "",
      jobs.length ? `: ${[...phases].map(([phase, n]) => `${count(n)} ${phase}`).join(", ")}.` : "",
    );
    live.sort((a, b) => (b.phase === "Running") - (a.phase === "Running"));
    this.fillList(this.list, live);
    this.ended.hidden = ended.length === 0;
    setText(this.ended.firstElementChild, `${several(ended.length, "job")} ended`);
    this.fillList(this.endedList, ended);
  }
  fillList(list, jobs) {
    keyed(
      list,
      jobs,
      (job) => job.job,
      (job) => {
        const body = el("div"),
          log = new JobLog(job.job);
        return Object.assign(el("article", { class: "box job" }, body, log.node), { body, log });
      },
      (card, job) => {
        const text = JSON.stringify(job);
        if (card.told === text) return;
        card.told = text;
        const open = [...card.body.querySelectorAll("details")].map((details) => details.open);
        const all = card.all;
        card.body.replaceChildren(...this.tell(job, card, all));
        card.log.ranks(job.ranks ?? []);
        card.setAttribute("data-job", job.job);
        card.body.querySelectorAll("details").forEach((details, i) => (details.open = open[i] ?? false));
      },
    );
  }

  tell(job, card, all) {
    const parts = [
      el(
        "h3",
        {},
        name(job.job),
        " ",
        badge(name(job.phase ?? "phase not known"), KINDS[job.phase] ?? "plain"),
        job.strategy ? el("span", { class: "soft" }, " ", name(job.strategy)) : "",
      ),
    ];
    if (job.reason || job.message)
      parts.push(el("p", {}, job.reason ? [el("span", { class: "reason" }, name(job.reason)), " "] : "", name(job.message)));
    parts.push(this.facts(job));
    const part = job.steps?.of ? job.steps : job.samples; /* by which there is an end */
    if (part?.of) parts.push(el("progress", { max: part.of, value: part.done ?? 0, "aria-label": `how far ${job.job} is` }));
    const ranks = job.ranks ?? [],
      words = shares(ranks);
    if (ranks.some((rank) => rank.layers)) parts.push(...pipeline(ranks));
    if (ranks.length)
      parts.push(el("h4", {}, several(ranks.length, "rank")), words ? el("p", { class: "soft" }, words) : "", this.ranks(job, ranks, card, all));
    else if (!hasEnded(job)) parts.push(el("p", { class: "soft" }, "No ranks yet: they are told of when the job is planned."));
    if (job.events?.length) parts.push(...befell(job));
    return parts;
  }

  facts(job) {
    const facts = [],
      fact = (term, value, unit) => facts.push(el("div", {}, el("dt", {}, term), el("dd", {}, value, unit ? el("small", {}, ` ${unit}`) : "")));
    const ended = hasEnded(job); /* what was left then, and how far apart its workers were, is of no use */
    if (job.left?.sec !== undefined && !ended)
      fact(
        "Time left",
        duration(job.left.sec),
        job.left.fromSec === undefined ? "" : `between ${duration(job.left.fromSec)} and ${duration(job.left.toSec)}`,
      );
    else if (job.phase === "Running") fact("Time left", "not known yet");
    if (job.rate?.samplesPerSec !== undefined)
      fact(
        "Rate",
        figure(job.rate.samplesPerSec),
        `samples/s${job.rate.windowSec ? `, over the last ${job.rate.windowSec} s` : ", as its status says"}`,
      );
    const share = ({ done = 0, of }) => (of ? `of ${count(of)} (${Math.floor((100 * done) / of)} %)` : "");
    if (job.steps?.done !== undefined) fact("Steps", count(job.steps.done), share(job.steps));
    if (job.samples?.done !== undefined) fact("Samples", count(job.samples.done), share(job.samples));
    if (job.stepsBehind !== undefined && !ended)
      fact("Steps behind", figure(job.stepsBehind.mean), `the first, in the mean of its workers; ${count(job.stepsBehind.max)} at most`);
    if (job.loss !== undefined) fact("Loss", figure(job.loss));
    const seconds = (Date.parse(job.ended) - Date.parse(job.started)) / 1000;
    if (ended && seconds >= 0) fact("Ran for", duration(seconds), `until ${clock(job.ended)}`);
    else if (job.started && !ended) fact("Runs for", age(job.started, "for"), `since ${clock(job.started)}`);
    else if (job.created) fact("Made", age(job.created));
    return el("dl", { class: "facts" }, facts);
  }

  ranks(job, ranks, card, all) {
    const some = (key) => ranks.some((rank) => rank[key] !== undefined);
    const columns = [
        ["Rank", "number"],
        ["Where", "wide"],
        ["Phase", ""],
      ],
      told = [
        (rank) => [el("b", {}, String(rank.rank ?? "")), rank.role ? el("span", { class: "soft" }, " ", name(rank.role)) : ""],
        (rank) => [
          name(rank.node),
          rank.group ? [" ", name(rank.group)] : "",
          rank.model ? el("div", { class: "soft" }, name(rank.model), rank.runtime ? [", ", name(rank.runtime)] : "") : "",
        ],
        (rank) => name(rank.phase),
      ];
    const column = (key, heading, kind, tell) =>
      some(key) &&
      (columns.push([heading, kind]), told.push((rank) => (rank[key] === undefined ? el("span", { class: "soft" }, "not known") : tell(rank))));
    column("busyPermille", "Busy", "number", (rank) => [bar(rank.busyPermille / 1000), `${Math.round(rank.busyPermille / 10)} %`]);
    column("weight", "Weight", "number", (rank) => [
      figure(rank.weight),
      rank.weightSource ? el("span", { class: "soft unit" }, name(OF_WEIGHT[rank.weightSource] ?? rank.weightSource)) : "",
    ]);
    column("samplesPerSec", "Samples/s while it computes", "number", (rank) => figure(rank.samplesPerSec));
    column("layers", "Layers", "number", (rank) => name(rank.layers));
    const furthest = ranks.reduce((most, rank) => Math.max(most, rank.stepsBehind ?? 0), 1);
    if (!hasEnded(job)) column("stepsBehind", "Steps behind", "number", (rank) => [bar(rank.stepsBehind / furthest), count(rank.stepsBehind)]);
    const { table: whole, body } = table(`Ranks of ${job.job}`, columns),
      shown = all ? ranks : ranks.slice(0, RANKS_SHOWN);
    for (const rank of shown)
      body.append(
        el(
          "tr",
          { role: "row", "data-rank": rank.rank },
          cells(
            columns,
            told.map((tell) => tell(rank)),
          ),
        ),
      );
    const more =
      ranks.length > shown.length &&
      el(
        "button",
        { type: "button", class: "plain", onclick: () => ((card.all = true), (card.told = undefined), this.draw()) },
        `The other ${count(ranks.length - shown.length)}`,
      );
    return el("div", {}, whole, more || "");
  }
}

/* A share as a length; the figure stands beside it. */
function bar(share) {
  return svg(
    "svg",
    { class: "share", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { class: "all", width: 100, height: 10 }),
    svg("rect", { class: "part", width: Math.max(0, Math.min(100, share * 100)), height: 10 }),
  );
}

/* Said from the figures: by what the work is shared, and who waits for whom. */
function shares(ranks) {
  const workers = ranks.filter((rank) => rank.role !== "server" && rank.weight > 0 && rank.layers === undefined),
    words = [];
  const assumed = workers.filter((rank) => rank.weightSource === "assumed").length;
  if (workers.length > 1) {
    if (workers.every((rank) => rank.weight === workers[0].weight)) words.push("Every rank has an equal share.");
    if (assumed) words.push(`The speed of ${assumed === workers.length ? "every rank" : several(assumed, "rank")} is assumed, not measured.`);
  }
  const busy = ranks
    .filter((rank) => rank.busyPermille !== undefined && rank.layers === undefined && rank.role !== "server")
    .sort((a, b) => b.busyPermille - a.busyPermille);
  if (busy.length > 1 && busy[0].busyPermille - busy[busy.length - 1].busyPermille >= 50)
    words.push(
      `Rank ${busy[0].rank} is busiest (${Math.round(busy[0].busyPermille / 10)} %), rank ${busy[busy.length - 1].rank} least (${Math.round(busy[busy.length - 1].busyPermille / 10)} %).`,
    );
  return words.join(" ");
}

/* A model cut over devices: each rank's layers, one after the other, as long as they are many. */
function pipeline(ranks) {
  const stages = ranks
    .filter((rank) => rank.layers)
    .map((rank) => ({ rank, from: parseInt(rank.layers, 10), to: parseInt(String(rank.layers).split(/[:-]/)[1] ?? "", 10) }))
    .filter((stage) => stage.from >= 0)
    .sort((a, b) => a.from - b.from);
  if (stages.length === 0) return [];
  /* "0:5" has both ends in it, or is up to where the next one begins. */
  stages.forEach((stage, i) => {
    const end = stages[i + 1]?.from ?? (stages[0].to === stages[1]?.from ? stage.to : stage.to + 1);
    stage.length = Math.max(1, (end || stage.from + 1) - stage.from);
  });
  const all = stages.reduce((sum, stage) => sum + stage.length, 0),
    list = el("ol", { class: "stages", "aria-label": "Layers, in order, and the device that has them" });
  for (const { rank, length } of stages) {
    const item = el(
      "li",
      {},
      el("b", {}, "layers ", name(rank.layers)),
      el("span", {}, `rank ${rank.rank}, `, name(rank.model ?? rank.group ?? rank.node)),
    );
    item.style.flexGrow = String(Math.max(length / all, 0.02) * 100);
    list.append(item);
  }
  return [el("h4", {}, "Layers on devices"), list];
}

function befell(job) {
  const events = [...job.events].reverse();
  return [
    el("h4", {}, "What befell it"),
    jobEvents(job, now()),
    el(
      "details",
      {},
      el("summary", {}, `${several(events.length, "event")}, newest first`),
      el(
        "ol",
        { class: "plainlist" },
        events
          .slice(0, EVENTS_SHOWN)
          .map((event) =>
            el(
              "li",
              {},
              el("time", { datetime: event.at, title: event.at }, clock(event.at, true)),
              " ",
              el("b", {}, name(event.kind)),
              event.rank !== undefined ? ` rank ${event.rank}` : "",
              " ",
              name(event.message),
            ),
          ),
      ),
    ),
  ];
}
