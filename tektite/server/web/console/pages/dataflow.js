// Dataflow: the graph of operators that computes a view, with rows on edges, heat by time, shared parts and loops.

import { dataflowGraph, dataflowsOf, edgeId, heats } from "../dataflow-graph.js";
import { GraphPicture } from "../graph-drawing.js";
import { Rates } from "../rates.js";
import { bytes, compact, empty, fill, h, keys, number, problem, seconds, throttled } from "../ui.js";

export function mount(element, context) {
  const { session, parts, go } = context;
  const name = parts[0] ?? null;
  const choose = h("input.choose", { list: "dataflow-views", type: "search", placeholder: "Which view?", "aria-label": "View", value: name ?? "", autocomplete: "off" });
  const options = h("datalist", { id: "dataflow-views" });
  const body = h("div", {}, empty(name === null ? "Looking at the engine …" : `Looking at ${name} …`));
  fill(element, h("div.title", {}, h("h1", "Dataflow"), choose, options), body);
  choose.addEventListener("change", () => choose.value && go(`dataflow/${encodeURIComponent(choose.value)}`));
  const unbind = keys({ "/": () => choose.focus() });
  let picture = null;
  const views = session.live({ sql: "SELECT name, bytes, dataflow FROM system.views", by: "name" }, throttled(300, () => {
    if (views.failure) {
      fill(body, problem(views.failure));
      return;
    }
    if (!views.isReady) return;
    const names = [...views.rows.keys()].sort();
    const said = names.join("\n");
    if (options.dataset.said !== said) {
      options.dataset.said = said;
      fill(options, names.map((each) => h("option", { value: each })));
    }
    if (name === null) {
      offer(body, [...views.rows.values()], go);
      return;
    }
    const found = views.rows.get(name);
    if (!found) {
      picture?.close();
      picture = null;
      fill(body, empty(`There is no view ${name}`, "It may have been dropped. Choose another one above."));
    } else if (picture?.dataflow !== found.dataflow) {
      picture?.close();
      picture = new DataflowPicture(session, body, found.dataflow, name, go);
    }
  }));
  return () => {
    unbind();
    views.close();
    picture?.close();
  };
}

function offer(body, views, go) {
  if (views.length === 0) {
    fill(body, empty("No views yet", "Create one on the query page, with CREATE MATERIALIZED VIEW, and see here how it is computed."));
    return;
  }
  const largest = [...views].sort((a, b) => b.bytes - a.bytes).slice(0, 24);
  fill(body, h("p.muted", "Choose a view. These keep most:"), h("div.choices", {}, largest.map((view) => h("button", { onclick: () => go(`dataflow/${encodeURIComponent(view.name)}`) }, view.name, " ", h("span.muted", bytes(view.bytes))))));
}

/** The picture of one view, and the subscriptions that keep it up to date. */
class DataflowPicture {
  constructor(session, body, dataflow, name, go) {
    this.dataflow = dataflow;
    this._session = session;
    this._name = name;
    this._lives = [];
    this._times = new Rates();
    this._rows = new Rates();
    this._picture = new GraphPicture({
      label: `The operators that compute ${name}`, facts: (node) => this._facts(node),
      onOpen: (node) => node.view && go(`dataflow/${encodeURIComponent(node.view)}`),
    });
    this._summary = h("p.muted");
    this._text = h("details.text", { ontoggle: () => this._text.open && this._drawText() }, h("summary", "The picture as text"), h("div"));
    this._body = body;
    this._begin();
  }

  close() {
    this._isClosed = true;
    this._stop();
    this._picture.close();
  }

  _stop() {
    clearInterval(this._clock);
    for (const live of this._lives) live.close();
    this._lives = [];
  }

  async _begin() {
    try {
      const ask = async (sql) => {
        const { table } = await this._session.sql(sql);
        return table.rows.map((row) => Object.fromEntries(table.columns.map((column, at) => [column, row[at]])));
      };
      const indexes = await ask("SELECT kind, operator, dataflow FROM system.indexes");
      const readers = await ask("SELECT operator, dataflow FROM system.index_readers");
      if (this._isClosed) return;
      const flows = dataflowsOf(this.dataflow, { indexes, readers });
      this._follow(flows.map(Number).join(", "));
    } catch (failure) {
      if (!this._isClosed) fill(this._body, problem(failure));
    }
  }

