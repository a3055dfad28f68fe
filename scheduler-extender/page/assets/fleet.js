/* The fleet: totals that are filters, what is not well and since when, the last hour, and every chip. */
import { ChipMap } from "./chip_map.js";
import { ChipPanel, MEANS } from "./chip_panel.js";
import { clock, count, duration, el, empty, keyed, name, now, setAttribute, setText, several } from "./dom.js";
import { Details } from "./details.js";
import { NOT_WELL, STATES, chipKey } from "./fleet_model.js";
import { hour } from "./timeline.js";

const TROUBLES_SHOWN = 4,
  PLACES_SHOWN = 4,
  NEWEST = 4,
  JOBS_TOLD = 2,
  LISTED_FAULTS = 40,
  PRINTED_TILES = 600,
  LATER_MS = 400;

function faultLine(fault) {
  const state = fault.to === "recovered" ? "free" : NOT_WELL.includes(fault.to) ? fault.to : "unknown";
  return el(
    "li",
    {},
    el("time", { datetime: fault.at, title: fault.at }, clock(fault.at, true)),
    " ",
    el("span", { class: "swatch", "data-state": state }),
    el("b", {}, fault.to),
    " ",
    name(fault.device ? `${fault.node} / ${fault.device}` : fault.node),
    fault.reason ? [" ", el("span", { class: "reason" }, name(fault.reason))] : "",
    fault.message ? [" ", el("span", { class: "soft" }, name(fault.message))] : "",
  );
}

export class FleetView {
  constructor(host, panel, context) {
    Object.assign(this, { host, context, fleet: context.fleet, filter: { states: new Set() } });
    const details = new Details(this.fleet);
    this.map = new ChipMap({ onOpen: (key, cell) => this.panel.open(key, cell), hint: (key) => details.holder(key) });
    this.panel = new ChipPanel(panel, details, (key) => !host.hidden && this.map.focusChip(key));
    this.build();
  }

  build() {
    this.summary = el("p", { class: "summary" });
    this.totals = el("div", { class: "totals", role: "group", "aria-label": "Chips by state; a press shows those alone" });
    this.buttons = STATES.map((state) =>
      el(
        "button",
        { type: "button", class: "total", "data-total": state, "aria-pressed": "false", title: MEANS[state], onclick: () => this.toggle(state) },
        el("span", { class: "number" }, "–"),
        el("span", { class: "word" }, el("span", { class: "swatch", "data-state": state }), state),
      ),
    );
    this.all = el("p", { class: "total all" }, el("span", { class: "number" }, "–"), el("span", { class: "word" }, "chips"));
    this.totals.append(this.all, ...this.buttons);
    this.troubles = el("div", { class: "box" });
    this.hour = el("div", { class: "box" });
    this.vendor = this.choice("Vendor", "vendor");
    this.model = this.choice("Model", "model");
    this.state = this.choice("State", "state");
    this.node = el("input", {
      type: "search",
      id: "filter-node",
      placeholder: "part of its name  ( / )",
      oninput: () => this.set({ node: this.node.value.trim() }),
    });
    this.small = el("input", { type: "checkbox", id: "small-cells", onchange: () => this.map.small(this.small.checked) });
    this.shown = el("p", { class: "shown", role: "status", "aria-live": "polite" });
    this.clear = el(
      "button",
      { type: "button", class: "plain", hidden: true, onclick: () => this.set({ vendor: "", model: "", node: "", states: new Set() }) },
      "Show all",
    );
    this.none = empty();
    this.none.hidden = true;
    this.refusal = el("p", { class: "refusal", hidden: true });
    this.host.append(
      el("h2", { class: "unseen" }, "Fleet"),
      this.refusal,
      this.summary,
      this.totals,
      el("div", { class: "pair" }, this.troubles, this.hour),
      el(
        "div",
        { class: "filters", role: "search", "aria-label": "Which chips are shown" },
        this.vendor.label,
        this.model.label,
        this.state.label,
        el("label", { for: "filter-node" }, "Node ", this.node),
        el("label", { class: "check", for: "small-cells" }, this.small, " small cells"),
        this.clear,
        this.shown,
      ),
      this.none,
      this.map.host,
    );
  }
  choice(label, key) {
    const select = el("select", {
      id: `filter-${key}`,
      onchange: () => this.set(key === "state" ? { states: new Set(select.value ? select.value.split(" ") : []) } : { [key]: select.value }),
    });
    return { select, label: el("label", { for: `filter-${key}` }, `${label} `, select) };
  }

