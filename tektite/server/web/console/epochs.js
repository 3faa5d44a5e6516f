// Epochs over time: a bar for each, divided by its phases. Pointing at one, or choosing it by the arrow keys, says what it was.

import { uPlot } from "./vendor/charts.js";
import { fill, h, number, seconds, theme } from "./ui.js";

export const PHASES = [["prepare", "c7"], ["apply", "c5"], ["merge", "c3"], ["sweep", "c1"], ["tell", "c4"]];

export class EpochChart {
  constructor() {
    this._box = h("div.drawing", { tabindex: 0, role: "img", "aria-label": "Epochs and their phases; arrow keys choose one" });
    this._said = h("p.said.muted", { role: "status" });
    this.element = h("div.epochs", {},
      h("div.legend", {}, PHASES.map(([name, colour]) => h("span", {}, h("i", { style: { background: `var(--${colour})` } }), name))), this._box, this._said);
    this._rows = [];
    this._at = null;
    this._plot = null;
    this._resized = new ResizeObserver(() => this._plot?.setSize(this._size));
    this._resized.observe(this._box);
    this._retheme = () => {
      this._plot?.destroy();
      this._plot = null;
      this.show(this._rows);
    };
    window.addEventListener("themechange", this._retheme);
    this._box.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !this._rows.length) return;
      event.preventDefault();
      this._at = Math.max(0, Math.min((this._at ?? this._rows.length) + step, this._rows.length - 1));
      this._plot?.setCursor({ left: this._plot.valToPos(this._at, "x"), top: 10 });
    });
  }

  get _size() {
    return { width: Math.max(this._box.clientWidth, 200), height: 190 };
  }

  show(rows) {
    this._rows = rows;
    if (!rows.length) {
      fill(this._said, "Nothing was written since somebody first looked.");
      return;
    }
    const sums = PHASES.map((_, last) => rows.map((row) => PHASES.slice(0, last + 1).reduce((sum, [name]) => sum + row[name], 0) * 1000));
    const data = [rows.map((_, at) => at), ...sums.reverse()]; // the whole first: shorter bars are drawn over it
    if (this._plot) this._plot.setData(data);
    else this._draw(data);
    this._say();
  }

  _draw(data) {
    const axis = { stroke: theme.token("muted"), grid: { show: false }, ticks: { show: false }, font: `12px ${theme.token("font")}` };
    this._plot = new uPlot({
      ...this._size,
      legend: { show: false },
      scales: { x: { time: false, range: (_, low, high) => [low - 0.6, high + 0.6] }, y: { range: (_, low, high) => [0, Math.max(high * 1.05, 0.1)] } },
      axes: [{ ...axis, size: 26, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) && this._rows[tick] ? number(this._rows[tick].epoch) : "")) },
        { ...axis, size: 64, grid: { stroke: theme.token("line"), width: 1 }, values: (_, ticks) => ticks.map((tick) => seconds(tick / 1000)) }],
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      hooks: { setCursor: [(plot) => { this._at = plot.cursor.idx; this._say(); }] },
      series: [{}, ...[...PHASES].reverse().map(([name, colour]) => ({ label: name, width: 0, fill: theme.token(colour), stroke: theme.token(colour), paths: uPlot.paths.bars({ size: [0.86, 26] }), points: { show: false } }))],
    }, data, this._box);
  }

  _say() {
    const row = this._rows[this._at ?? -1] ?? this._rows.reduce((slowest, each) => (each.seconds > slowest.seconds ? each : slowest));
    const lead = this._at === null || this._at === undefined ? "slowest: epoch" : "epoch";
    const parts = PHASES.filter(([name]) => row[name] > 0).map(([name]) => `${name} ${seconds(row[name])}`);
    fill(this._said, `${lead} ${number(row.epoch)} · ${number(row.rows)} ${row.rows === 1 ? "change" : "changes"} · ${seconds(row.seconds)}${parts.length ? ` (${parts.join(", ")})` : ""}`);
  }

  close() {
    this._plot?.destroy();
    this._resized.disconnect();
    window.removeEventListener("themechange", this._retheme);
  }
}
