// The picture that shows who shares what: indexes in the middle, queries around them, a line where a query reads an index.
//
// Nothing in it moves unless a query or an index comes, goes or changes its size. What is far from what is pointed at fades.

import { commonName, INSIDE, labelPlaces, outerNodes, savings, sharingGraph, sharingLayout, shortName, SMALLEST } from "./sharing-layout.js";
import { bytes, compact, fill, h, number, svg } from "./ui.js";

const MOVE = 600; // milliseconds of a move
const PANEL = 400; // pixels of the panel that tells about what is selected, as in pictures.css
const GROWN = 3; // pixels of a radius from which on a change of size is drawn
const LABELLED = 76; // circles on the ring up to which each has its name beside it

const isStill = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const ease = (share) => (share < 0.5 ? 4 * share ** 3 : 1 - (-2 * share + 2) ** 3 / 2);
const LETTER = 6.3; // about how wide a letter of a name is
const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
/** A text without some of its middle: names that begin alike differ at their ends. */
const cutWithin = (text, most) => {
  const end = Math.max(Math.min(5, Math.floor((most - 1) / 2)), 1);
  return text.length > most ? `${text.slice(0, Math.max(most - 1 - end, 1))}…${text.slice(-end)}` : text;
};

export class SharingPicture {
  /** `onSelect(node)` is called with a query or an index {kind: "query" | "index", id, name}, or null. */
  constructor({ onSelect = () => {}, rateOf = () => 0 } = {}) {
    this._onSelect = onSelect;
    this._rateOf = rateOf;
    this._open = new Set(); // groups whose queries are shown one by one
    this._shown = new Map(); // id -> what is drawn
    this._edges = new Map();
    this._selected = null;
    this._pointed = null;
    this._searched = "";
    this._graph = sharingGraph({ views: [], indexes: [], readers: [] });
    this._outer = [];
    this._places = new Map();
    this._lines = svg("g.edges");
    this._circles = svg("g.nodes");
    this._labels = svg("g.labels", { "aria-hidden": "true" });
    this._legend = svg("g.legend", { "aria-hidden": "true" });
    this._svg = svg("svg", { role: "group", "aria-label": "Indexes and the queries that share them" }, this._lines, this._circles, this._labels, this._legend);
    this._tip = h("div.tip", { hidden: true, role: "status" });
    this.element = h("div.sharing", {}, this._svg, this._tip);
    this._svg.addEventListener("pointerover", (event) => this._point(event.target.closest?.("[data-id]")?.dataset.id ?? null));
    this._svg.addEventListener("pointerleave", () => this._point(null));
    this._svg.addEventListener("click", (event) => this.select(event.target.closest?.("[data-id]")?.dataset.id ?? null));
    this._svg.addEventListener("focusin", (event) => this._point(event.target.dataset.id ?? null));
    this._svg.addEventListener("focusout", () => this._point(null));
    this._svg.addEventListener("keydown", (event) => this._key(event));
    this._watcher = new ResizeObserver(() => this._layout(true));
    this._watcher.observe(this.element);
  }

  close() {
    this._watcher.disconnect();
    cancelAnimationFrame(this._frame);
  }

  get graph() {
    return this._graph;
  }

  /** Rows of system.views, system.indexes and system.index_readers. */
  update(rows) {
    this._graph = sharingGraph(rows);
    this._layout(false);
  }

  /** Show what has a name with a text in it, and let the rest fade. */
  search(text) {
    this._searched = text.trim().toLowerCase();
    this._fade();
  }

  /** Select a query or an index by its id; a group is opened instead. */
  select(id) {
    if (id !== null && id.startsWith("g:")) {
      this._open.add(id);
      this._selected = null;
      this._layout(false);
      this._uncover();
      this._onSelect(null);
      return;
    }
    this._selected = id;
    this._fade();
    const node = id === null ? null : this._graph.queries.get(id) ?? this._graph.indexes.get(id);
    this._uncover();
    this._tip.hidden = true;
    this._onSelect(node ? { kind: this._graph.queries.has(id) ? "query" : "index", ...node } : null);
  }

