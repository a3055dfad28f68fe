/* The page: which view is shown, what is asked when, and what is said when the server is gone. */
import { clock, count, now, say, setAttribute, setClock, setText, tick } from "./dom.js";
import { Fleet } from "./fleet_model.js";
import { FleetView } from "./fleet.js";
import { WaitingView } from "./waiting.js";
import { JobsView } from "./jobs.js";
import { AgentsView } from "./agents.js";
import { Live, ask } from "./live.js";
import { hasEnded } from "./timeline.js";

const at = (id) => document.getElementById(id);
const NAMES = ["fleet", "waiting", "jobs", "agents"],
  TITLES = { fleet: "Fleet", waiting: "Waiting", jobs: "Jobs", agents: "Agents" };
const fleet = new Fleet(),
  context = { fleet, answers: {}, go };
const views = {
  fleet: new FleetView(at("fleet"), at("panel"), context),
  waiting: new WaitingView(at("waiting"), context),
  jobs: new JobsView(at("jobs"), context),
  agents: new AgentsView(at("agents"), context),
};
const stale = new Set(NAMES),
  asking = new Map(),
  HIDDEN_VIEW_MS = 5000,
  REFUSED_RETRY_MS = 5000,
  HELLO_MS = 1500,
  UNTOUCHED_MS = 60e3;
let shown = "fleet",
  lostAt,
  lastAnswer,
  madeOf,
  isOld = false,
  touchedAt = 0,
  queue = [];

/* Which view, and of the fleet which filter: #fleet?state=sick&vendor=nvidia. */
function route() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  shown = NAMES.includes(view) ? view : "fleet";
  for (const name of NAMES) {
    const tab = at(`tab-${name}`),
      selected = name === shown;
    at(name).hidden = !selected;
    setAttribute(tab, "aria-selected", String(selected));
    tab.tabIndex = selected ? 0 : -1;
  }
  if (shown === "fleet") views.fleet.setFilter(new URLSearchParams(query));
  else views.fleet.panel.close();
  views[shown].draw();
  title();
  tick(at(shown));
  if (stale.has(shown) && lastAnswer) want(shown);
}
function go(hash) {
  if (location.hash === hash) return;
  history.replaceState(null, "", hash);
  route();
}
function title() {
  const words = `${TITLES[shown]} · ${fleet.cluster ? fleet.cluster + " · " : ""}Remuda`;
  if (document.title !== words) document.title = words; /* a browser does much for it */
}

/* After the frame that shows what was just done. */
function painted(then) {
  requestAnimationFrame(() => {
    const begun = performance.now(),
      channel = new MessageChannel();
    channel.port1.onmessage = () => then(begun);
    channel.port2.postMessage(null);
  });
}

/* What is not looked at first is asked after the first picture. */
function others() {
  for (const kind of NAMES) if (stale.has(kind)) want(kind);
}
/* One question of a kind at a time; a change while one is under way asks again. */
function want(kind) {
  stale.add(kind);
  if (asking.has(kind)) return;
  const wait = kind === shown || kind === "fleet" || !context.answers[kind] ? 0 : HIDDEN_VIEW_MS;
  asking.set(
    kind,
    setTimeout(() => answer(kind), wait),
  );
}
async function answer(kind) {
  let text;
  stale.delete(kind);
  try {
    text = await ask(`/v1/${kind}`);
  } catch (error) {
    stale.add(kind);
    asking.delete(kind);
    if (error.status || error.name === "TimeoutError") refused(kind, error);
    else live.lose(); /* nobody is there; hello asks again */
    return;
  }
  if (kind === "fleet") performance.mark("fleet-answer");
  const answered = JSON.parse(text);
  setClock(answered.at);
  lastAnswer = answered.at ?? new Date(now()).toISOString();
  asking.delete(kind);
  if (kind === "fleet") takeFleet(answered);
  else take(kind, answered);
  said();
  if (stale.has(kind)) want(kind);
}
/* The server is there and has no such answer, now. */
function refused(kind, error) {
  console.error(kind, error);
  if (kind === "fleet") others();
  views[kind].refused(`/v1/${kind} is not answered now: ${error.message}`);
  setTimeout(() => stale.has(kind) && want(kind), REFUSED_RETRY_MS);
}
function takeFleet(said) {
  context.answers.fleet = said;
  fleet.replace(said);
  for (const message of queue) if ((message.generation ?? Infinity) > (said.generation ?? 0)) fleet.change(message);
  queue = [];
  setText(at("cluster"), fleet.cluster);
  title();
  views.fleet.redraw();
  tabs();
  painted(() => {
    performance.measure("fleet-picture", "fleet-answer");
    others();
  });
}
function take(kind, said) {
  context.answers[kind] = said;
  tabs();
  if (kind === "jobs" && !location.hash && fleet.known && fleet.chips === 0 && said.jobs?.length) go("#jobs"); /* a folder of jobs alone */
  if (kind === shown) views[kind].draw();
  if (kind === "waiting" || kind === "jobs") views.fleet.drawSummary();
}

