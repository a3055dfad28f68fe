/*
 * What the server pushes. On `hello` (at first, and whenever the stream is there again) everything is asked anew; until then what comes in
 * between is of a picture that we do not have. A stream may end without a word: then a small question finds out. A page that nobody
 * sees lets go of its stream, since a browser has few to one server.
 */
import { setClock } from "./dom.js";

const RETRY_MIN_MS = 1000,
  RETRY_MAX_MS = 8000,
  SILENT_MS = 25e3,
  ANSWER_MS = 10e3,
  HIDDEN_MS = 60e3;

export async function ask(path, options = {}) {
  const response = await fetch(path, { signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store", ...options });
  const text = await response.text();
  if (!response.ok) throw Object.assign(new Error(text.trim() || `HTTP status ${response.status}`), { status: response.status });
  return text;
}

export class Live {
  /* on: {hello(page), fleet(message), stale(kind), lost()}; page: which files the server has, or undefined */
  constructor(on) {
    this.on = on;
    this.retry_ms = RETRY_MIN_MS;
    this.connect();
    setInterval(() => this.look(), 5000);
    document.addEventListener("visibilitychange", () => this.seen());
    addEventListener("online", () => this.connect());
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", () => this.source || this.connect());
  }

  connect() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.source?.close();
    const source = (this.source = new EventSource("/v1/changes"));
    source.addEventListener("hello", (event) => {
      this.heard();
      this.retry_ms = RETRY_MIN_MS;
      const { at, page } = parse(event.data);
      setClock(at);
      this.on.hello(page);
    });
    source.addEventListener("fleet", (event) => {
      this.heard();
      this.on.fleet(event.data);
    });
    for (const kind of ["waiting", "jobs", "agents"]) {
      source.addEventListener(kind, () => {
        this.heard();
        this.on.stale(kind);
      });
    }
    source.onerror = () => source === this.source && this.lose();
  }
  heard() {
    this.heardAt = Date.now();
  }

  lose() {
    this.source?.close();
    this.on.lost();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.retry_ms * (0.75 + Math.random() / 2));
    this.retry_ms = Math.min(RETRY_MAX_MS, this.retry_ms * 1.5);
  }

  async look() {
    if (document.hidden || this.timer || this.source?.readyState !== EventSource.OPEN || Date.now() - (this.heardAt ?? 0) < SILENT_MS) return;
    this.heard();
    try {
      await ask("/icon.svg");
    } catch {
      this.lose();
    }
  }

  seen() {
    clearTimeout(this.hiding);
    if (document.hidden) this.hiding = setTimeout(() => this.leave(), HIDDEN_MS);
    else if (!this.source) this.connect();
  }
  /* A page that was left may be kept to come back to, with its stream, of which a browser has six to one server. */
  leave() {
    this.source?.close();
    clearTimeout(this.timer);
    this.source = this.timer = undefined;
  }
}

function parse(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
