// Places for a graph of operators, top to bottom, with boxes in boxes: loops, and the parts that queries share.
//
// A box is laid out by itself first, and then stands as one node in what is around it. So its operators stay together, and the
// picture of a loop is the same wherever it is.

import { Graph, layout } from "./vendor/layered.js";

const PADDING = 14;
const TITLE = 24; // the height of a box's title
const LINE = 15;
const PORTS = 18; // room between the border of a box and its first operators, where edges come in
const FEEDBACK = 26; // room beside a box for rows that go back to its beginning

export const SIZES = { narrow: 132, wide: 236, letters: 34 };

/** A text in at most `most` lines of so many letters, broken between words. */
export function wrapped(text, letters = SIZES.letters, most = 2) {
  if (text.includes("\n")) {
    const each = text.split("\n");
    return [...each.slice(0, most + 1), ...(each.length > most + 1 ? [`and ${each.length - most - 1} more`] : [])].flatMap((line) => wrapped(line, letters, 1));
  }
  const lines = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line && line.length + 1 + word.length > letters) {
      lines.push(line);
      line = word;
    } else {
      line = line ? `${line} ${word}` : word;
    }
  }
  if (line) lines.push(line);
  if (lines.length > most) lines.splice(most - 1, lines.length, `${lines[most - 1]} …`);
  return lines.map((each) => (each.length > letters ? `${each.slice(0, letters - 1)}…` : each));
}

/** How large a node is: {width, height, lines}, for its `title`, its `text`, and a `note` (a line of figures; a long one has three). */
export function nodeSize({ title, text = "", hasNote = false, isLong = false }) {
  const lines = text ? wrapped(text) : [];
  const longest = Math.max(title.length * 7.4 + 6, ...lines.map((line) => line.length * 6.4), hasNote ? (isLong ? 36 : 24) * 5.8 : 0);
  return { width: Math.min(Math.max(longest + 26, SIZES.narrow), SIZES.wide + 24), height: 16 + 17 + LINE * lines.length + (hasNote ? LINE : 0), lines };
}

/**
 * Places for nodes [{id, box, title, text, hasNote}], boxes [{id, parent, title}] and edges [{id, from, to, isFeedback}]:
 * {width, height, nodes: id -> {x, y, width, height, lines}, boxes: id -> {x, y, width, height, depth}, edges: id -> [points]}.
 * x and y are left and top. Rows go down or, with `isWide`, to the right.
 *
 * An edge that crosses the border of a box has a port there: a node without size at the side where rows come or go. So it is led
 * around the other operators of the box.
 */