  /** Move the picture aside, so that what is selected does not lie under the panel that tells about it. */
  _uncover() {
    const shown = this._selected === null ? null : this._shown.get(this._selected);
    const box = this.element.getBoundingClientRect();
    const free = innerWidth < 1080 ? Infinity : innerWidth - PANEL - box.left;
    const over = shown ? Math.max(shown.x + shown.r + 60 - free, 0) : 0;
    this._svg.style.transform = over ? `translateX(${-Math.min(over, PANEL)}px)` : "";
  }

  /** Take opened groups together again. */
  fold() {
    this._open.clear();
    this._layout(false);
  }

  get isUnfolded() {
    return this._open.size > 0;
  }

  /** The same as the picture says, as text. */
  asText() {
    const lines = [...this._graph.indexes.values()].sort((a, b) => b.bytes - a.bytes);
    return h("ul", {}, lines.map((index) => {
      const names = [...index.readers].map((id) => this._graph.queries.get(id).name).sort();
      const said = names.length === 0 ? "no query reads it" : names.length > 12 ? `${names.length} queries read it, such as ${commonName(names)}` : `${names.join(", ")}`;
      return h("li", {}, h("strong", index.name), ` (${bytes(index.bytes)}, ${number(index.rows)} rows): ${said}`);
    }));
  }

  /** Show which circles have had changes of late. */
  pulse() {
    for (const [id, shown] of this._shown) shown.element.classList.toggle("active", !shown.isLeaving && this._rateOf(id) > 0);
  }

  // ---------------------------------------------------------------- places

  _layout(isResized) {
    const width = this.element.clientWidth;
    if (!width) return;
    const isPhone = width < 560;
    this._outer = outerNodes(this._graph, this._open, isPhone ? 60 : undefined);
    const isLabelled = this._outer.length <= (isPhone ? 14 : LABELLED);
    const height = isPhone ? Math.round(width * 1.05) : Math.round(Math.min(Math.max(width * 0.68, 460), 800));
    const margin = isPhone ? (isLabelled ? 84 : 26) : isLabelled ? 150 : 84;
    const signature = JSON.stringify([width, height, [...this._graph.indexes.keys()], this._outer.map((query) => [query.id, ...query.reads]), this._graph.links.length]);
    const known = this._signature;
    this._signature = signature;
    const isOther = known !== signature || this._isGrown();
    if (isOther) {
      const before = this._ring === undefined ? new Map() : new Map([...this._places].map(([id, place]) => [id, { x: (place.x * width) / (2 * this._ring.x), y: (place.y * height) / (2 * this._ring.y) }]));
      const found = sharingLayout(this._graph, this._outer, { width, height, margin }, before);
      this._places = found.places;
      this._scale = found.scale;
      this._ring = found.ring;
      this._svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this._svg.setAttribute("width", width);
      this._svg.setAttribute("height", height);
      this._isLabelled = isLabelled;
      this._isPhone = isPhone;
      this._svg.classList.toggle("small", isPhone);
      this._drawLegend(width, height);
      this._join(known === undefined || isResized);
    }
    this._describe();
    if (isOther) this._fade();
  }

  /** Whether some circle would be larger or smaller than it is drawn, so that one can see it. Less moves nothing. */
  _isGrown() {
    const differs = ({ id, bytes: size }) => Math.abs(Math.max(this._scale * Math.sqrt(size), SMALLEST) - this._places.get(id).r) > GROWN;
    return [...this._graph.indexes.values()].some(differs) || this._outer.some(differs);
  }

