/* Pictures of time: the last hour's faults of the fleet, minute by minute, and a job's events on one clock. */
import { clock, count, el, several, svg } from "./dom.js";
import { NOT_WELL } from "./fleet_model.js";

const MINUTES = 60,
  HIGH_PX = 46,
  LOW_PX = 30,
  LANE_PX = 22,
  LANES_MAX = 24;

/* Faults stand above the line, recoveries below it. */
export function hour(faults, now) {
  const bins = Array.from({ length: MINUTES }, () => ({ recovered: 0, sick: 0, quarantined: 0, degraded: 0, unknown: 0 }));
  const sums = { recovered: 0, sick: 0, quarantined: 0, degraded: 0, unknown: 0 };
  for (const fault of faults) {
    const minute = MINUTES - 1 - Math.floor((now - Date.parse(fault.at)) / 60e3),
      kind = fault.to === "recovered" ? "recovered" : NOT_WELL.includes(fault.to) ? fault.to : "unknown";
    if (!(minute >= 0)) continue;
    bins[Math.min(minute, MINUTES - 1)][kind]++;
    sums[kind]++;
  }
  const ill = (bin) => NOT_WELL.reduce((sum, state) => sum + bin[state], 0);
  const most = Math.max(1, ...bins.map((bin) => Math.max(ill(bin), bin.recovered)));
  const words = [...NOT_WELL, "recovered"]
    .filter((kind) => sums[kind])
    .map((kind) => `${count(sums[kind])} ${kind}`)
    .join(", ");
  const picture = svg("svg", {
    class: "hour",
    role: "img",
    viewBox: `0 0 ${MINUTES * 10} ${HIGH_PX + LOW_PX}`,
    preserveAspectRatio: "none",
    "aria-label": `Faults of the last hour, minute by minute: ${words || "none"}`,
  });
  bins.forEach((bin, i) => {
    let y = HIGH_PX - 1;
    for (const state of NOT_WELL) {
      const height = (bin[state] / most) * (HIGH_PX - 3);
      if (height > 0) picture.append(svg("rect", { class: `bar ${state}`, x: i * 10 + 1, width: 8, y: (y -= height), height }));
    }
    if (bin.recovered)
      picture.append(svg("rect", { class: "bar recovered", x: i * 10 + 1, width: 8, y: HIGH_PX + 1, height: (bin.recovered / most) * (LOW_PX - 2) }));
  });
  picture.append(svg("line", { class: "axis", x1: 0, x2: MINUTES * 10, y1: HIGH_PX, y2: HIGH_PX }));
  return {
    picture,
    sums,
    words,
    most,
    axis: el(
      "div",
      { class: "scale", "aria-hidden": "true" },
      [60, 45, 30, 15, 0].map((minutes) => el("span", {}, clock(now - minutes * 60e3))),
    ),
  };
}

const SHAPES = { fault: "M-5-5 5 5M5-5-5 5", repair: "M-5 5 0-5 5 5Z", plan: "M0-6 6 0 0 6-6 0Z", other: "M-3-3H3V3H-3Z" };
const shapeOf = (kind) =>
  /fault|fail|lost|sick|dead/i.test(kind)
    ? "fault"
    : /repair|recover|back|restart/i.test(kind)
      ? "repair"
      : /plan|share|cut/i.test(kind)
        ? "plan"
        : "other";

export const hasEnded = (job) => ["Succeeded", "Failed", "Cancelled"].includes(job.phase);

/* Every rank that something befell has a lane; what is of the whole job is in the first. x is time, the same for all. */
export function jobEvents(job, now) {
  const events = job.events ?? [],
    ranks = [...new Set(events.map((event) => event.rank).filter((rank) => rank !== undefined))].sort((a, b) => a - b);
  const lanes = ["job", ...ranks.slice(0, LANES_MAX)],
    ended = hasEnded(job);
  const times = events.map((event) => Date.parse(event.at)).filter((t) => !Number.isNaN(t));
  const from = Math.min(Date.parse(job.started ?? job.created ?? "") || Infinity, ...times),
    to = ended ? Math.max(...times) : Math.max(now, ...times);
  const x = (t) => `${(8 + (90 * (t - from)) / Math.max(1, to - from)).toFixed(2)}%`,
    bottom = lanes.length * LANE_PX;
  const picture = svg("svg", {
    class: "events",
    role: "img",
    width: "100%",
    height: bottom + 20,
    "aria-label": `${several(events.length, "event")} from ${clock(from)} to ${clock(to)}; they are listed below`,
  });
  lanes.forEach((lane, i) =>
    picture.append(
      svg("line", { class: "lane", x1: "8%", x2: "98%", y1: i * LANE_PX + 11, y2: i * LANE_PX + 11 }),
      svg("text", { x: 0, y: i * LANE_PX + 15 }, lane === "job" ? "job" : `rank ${lane}`),
    ),
  );
  for (const event of events) {
    const lane = event.rank === undefined ? 0 : lanes.indexOf(event.rank),
      shape = shapeOf(event.kind ?? "");
    if (lane < 0 || Number.isNaN(Date.parse(event.at))) continue;
    picture.append(
      svg(
        "svg",
        { class: "mark", x: x(Date.parse(event.at)), y: lane * LANE_PX + 11, overflow: "visible" },
        svg("path", { class: shape, d: SHAPES[shape] }),
        svg("title", {}, `${clock(event.at, true)} ${event.kind}: ${event.message ?? ""}`),
      ),
    );
  }
  for (const [t, anchor] of [
    [from, "start"],
    [(from + to) / 2, "middle"],
    [to, "end"],
  ])
    picture.append(svg("text", { x: x(t), y: bottom + 15, "text-anchor": anchor }, clock(t)));
  return picture;
}