export function layeredLayout({ nodes, boxes, edges }, isWide = false) {
  const inside = new Map([[null, []]]); // box -> members
  const parent = new Map();
  for (const box of boxes) inside.set(box.id, []);
  for (const box of boxes) {
    inside.get(box.parent ?? null).push({ ...box, isBox: true });
    parent.set(box.id, box.parent ?? null);
  }
  for (const node of nodes) {
    inside.get(node.box ?? null).push(node);
    parent.set(node.id, node.box ?? null);
  }
  const above = (id) => {
    const found = [];
    for (let at = id; at !== undefined && at !== null; at = parent.get(at)) found.push(at);
    return found; // the thing itself, and the boxes around it from the inside out
  };
  const runs = new Map([...inside.keys()].map((id) => [id, []])); // pieces of edges by the box in which they run
  const pieces = new Map(); // the pieces of each edge, in the order in which rows pass them
  for (const edge of edges) {
    if (edge.isFeedback) continue;
    const from = above(edge.from);
    const to = above(edge.to);
    const common = from.slice(1).find((id) => to.includes(id)) ?? null;
    const [out, into] = [from, to].map((path) => path.slice(0, common === null ? path.length : path.indexOf(common)));
    const found = [];
    const run = (within, start, end) => {
      const piece = { edge: edge.id, within, start, end };
      runs.get(within).push(piece);
      found.push(piece);
    };
    for (let at = 1; at < out.length; at++) run(out[at], out[at - 1], `out ${edge.id} ${out[at]}`);
    run(common, out.at(-1), into.at(-1));
    for (let at = into.length - 1; at > 0; at--) run(into[at], `in ${edge.id} ${into[at]}`, into[at - 1]);
    pieces.set(edge.id, found);
  }
  const loops = new Set(edges.filter((edge) => edge.isFeedback).map((edge) => parent.get(edge.to)).filter((box) => box !== null));
  const placed = { nodes: new Map(), boxes: new Map() };
  const { width, height } = arrange(null, 0);

  function arrange(box, depth) {
    const members = inside.get(box);
    const graph = new Graph({ multigraph: true });
    graph.setGraph({ rankdir: isWide ? "LR" : "TB", nodesep: isWide ? 16 : 20, ranksep: isWide ? 44 : 40, edgesep: 10, marginx: 0, marginy: 0 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const member of members) graph.setNode(member.id, member.isBox ? arrange(member.id, depth + 1) : nodeSize(member));
    const mine = runs.get(box);
    for (const { start, end } of mine) {
      for (const id of [start, end]) {
        if (graph.hasNode(id)) continue;
        graph.setNode(id, { width: 1, height: 1 });
        const [port, side] = id.startsWith("in ") ? ["entry", [[" entry", id]]] : ["exit", [[id, " exit"]]];
        graph.setNode(` ${port}`, { width: 1, height: 1 });
        for (const [a, b] of side) graph.setEdge(a, b, { weight: 20, minlen: 1 }, `side ${a} ${b}`);
      }
    }
    // ports are at the border: nothing stands before the entry or behind the exit
    const begun = new Set(mine.map(({ end }) => end));
    const ended = new Set(mine.map(({ start }) => start));
    for (const { id } of members) {
      if (graph.hasNode(" entry") && !begun.has(id)) graph.setEdge(" entry", id, { weight: 0, minlen: 1 }, `side ${id}`);
      if (graph.hasNode(" exit") && !ended.has(id)) graph.setEdge(id, " exit", { weight: 0, minlen: 1 }, `side ${id} exit`);
    }
    mine.forEach((piece, at) => {
      const { start, end } = piece;
      if (start !== end) graph.setEdge(start, end, { width: isWide ? 34 : 30, height: 12, labelpos: "c", weight: 1 }, `piece ${at}`);
    });
    if (members.length) layout(graph);
    let left = box === null ? 0 : PADDING + (loops.has(box) && !isWide ? FEEDBACK : 0);
    let top = box === null ? 0 : TITLE + PADDING / 2 + (loops.has(box) && isWide ? FEEDBACK : 0);
    const found = members.length ? { ...graph.graph() } : { width: 0, height: 0 };
    if (box !== null && members.length) {
      // the ranks of ports need less room than those of operators
      const [along, size] = isWide ? ["x", "width"] : ["y", "height"];
      const ends = members.map(({ id }) => graph.node(id)).map((place) => [place[along] - place[size] / 2, place[along] + place[size] / 2]);
      const before = Math.max(Math.min(...ends.map(([start]) => start)) - PORTS, 0);
      const behind = Math.max(found[size] - Math.max(...ends.map(([, end]) => end)) - PORTS, 0);
      found[size] -= before + behind;
      if (isWide) left -= before;
      else top -= before;
    }
    for (const member of members) {
      const { x, y, width: wide, height: high, lines } = graph.node(member.id);
      const place = { x: x - wide / 2 + left, y: y - high / 2 + top, width: wide, height: high };
      if (member.isBox) placed.boxes.set(member.id, { ...place, depth: depth + 1, within: box });
      else placed.nodes.set(member.id, { ...place, lines, within: box });
    }
    mine.forEach((piece, at) => {
      const points = piece.start === piece.end ? [] : graph.edge(piece.start, piece.end, `piece ${at}`).points;
      const ends = [piece.start, piece.end].map((id) => (/^(in|out) /.test(id) ? [graph.node(id)] : []));
      piece.points = [...ends[0], ...points.slice(1, -1), ...ends[1]].map(({ x, y }) => ({ x: x + left, y: y + top }));
    });
    if (box === null) return { width: found.width, height: found.height };
    const title = Math.min((boxes.find((each) => each.id === box).title.length + (loops.has(box) ? 22 : 0)) * 6.9 + 24, 360);
    const room = { left: PADDING + (loops.has(box) && !isWide ? FEEDBACK : 0), top: TITLE + PADDING / 2 + (loops.has(box) && isWide ? FEEDBACK : 0) };
    return { width: Math.max(found.width + room.left + PADDING, title), height: found.height + room.top + PADDING };
  }
  // from places within boxes to places in the picture
  const offsets = new Map([[null, { x: 0, y: 0 }]]);
  const offset = (id) => {
    if (!offsets.has(id)) {
      const box = placed.boxes.get(id);
      const outer = offset(box.within);
      offsets.set(id, { x: box.x + outer.x, y: box.y + outer.y });
    }
    return offsets.get(id);
  };
  const absolute = new Map([...placed.boxes].map(([id, box]) => [id, { ...box, ...offset(id) }]));
  for (const place of placed.nodes.values()) {
    const { x, y } = offset(place.within);
    place.x += x;
    place.y += y;
  }
  const routes = new Map();
  for (const edge of edges) {
    const from = placed.nodes.get(edge.from);
    const to = placed.nodes.get(edge.to);
    if (!from || !to) continue;
    if (edge.isFeedback) {
      routes.set(edge.id, back(from, to, absolute.get(to.within), isWide));
      continue;
    }
    const start = isWide ? { x: from.x + from.width, y: from.y + from.height / 2 } : { x: from.x + from.width / 2, y: from.y + from.height };
    const end = isWide ? { x: to.x, y: to.y + to.height / 2 } : { x: to.x + to.width / 2, y: to.y };
    const along = isWide ? "x" : "y";
    const between = [];
    for (const { points, within } of pieces.get(edge.id)) {
      const { x, y } = offset(within);
      for (const point of points) {
        const moved = { x: point.x + x, y: point.y + y };
        if (moved[along] > (between.at(-1) ?? start)[along] + 6 && moved[along] < end[along] - 6) between.push(moved);
      }
    }
    routes.set(edge.id, [start, ...between, end]);
  }
  return { width, height, isWide, nodes: placed.nodes, boxes: absolute, edges: routes };
}

/** The way back to the beginning of a loop: out at the side, along the box, and in again. */
function back(from, to, box, isWide) {
  if (isWide) {
    const top = (box?.y ?? Math.min(from.y, to.y) - 30) + TITLE + 12;
    const start = { x: from.x + from.width / 2, y: from.y };
    const end = { x: to.x + to.width / 2, y: to.y };
    return [start, { x: start.x, y: top }, { x: end.x, y: top }, end];
  }
  const left = (box?.x ?? Math.min(from.x, to.x) - 30) + 14;
  const start = { x: from.x, y: from.y + from.height / 2 };
  const end = { x: to.x, y: to.y + to.height / 2 };
  return [start, { x: left, y: start.y }, { x: left, y: end.y }, end];
}

/** Points as a smooth path: straight into and out of nodes, rounded between. */
export function pathOf(points, isFeedback, isWide) {
  const at = ({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  if (isFeedback) {
    const [start, first, second, end] = points;
    const round = (corner, other) => {
      const length = Math.hypot(other.x - corner.x, other.y - corner.y) || 1;
      const part = Math.min(10, length / 2) / length;
      return { x: corner.x + (other.x - corner.x) * part, y: corner.y + (other.y - corner.y) * part };
    };
    return `M${at(start)}L${at(round(first, start))}Q${at(first)} ${at(round(first, second))}L${at(round(second, first))}Q${at(second)} ${at(round(second, end))}L${at(end)}`;
  }
  let path = `M${at(points[0])}`;
  for (let number = 1; number < points.length; number++) {
    const a = points[number - 1];
    const b = points[number];
    const [c, d] = isWide ? [{ x: (a.x + b.x) / 2, y: a.y }, { x: (a.x + b.x) / 2, y: b.y }] : [{ x: a.x, y: (a.y + b.y) / 2 }, { x: b.x, y: (a.y + b.y) / 2 }];
    path += `C${at(c)} ${at(d)} ${at(b)}`;
  }
  return path;
}

/** The middle of a route, where its label stands. */
export function middleOf(points) {
  if (points.length % 2 === 1) return points[(points.length - 1) / 2];
  const [a, b] = [points[points.length / 2 - 1], points[points.length / 2]];
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}
