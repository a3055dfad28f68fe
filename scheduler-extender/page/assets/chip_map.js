/*
 * One cell a chip, of as many as there are: places are computed, and elements exist for what is in view alone (with a margin), so that
 * forty thousand chips cost what a screenful costs. A tile is a device group on a node: its name above, its cells in rows of eight.
 * Cells are one stop of the Tab key; arrows, Home, End, Page Up and Page Down go on from there, also to what is not drawn yet.
 */
import { count, el, setAttribute, setText, several } from "./dom.js";
import { STATES, chipKey, countOf } from "./fleet_model.js";

const ACROSS = 8,
  MARGIN_PX = 400,
  POINTED_MS = 150;
const SIZES = { normal: { pitch: 24, head: 20, gapX: 20, gapY: 12 }, small: { pitch: 12, head: 0, gapX: 10, gapY: 4 } };
const SECTION_HEAD_PX = 46,
  SECTION_GAP_PX = 16;

const tileKey = (tile) => `${tile.node.node}\n${tile.group.group}`;
const describe = (tile, chip) => `${chip.id} on ${tile.node.node}, ${chip.state}${chip.reason ? `: ${chip.reason}` : ""}`;

export class ChipMap {
  /* onOpen(key, cell); hint(key): a promise of more words about a chip that is pointed at. */
  constructor({ onOpen, hint }) {
    this.host = el("div", { class: "map", role: "group", "aria-label": "Chips. Arrow keys move, Enter tells more." });
    this.sections = [];
    this.rows = [];
    this.tiles = [];
    this.drawn = new Map();
    this.onOpen = onOpen;
    this.size = SIZES.normal;
    this.host.addEventListener("click", (event) => this.open(event.target));
    this.host.addEventListener("keydown", (event) => this.key(event));
    this.host.addEventListener("focusin", (event) => event.target.dataset.chip && this.settle(event.target.dataset.chip));
    this.hint = hint;
    this.host.addEventListener("pointerover", (event) => this.point(event.target));
    for (const event of ["scroll", "resize"]) addEventListener(event, () => this.soon(), { passive: true });
    this.width = 0;
    new ResizeObserver(() => this.host.clientWidth !== this.width && this.measure()).observe(this.host);
  }

  small(wanted) {
    this.size = wanted ? SIZES.small : SIZES.normal;
    this.host.classList.toggle("small", wanted);
    this.clear();
    this.lay();
  }
  clear() {
    for (const element of this.drawn.values()) element.remove();
    this.drawn.clear();
  }

  show(sections) {
    this.sections = sections;
    this.lay();
  }

  /* Its width, and where it begins in the window. To ask makes the browser lay out all that was changed: what draws many cells goes by
     what was measured last, and the frame after it by what is. */
  measure() {
    const { width } = this;
    this.width = this.host.clientWidth;
    this.top = this.host.getBoundingClientRect().top;
    this.high = innerHeight;
    if (this.width !== width) this.lay();
  }

  /* Where everything is: rows with their top and height, tiles with their row and column. */
  lay() {
    const { pitch, head, gapX, gapY } = this.size,
      wide = ACROSS * pitch + gapX;
    let top = 0;
    if (this.width === 0) return;
    this.across = Math.max(1, Math.floor((this.width + gapX) / wide));
    this.rows = [];
    this.tiles = [];
    for (const section of this.sections) {
      this.rows.push({ top, height: SECTION_HEAD_PX, section });
      top += SECTION_HEAD_PX;
      for (let i = 0; i < section.tiles.length; i += this.across) {
        const tiles = section.tiles.slice(i, i + this.across);
        let most = 1;
        for (let column = 0; column < tiles.length; column++) {
          const tile = tiles[column];
          most = Math.max(most, tile.size);
          tile.index = this.tiles.length;
          tile.top = top;
          tile.left = column * wide;
          tile.row = this.rows.length;
          tile.column = column;
          this.tiles.push(tile);
        }
        const height = head + Math.ceil(most / ACROSS) * pitch + gapY;
        this.rows.push({ top, height, tiles });
        top += height;
      }
      top += SECTION_GAP_PX;
    }
    this.host.style.height = `${Math.max(0, top - SECTION_GAP_PX)}px`;
    this.draw(true, 0); /* what is seen, first; the margin after the frame that shows it */
    requestAnimationFrame(() => setTimeout(() => this.soon()));
  }

  soon() {
    if (!this.wanted)
      this.wanted = requestAnimationFrame(() => {
        this.wanted = undefined;
        this.measure();
        this.draw(false);
      });
  }