  /* The filter is in the address, so that it can be sent to somebody. */
  set(some) {
    const { vendor, model, node, states } = { ...this.filter, ...some },
      query = new URLSearchParams();
    for (const [key, value] of Object.entries({ state: [...states].join(","), vendor, model, node })) if (value) query.set(key, value);
    const text = query.toString().replaceAll("%2C", ",");
    this.context.go(text ? `#fleet?${text}` : "#fleet");
  }
  setFilter(query) {
    const states = new Set((query.get("state") ?? "").split(",").filter((state) => STATES.includes(state)));
    const filter = { states, vendor: query.get("vendor") ?? "", model: query.get("model") ?? "", node: query.get("node") ?? "" };
    const same = JSON.stringify([filter, [...states]]) === this.filterText;
    this.filterText = JSON.stringify([filter, [...states]]);
    this.filter = filter;
    if (same || !this.fleet.known) return;
    this.fillChoices();
    this.redraw();
  }
  toggle(state) {
    const states = new Set(this.filter.states);
    if (!states.delete(state)) states.add(state);
    this.set({ states });
  }

  /* All of it, after an answer or with another filter. */
  redraw() {
    this.refusal.hidden = true;
    this.drawTotals();
    this.drawMap();
    this.later(); /* the lists, after the map: they are read second */
  }
  draw() {
    this.map.measure();
  }
  refused(sentence) {
    this.refusal.hidden = false;
    setText(this.refusal, sentence);
  }

  /* @names: nodes that look different; @moved: some came, went or have other groups. */
  refresh(names, moved) {
    this.drawTotals();
    if (moved || this.filter.states.size > 0) this.drawMap();
    else this.map.refresh(names, this.fleet);
    this.later();
    this.panel.refresh(names);
  }
  /* Lists are read second: at first after the frame with the cells, then at most so often. */
  later() {
    if (this.waits) return;
    const draw = () => {
      this.waits = false;
      this.map.refreshHeads();
      this.fillChoices();
      this.list = this.fleet.troubles();
      this.drawTroubles();
      this.drawHour();
      this.drawSummary();
      this.map.soon(); /* it may have moved */
    };
    this.waits = true;
    if (this.drawnOnce) setTimeout(draw, LATER_MS);
    else requestAnimationFrame(() => setTimeout(draw));
    this.drawnOnce = true;
  }
  drawTotals() {
    setText(this.all.firstElementChild, count(this.fleet.chips));
    this.buttons.forEach((button, i) => {
      const state = STATES[i],
        n = this.fleet.counts[i];
      setText(button.firstElementChild, count(n));
      setAttribute(button, "aria-pressed", String(this.filter.states.has(state)));
      button.classList.toggle("none", n === 0);
    });
  }

  fillChoices() {
    const { vendors, models } = this.fleet.kinds();
    const byName = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    this.fill(
      this.vendor.select,
      "all vendors",
      byName(vendors).map(([vendor]) => [vendor, vendor]),
      this.filter.vendor,
    );
    this.fill(
      this.model.select,
      "all models",
      byName(models)
        .filter(([, m]) => !this.filter.vendor || m.vendor === this.filter.vendor)
        .map(([model]) => [model, model]),
      this.filter.model,
    );
    const chosen = [...this.filter.states].join(" "),
      states = STATES.map((state) => [state, state]);
    states.push(["sick quarantined degraded unknown", "not well"]);
    if (chosen && !states.some(([value]) => value === chosen)) states.push([chosen, chosen.replaceAll(" ", ", ")]);
    this.fill(this.state.select, "all states", states, chosen);
    if (document.activeElement !== this.node) this.node.value = this.filter.node ?? "";
    this.clear.hidden = !this.filtered();
  }
  fill(select, all, options, chosen) {
    const text = JSON.stringify([options, chosen]);
    if (select.told === text) return;
    select.told = text;
    if (chosen && !options.some(([value]) => value === chosen)) options.push([chosen, chosen]);
    select.replaceChildren(el("option", { value: "" }, all), ...options.map(([value, words]) => el("option", { value }, words)));
    select.value = chosen ?? "";
  }
  filtered() {
    const { vendor, model, node, states } = this.filter;
    return Boolean(vendor || model || node || states.size);
  }

