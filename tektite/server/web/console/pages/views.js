// Views and sharing: the picture of who shares what, and every view with its state, lag, rate, rows and memory.

import { Rates } from "../rates.js";
import { indexId } from "../sharing-layout.js";
import { SharingPicture, sharingSentence } from "../sharing.js";
import { bytes, compact, empty, fill, h, keys, number, problem, sparkline, throttled } from "../ui.js";

const LINE = 34; // the height of a line of the list, as in pictures.css
const BADGES = { current: "good", behind: "warn", error: "bad", failed: "bad" };
const ORDERS = {
  name: (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  state: (a, b) => a.state.localeCompare(b.state), lag: (a, b) => b.lag - a.lag, rate: (a, b) => b.rate - a.rate, rows: (a, b) => b.rows - a.rows, memory: (a, b) => b.bytes - a.bytes,
};

export function mount(element, context) {
  const { session, go, parts } = context;
  const rates = new Rates();
  const filter = h("input", { type: "search", placeholder: "Filter views", "aria-label": "Filter views" });
  const lead = h("div.lead");
  const text = h("details.text", { ontoggle: () => text.open && drawText() }, h("summary", "The picture as text"), h("div"));
  const folding = h("button", { hidden: true, onclick: () => picture.fold() }, "Group again");
  const picture = new SharingPicture({ onSelect: (node) => detail.show(node), rateOf: (id) => rates.of(id) });
  const card = h("div.card.picture", {},
    h("div.bar", {}, h("div.key", {}, h("span", {}, h("i.of-index"), "an index, as large as its memory"), h("span", {}, h("i.of-query"), "a view"), h("span", {}, h("i.of-passing"), "a query of a client")), h("div.space"), folding),
    picture.element, text);
  const list = new ViewList({ rates, onSelect: (name) => picture.select(`v:${name}`) });
  const detail = new Detail({ session, go, rates, element, graph: () => picture.graph, select: (id) => picture.select(id) });
  const body = h("div", {}, lead, card, h("div.card.list", {}, h("div.bar", {}, h("h2", "Views"), h("div.space"), filter), list.element));
  fill(element, empty("Looking at the engine …"));
  filter.addEventListener("input", () => {
    list.filter(filter.value);
    picture.search(filter.value);
  });

  const draw = throttled(350, () => {
    const failed = lives.find((live) => live.failure);
    if (failed) {
      fill(element, problem(failed.failure));
      return;
    }
    if (!lives.every((live) => live.isReady)) return;
    const rows = { views: [...views.rows.values()], indexes: [...indexes.rows.values()], readers: [...readers.rows.values()], dataflows: [...dataflows.rows.values()] };
    if (body.parentNode !== element) fill(element, body);
    picture.update(rows);
    list.update(rows.views);
    drawLead();
    folding.hidden = !picture.isUnfolded;
    if (text.open) drawText();
    detail.refresh();
    if (wanted !== null && views.rows.has(wanted)) {
      picture.select(`v:${wanted}`);
      wanted = null;
    }
  });
  let wanted = parts[0] ?? null;
  const views = session.live({ sql: "SELECT name, state, error, lag, rows, bytes, subscriptions, changes, dataflow FROM system.views", by: "name" }, draw);
  const indexes = session.live({ sql: "SELECT name, kind, columns, rows, bytes, changes, operator, dataflow FROM system.indexes", by: ["kind", "name", "operator"] }, draw);
  const readers = session.live({ sql: "SELECT index, operator, dataflow FROM system.index_readers" }, draw);
  const dataflows = session.live({ sql: "SELECT id, name, bytes FROM system.dataflows WHERE kind = 'query'", by: "id" }, draw);
  const lives = [views, indexes, readers, dataflows];

  function drawLead() {
    const found = sharingSentence(picture.graph);
    const times = found.ratio >= 10 ? Math.round(found.ratio) : found.ratio.toFixed(1);
    fill(lead, h("div", {},
      h("div.many", {}, `${number(found.queries)} ${found.queries === 1 ? "query" : "queries"}, ${number(found.count)} ${found.count === 1 ? "index" : "indexes"}, `, h("b", bytes(found.total))),
      h("p", found.ratio > 1.05
        ? `If each query kept the indexes that it reads for itself, it would be ${bytes(found.alone)}: ${times} times as much. ${number(found.shared)} of the indexes are read by several queries.`
        : found.queries === 0 ? "No views yet: install one, and see which indexes it reads." : "Install another query over the same tables, and see which indexes it shares.")));
  }

  function drawText() {
    fill(text.lastElementChild, picture.asText());
  }

  const clock = setInterval(() => {
    rates.look([...views.rows.values()].map((view) => [`v:${view.name}`, view.changes]).concat([...indexes.rows.values()].map((index) => [indexId(index.operator, index.name), index.changes])));
    picture.pulse();
    list.refresh();
    detail.refresh();
  }, 1000);
  const unbind = keys({ "/": () => filter.focus() });
  return () => {
    clearInterval(clock);
    unbind();
    lives.forEach((live) => live.close());
    picture.close();
    detail.close();
  };
}

/** The list of views; only the lines that can be seen exist. */
class ViewList {
  constructor({ rates, onSelect }) {
    this._rates = rates;
    this._onSelect = onSelect;
    this._views = [];
    this._order = "name";
    this._isDown = false;
    this._text = "";
    this._lines = new Map();
    this._head = h("div.head", { role: "row" });
    this._body = h("div.body");
    this.element = h("div.rows", { role: "table", "aria-label": "Views", onscroll: () => this._draw() }, this._head, this._body);
    this._drawHead();
    this._watcher = new ResizeObserver(() => this._draw());
    this._watcher.observe(this.element);
  }

  update(views) {
    this._views = views;
    this.refresh();
  }

  filter(text) {
    this._text = text.trim().toLowerCase();
    this.refresh();
  }

  refresh() {
    const chosen = this._views.filter((view) => view.name.toLowerCase().includes(this._text)).map((view) => ({ ...view, rate: this._rates.of(`v:${view.name}`) }));
    chosen.sort((a, b) => (this._isDown ? -1 : 1) * ORDERS[this._order](a, b) || ORDERS.name(a, b));
    this._chosen = chosen;
    this._body.style.height = `${Math.max(chosen.length, 1) * LINE}px`;
    this._draw();
  }

  _drawHead() {
    const columns = [["name", "View"], ["state", "State"], ["lag", "Lag", "right"], ["rate", "Changes/s", "right"], ["rows", "Rows", "right wide"], ["memory", "Memory", "right wide"]];
    fill(this._head, columns.map(([name, title, side]) => h("span", { role: "columnheader", class: side ?? null, "aria-sort": this._order === name ? (this._isDown ? "descending" : "ascending") : "none" },
      h("button", { onclick: () => this._sort(name) }, title, this._order === name ? (this._isDown ? " ↓" : " ↑") : ""))), h("span.wide", { role: "columnheader" }, h("span.muted", "Last minute")));
  }

  _sort(name) {
    this._isDown = this._order === name ? !this._isDown : false;
    this._order = name;
    this._drawHead();
    this.refresh();
  }

  _draw() {
    const all = this._chosen ?? [];
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(Math.floor(scrollTop / LINE) - 4, 0);
    const last = Math.min(first + Math.ceil((clientHeight || 460) / LINE) + 8, all.length);
    const wanted = new Set();
    for (let at = first; at < last; at++) {
      const view = all[at];
      wanted.add(view.name);
      const line = this._lines.get(view.name) ?? this._line(view.name);
      line.element.style.top = `${at * LINE}px`;
      this._describe(line, view);
    }
    for (const [name, line] of this._lines) {
      if (wanted.has(name)) continue;
      line.element.remove();
      this._lines.delete(name);
    }
  }

  _line(name) {
    const cell = (kind) => h("span", { role: "cell", class: kind });
    const line = { name: cell("name"), state: cell(""), lag: cell("right"), rate: cell("right"), rows: cell("right wide"), memory: cell("right wide"), spark: sparkline({ label: `Changes of ${name} in the last minute` }) };
    const spark = h("span.wide", { role: "cell" }, line.spark);
    const choose = () => this._onSelect(name);
    line.element = h("div.line", { role: "row", tabindex: 0, data: { name }, onclick: choose, onkeydown: (event) => event.key === "Enter" && choose() }, line.name, line.state, line.lag, line.rate, line.rows, line.memory, spark);
    line.name.textContent = name;
    line.name.title = name;
    this._body.append(line.element);
    this._lines.set(name, line);
    return line;
  }

  _describe(line, view) {
    const said = `${view.state}|${view.error}`;
    if (line.said !== said) {
      line.said = said;
      fill(line.state, h(`span.badge.${BADGES[view.state] ?? "warn"}`, { title: view.error ?? "" }, view.state));
    }
    line.lag.textContent = number(view.lag);
    line.rate.textContent = view.rate ? compact(view.rate < 10 ? Number(view.rate.toFixed(1)) : Math.round(view.rate)) : "0";
    line.rows.textContent = compact(view.rows);
    line.memory.textContent = bytes(view.bytes);
    line.spark.update(this._rates.history(`v:${view.name}`));
  }
}

/** What is selected: its figures, its neighbours, its definition, its plan, and its changes as they come. */
class Detail {
  constructor({ session, go, rates, element, graph, select }) {
    Object.assign(this, { _session: session, _go: go, _rates: rates, _around: element, _graph: graph, _select: select });
    this.element = h("aside.card.detail", { "aria-label": "What is selected", "aria-live": "polite" });
    this._id = null;
  }

  close() {
    this._changes?.close();
    this._changes = null;
  }

  show(node) {
    this.close();
    this._id = node?.id ?? null;
    if (node === null) {
      this.element.remove();
      return;
    }
    if (!this.element.parentNode) this._around.append(this.element);
    this._facts = h("dl");
    const isQuery = node.kind === "query";
    const chips = h("div.chips");
    this._chips = chips;
    const definition = h("pre", "…");
    const changes = h("div.changes", { role: "log", "aria-label": "Changes" }, h("span.muted", "waiting for changes …"));
    const path = encodeURIComponent(node.name);
    fill(this.element,
      h("div.bar", {}, h("h2", node.name), h("button.quiet", { "aria-label": "Close", onclick: () => this._select(null) }, "✕")),
      this._facts,
      isQuery && !node.isPassing ? h("div.bar", {}, h("button", { onclick: () => this._go(`dataflow/${path}`) }, "Show its dataflow")) : null,
      h("div", {}, h("h3", isQuery ? "Reads" : "Read by"), chips),
      isQuery && !node.isPassing ? [h("div", {}, h("h3", "Definition"), definition), h("div", {}, h("h3", "Changes"), changes)] : null);
    this.refresh();
    if (isQuery && !node.isPassing) {
      this._define(node.name, definition);
      this._follow(node.name, changes);
    }
  }

  refresh() {
    if (this._id === null) return;
    const graph = this._graph();
    const node = graph.queries.get(this._id) ?? graph.indexes.get(this._id);
    if (!node) {
      fill(this._facts, h("dt", "state"), h("dd", "dropped"));
      return;
    }
    const rate = this._rates.of(this._id);
    const facts = graph.queries.has(this._id)
      ? node.isPassing ? [["kind", "of a client, as long as it is prepared or followed"], ["own memory", bytes(node.bytes)]] : [["state", node.state], ["lag", `${number(node.lag)} epochs`], ["rows", number(node.rows)], ["own memory", bytes(node.bytes)], ["changes", `${compact(Math.round(rate * 10) / 10)}/s`]]
      : [["kind", { table: "of a table", view: "result of a view", index: "made for its readers" }[node.kind]], ["columns", node.columns], ["rows", number(node.rows)], ["memory", bytes(node.bytes)], ["changes", `${compact(Math.round(rate * 10) / 10)}/s`]];
    fill(this._facts, facts.map(([name, value]) => [h("dt", name), h("dd", value)]));
    const near = graph.queries.has(this._id)
      ? [...node.reads].map((id) => graph.indexes.get(id)).filter(Boolean).map((index) => [index.id, `${index.name} · ${bytes(index.bytes)} · ${index.readers.size} ${index.readers.size === 1 ? "reader" : "readers"}`])
      : [...node.readers].map((id) => [id, graph.queries.get(id)?.name ?? id]);
    const said = JSON.stringify(near);
    if (this._said === said && this._chips.childElementCount) return;
    this._said = said;
    fill(this._chips, near.slice(0, 40).map(([id, name]) => h("button", { onclick: () => this._select(id) }, name)), near.length > 40 ? h("span.muted", `and ${near.length - 40} more`) : null, near.length === 0 ? h("span.muted", "nothing") : null);
  }

  async _define(name, into) {
    try {
      const [schema, plain] = name.includes(".") ? name.split(/\.(.*)/) : ["public", name];
      const { table } = await this._session.sql("SELECT definition FROM pg_catalog.pg_matviews WHERE schemaname = $1 AND matviewname = $2", [schema, plain]);
      const found = table.rows[0]?.[0];
      if (found) into.textContent = found;
      else into.textContent = (await this._session.ask("explain", { view: name })).text;
    } catch (failure) {
      into.textContent = failure.code === "permission-denied" ? "It reads something that you may not read." : failure.message;
    }
  }

  _follow(name, into) {
    let isFirst = true;
    this._changes = this._session.subscribe({ name, snapshot: false }, {
      changes: (changes, time) => {
        if (isFirst) fill(into);
        isFirst = false;
        const lines = changes.slice(-30).map(({ row, diff }) => h(`div.${diff > 0 ? "in" : "out"}`, { title: row.join(", ") }, `${time} ${diff > 0 ? "+" : "−"}${Math.abs(diff) > 1 ? Math.abs(diff) : ""} ${row.map((value) => (value === null ? "NULL" : String(value))).join(", ")}`));
        into.prepend(...lines.reverse());
        while (into.childElementCount > 100) into.lastElementChild.remove();
      },
      end: (failure) => failure && fill(into, h("span", failure.message)),
    });
  }
}
