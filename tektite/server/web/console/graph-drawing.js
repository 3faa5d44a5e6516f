// Draws graphs of operators: nodes with heat, boxes for loops and shared parts, edges with labels. Figures change in place.

import { layeredLayout, middleOf, pathOf } from "./graph-layout.js";
import { fill, h, svg } from "./ui.js";

const SMALLEST = 0.45; // a graph is not drawn smaller than this: beyond it, it is scrolled

export class GraphPicture {
  /** `label` says what the picture is of. `facts(node)` gives [[name, value], ...] that are shown for the node that is pointed at. */
  constructor({ label, facts = () => [], onOpen = () => {} }) {
    this._facts = facts;
    this._onOpen = onOpen;
    this._svg = svg("svg", { role: "group", "aria-label": label });
    this._tip = h("div.tip", { hidden: true, role: "status" });
    this._scroll = h("div.canvas", {}, this._svg);
    this.element = h("div.graph", {}, this._scroll, this._tip);
    this._nodes = new Map();
    this._edges = new Map();
    this._svg.addEventListener("pointerover", (event) => this._point(event.target.closest?.("[data-id]")?.dataset.id ?? null));
    this._svg.addEventListener("pointerleave", () => this._point(null));
    this._svg.addEventListener("focusin", (event) => this._point(event.target.dataset.id ?? null));
    this._svg.addEventListener("focusout", () => this._point(null));
    this._svg.addEventListener("keydown", (event) => this._key(event));
    this._svg.addEventListener("click", (event) => {
      const id = event.target.closest?.("[data-id]")?.dataset.id;
      if (id !== undefined) this._onOpen(this._nodes.get(id).node);
    });
    this._watcher = new ResizeObserver(() => this._fit());
    this._watcher.observe(this.element);
  }

  close() {
    this._watcher.disconnect();
  }