  drawMap() {
    const sections = this.fleet.select(this.filter),
      chips = sections.reduce((sum, section) => sum + section.chips, 0);
    this.map.show(sections);
    setText(this.shown, this.filtered() ? `${count(chips)} of ${several(this.fleet.chips, "chip")} shown` : "");
    this.none.hidden = chips > 0;
    setText(
      this.none,
      this.fleet.chips === 0
        ? "No chips yet. Each chip of every node is a cell here as soon as remuda-agent on the node has told of it."
        : 'No chip is like that. "Show all" takes the filters away.',
    );
  }

  /* What somebody wants to know first, in sentences. */
  drawSummary() {
    const { fleet } = this,
      { waiting } = this.context.answers,
      parts = [];
    if (!fleet.known) return;
    parts.push(
      el("strong", {}, `${count(fleet.count("free"))} of ${several(fleet.chips, "chip")} ${fleet.count("free") === 1 ? "is" : "are"} free`),
      ". ",
    );
    const sick = (this.list ?? fleet.troubles()).filter((trouble) => trouble.state === "sick"),
      n = fleet.count("sick");
    if (n > 0)
      parts.push(
        el("strong", {}, `${count(n)} ${n === 1 ? "is" : "are"} sick`),
        ` (${sick
          .slice(0, 3)
          .map((t) => `${t.reason || "no reason told"} ${count(t.where.length)}`)
          .join(", ")}${sick.length > 3 ? ", …" : ""}). `,
      );
    else if (fleet.chips > 0) parts.push("None is sick. ");
    if (waiting?.total > 0) {
      const oldest = waiting.pods?.[0],
        help = oldest?.remedies?.[0];
      parts.push(
        el("a", { href: "#waiting" }, `${several(waiting.total, "pod")} ${waiting.total === 1 ? "waits" : "wait"}`),
        oldest?.since ? `, the oldest for ${duration((now() - Date.parse(oldest.since)) / 1000)}` : "",
        ". ",
        help ? `What would help it: ${help.message}. ` : "",
      );
    } else if (waiting) parts.push("No pod waits. ");
    parts.push(...this.jobsLeft());
    if (!fleet.ready) parts.push(el("strong", {}, " The extender is not ready yet: this is what it knows so far."));
    this.summary.replaceChildren(...parts);
  }

  /* How much longer jobs train, those that end first. */
  jobsLeft() {
    const running = (this.context.answers.jobs?.jobs ?? []).filter((job) => job.phase === "Running"),
      known = running.filter((job) => job.left?.sec !== undefined).sort((a, b) => a.left.sec - b.left.sec);
    if (running.length === 0) return [];
    return [
      el("a", { href: "#jobs" }, `${several(running.length, "job")} ${running.length === 1 ? "trains" : "train"}`),
      known.length > 0 ? ": " : ".",
      ...known.slice(0, JOBS_TOLD).map((job, i) => [i > 0 ? ", " : "", name(job.job), ` for ${duration(job.left.sec)} more`]).flat(),
      known.length > JOBS_TOLD ? ", …" : known.length > 0 ? "." : "",
    ];
  }

