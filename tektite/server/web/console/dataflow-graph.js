// The graph of operators that computes a view: pure functions from rows of system relations to what GraphPicture draws.

const HIDDEN = new Set(["errors"]); // operators that get something only where rows fail

/**
 * The numbers of the dataflows that a view depends on: its own, and those of the shared indexes that it reads, and so on. What
 * another view keeps is a source: it has a picture of its own.
 */
export function dataflowsOf(dataflow, { indexes, readers }) {
  const ofIndex = new Map(indexes.filter((index) => index.kind === "index").map((index) => [index.operator, index.dataflow]));
  const found = new Set([dataflow]);
  const waiting = [dataflow];
  while (waiting.length) {
    const at = waiting.pop();
    for (const reader of readers) {
      if (reader.dataflow !== at || !ofIndex.has(reader.operator)) continue;
      const next = ofIndex.get(reader.operator);
      if (!found.has(next)) {
        found.add(next);
        waiting.push(next);
      }
    }
  }
  return [...found];
}

/** The loops that an operator is in, as ids of boxes from the outermost one. */
const loopBoxes = (dataflow, loops) => (loops ? loops.split("/").map((_, at, all) => `loop:${dataflow}:${all.slice(0, at + 1).join("/")}`) : []);

/**
 * Nodes, boxes and edges of a view's dataflow. `own` is the number of its dataflow; `operators`, `channels` and `indexes` are rows of
 * the system relations. The view itself is the last node. One whose result is an index of others, or a table, has no
 * operators: then it comes from what it `reads`.
 */
export function dataflowGraph({ name, own, operators, channels, indexes, reads }) {
  const known = new Map(operators.map((operator) => [operator.id, operator]));
  const kept = new Map(indexes.filter((index) => index.operator !== null && index.kind !== "view").map((index) => [index.operator, index]));
  const boxes = new Map();
  const nodes = [];
  const titles = new Map();
  for (const index of kept.values()) if (!titles.has(index.dataflow)) titles.set(index.dataflow, index);
  const used = new Set(channels.flatMap((channel) => [channel.source, channel.target]));
  for (const operator of [...operators].sort((a, b) => a.id - b.id)) {
    if (HIDDEN.has(operator.name) && !used.has(operator.id)) continue;
    let box = null;
    if (operator.dataflow !== own) {
      const index = titles.get(operator.dataflow);
      box = `flow:${operator.dataflow}`;
      const readers = index?.readers ?? 0;
      boxes.set(box, { id: box, parent: null, kind: "shared", title: `${index?.name ?? "a shared index"} · ${readers} ${readers === 1 ? "reader" : "readers"}` });
    }
    for (const loop of loopBoxes(operator.dataflow, operator.loops)) {
      boxes.set(loop, { id: loop, parent: box, kind: "loop", title: `loop ${loop.split("/").at(-1).split(":").at(-1)}` });
      box = loop;
    }
    nodes.push({ id: String(operator.id), operator: operator.id, box, title: operator.name, text: operator.text ?? "", hasNote: true, isLong: operator.bytes > 0, kinds: [operator.dataflow === own ? "own" : "shared"] });
  }
  const shown = new Set(nodes.map((node) => node.id));
  const sources = new Map();
  const edges = [];
  const order = (a, b) => a.target - b.target || (a.source ?? -1) - (b.source ?? -1) || (String(a.index) < String(b.index) ? -1 : 1);
  for (const channel of [...channels].sort(order)) {
    const to = String(channel.target);
    if (!shown.has(to)) continue;
    let from = String(channel.source);
    if (channel.source === null || !known.has(channel.source)) {
      const index = indexes.find((each) => each.name === channel.index && each.operator === channel.source);
      from = `source:${channel.index}`; // a table, or what another view keeps; SQL's own constants have no name
      const isView = index?.kind === "view";
      sources.set(from, {
        id: from, box: null, title: channel.index ?? "constants", text: "", hasNote: true, view: isView ? channel.index : null, index,
        kinds: ["source", ...((index?.readers ?? 0) > 1 ? ["shared"] : []), ...(isView ? ["link"] : [])],
      });
    }
    const target = known.get(channel.target);
    edges.push({ id: edgeId(channel), from, to, kind: channel.kind, text: channel.steps, isFeedback: target?.kind === "FeedbackNode" && target.loops === known.get(channel.source)?.loops });
  }
  const result = indexes.find((index) => index.kind === "view" && index.name === name);
  const end = `view:${name}`;
  if (result && shown.has(String(result.operator))) {
    edges.push({ id: `>${end}`, from: String(result.operator), to: end, kind: "keeps", text: "" });
  } else {
    for (const index of reads) {
      const from = index.operator !== null && shown.has(String(index.operator)) ? String(index.operator) : `source:${index.name}`;
      if (!shown.has(from)) sources.set(from, { id: from, box: null, title: index.name, text: "", hasNote: true, index, kinds: ["source"] });
      edges.push({ id: `${from}>${end}`, from, to: end, kind: "reads", text: "" });
    }
  }
  const view = { id: end, box: null, title: name, text: "", hasNote: true, index: result, kinds: ["source", "result", "own"] };
  return folded({ nodes: [...sources.values(), ...nodes, view], boxes: [...boxes.values()], edges });
}

/** Shared indexes that are only made by sorting are one node each: what is inside says nothing more. */
function folded({ nodes, boxes, edges }) {
  const into = new Map();
  const kept = [];
  for (const box of boxes) {
    const members = nodes.filter((node) => node.box === box.id);
    const first = members.find((node) => node.title === "changes");
    const last = members.find((node) => node !== first);
    if (box.kind !== "shared" || members.length !== 2 || !first || boxes.some((each) => each.parent === box.id)) continue;
    into.set(first.id, last.id);
    kept.push(box.id);
    Object.assign(last, { title: box.title.split(" · ")[0], text: box.title.split(" · ")[1], box: null, kinds: ["shared", "index"], with: [first.operator] });
  }
  return {
    nodes: nodes.filter((node) => !into.has(node.id)), boxes: boxes.filter((box) => !kept.includes(box.id)),
    edges: edges.map((edge) => ({ ...edge, from: into.get(edge.from) ?? edge.from, to: into.get(edge.to) ?? edge.to })).filter((edge) => edge.from !== edge.to),
  };
}

/** The id of an edge, for a row of system.channels or of system.traffic. */
export const edgeId = ({ source, target, kind, index }) => `${source ?? `source:${index}`}>${target}:${kind}`;

/** How hot each operator is: its share of the time of the hottest, from seconds a second, or from all seconds if nothing runs. */
export function heats(seconds) {
  const hottest = Math.max(...seconds.values(), 0);
  return new Map([...seconds].map(([id, each]) => [id, hottest > 0 ? each / hottest : 0]));
}