  /** Draw a graph: nodes, boxes and edges as `layeredLayout` takes them; nodes also have `kinds` (classes), edges a `kind`. */
  draw(graph) {
    this._graph = graph;
    this._places = this._oriented(graph);
    const { width, height, nodes, boxes, edges, isWide } = this._places;
    const marker = (name) => svg("marker", { id: name, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M0 0L8 4L0 8z" }));
    this._nodes.clear();
    this._edges.clear();
    const drawnBoxes = graph.boxes.map((box) => {
      const place = boxes.get(box.id);
      const title = svg("text", { x: place.x + 12, y: place.y + 17 }, box.title);
      const element = svg(`g.box.${box.kind}`, {}, svg("rect", { x: place.x, y: place.y, width: place.width, height: place.height, rx: 10 }), title);
      return { element, title, depth: place.depth, box };
    }).sort((a, b) => a.depth - b.depth);
    this._boxTitles = new Map(drawnBoxes.map(({ title, box }) => [box.id, title]));
    const lines = graph.edges.filter((edge) => edges.has(edge.id)).map((edge) => {
      const points = edges.get(edge.id);
      const path = svg(`path.edge.${edge.kind}${edge.isFeedback ? ".feedback" : ""}`, { d: pathOf(points, edge.isFeedback, isWide), "marker-end": "url(#arrow)" });
      const flow = svg("path.flow", { d: pathOf(points, edge.isFeedback, isWide) });
      const { x, y } = middleOf(points);
      const label = svg("text.rate", { x: x.toFixed(1), y: (y + 4).toFixed(1), "text-anchor": "middle" });
      const element = svg("g.way", {}, path, flow, label, edge.text ? svg("title", {}, edge.text) : null);
      this._edges.set(edge.id, { edge, path, flow, label, element });
      return element;
    });
    const drawn = graph.nodes.map((node) => {
      const place = nodes.get(node.id);
      const heat = svg("rect.heat", { x: 0, y: 0, width: 5, height: place.height, rx: 2.5 });
      const note = svg("text.note", { x: 14, y: 12 + 17 + 15 * place.lines.length + 9 });
      const element = svg(`g.operator${(node.kinds ?? []).map((kind) => `.${kind}`).join("")}`, { tabindex: -1, role: "img", "aria-label": `${node.title}. ${node.text ?? ""}`, data: { id: node.id }, transform: `translate(${place.x.toFixed(1)} ${place.y.toFixed(1)})` },
        svg("rect.shape", { width: place.width, height: place.height, rx: node.kinds?.includes("source") ? Math.min(place.height / 2, 20) : 7 }), heat,
        svg("text.title", { x: 14, y: 19 }, node.title.length > 31 ? `${node.title.slice(0, 30)}…` : node.title), place.lines.map((line, at) => svg("text.text", { x: 14, y: 35 + 15 * at }, line)), note);
      this._nodes.set(node.id, { node, element, heat, note, place });
      return element;
    });
    fill(this._svg, svg("defs", {}, marker("arrow")), svg("g", {}, drawnBoxes.map(({ element }) => element)), svg("g", {}, lines), svg("g", {}, drawn));
    this._size = { width: width + 4, height: height + 4 };
    this._svg.setAttribute("viewBox", `-2 -2 ${this._size.width} ${this._size.height}`);
    this._order = [...graph.nodes].sort((a, b) => nodes.get(a.id).y - nodes.get(b.id).y || nodes.get(a.id).x - nodes.get(b.id).x).map((node) => node.id);
    if (this._order.length) this._nodes.get(this._order[0]).element.setAttribute("tabindex", 0);
    this._fit();
  }

  /** The places from top to bottom or from left to right, whichever can be drawn larger. A phone is scrolled downwards. */
  _oriented(graph) {
    const down = layeredLayout(graph);
    const room = this.element.clientWidth || 1100;
    if (room < 560 || down.width <= room) return down;
    const right = layeredLayout(graph, true);
    return Math.min(room / right.width, 1) > Math.min(room / down.width, 1) * 0.95 ? right : down;
  }

  /** Figures of nodes: id -> {heat (0 to 1), note, label}. */
  describeNodes(figures) {
    for (const [id, { heat = 0, note = "", label = "" }] of figures) {
      const drawn = this._nodes.get(id);
      if (!drawn) continue;
      drawn.element.style.setProperty("--heat", `${Math.round(heat * 100)}%`);
      drawn.element.classList.toggle("hot", heat > 0.02);
      drawn.note.textContent = note;
      drawn.element.setAttribute("aria-label", `${drawn.node.title}. ${drawn.node.text ?? ""}. ${label || note}`);
    }
    if (this._pointed) this._point(this._pointed);
  }

  /** Figures of edges: id -> {label, weight (0 to 1)}. */
  describeEdges(figures) {
    for (const [id, { label = "", weight = 0 }] of figures) {
      const drawn = this._edges.get(id);
      if (!drawn) continue;
      drawn.label.textContent = label;
      drawn.path.setAttribute("stroke-width", (1.2 + 3.2 * weight).toFixed(1));
      drawn.element.classList.toggle("active", weight > 0);
    }
  }

  /** Another title for a box. */
  describeBox(id, title) {
    const found = this._boxTitles.get(id);
    if (found) found.textContent = title;
  }

  _fit() {
    if (!this._size) return;
    const room = this.element.clientWidth;
    const scale = Math.min(Math.max(room / this._size.width, SMALLEST), 1);
    this._scale = scale;
    this._svg.setAttribute("width", Math.round(this._size.width * scale));
    this._svg.setAttribute("height", Math.round(this._size.height * scale));
  }

  _point(id) {
    this._pointed = id;
    const drawn = id === null ? null : this._nodes.get(id);
    this._tip.hidden = !drawn;
    const near = new Set();
    for (const { edge, element } of this._edges.values()) {
      const isNear = edge.from === id || edge.to === id;
      element.classList.toggle("bright", isNear);
      if (isNear) near.add(edge.from).add(edge.to);
    }
    this._svg.classList.toggle("focused", !!drawn);
    for (const [each, { element }] of this._nodes) element.classList.toggle("bright", each === id || near.has(each));
    if (!drawn) return;
    const { node, place } = drawn;
    fill(this._tip, h("strong", node.title), node.text ? h("div.mono", node.text) : null, h("dl", {}, this._facts(node).map(([name, value]) => [h("dt", name), h("dd", String(value))])));
    const left = (place.x + place.width) * this._scale + 14 - this._scroll.scrollLeft;
    const fits = left + this._tip.offsetWidth < this.element.clientWidth;
    this._tip.style.left = `${Math.max(fits ? left : place.x * this._scale - this._tip.offsetWidth - 14 - this._scroll.scrollLeft, 4)}px`;
    this._tip.style.top = `${Math.max(place.y * this._scale, 0)}px`;
  }

  /** Up and down follow the edges; left and right go through all nodes in the order in which they stand. */
  _key(event) {
    const id = event.target.dataset?.id;
    if (id === undefined) return;
    const at = this._order.indexOf(id);
    const ways = [...this._edges.values()].map(({ edge }) => edge);
    const next = {
      ArrowDown: () => ways.find((edge) => edge.from === id && !edge.isFeedback)?.to, ArrowUp: () => ways.find((edge) => edge.to === id && !edge.isFeedback)?.from,
      ArrowRight: () => this._order[at + 1], ArrowLeft: () => this._order[at - 1], Home: () => this._order[0], End: () => this._order.at(-1),
    }[event.key]?.();
    if (next !== undefined) {
      event.preventDefault();
      event.target.setAttribute("tabindex", -1);
      const { element } = this._nodes.get(next);
      element.setAttribute("tabindex", 0);
      element.focus();
    } else if (event.key === "Enter") {
      this._onOpen(this._nodes.get(id).node);
    }
  }

  /** The graph as text: each operator with what comes to it. */
  asText() {
    const titles = new Map(this._graph.nodes.map((node) => [node.id, node.title]));
    return h("ol", {}, this._order.map((id) => {
      const { node, note } = this._nodes.get(id);
      const from = this._graph.edges.filter((edge) => edge.to === id).map((edge) => `${titles.get(edge.from)}${edge.isFeedback ? " (of the round before)" : ""}`);
      return h("li", {}, h("strong", node.title), node.text ? `: ${node.text}` : "", from.length ? ` · from ${from.join(", ")}` : "", note.textContent ? ` · ${note.textContent}` : "");
    }));
  }
}