  _follow(flows) {
    const structure = throttled(300, () => this._draw());
    const figures = () => {};
    const live = (sql, by, callback) => {
      const found = this._session.live({ sql, ...(by ? { by } : {}) }, callback);
      this._lives.push(found);
      return found;
    };
    this._operators = live(`SELECT id, dataflow, name, kind, loops, rows, bytes, shared, text FROM system.operators WHERE dataflow IN (${flows})`, "id", structure);
    this._channels = live(`SELECT c.source, c.target, c.kind, c.index, c.steps FROM system.channels c JOIN system.operators o ON o.id = c.target WHERE o.dataflow IN (${flows})`, null, structure);
    this._indexes = live("SELECT name, kind, operator, dataflow, readers, rows, bytes FROM system.indexes", ["kind", "name", "operator"], structure);
    this._readers = live(`SELECT index, operator FROM system.index_readers WHERE dataflow = ${Number(this.dataflow)}`, null, structure);
    this._views = live("SELECT name, rows, bytes, changes, state, lag FROM system.views", "name", figures);
    this._loops = live(`SELECT dataflow, loops, last_rounds, rounds FROM system.loops WHERE dataflow IN (${flows})`, ["dataflow", "loops"], figures);
    this._work = live(`SELECT w.operator, w.runs, w.seconds, w.received, w.sent FROM system.work w JOIN system.operators o ON o.id = w.operator WHERE o.dataflow IN (${flows})`, "operator", figures);
    this._traffic = live(`SELECT t.source, t.target, t.kind, t.index, t.rows FROM system.traffic t JOIN system.operators o ON o.id = t.target WHERE o.dataflow IN (${flows})`, ["source", "target", "kind", "index"], figures);
    this._clock = setInterval(() => this._look(), 1000);
  }

  _draw() {
    const failed = this._lives.find((live) => live.failure);
    if (failed) {
      fill(this._body, problem(failed.failure));
      return;
    }
    const needed = [this._operators, this._channels, this._indexes, this._readers];
    if (this._isClosed || !needed.every((live) => live.isReady)) return;
    if (this._isHidden && this._operators.rows.size > 0) {
      this._isHidden = false;
      this._stop();
      this._begin(); // the indexes that it reads can be seen as well
      return;
    }
    if (this._operators.rows.size === 0) {
      this._isHidden = true;
      this._said = null;
      fill(this._body, empty("This is not for you to see", `You may read ${this._name}. How it is computed is shown to those who may read everything that it reads.`));
      return;
    }
    const reads = [...this._readers.rows.values()].map((reader) => ({ name: reader.index, operator: reader.operator }));
    const graph = dataflowGraph({ name: this._name, own: this.dataflow, reads, operators: [...this._operators.rows.values()], channels: [...this._channels.rows.values()], indexes: [...this._indexes.rows.values()] });
    const said = JSON.stringify([graph.nodes.map((node) => [node.id, node.kinds, node.title, node.text]), graph.boxes.map((box) => [box.id, box.title]), graph.edges.map((edge) => edge.id)]);
    if (said !== this._said) {
      this._said = said;
      this._graph = graph;
      if (!this._picture.element.isConnected) fill(this._body, this._summary,
        h("div.key", {}, h("span", {}, h("i.is-own"), "this query's own"), h("span", {}, h("i.is-shared"), "shared with other queries"), h("span", {}, h("i.is-loop"), "a loop"), h("span", {}, h("i.is-hot"), "takes time"), h("span", "– – reads an index")),
        h("div.card", {}, this._picture.element), this._text);
      this._picture.draw(graph);
    }
    this._describe();
  }

  _look() {
    if (!this._graph) return;
    this._times.look([...this._work.rows.values()].map((work) => [work.operator, work.seconds]));
    this._rows.look([...this._traffic.rows.values()].map((traffic) => [edgeId(traffic), traffic.rows]).concat([[`>view:${this._name}`, this._views.rows.get(this._name)?.changes ?? 0]]));
    this._describe();
    if (this._text.open) this._drawText();
  }

