// Charts of results: lines and histograms by uPlot, bars as elements, graphs by a force layout. Each keeps what it can when its data
// changes: scales move, bars grow, nodes stay where they are.

import { uPlot } from "./vendor/charts.js";
import { compact, empty, fill, h, number, svg, theme } from "./ui.js";

const COLOURS = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

const LABEL = 28; // characters of a node's name that are shown; the pointer shows all of it

export class Chart {
  constructor(label = "Chart") {
    this.note = h("p.muted.note");
    this._box = h("div.drawing", { role: "img", "aria-label": label });
    this.element = h("div.chart", {}, this._box, this.note);
    this._drawn = null; // {kind, key, update, close}
    this._resized = new ResizeObserver(() => this._drawn?.resize?.(this._size));
    this._resized.observe(this._box);
    this._retheme = () => this._last && this.show(this._last, this._columns, true);
    window.addEventListener("themechange", this._retheme);
  }

  close() {
    this._drawn?.close?.();
    this._resized.disconnect();
    window.removeEventListener("themechange", this._retheme);
  }

  get _size() {
    return { width: Math.max(this._box.clientWidth, 120), height: Math.max(this._box.clientHeight, 160) };
  }

  show(chart, columns, isAnew = false) {
    this._last = chart;
    this._columns = columns;
    const key = JSON.stringify([chart.kind, chart.x, chart.ys, columns.map(({ name }) => name)]);
    if (this._drawn?.key !== key || isAnew) {
      this._drawn?.close?.();
      fill(this._box);
      this._drawn = { key, ...makers[chart.kind](this._box, chart, columns, this._size) };
    } else {
      this._drawn.update(chart);
    }
    const what = { bar: "bars", graph: "edges", line: "points", histogram: "values" }[chart.kind];
    this.note.textContent = chart.shown < chart.total ? `${number(chart.shown)} of ${number(chart.total)} ${what === "points" || what === "values" ? "rows" : what} are drawn` : "";
  }
}

const axis = () => ({ stroke: theme.token("muted"), grid: { stroke: theme.token("line"), width: 1 }, ticks: { stroke: theme.token("line"), width: 1 }, font: `12px ${theme.token("font")}` });

function plot(box, chart, columns, size, series, options = {}) {
  const isSeconds = chart.isTime;
  const data = (found) => (isSeconds ? [found.data[0].map((value) => value / 1000), ...found.data.slice(1)] : found.data);
  const made = new uPlot({
    ...size,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    scales: { x: { time: isSeconds, ...options.x }, y: options.y ?? {} },
    axes: [{ ...axis(), ...(isSeconds ? {} : { values: (_, ticks) => ticks.map((tick) => compact(tick)) }) }, { ...axis(), size: 62, values: (_, ticks) => ticks.map((tick) => compact(tick)) }],
    series: [{ label: columns[chart.x].name }, ...series],
    legend: { live: true },
    cursor: { drag: { x: true, y: false } },
  }, data(chart), box);
  const resize = ({ width, height }) => made.setSize({ width, height: Math.max(height - (box.querySelector(".u-legend")?.offsetHeight ?? 0), 80) });
  return { update: (found) => made.setData(data(found)), close: () => made.destroy(), resize };
}