  /** Bring what is drawn in line with the places: what is new grows, what is gone shrinks, the rest moves. */
  _join(isAtOnce) {
    const wanted = new Map();
    for (const index of this._graph.indexes.values()) wanted.set(index.id, { kind: "index", node: index });
    for (const query of this._outer) wanted.set(query.id, { kind: "query", node: query });
    for (const [id, { kind, node }] of wanted) {
      const place = this._places.get(id);
      let shown = this._shown.get(id);
      if (!shown || shown.isLeaving) {
        shown?.element.remove();
        shown?.label.remove();
        shown = this._drawn(id, kind, { ...place, r: isAtOnce ? place.r : 0 });
        if (!isAtOnce) shown.element.classList.add("new");
        this._shown.set(id, shown);
      }
      shown.from = { x: shown.x, y: shown.y, r: shown.r };
      shown.to = place;
      shown.node = node;
    }
    for (const [id, shown] of this._shown) {
      if (wanted.has(id) || shown.isLeaving) continue;
      shown.isLeaving = true;
      shown.element.classList.add("leaving");
      shown.from = { x: shown.x, y: shown.y, r: shown.r };
      shown.to = { x: shown.x, y: shown.y, r: 0 };
    }
    this._joinEdges();
    const order = [...this._shown.values()].filter((shown) => !shown.isLeaving);
    order.forEach((shown) => shown.element.setAttribute("tabindex", -1));
    (order.find((shown) => shown.kind === "query") ?? order[0])?.element.setAttribute("tabindex", 0);
    this._move(isAtOnce || isStill() ? 0 : MOVE);
  }

  _joinEdges() {
    const wanted = new Map();
    for (const query of this._outer) {
      for (const id of query.reads) if (this._graph.indexes.has(id)) wanted.set(`${query.id}|${id}`, { from: query.id, to: id, kind: "reads", hue: this._graph.indexes.get(id).hue, weight: query.members.length });
    }
    for (const { from, to } of this._graph.links) wanted.set(`${to}|${from}`, { from: to, to: from, kind: "made", hue: this._graph.indexes.get(from).hue, weight: 1 });
    for (const { query, index } of this._graph.keeps) {
      const at = this._outer.find((each) => each.members.includes(query));
      if (at) wanted.set(`${at.id}|${index}`, { from: at.id, to: index, kind: "keeps", hue: this._graph.indexes.get(index).hue, weight: 1 });
    }
    for (const [key, edge] of wanted) {
      const known = this._edges.get(key);
      const drawn = known ?? { path: svg("path") };
      drawn.path.setAttribute("class", `edge ${edge.kind} h${edge.hue}`);
      drawn.path.setAttribute("stroke-width", Math.min(1.1 + Math.log2(edge.weight) * 0.9, 6).toFixed(1));
      Object.assign(drawn, edge);
      if (!known) this._lines.append(drawn.path);
      this._edges.set(key, drawn);
    }
    for (const [key, edge] of this._edges) {
      if (wanted.has(key)) continue;
      edge.path.remove();
      this._edges.delete(key);
    }
  }

  _drawn(id, kind, { x, y, r }) {
    const halo = svg("circle.halo");
    const circle = svg("circle.body");
    const inside = svg("text.inside", { "text-anchor": "middle", "aria-hidden": "true" });
    const element = svg(`g.node.${kind}`, { role: "button", tabindex: -1, data: { id } }, halo, circle, inside);
    const label = svg("text", { data: { id } });
    this._circles.append(element);
    this._labels.append(label);
    return { id, kind, x, y, r, element, halo, circle, inside, label, from: { x, y, r }, to: { x, y, r } };
  }

  _move(duration) {
    cancelAnimationFrame(this._frame);
    const began = performance.now();
    const step = (now) => {
      const share = duration ? Math.min((now - began) / duration, 1) : 1;
      const part = ease(share);
      for (const [id, shown] of this._shown) {
        shown.x = shown.from.x + (shown.to.x - shown.from.x) * part;
        shown.y = shown.from.y + (shown.to.y - shown.from.y) * part;
        shown.r = shown.from.r + (shown.to.r - shown.from.r) * part;
        shown.element.setAttribute("transform", `translate(${shown.x.toFixed(1)} ${shown.y.toFixed(1)})`);
        shown.circle.setAttribute("r", Math.max(shown.r, 0).toFixed(1));
        shown.halo.setAttribute("r", (Math.max(shown.r, 0) + 5).toFixed(1));
        this._placeLabel(shown);
        if (share === 1 && shown.isLeaving) {
          shown.element.remove();
          shown.label.remove();
          this._shown.delete(id);
        }
      }
      for (const edge of this._edges.values()) this._draw(edge);
      if (share < 1) this._frame = requestAnimationFrame(step);
    };
    step(duration ? began : began);
    if (duration) this._frame = requestAnimationFrame(step);
  }