  inView(margin_px) {
    const from = -this.top - margin_px,
      to = this.high - this.top + margin_px;
    let low = 0,
      high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].top + this.rows[middle].height < from) low = middle + 1;
      else high = middle;
    }
    let end = low;
    while (end < this.rows.length && this.rows[end].top < to) end++;
    return this.rows.slice(low, end);
  }

  /* @filled: cells may look different; else only what comes into view is made. @margin_px: Infinity for the printer. */
  draw(filled, margin_px = MARGIN_PX) {
    if (this.width === 0) return;
    const items = [],
      focused = document.activeElement?.closest?.(".tile")?.dataset.tile;
    for (const row of this.inView(margin_px)) {
      if (row.section) items.push({ key: `section ${row.section.key}`, row });
      else for (const tile of row.tiles) items.push({ key: tileKey(tile), tile });
    }
    const keys = new Set(items.map((item) => item.key));
    if (focused && !keys.has(focused)) {
      const tile = this.tiles.find((candidate) => tileKey(candidate) === focused); /* focus is not lost by scrolling */
      if (tile) (items.push({ key: focused, tile }), keys.add(focused));
    }
    for (const [key, element] of this.drawn) if (!keys.has(key)) (element.remove(), this.drawn.delete(key));
    let at = this.host.firstElementChild;
    for (const { key, row, tile } of items) {
      let element = this.drawn.get(key);
      const fresh = !element;
      if (fresh) this.drawn.set(key, (element = tile ? this.makeTile() : this.makeHead()));
      if (fresh || filled) tile ? this.fillTile(element, tile) : this.fillHead(element, row);
      if (element === at) at = at.nextElementSibling;
      else this.host.insertBefore(element, at);
    }
    this.keepStop();
  }

  makeHead() {
    return el("div", { class: "kind" }, el("h3"), el("p"));
  }
  fillHead(element, row) {
    const { section } = row,
      [title, words] = element.children;
    const counts = countOf(section.tiles);
    const parts = STATES.map((state, i) => counts[i] && `${count(counts[i])} ${state}`).filter(Boolean);
    setText(title, section.model);
    setText(words, `${section.vendor}: ${several(section.chips, "chip")} on ${several(section.nodes, "node")}: ${parts.join(", ")}`);
    element.style.transform = `translateY(${row.top}px)`;
  }

  /* A copy of one that is made once: that is what a browser is quickest at. */
  makeTile() {
    if (!this.pattern) {
      const cell = () => el("span", { class: "chip", role: "button", tabindex: "-1" });
      this.pattern = el(
        "div",
        { class: "tile", role: "group" },
        el("div", { class: "node" }),
        el("div", { class: "cells" }, Array.from({ length: ACROSS }, cell)),
      );
    }
    return this.pattern.cloneNode(true);
  }
  fillTile(element, tile) {
    const [title, box] = element.children,
      { group, chips } = tile;
    const more = tile.node.groups.length > 1 ? ` ${group.group}` : "";
    element.tile = tile;
    element.dataset.tile = tileKey(tile);
    element.style.transform = `translate(${tile.left}px, ${tile.top}px)`;
    setAttribute(element, "aria-label", `node ${tile.node.node}, group ${group.group}${tile.node.stale ? ", silent" : ""}`);
    setAttribute(element, "data-stale", tile.node.stale);
    setText(title, `${tile.node.node}${more}${tile.node.stale ? ", silent" : ""}`);
    setAttribute(title, "title", `${tile.node.node}, ${group.group}`);
    while (box.childElementCount > chips.length) box.lastElementChild.remove();
    while (box.childElementCount < chips.length) box.append(this.pattern.lastElementChild.firstElementChild.cloneNode());
    let cell = box.firstElementChild;
    for (const chip of chips) {
      this.fillCell(cell, tile, chip);
      cell = cell.nextElementSibling;
    }
  }
  fillCell(cell, tile, chip) {
    const key = chipKey(tile.node, chip),
      { state } = chip;
    if (cell.key !== key) {
      cell.key = key;
      cell.setAttribute("data-chip", key);
      cell.classList.remove("turned");
    } else if (cell.state !== state) {
      cell.classList.remove("turned");
      requestAnimationFrame(() => cell.classList.add("turned"));
    }
    if (cell.state !== state) cell.setAttribute("data-state", state);
    cell.state = state;
    setAttribute(cell, "aria-label", describe(tile, chip));
  }

  /* Nodes that look different and stay where they are. */
  refresh(names, fleet) {
    const wanted = new Set(names);
    for (const tile of this.tiles) {
      if (!wanted.has(tile.node.node)) continue;
      tile.node = fleet.nodes.get(tile.node.node);
      const element = this.drawn.get(tileKey(tile));
      if (element) this.fillTile(element, tile);
    }
  }
  /* The sentences above sections, after counts changed. */
  refreshHeads() {
    for (const row of this.rows) {
      const element = row.section && this.drawn.get(`section ${row.section.key}`);
      if (element) this.fillHead(element, row);
    }
  }

  /* Exactly one cell is a stop of the Tab key: the last one that had the focus, else the first in view. */
  keepStop() {
    const stops = this.host.querySelectorAll('[tabindex="0"]');
    let stop = this.stop && this.host.querySelector(`[data-chip="${CSS.escape(this.stop)}"]`);
    stop = stop || this.host.querySelector(".chip");
    for (const other of stops) if (other !== stop) other.tabIndex = -1;
    if (stop) stop.tabIndex = 0;
  }
  settle(key) {
    this.stop = key;
    this.keepStop();
  }

  /* Its words under the pointer: at once those that are known, who has it where the pointer rests. */
  point(cell) {
    const key = cell.dataset.chip;
    clearTimeout(this.pointing);
    if (!key) return;
    cell.title = cell.getAttribute("aria-label");
    this.pointing = setTimeout(async () => {
      const words = await this.hint(key);
      if (words && cell.dataset.chip === key) cell.title = `${cell.getAttribute("aria-label")}, ${words}`;
    }, POINTED_MS);
  }

  open(target) {
    if (target.dataset.chip) this.onOpen(target.dataset.chip, target);
  }

  key(event) {
    const cell = event.target;
    if (!cell.dataset.chip || event.altKey || event.ctrlKey || event.metaKey) return;
    const tile = cell.closest(".tile").tile,
      at = [...cell.parentNode.children].indexOf(cell);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.open(cell);
      return;
    }
    const next = this.beside(event.key, tile, at);
    if (!next) return;
    event.preventDefault();
    this.focus(next.tile, Math.min(next.at, next.tile.size - 1));
  }
  beside(key, tile, at) {
    const before = this.tiles[tile.index - 1],
      after = this.tiles[tile.index + 1],
      last = this.tiles[this.tiles.length - 1];
    switch (key) {
      case "ArrowLeft":
        return at > 0 ? { tile, at: at - 1 } : { tile: before ?? tile, at: before ? before.size - 1 : 0 };
      case "ArrowRight":
        return at + 1 < tile.size ? { tile, at: at + 1 } : { tile: after ?? tile, at: after ? 0 : at };
      case "ArrowUp":
        return at >= ACROSS ? { tile, at: at - ACROSS } : { tile: this.rowAway(tile, -1), at };
      case "ArrowDown":
        return at + ACROSS < tile.size ? { tile, at: at + ACROSS } : { tile: this.rowAway(tile, 1), at: at % ACROSS };
      case "PageUp":
        return { tile: this.rowAway(tile, -10), at };
      case "PageDown":
        return { tile: this.rowAway(tile, 10), at };
      case "Home":
        return { tile: this.tiles[0], at: 0 };
      case "End":
        return { tile: last, at: last.size - 1 };
      default:
        return undefined;
    }
  }
  /* The tile so many rows of tiles away, in the same column where that row is long enough. */
  rowAway(tile, rows) {
    let found = tile;
    for (let i = tile.row, left = Math.abs(rows); left > 0;) {
      i += Math.sign(rows);
      if (i < 0 || i >= this.rows.length) break;
      if (!this.rows[i].tiles) continue;
      found = this.rows[i].tiles[Math.min(tile.column, this.rows[i].tiles.length - 1)];
      left--;
    }
    return found;
  }

  focus(tile, at) {
    const box = this.host.getBoundingClientRect(),
      top = box.top + tile.top,
      height = this.rows[tile.row].height;
    const above = (document.querySelector(".top")?.offsetHeight ?? 0) + 8;
    if (top < above) scrollBy(0, top - above);
    else if (top + height > innerHeight) scrollBy(0, top + height - innerHeight + 8);
    this.measure();
    this.draw(false);
    const cell = this.drawn.get(tileKey(tile))?.lastElementChild.children[at];
    if (!cell) return;
    cell.focus({ preventScroll: true });
    this.settle(cell.dataset.chip);
  }
  /* Back to a chip's cell, wherever it is by now. */
  focusChip(key) {
    const on = key.slice(0, key.indexOf("/"));
    const tile = this.tiles.find((candidate) => candidate.node.node === on && candidate.chips.some((chip) => chipKey(candidate.node, chip) === key));
    if (tile)
      this.focus(
        tile,
        tile.chips.findIndex((chip) => chipKey(tile.node, chip) === key),
      );
    return tile !== undefined;
  }
}
