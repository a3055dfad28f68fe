/*
 * What a rank prints, followed as it comes: GET /v1/logs of `remuda ui`, which alone has the right to read it. The end is followed until
 * somebody scrolls up. Lines become text nodes, never markup; of what a terminal would colour or overwrite the words are kept.
 */
import { count, el, several, setText } from "./dom.js";

const KEPT_LINES = 2000,
  NEAR_END_PX = 24,
  UNREAD_MAX = 16 << 20; /* of one event, in characters */
const NO_LOGS = "This server reads no logs: open the page with `remuda ui`, which reads them with your own rights.";

let reading; /* one at a time: a browser has few connections to one server */

/* Colours and other escapes go; of a line that overwrote itself the last is left. */
export const plain = (line) =>
  line
    .replace(/\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])/g, "")
    .replace(/\r+$/, "")
    .replace(/^[^]*\r/, "");

export class JobLog {
  constructor(job) {
    this.job = job;
    this.select = el("select", { onchange: () => this.open() });
    this.state = el("p", { class: "soft", role: "status" });
    this.lines = el("div", { class: "lines", tabindex: 0, role: "region", "aria-label": `Log of ${job}`, onscroll: () => this.scrolled() });
    this.again = el("button", { type: "button", class: "plain", hidden: true, onclick: () => this.open() }, "Read it again");
    this.toEnd = el("button", { type: "button", class: "plain", hidden: true, onclick: () => this.goToEnd() }, "Follow the end");
    this.node = el(
      "details",
      { class: "log", hidden: true, ontoggle: () => (this.node.open ? this.open() : this.stop()) },
      el("summary", {}, "Log"),
      el("p", {}, el("label", {}, "of rank ", this.select), " ", this.again, " ", this.toEnd),
      this.state,
      this.lines,
    );
  }

  /* The ranks that there are now. */
  ranks(ranks) {
    const told = ranks.map((rank) => String(rank.rank)).join();
    this.node.hidden = ranks.length === 0;
    if (told === this.told) return;
    const chosen = this.select.value;
    this.told = told;
    this.select.replaceChildren(...ranks.map((rank) => el("option", { value: rank.rank }, `${rank.rank}${rank.role ? ` (${rank.role})` : ""}`)));
    if (ranks.some((rank) => String(rank.rank) === chosen)) this.select.value = chosen;
  }

  stop() {
    this.reader?.abort();
    this.reader = undefined;
    if (reading === this) reading = undefined;
  }
  open() {
    if (!this.node.open) return;
    this.stop();
    if (reading) reading.node.open = false;
    reading = this;
    this.lines.replaceChildren();
    this.following = true;
    this.again.hidden = this.toEnd.hidden = true;
    setText(this.state, "Asking for it.");
    const mine = (this.reader = new AbortController());
    this.read(mine.signal)
      .catch((error) => `The log has broken off: ${error.message}.`)
      .then((said) => {
        if (mine.signal.aborted) return;
        this.stop();
        setText(this.state, said);
        this.again.hidden = said === NO_LOGS;
      });
  }

  /* Return: why it has ended. */
  async read(signal) {
    const response = await fetch(`/v1/logs?job=${encodeURIComponent(this.job)}&rank=${encodeURIComponent(this.select.value)}`, { signal, cache: "no-store" });
    if (response.status === 404) return NO_LOGS;
    if (!response.ok) return `It is not read: ${refusal(await response.text(), response.status)}`;
    const body = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    setText(this.state, "Nothing is printed yet.");
    for (let piece; !(piece = await body.read()).done; ) {
      if (!this.node.isConnected || text.length > UNREAD_MAX) throw new Error("nobody reads it");
      const events = (text + piece.value).split("\n\n");
      text = events.pop();
      for (const event of events) {
        const end = this.take(event);
        if (end) return end;
      }
    }
    return "The log has broken off: the server has ended.";
  }

  /* Return: the sentence of the end. */
  take(event) {
    const kind = /^event: (.*)$/m.exec(event)?.[1],
      data = /^data: (.*)$/m.exec(event)?.[1];
    if (!data) return undefined;
    const said = JSON.parse(data);
    if (kind === "end") return `The log has ended: ${said.message}.`;
    if (kind === "lines") this.add(said);
    return undefined;
  }
  add({ lines, skipped }) {
    const rows = lines.slice(-KEPT_LINES).map((line) => el("div", {}, plain(line) || "\u00a0"));
    if (skipped) rows.unshift(el("div", { class: "soft" }, `${several(skipped, "line")} left out: they came faster than they can be shown`));
    this.lines.append(...rows);
    while (this.lines.childElementCount > KEPT_LINES) this.lines.firstElementChild.remove();
    if (this.following) this.lines.scrollTop = this.lines.scrollHeight;
    this.tell();
  }

  tell() {
    const shown = this.lines.childElementCount;
    setText(
      this.state,
      `${shown === KEPT_LINES ? `The last ${count(shown)} lines` : several(shown, "line")}, ${this.following ? "followed as they come." : "not followed while you read further up."}`,
    );
    this.toEnd.hidden = this.following;
  }
  scrolled() {
    const box = this.lines,
      following = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END_PX;
    if (following === this.following) return;
    this.following = following;
    if (this.reader) this.tell();
  }
  goToEnd() {
    this.following = true;
    this.lines.scrollTop = this.lines.scrollHeight;
    this.tell();
  }
}

function refusal(text, status) {
  try {
    return JSON.parse(text).error ?? `HTTP status ${status}`;
  } catch {
    return `HTTP status ${status}`;
  }
}