  _describe() {
    if (!this._graph) return;
    const now = new Map([...this._work.rows.keys()].map((id) => [id, this._times.of(id, 5)]));
    const isBusy = [...now.values()].some((each) => each > 0);
    const spentBy = (node) => [node.operator, ...(node.with ?? [])].reduce((sum, id) => sum + ((isBusy ? now.get(id) : this._work.rows.get(id)?.seconds) ?? 0), 0);
    const heat = heats(new Map(this._graph.nodes.filter((node) => node.operator !== undefined).map((node) => [node.operator, spentBy(node)])));
    const all = [...(isBusy ? now.values() : [...this._work.rows.values()].map((work) => work.seconds))].reduce((sum, each) => sum + each, 0);
    const nodes = new Map();
    for (const node of this._graph.nodes) {
      if (node.operator === undefined) {
        const { rows, bytes: size } = (node.id === `view:${this._name}` ? this._views.rows.get(this._name) : node.index) ?? {};
        nodes.set(node.id, { note: rows === undefined ? "" : `${compact(rows)} rows · ${bytes(size)}` });
        continue;
      }
      const operator = this._operators.rows.get(node.operator);
      const spent = spentBy(node);
      const share = all > 0 && spent ? `${Math.round((100 * spent) / all)}% of time` : "";
      const held = operator?.bytes ? `${compact(operator.rows)} rows · ${bytes(operator.bytes)}` : "";
      nodes.set(node.id, { heat: heat.get(node.operator) ?? 0, note: [share, held].filter(Boolean).join(" · ") });
    }
    this._picture.describeNodes(nodes);
    const fastest = Math.max(...this._graph.edges.map((edge) => this._rows.of(edge.id, 5)), 1e-9);
    this._picture.describeEdges(new Map(this._graph.edges.map((edge) => {
      const rate = this._rows.of(edge.id, 5);
      return [edge.id, { label: rate > 0 ? `${compact(rate < 10 ? Number(rate.toFixed(1)) : Math.round(rate))}/s` : "", weight: rate > 0 ? Math.max(Math.log(1 + rate) / Math.log(1 + fastest), 0.05) : 0 }];
    })));
    for (const loop of this._loops.rows.values()) {
      this._picture.describeBox(`loop:${loop.dataflow}:${loop.loops}`, `loop ${loop.loops.split("/").at(-1)} · ${number(loop.last_rounds + 1)} rounds last time`);
    }
    const own = this._graph.nodes.filter((node) => node.kinds.includes("own") && node.operator !== undefined).length;
    const shared = this._graph.nodes.filter((node) => node.kinds.includes("shared") && node.operator !== undefined).length;
    this._summary.textContent = `${own} ${own === 1 ? "operator" : "operators"} of its own, ${shared} of indexes that it shares with others${all > 0 ? (isBusy ? `; ${seconds(all)} of work a second` : `; ${seconds(all)} of work since somebody looked, idle now`) : ""}.`;
  }

  _facts(node) {
    if (node.operator === undefined) return [["kind", node.id.startsWith("view:") ? "the view" : node.view ? "result of a view" : "table"], ["rows", number(node.index?.rows)], ["memory", bytes(node.index?.bytes)], ["read by", `${node.index?.readers ?? 0} dataflows`]];
    const operator = this._operators.rows.get(node.operator);
    const work = this._work.rows.get(node.operator);
    const facts = [["kind", operator?.kind ?? ""], ["belongs to", node.kinds.includes("shared") ? "what queries share" : "this query alone"]];
    if (operator?.bytes) facts.push(["keeps", `${number(operator.rows)} rows, ${bytes(operator.bytes)}`]);
    if (work) facts.push(["ran", `${number(work.runs)} times, ${seconds(work.seconds)}`], ["rows in, out", `${number(work.received)}, ${number(work.sent)}`]);
    return facts;
  }

  _drawText() {
    fill(this._text.lastElementChild, this._picture.asText());
  }
}