  drawTroubles() {
    const troubles = this.list ?? [],
      wide = this.wide ? troubles.length : TROUBLES_SHOWN;
    if (troubles.length === 0) {
      this.troubles.replaceChildren(
        el("h3", {}, "Not well"),
        empty("Every chip is well. Chips that are sick, quarantined, degraded or unknown would stand here, with the reason."),
      );
      return;
    }
    if (!this.troubles.list?.isConnected) {
      this.troubles.list = el("ul", { class: "troubles" });
      this.troubles.more = el("button", { type: "button", class: "plain", onclick: () => ((this.wide = !this.wide), this.drawTroubles()) });
      this.troubles.replaceChildren(el("h3", {}, "Not well"), this.troubles.list, this.troubles.more);
    }
    keyed(
      this.troubles.list,
      troubles.slice(0, wide),
      (trouble) => trouble.key,
      () => el("li", {}, el("p"), el("p", { class: "where" })),
      (row, trouble) => this.fillTrouble(row, trouble),
    );
    this.troubles.more.hidden = troubles.length <= TROUBLES_SHOWN;
    setText(this.troubles.more, this.wide ? "Fewer" : `${several(troubles.length - TROUBLES_SHOWN, "more reason")}`);
  }
  fillTrouble(row, trouble) {
    const [what, where] = row.children,
      places = trouble.where.slice(0, PLACES_SHOWN),
      text = JSON.stringify([trouble.where.length, trouble.message, places.map((p) => [p.node.node, p.chip.id])]);
    if (row.told === text) return;
    row.told = text;
    what.replaceChildren(
      el("span", { class: "swatch", "data-state": trouble.state }),
      el("b", {}, count(trouble.where.length)),
      ` ${trouble.state} `,
      el("span", { class: "reason" }, name(trouble.reason)),
      el("span", { class: "why" }, name(trouble.message)),
    );
    where.replaceChildren(
      ...places.map(({ node, chip }) =>
        el(
          "button",
          {
            type: "button",
            class: "link",
            "data-opens": chipKey(node, chip),
            onclick: (event) => this.panel.open(chipKey(node, chip), event.currentTarget),
          },
          name(node.node),
          " / ",
          name(chip.id),
        ),
      ),
      trouble.where.length > places.length
        ? el("a", { class: "soft", href: `#fleet?state=${trouble.state}` }, `and ${count(trouble.where.length - places.length)} more`)
        : "",
    );
  }

  /* The picture, the newest of it, and the others folded; what is unfolded or has the focus stays so. */
  drawHour() {
    const faults = this.fleet.lastHour(now()).reverse();
    if (faults.length === 0) {
      this.hour.replaceChildren(
        el("h3", {}, "Last hour"),
        empty("No fault and no recovery in the last hour. Each would be a mark on this hour's line."),
      );
      return;
    }
    if (!this.hour.querySelector("details")) {
      const list = () => el("ol", { class: "plainlist newest" });
      this.hour.replaceChildren(el("h3"), el("div", { class: "plot" }), list(), el("details", {}, el("summary"), list()));
    }
    const [title, plot, newest, more] = this.hour.children;
    const { picture, axis, words, most } = hour(faults, now());
    title.replaceChildren("Last hour ", el("span", { class: "soft" }, `${words}; at most ${most} in a minute`));
    plot.replaceChildren(picture, el("p", { class: "most", "aria-hidden": "true" }, "faults", el("span", {}, "recoveries")), axis);
    newest.replaceChildren(...faults.slice(0, NEWEST).map(faultLine));
    more.hidden = faults.length <= NEWEST;
    setText(
      more.firstElementChild,
      `${count(Math.min(faults.length - NEWEST, LISTED_FAULTS))} before them${faults.length > LISTED_FAULTS + NEWEST ? `, of ${count(faults.length)}` : ""}`,
    );
    more.lastElementChild.replaceChildren(...faults.slice(NEWEST, NEWEST + LISTED_FAULTS).map(faultLine));
  }

  /* The printer gets every cell of a fleet that fits on paper; of a larger one the totals and what is not well. */
  forPrint(printing) {
    if (this.host.hidden) return;
    this.host.classList.toggle("too-many", printing && this.map.tiles.length > PRINTED_TILES);
    this.map.draw(false, printing && this.map.tiles.length <= PRINTED_TILES ? Infinity : undefined);
  }
}