const makers = {
  line(box, chart, columns, size) {
    const drawn = plot(box, chart, columns, size, chart.ys.map((y, at) => ({
      label: columns[y].name, stroke: theme.token(COLOURS[at % COLOURS.length]), width: 2, points: { show: chart.data[0].length < 60, size: 5 },
    })));
    drawn.resize(size);
    return drawn;
  },

  histogram(box, chart, columns, size) {
    const drawn = plot(box, chart, columns, size, [{
      label: "rows", stroke: theme.token("c1"), fill: theme.token("accent-soft"), paths: uPlot.paths.bars({ size: [0.96, Infinity] }), points: { show: false },
    }], { y: { range: (_, low, high) => [0, Math.max(high * 1.05, 1)] } });
    drawn.resize(size);
    return drawn;
  },

  bar(box, chart) {
    const list = h("div.bars");
    box.append(list);
    const known = new Map();
    const update = ({ bars }) => {
      if (!bars.length) fill(list, empty("Nothing to draw"));
      const top = Math.max(...bars.map(([, value]) => Math.abs(value)), 1e-12);
      const lines = bars.map(([label, value]) => {
        let line = known.get(label);
        if (!line) {
          line = { name: h("span.name", { title: String(label) }, label === null ? "NULL" : String(label)), fill: h("i"), value: h("span.value") };
          line.element = h("div.bar-line", {}, line.name, h("span.track", {}, line.fill), line.value);
          known.set(label, line);
        }
        line.fill.style.width = `${(Math.abs(value) / top) * 100}%`;
        line.fill.classList.toggle("negative", value < 0);
        line.value.textContent = Number.isInteger(value) ? number(value) : number(Number(value.toPrecision(6)));
        return line.element;
      });
      if (lines.length && (lines.length !== list.children.length || lines.some((line, at) => list.children[at] !== line))) fill(list, lines);
    };
    update(chart);
    return { update };
  },

  graph(box, chart, _columns, size) {
    const places = new Map();
    const links = svg("g.links");
    const dots = svg("g.nodes");
    const picture = svg("svg.network", { viewBox: `0 0 ${size.width} ${size.height}` }, svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 6, markerHeight: 6, orient: "auto-start-reverse" }, svg("path", { d: "M0 0L8 4L0 8z" }))), links, dots);
    box.append(picture);
    let simulation = null;
    let isOver = false;
    let force = null;
    const update = async ({ edges }) => {
      force ??= await import("./vendor/force.js");
      if (isOver) return;
      const names = new Set(edges.flat());
      for (const name of places.keys()) if (!names.has(name)) places.delete(name);
      for (const name of names) if (!places.has(name)) places.set(name, { name });
      const nodes = [...places.values()];
      const lines = edges.filter(([a, b]) => a !== b).map(([source, target]) => ({ source: places.get(source), target: places.get(target) }));
      const drawnLines = lines.map(() => svg("line", { "marker-end": "url(#arrow)" }));
      const drawnNodes = nodes.map(({ name }) => svg("g", {}, svg("circle", { r: 6 }), svg("text", { x: 9, y: 4 }, name.length > LABEL ? `${name.slice(0, LABEL - 1)}…` : name), svg("title", {}, name)));
      links.replaceChildren(...drawnLines);
      dots.replaceChildren(...drawnNodes);
      picture.classList.toggle("crowded", nodes.length > 120);
      simulation?.stop();
      simulation = force.forceSimulation(nodes)
        .force("charge", force.forceManyBody().strength(nodes.length > 120 ? -40 : -180))
        .force("link", force.forceLink(lines).distance(nodes.length > 120 ? 28 : 64))
        .force("x", force.forceX(0).strength(0.06)).force("y", force.forceY(0).strength(0.08))
        .stop();
      const isFirst = nodes.every((node) => node.settled === undefined);
      simulation.alpha(isFirst ? 1 : 0.3);
      simulation.tick(isFirst ? 160 : 40); // drawn when it has settled: nothing jumps about
      for (const node of nodes) node.settled = true;
      const xs = nodes.map((node) => node.x);
      const ys = nodes.map((node) => node.y);
      const pad = 40;
      const [left, top] = [Math.min(...xs, 0) - pad, Math.min(...ys, 0) - pad];
      picture.setAttribute("viewBox", `${left} ${top} ${Math.max(...xs, 0) + pad + 30 - left} ${Math.max(...ys, 0) + pad - top}`);
      lines.forEach(({ source, target }, at) => {
        const [dx, dy] = [target.x - source.x, target.y - source.y];
        const length = Math.hypot(dx, dy) || 1;
        const end = Math.max(length - 8, 0) / length;
        for (const [name, value] of [["x1", source.x], ["y1", source.y], ["x2", source.x + dx * end], ["y2", source.y + dy * end]]) drawnLines[at].setAttribute(name, value.toFixed(1));
      });
      nodes.forEach((node, at) => drawnNodes[at].setAttribute("transform", `translate(${node.x.toFixed(1)} ${node.y.toFixed(1)})`));
    };
    update(chart);
    return { update, close: () => { isOver = true; simulation?.stop(); } };
  },
};