  /** A line from the ring towards the middle and to its index, so that lines to one index run together. */
  _draw(edge) {
    const from = this._shown.get(edge.from);
    const to = this._shown.get(edge.to);
    if (!from || !to) return;
    const { x, y } = this._ring;
    const pull = edge.kind === "made" ? 0.12 : 0.42;
    const cx = from.x + (x - from.x) * pull + (to.x - from.x) * 0.2;
    const cy = from.y + (y - from.y) * pull + (to.y - from.y) * 0.2;
    edge.path.setAttribute("d", `M${from.x.toFixed(1)} ${from.y.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${to.x.toFixed(1)} ${to.y.toFixed(1)}`);
  }

  _placeLabel(shown) {
    const { label, x, y, r } = shown;
    if (shown.kind === "index") {
      const { dx, dy } = shown.beside ?? { dx: 0, dy: r + 12 };
      label.setAttribute("transform", `translate(${(x + dx).toFixed(1)} ${(y + dy).toFixed(1)})`);
      return;
    }
    const angle = Math.atan2(y - this._ring.y, x - this._ring.x);
    const degrees = (angle * 180) / Math.PI;
    const isLeft = Math.abs(degrees) > 90;
    const out = r + 6;
    label.setAttribute("text-anchor", isLeft ? "end" : "start");
    label.setAttribute("transform", `translate(${(x + out * Math.cos(angle)).toFixed(1)} ${(y + out * Math.sin(angle)).toFixed(1)}) rotate(${(isLeft ? degrees + 180 : degrees).toFixed(1)})`);
  }

  /** How long a name beside a query can be before it leaves the picture. */
  _roomBeside({ x, y, r, angle }) {
    const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
    const along = (at, end, step) => (Math.abs(step) < 0.05 ? Infinity : ((step > 0 ? end : 0) - at) / step);
    return Math.min(along(x, 2 * this._ring.x, dx), along(y, 2 * this._ring.y, dy)) - r - 12;
  }

  // ---------------------------------------------------------------- texts and colours

  _describe() {
    const outer = new Map(this._outer.map((query) => [query.id, query]));
    for (const shown of this._shown.values()) {
      if (shown.isLeaving) continue;
      const node = shown.kind === "index" ? this._graph.indexes.get(shown.id) : outer.get(shown.id);
      if (!node) continue;
      shown.node = node;
      const said = JSON.stringify([node.name, node.state, node.kind, node.hue, node.bytes, node.rows, node.readers?.size, node.members?.length, Math.round(shown.to.r), shown.to.angle, this._isLabelled, this._isPhone]);
      if (shown.said === said) continue;
      shown.said = said;
      const { element, label, inside } = shown;
      if (shown.kind === "index") {
        element.setAttribute("class", `node index ${node.kind} h${node.hue}${keptClasses(element)}`);
        element.setAttribute("aria-label", `Index ${node.name}, ${bytes(node.bytes)}, ${number(node.rows)} rows, read by ${node.readers.size} ${node.readers.size === 1 ? "query" : "queries"}`);
        const lines = shortName(node.name);
        const fits = shown.to.r > INSIDE;
        const most = Math.floor((shown.to.r * 2 - 8) / (this._isPhone ? 5 : 6));
        const texts = fits ? [...lines.map((line) => cut(line, most)), bytes(node.bytes)] : lines;
        const spans = texts.map((line, at) => svg("tspan", { x: 0, dy: at === 0 ? (fits ? `${(0.35 - (texts.length - 1) * 0.6).toFixed(2)}em` : "0") : "1.2em", class: at === texts.length - 1 && fits ? "size" : at > 0 ? "by" : null }, line));
        fill(fits ? inside : label, spans);
        fill(fits ? label : inside);
        label.setAttribute("class", "of-index");
        shown.lines = fits ? [] : lines;
      } else {
        element.setAttribute("class", `node query ${node.state}${node.isGroup ? " group" : ""}${node.isPassing ? " passing" : ""}${keptClasses(element)}`);
        const count = node.members.length;
        element.setAttribute("aria-label", node.isGroup ? `${count} queries like ${node.name}, ${bytes(node.bytes)} of their own; opens them` : `Query ${node.name}, ${node.state}, ${bytes(node.bytes)} of its own, reads ${node.reads.size} ${node.reads.size === 1 ? "index" : "indexes"}`);
        label.setAttribute("class", "of-query");
        const most = Math.min(this._isPhone ? 13 : 21, Math.floor(this._roomBeside(shown.to) / LETTER));
        const times = node.isGroup ? ` ×${count}` : "";
        label.textContent = cutWithin(node.name, most - times.length) + times;
        label.dataset.always = String(this._isLabelled);
        fill(inside, node.isGroup && shown.to.r > 9 ? svg("tspan", { x: 0, dy: "0.35em" }, String(count)) : null);
      }
    }
  }

