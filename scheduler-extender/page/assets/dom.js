/* Elements, numbers and times as every view writes them. What comes from the cluster becomes text nodes and attributes of them, never markup. */
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) if (child !== undefined && child !== null && child !== false) node.append(child);
  return node;
}

/* An element with attributes ("on" + event: a listener; absent where undefined or false) and children, of which strings become text. */
export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

/* A name that somebody chose: isolated, so that its direction turns nothing else around. */
export const name = (text) => el("bdi", { class: "name" }, text ?? "");

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, key, value) {
  if (value === undefined || value === null || value === false) node.removeAttribute(key);
  else if (node.getAttribute(key) !== String(value)) node.setAttribute(key, value);
}

/* Makes the children of @parent those of @items: of each key one element, kept while its key is there; `update` fills it anew. */
export function keyed(parent, items, keyOf, create, update) {
  const old = parent.keptRows ?? new Map(),
    rows = new Map();
  let at = parent.firstElementChild;

  for (const item of items) {
    const key = keyOf(item);
    if (rows.has(key)) continue;
    const row = old.get(key) ?? create(item);
    old.delete(key);
    rows.set(key, row);
    update?.(row, item);
    if (row === at) at = at.nextElementSibling;
    else parent.insertBefore(row, at);
  }
  for (const row of old.values()) row.remove();
  parent.keptRows = rows;
}

const whole = new Intl.NumberFormat("en"),
  four = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
export const count = (n) => whole.format(n);
export const figure = (x) => (Math.abs(x) >= 1000 ? whole.format(Math.round(x)) : four.format(x));
export const several = (n, one, many = one + "s") => `${count(n)} ${n === 1 ? one : many}`;

/* The server's clock: its answers say when they were made, and ages are told by it. */
let skew = 0;
export function setClock(at) {
  const server = Date.parse(at ?? "");
  if (!Number.isNaN(server)) skew = server - Date.now();
}
export const now = () => Date.now() + skew;

export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds)),
    m = Math.floor(s / 60),
    h = Math.floor(m / 60),
    d = Math.floor(h / 24);
  if (d > 0) return h % 24 && d < 10 ? `${d} d ${h % 24} h` : `${d} d`;
  if (h > 0) return m % 60 && h < 10 ? `${h} h ${m % 60} min` : `${h} h`;
  return m > 0 ? `${m} min` : `${s} s`;
}

const two = (n) => String(n).padStart(2, "0");
/* HH:MM[:SS] here; of another day with its date before it. */
export function clock(at, seconds = false) {
  const t = new Date(at),
    today = new Date(now());
  const time = `${two(t.getHours())}:${two(t.getMinutes())}${seconds ? ":" + two(t.getSeconds()) : ""}`;
  if (Number.isNaN(t.getTime())) return "";
  return t.toDateString() === today.toDateString() ? time : `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${time}`;
}

function tell(time) {
  const away = (Date.parse(time.dateTime) - now()) / 1000;
  if (Number.isNaN(away)) return time.dateTime;
  if (time.dataset.age === "in") return away > 0 ? `in ${duration(away)}` : "any moment";
  return time.dataset.age === "for" ? duration(-away) : `${duration(-away)} ago`;
}

/* How long ago (or "for", or "in" how long), kept true by tick(); the moment itself in UTC when one points at it. */
export function age(at, words = "ago") {
  if (!at) return el("span", { class: "soft" }, "not known");
  const time = el("time", { datetime: at, "data-age": words, title: at });
  time.textContent = tell(time);
  return time;
}
export function tick(root) {
  for (const time of root.querySelectorAll("time[data-age]")) setText(time, tell(time));
}

/* A table whose rows become cards on a phone. columns: [heading, class]. */
export function table(caption, columns) {
  const body = el("tbody", { role: "rowgroup" });
  const heads = columns.map(([text, kind]) => el("th", { role: "columnheader", scope: "col", class: kind }, text));
  const whole = el(
    "table",
    { class: "cards", role: "table" },
    el("caption", { class: "unseen" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    body,
  );
  return { table: whole, body };
}
/* Its cells: one of each column, the first of which names the row. */
export function cells(columns, contents) {
  return contents.map((content, i) =>
    el(
      i === 0 ? "th" : "td",
      { role: i === 0 ? "rowheader" : "cell", scope: i === 0 ? "row" : undefined, class: columns[i][1], "data-label": columns[i][0] },
      el("div", {}, content),
    ),
  );
}

export const badge = (text, kind) => el("span", { class: "badge", "data-kind": kind }, text);
export const empty = (...what) => el("p", { class: "empty" }, ...what);

/* A sentence for screen readers, politely; many in one moment become the last one. */
let saying;
export function say(sentence) {
  clearTimeout(saying);
  saying = setTimeout(() => setText(document.getElementById("said"), sentence), 300);
}