function changed(data) {
  const began = performance.now(),
    message = JSON.parse(data);
  if (!fleet.known || asking.has("fleet")) {
    queue.push(message);
    return;
  }
  lastAnswer = new Date(now()).toISOString().slice(0, 19) + "Z";
  const change = fleet.change(message),
    read = performance.now() - began;
  for (const { node, chip, is } of change.turned.slice(0, 1))
    if (is === "sick") say(`${chip.id} on ${node} is sick: ${chip.reason ?? "no reason told"}`);
  pending.changed.push(...change.changed);
  pending.moved ||= change.moved;
  pending.read += read;
  if (pending.changed.length > 0 || pending.moved || change.faulted) pending.frame = pending.frame ?? requestAnimationFrame(drawChanges);
}
let pending = { changed: [], moved: false, read: 0 };
function drawChanges() {
  const began = performance.now() - pending.read,
    { changed: names, moved } = pending;
  pending = { changed: [], moved: false, read: 0 };
  views.fleet.refresh(names, moved);
  tabs();
  const channel = new MessageChannel(); /* its message comes after this frame's layout and paint */
  channel.port1.onmessage = () => performance.measure("fleet-refresh", { start: began, end: performance.now() });
  channel.port2.postMessage(null);
}

function tabs() {
  const { waiting, jobs, agents } = context.answers;
  const running = jobs?.jobs?.filter((job) => !hasEnded(job)).length;
  const ill = agents?.agents?.filter((agent) => agent.stale || agent.registered === false).length;
  const told = {
    fleet: fleet.known && fleet.count("sick") ? [fleet.count("sick"), "sick"] : undefined,
    waiting: waiting?.total ? [waiting.total, "waiting"] : undefined,
    jobs: running ? [running, "not ended"] : undefined,
    agents: ill ? [ill, "silent or not registered"] : undefined,
  };
  for (const name of NAMES) {
    const badge = at(`tab-${name}`).querySelector(".count");
    badge.hidden = !told[name];
    setText(badge, told[name] ? count(told[name][0]) : "");
    setAttribute(at(`tab-${name}`), "aria-label", told[name] ? `${TITLES[name]}, ${count(told[name][0])} ${told[name][1]}` : undefined);
  }
}

/* The server is gone: since when, of when the picture is, and that somebody goes on trying. */
function lost() {
  lostAt = lostAt ?? now();
  said();
}
function found() {
  if (lostAt) say("The server answers again; the picture is of now.");
  lostAt = undefined;
  said();
}
function said() {
  const sign = at("live");
  const state = lostAt ? "lost" : lastAnswer ? "live" : "connecting";
  setAttribute(sign, "data-live", state);
  setText(sign.firstElementChild, { lost: "Not live", live: "Live", connecting: "Connecting" }[state]);
  document.body.classList.toggle("old", lostAt !== undefined);
  const of = lastAnswer ? `What you see is of ${clock(lastAnswer, true)}.` : "Nothing has been seen yet.";
  const old = isOld ? `The server has another version of this page: reload to have it now, or ${isBusy() ? "close the log and empty the box" : "wait a minute"}.` : "";
  setText(at("banner"), lostAt ? `The server has not answered since ${clock(lostAt, true)}. ${of} Trying again.` : old);
}

/* An upgraded server has other files, and may answer what these cannot draw. View and filters are in the address; who types or reads is not disturbed. */
const isBusy = () => [...document.querySelectorAll("textarea")].some((field) => field.value) || Boolean(document.querySelector(".log[open]"));
function renew() {
  if (!isBusy() && (document.hidden || Date.now() - touchedAt > UNTOUCHED_MS)) location.reload();
}
for (const kind of ["keydown", "pointerdown", "wheel"]) addEventListener(kind, () => (touchedAt = Date.now()), { passive: true });

const live = new Live({
  hello(page) {
    isOld ||= Boolean(page && madeOf && page !== madeOf);
    madeOf ??= page;
    found();
    if (isOld) renew();
    for (const kind of NAMES) stale.add(kind);
    queue = [];
    want("fleet");
    want(shown);
  },
  fleet: changed,
  stale: want,
  lost,
});

setTimeout(() => lastAnswer || NAMES.forEach(want), HELLO_MS); /* a server without a stream has answers all the same */

at("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key],
    here = NAMES.indexOf(shown);
  const next = step ? NAMES[(here + step + NAMES.length) % NAMES.length] : { Home: NAMES[0], End: NAMES[NAMES.length - 1] }[event.key];
  if (!next) return;
  event.preventDefault();
  location.hash = next;
  at(`tab-${next}`).focus();
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") views.fleet.panel.close();
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    const field = at(shown).querySelector("input[type=search]");
    if (field) (event.preventDefault(), field.focus());
  }
});
addEventListener("hashchange", route);
addEventListener("beforeprint", () => views.fleet.forPrint(true));
addEventListener("afterprint", () => views.fleet.forPrint(false));
setInterval(() => {
  tick(at(shown));
  tick(at("panel"));
  if (isOld && !lostAt) renew();
}, 5000);
route();