  /** What stays bright: what is pointed at or selected with its neighbours, or what is searched for. */
  _fade() {
    const centre = this._pointed ?? this._selected;
    const bright = new Set();
    if (centre !== null && this._shown.has(centre)) {
      bright.add(centre);
      for (const edge of this._edges.values()) {
        if (edge.from === centre) bright.add(edge.to);
        if (edge.to === centre) bright.add(edge.from);
      }
    } else if (this._searched) {
      for (const shown of this._shown.values()) {
        const names = shown.node?.isGroup ? shown.node.members.map((id) => this._graph.queries.get(id)?.name ?? "") : [shown.node?.name ?? ""];
        if (names.some((name) => name.toLowerCase().includes(this._searched))) bright.add(shown.id);
      }
    }
    const isFocused = centre !== null || this._searched !== "";
    this._svg.classList.toggle("focused", isFocused);
    for (const shown of this._shown.values()) {
      const isBright = bright.has(shown.id);
      shown.element.classList.toggle("bright", isBright);
      shown.element.classList.toggle("selected", shown.id === this._selected);
      shown.element.setAttribute("aria-pressed", String(shown.id === this._selected));
      shown.label.classList.toggle("bright", isBright);
    }
    this._placeNames(isFocused ? bright : null);
    for (const edge of this._edges.values()) {
      const isBright = centre !== null ? edge.from === centre || edge.to === centre : this._searched !== "" && (bright.has(edge.from) || bright.has(edge.to));
      edge.path.classList.toggle("bright", isBright);
    }
  }

  /** Put the names of indexes where there is room: those of all, or of some. */
  _placeNames(some) {
    const all = [...this._shown.values()].filter((shown) => shown.kind === "index" && !shown.isLeaving && shown.node);
    const named = all.filter((shown) => shown.lines?.length && (some === null || some.has(shown.id))).sort((a, b) => b.node.bytes - a.node.bytes);
    const obstacles = all.map((shown) => ({ id: shown.id, ...shown.to }));
    const found = labelPlaces(named.map((shown) => [shown.id, shown.lines]), this._places, obstacles, 2 * this._ring.x);
    for (const shown of all) {
      shown.beside = found.get(shown.id);
      shown.label.classList.toggle("crowded", shown.lines?.length > 0 && !shown.beside);
      shown.label.setAttribute("text-anchor", shown.beside?.anchor ?? "middle");
      for (const span of shown.label.children) span.setAttribute("x", 0);
      this._placeLabel(shown);
    }
  }

  _drawLegend(width, height) {
    if (!this._places.size) return fill(this._legend);
    const sizes = [1, 1024, 1024 ** 2, 1024 ** 3, 1024 ** 4].flatMap((unit) => [1, 2, 5, 10, 20, 50, 100, 200, 500].map((many) => many * unit));
    const size = sizes.filter((each) => this._scale * Math.sqrt(each) <= 20).at(-1) ?? 1;
    const r = Math.max(this._scale * Math.sqrt(size), SMALLEST);
    fill(this._legend, svg("circle", { cx: 8 + r, cy: height - 8 - r, r: r.toFixed(1) }), svg("text", { x: 16 + 2 * r, y: height - 4 - r }, `= ${bytes(size)}`));
  }

