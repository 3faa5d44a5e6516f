// EXPLAIN as a picture: the plan of a query, the indexes that it reads, and with ANALYZE where the time went.

import { GraphPicture } from "./graph-drawing.js";
import { compact, fill, h, number, seconds } from "./ui.js";

const TITLES = {
  Read: "table", Rows: "constants", Project: "select", MapBatches: "map", Concat: "union all", Negate: "minus", Arrange: "index", Join: "join", Match: "join",
  RangeFilter: "range filter", AtLeast: "distinct", Aggregate: "group", First: "top", Reduce: "reduce", Inspect: "inspect", Variable: "recursion", Leave: "loop's result",
};

/** Where an index comes from, in a word: "shared", "made" (for this query, and shared from then on) or "own". */
const origin = (text) => (text.startsWith("shared, there") ? "shared" : text.startsWith("shared") ? "made" : "own");
const ORIGINS = { shared: "there already: shared", made: "made for this query, then shared", own: "this query's own" };

/** Nodes, boxes and edges of what `EXPLAIN (FORMAT JSON)` says. */
export function explainGraph(data) {
  const boxes = new Map();
  const edges = [];
  const read = new Map(); // operator -> the indexes of it
  for (const use of data.indexes) for (const id of use.of) read.set(id, [...(read.get(id) ?? []), use]);
  const nodes = data.operators.map((operator) => {
    let box = null;
    operator.loops.forEach((loop, at) => {
      const id = `loop:${operator.loops.slice(0, at + 1).join("/")}`;
      boxes.set(id, { id, parent: box, kind: "loop", title: `loop ${loop}` });
      box = id;
    });
    const uses = read.get(operator.id) ?? [];
    const kinds = [...new Set(uses.map((use) => origin(use.origin)))];
    const isSource = operator.kind === "Read" || operator.shared;
    const said = operator.text.replace(/^(read|join of|join|select|group by|filter|recur on|solution of) /, "");
    const title = operator.kind === "Read" ? said : operator.kind === "Project" && operator.text.startsWith("filter ") ? "filter" : operator.kind === "Aggregate" && operator.text.startsWith("group by ") ? "group by" : TITLES[operator.kind] ?? operator.kind;
    const indexes = uses.map((use) => `by (${use.columns.join(", ")}): ${ORIGINS[origin(use.origin)].split(":")[0].split(",")[0]}`);
    const text = isSource ? (indexes.length ? indexes.join("\n") : operator.kind === "Read" ? "" : said) : [said === title ? "" : said, ...operator.where.map((part) => `where ${part}`)].filter(Boolean).join(" ");
    return {
      id: String(operator.id), operator, uses, box, title, text, hasNote: true,
      kinds: [...(isSource ? ["source"] : []), ...(isSource && kinds.includes("made") ? ["made"] : isSource && kinds.includes("shared") ? ["shared"] : []), ...(!isSource && kinds.includes("own") ? ["own"] : [])],
    };
  });
  for (const operator of data.operators) {
    operator.inputs.forEach((input, at) => edges.push({ id: `${input}>${operator.id}:${at}`, from: String(input), to: String(operator.id), kind: "sends", text: "" }));
    if (operator.feedback !== undefined && operator.feedback !== null) edges.push({ id: `${operator.feedback}>${operator.id}:back`, from: String(operator.feedback), to: String(operator.id), kind: "sends", isFeedback: true, text: "" });
  }
  nodes.push({ id: "result", box: null, title: "result", text: "", hasNote: true, kinds: ["source", "result"], operator: data.operators[0], uses: [] });
  edges.push({ id: ">result", from: String(data.operators[0].id), to: "result", kind: "sends", text: "" });
  return { nodes, boxes: [...boxes.values()], edges };
}

/** What operators of the plan did, by their line: {seconds, rows (that they sent), runs}; nothing without ANALYZE. */
function measured(data) {
  const found = new Map();
  for (const each of data.analyzed?.operators ?? []) {
    if (each.text === null) continue;
    const sum = found.get(each.text) ?? { seconds: 0, rows: 0, runs: 0 };
    found.set(each.text, { seconds: sum.seconds + each.seconds, rows: Math.max(sum.rows, each.sent, each.received), runs: sum.runs + each.runs });
  }
  return found;
}

/**
 * Draw what `EXPLAIN (FORMAT JSON)` or `EXPLAIN (ANALYZE, FORMAT JSON)` gave, as an object or as its text, into an element. Gives what
 * removes it.
 */
export function draw(element, explained) {
  const data = typeof explained === "string" ? JSON.parse(explained) : explained;
  const work = measured(data);
  const all = [...work.values()].reduce((sum, each) => sum + each.seconds, 0);
  const hottest = Math.max(...[...work.values()].map((each) => each.seconds), 0);
  const of = (node) => (node.id === "result" ? undefined : work.get(node.operator.text));
  const picture = new GraphPicture({
    label: "The plan of the query",
    facts: (node) => {
      const done = of(node);
      return [["about rows", number(node.operator.rows)], ...(done ? [["took", seconds(done.seconds)], ["rows", number(done.rows)]] : []), ["columns", node.operator.columns.join(", ")],
        ...node.operator.where.map((part) => ["where", part]), ...node.uses.map((use) => [`by (${use.columns.join(", ")})`, use.origin])];
    },
  });
  const text = h("details.text", { ontoggle: () => text.open && fill(text.lastElementChild, picture.asText()) }, h("summary", "The picture as text"), h("div"));
  const decisions = data.decisions.length ? h("details.text", {}, h("summary", "How it is joined"), h("pre", data.decisions.join("\n"))) : null;
  const indexes = h("ul.uses", {}, data.indexes.map((use) => h("li", {}, h(`span.badge.${origin(use.origin)}`, ORIGINS[origin(use.origin)]), " ", h("span.mono", `${use.collection} by (${use.columns.join(", ")})`))));
  const sharing = data.sharing?.length ? h("p.muted", data.sharing.join("; ")) : null;
  const box = h("div.explanation", {}, sharing, picture.element, data.indexes.length ? [h("h3", "Indexes that it reads"), indexes] : null, decisions, text);
  fill(element, box);
  const graph = explainGraph(data);
  picture.draw(graph);
  picture.describeNodes(new Map(graph.nodes.map((node) => {
    const done = of(node);
    if (node.id === "result") return [node.id, { note: data.analyzed ? `${number(data.analyzed.rows)} rows` : `about ${compact(node.operator.rows)} rows` }];
    const note = done ? `${seconds(done.seconds)} (${all > 0 ? Math.round((100 * done.seconds) / all) : 0}%) · ${compact(done.rows)} rows` : `about ${compact(node.operator.rows)} rows`;
    return [node.id, { heat: done && hottest > 0 ? done.seconds / hottest : 0, note }];
  })));
  return () => {
    picture.close();
    box.remove();
  };
}