  // ---------------------------------------------------------------- pointing

  _point(id) {
    if (this._pointed === id) return;
    this._pointed = id;
    this._fade();
    const shown = id === null ? null : this._shown.get(id);
    this._tip.hidden = !shown || id === this._selected;
    if (this._tip.hidden) return;
    const { node } = shown;
    const rate = this._rateOf(id);
    const facts = shown.kind === "index"
      ? [[node.kind === "table" ? "table" : node.kind === "view" ? "result of a view" : "index", node.columns], ["memory", bytes(node.bytes)], ["rows", number(node.rows)], ["read by", `${node.readers.size} ${node.readers.size === 1 ? "query" : "queries"}`]]
      : [[node.isGroup ? "queries" : "state", node.isGroup ? node.members.length : node.state], ["own memory", bytes(node.bytes)], ...(node.rows === null ? [] : [["rows", number(node.rows)]]), ["reads", `${node.reads.size} ${node.reads.size === 1 ? "index" : "indexes"}`]];
    if (rate) facts.push(["changes", `${compact(Math.round(rate))}/s`]);
    fill(this._tip, h("strong", node.name), h("dl", {}, facts.map(([name, value]) => [h("dt", name), h("dd", String(value))])), node.isGroup ? h("small", "click to show them one by one") : null);
    const { clientWidth, clientHeight } = this.element;
    const { offsetWidth, offsetHeight } = this._tip;
    const left = shown.x + shown.r + 14 + offsetWidth > clientWidth ? shown.x - shown.r - 14 - offsetWidth : shown.x + shown.r + 14;
    this._tip.style.left = `${Math.min(Math.max(left, 4), Math.max(clientWidth - offsetWidth - 4, 4))}px`;
    this._tip.style.top = `${Math.min(Math.max(shown.y - offsetHeight / 2, 4), Math.max(clientHeight - offsetHeight - 4, 4))}px`;
  }

  /** Left and right go around the ring or through the indexes; up and down from a query to its indexes and back. */
  _key(event) {
    const id = event.target.dataset?.id;
    const shown = this._shown.get(id);
    if (!shown) return;
    const ring = this._outer.map((query) => query.id).sort((a, b) => this._places.get(a).angle - this._places.get(b).angle);
    const middle = [...this._graph.indexes.values()].sort((a, b) => b.bytes - a.bytes).map((index) => index.id);
    const of = shown.kind === "query" ? ring : middle;
    const at = of.indexOf(id);
    const neighbours = [...this._edges.values()].filter((edge) => edge.from === id || edge.to === id).map((edge) => (edge.from === id ? edge.to : edge.from));
    const next = {
      ArrowRight: () => of[(at + 1) % of.length], ArrowLeft: () => of[(at - 1 + of.length) % of.length],
      ArrowDown: () => neighbours.find((each) => this._shown.get(each).kind === "index") ?? middle[0],
      ArrowUp: () => neighbours.find((each) => this._shown.get(each).kind === "query") ?? ring[0],
      Home: () => of[0], End: () => of.at(-1),
    }[event.key];
    if (next) {
      event.preventDefault();
      const found = this._shown.get(next());
      if (!found) return;
      shown.element.setAttribute("tabindex", -1);
      found.element.setAttribute("tabindex", 0);
      found.element.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.select(id);
    } else if (event.key === "Escape") {
      this.select(null);
    }
  }
}

const keptClasses = (element) => ["new", "active", "bright", "selected"].filter((name) => element.classList.contains(name)).map((name) => ` ${name}`).join("");

/** One sentence on what sharing comes to. */
export function sharingSentence(graph) {
  const found = savings(graph);
  const shared = [...graph.indexes.values()].filter((index) => index.readers.size > 1).length;
  return { ...found, shared, count: graph.indexes.size, queries: graph.queries.size };
}
