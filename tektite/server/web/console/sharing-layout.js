// Who shares what, and where each thing stands: pure functions from rows of system relations to a graph, and to places.
//
// An index is one arrangement, whatever names it has: that of a table, of a view that others read, or one that was made for its
// readers. A query is a view. Areas are true to bytes, with one scale for all, down to the smallest circle that can be seen.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "./vendor/force.js";

export const SMALLEST = 3.5; // the radius of what is too small to be drawn true to its bytes
const MANY = 80; // queries from which on those that read the same indexes are one circle
export const INSIDE = 27; // the radius from which on an index has its name inside
const FILLED = 0.34; // how much of the middle the circles of indexes may fill: the rest is for their names
const MIDDLE = 0.66; // how much of the ring's radius belongs to indexes
const INNER = 0.78; // how far indexes reach where they need more
const GAP = 3; // between queries on the ring
const LINE = 13; // what the name of a query needs of the ring

/** An index's own id: that of the operator that keeps it, or the name of its table. */
export const indexId = (operator, name) => (operator === null ? `t:${name}` : `i:${operator}`);

/**
 * Rows of system.views, system.indexes, system.index_readers and of system.dataflows (those of kind query) as a graph:
 * indexes {id, name, kind, bytes, hue, readers (ids of queries)}, queries {id, name, bytes, reads (ids of indexes)}: views, and
 * what clients have prepared or follow, which is `isPassing`,
 * links {from, to} between indexes where one is made of another, and keeps {query, index} where a view's result is an index.
 */
export function sharingGraph({ views, indexes, readers, dataflows = [] }) {
  const found = new Map();
  const ofDataflow = new Map();
  const byName = (a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0); // so that the picture is the same whenever it is drawn
  const named = [...indexes].sort((a, b) => (a.kind === "view") - (b.kind === "view") || byName(a, b)); // a view that is an index of others comes second
  for (const index of named) {
    const id = indexId(index.operator, index.name);
    if (found.has(id)) continue;
    found.set(id, { id, name: index.name, kind: index.kind, columns: index.columns, bytes: index.bytes, rows: index.rows, changes: index.changes, readers: new Set(), from: new Set() });
    if (index.kind === "index" && !ofDataflow.has(index.dataflow)) ofDataflow.set(index.dataflow, id);
  }
  const queries = new Map();
  const byDataflow = new Map();
  for (const view of [...views].sort(byName)) {
    const query = { id: `v:${view.name}`, name: view.name, state: view.state, lag: view.lag, rows: view.rows, bytes: view.bytes, changes: view.changes, reads: new Set() };
    queries.set(query.id, query);
    byDataflow.set(view.dataflow, [...(byDataflow.get(view.dataflow) ?? []), query]);
  }
  for (const { id, name, bytes: size } of [...dataflows].sort(byName)) {
    const query = { id: `q:${id}`, name, isPassing: true, state: "current", lag: 0, rows: null, bytes: size, changes: 0, reads: new Set() };
    queries.set(query.id, query);
    byDataflow.set(id, [query]);
  }
  for (const { index, operator, dataflow } of readers) {
    const id = indexId(operator, index);
    if (!found.has(id)) continue;
    for (const query of byDataflow.get(dataflow) ?? []) {
      query.reads.add(id);
      found.get(id).readers.add(query.id);
    }
    const made = ofDataflow.get(dataflow);
    if (made !== undefined && made !== id) found.get(made).from.add(id);
  }
  const keeps = [];
  for (const index of [...found.values()]) {
    if (index.kind !== "view") continue;
    if (index.readers.size === 0) {
      found.delete(index.id); // the result of a view that nobody else reads is part of the view
      continue;
    }
    const query = queries.get(`v:${index.name}`);
    if (query === undefined) continue;
    query.bytes = Math.max(query.bytes - index.bytes, 0);
    keeps.push({ query: query.id, index: index.id });
  }
  const links = [...found.values()].flatMap((index) => [...index.from].filter((from) => found.has(from)).map((from) => ({ from, to: index.id })));
  colour(found);
  return { indexes: found, queries, links, keeps };
}

/** Gives each index the hue of the table that it is made of; the largest tables have hues of their own. */
function colour(indexes) {
  const root = (index, seen = new Set()) => {
    for (const from of index.from) {
      if (indexes.has(from) && !seen.has(from)) return root(indexes.get(from), seen.add(from));
    }
    return index;
  };
  const sums = new Map();
  for (const index of indexes.values()) {
    index.root = root(index).id;
    sums.set(index.root, (sums.get(index.root) ?? 0) + index.bytes);
  }
  const order = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([id]) => id);
  for (const index of indexes.values()) index.hue = (order.indexOf(index.root) % 8) + 1;
}

/** A name for several: their common pattern, or what they begin with. */
export function commonName(names) {
  const patterns = new Map();
  for (const name of names) {
    const pattern = name.replace(/\d+/g, "*").replace(/(_\*)+$/, "_*");
    patterns.set(pattern, (patterns.get(pattern) ?? 0) + 1);
  }
  const [most, count] = [...patterns].sort((a, b) => b[1] - a[1])[0];
  if (count === names.length || count > 0.6 * names.length) return most;
  let common = names[0];
  for (const name of names) while (!name.startsWith(common)) common = common.slice(0, -1);
  return common.length >= 3 ? `${common}*` : `${names[0]}, …`;
}

/** The circles around the middle: queries, or groups of those that read the same, where there are many. `open` groups are not taken together. */
export function outerNodes(graph, open = new Set(), many = MANY) {
  const all = [...graph.queries.values()];
  if (all.length <= many) return all.map((query) => ({ ...query, members: [query.id] }));
  const groups = new Map();
  for (const query of all) {
    const key = `g:${[...query.reads].sort().join(" ")}`;
    groups.set(key, [...(groups.get(key) ?? []), query]);
  }
  return [...groups].flatMap(([id, members]) => {
    if (members.length === 1 || open.has(id)) return members.map((query) => ({ ...query, group: members.length > 1 ? id : null, members: [query.id] }));
    const worst = ["failed", "error", "behind"].find((state) => members.some((query) => query.state === state)) ?? "current";
    const sum = (name) => members.reduce((total, query) => total + query[name], 0);
    return [{
      id, name: commonName(members.map((query) => query.name)), isGroup: true, members: members.map((query) => query.id), state: worst,
      lag: Math.max(...members.map((query) => query.lag)), bytes: sum("bytes"), rows: sum("rows"), changes: sum("changes"), reads: members[0].reads,
    }];
  });
}

/** What queries would keep if each had its indexes for itself, and what they keep. */
export function savings(graph) {
  let shared = 0;
  let alone = 0;
  for (const index of graph.indexes.values()) {
    shared += index.bytes;
    alone += index.bytes * Math.max(index.readers.size, 1);
  }
  let own = 0;
  for (const query of graph.queries.values()) own += query.bytes;
  return { indexes: shared, own, total: shared + own, alone: alone + own, ratio: shared + own > 0 ? (alone + own) / (shared + own) : 1 };
}

/**
 * Places for a graph in a picture of some size: `places` from id to {x, y, r, angle}, the `scale` (pixels of radius for the root of
 * a byte), and the `ring`. Places that were there before (`previous`) are where the search for new ones begins, so that
 * little moves when one query comes or goes.
 */
export function sharingLayout(graph, outer, { width, height, margin }, previous = new Map()) {
  const ring = { x: width / 2, y: height / 2, rx: Math.max(width / 2 - margin, 60), ry: Math.max(height / 2 - Math.min(margin, height * 0.18), 60) };
  const indexes = [...graph.indexes.values()];
  const inner = Math.PI * ring.rx * MIDDLE * ring.ry * MIDDLE;
  const largest = (nodes) => nodes.reduce((most, node) => Math.max(most, node.bytes), 1);
  const total = indexes.reduce((sum, index) => sum + index.bytes, 0) || 1;
  const narrow = Math.min(ring.rx, ring.ry);
  let scale = Math.min(
    Math.sqrt((FILLED * inner) / (Math.PI * total)), (0.3 * narrow) / Math.sqrt(largest(indexes)),
    ((1 - INNER) * narrow) / Math.sqrt(largest(outer)), // so that none on the ring reaches into the middle
  );
  scale = Math.min(scale, Math.max(ringScale(outer, ring), scale / 4)); // more than the ring has room for overlap, and can be seen
  const radius = (bytes) => Math.max(scale * Math.sqrt(bytes), SMALLEST);
  const places = new Map();
  for (let attempt = 0; attempt < 3; attempt++) {
    const shrunk = placeIndexes(indexes, graph.links, ring, radius, previous, places);
    if (shrunk > 0.97) break;
    if (attempt < 2) scale *= Math.max(shrunk, 0.85); // they do not fit side by side: all are drawn smaller
  }
  placeOuter(outer, ring, radius, places, graph);
  return { places, scale, ring };
}

/** Puts indexes into the middle; how much closer they had to be than they would like. */
function placeIndexes(indexes, links, ring, radius, previous, places) {
  const isSmall = ring.rx < 240; // a phone: names go where there is room
  const nodes = indexes.map((index) => {
    const before = previous.get(index.id);
    const r = radius(index.bytes);
    const label = isSmall ? 0 : shortName(index.name).reduce((most, line) => Math.max(most, line.length), 0) * 3;
    return { id: index.id, r, room: isSmall ? r + 7 : r > INSIDE ? r + 8 : Math.max(r + 14, Math.min(label, 50) + 3), ...(before ? { x: before.x - ring.x, y: before.y - ring.y } : {}) };
  });
  if (nodes.length === 0) return 1;
  const known = new Set(nodes.map((node) => node.id));
  const together = links.filter(({ from, to }) => known.has(from) && known.has(to)).map(({ from, to }) => ({ source: from, target: to }));
  const flat = ring.rx / ring.ry; // the middle is as wide as the ring
  forceSimulation(nodes)
    .force("x", forceX(0).strength(0.05))
    .force("y", forceY(0).strength(Math.min(0.05 * flat * flat, 0.4)))
    .force("links", forceLink(together).id((node) => node.id).strength(0.25).distance(({ source, target }) => source.room + target.room + 4))
    .force("apart", forceManyBody().strength(-30).distanceMax(160))
    .force("room", forceCollide((node) => node.room).strength(0.9).iterations(3))
    .stop()
    .tick(previous.size ? 120 : 300);
  const middle = nodes.reduce((sum, node) => ({ x: sum.x + node.x / nodes.length, y: sum.y + node.y / nodes.length }), { x: 0, y: 0 });
  let extent = 0;
  for (const node of nodes) {
    node.x -= middle.x;
    node.y -= middle.y;
    extent = Math.max(extent, Math.hypot((Math.abs(node.x) + node.r) / ring.rx, (Math.abs(node.y) + node.r) / ring.ry));
  }
  const shrink = extent > INNER ? INNER / extent : extent > 0 ? Math.min(0.7 / Math.min(extent, 0.7), 1.4) : 1;
  for (const node of nodes) places.set(node.id, { x: ring.x + node.x * shrink, y: ring.y + node.y * shrink, r: node.r });
  return shrink;
}

/**
 * How much of the ring each query needs: for its circle, with what the distance of two is less than the arc between them, and for its
 * name if there is room for all names.
 */
function slots(outer, radius, { rx, ry }, whole) {
  const curve = Math.min((rx * rx) / ry, (ry * ry) / rx); // the radius of the ring where it bends most
  const line = outer.length * LINE < 0.7 * whole ? LINE : 0;
  return outer.map((query) => {
    const wide = 2 * radius(query.bytes);
    return Math.max(wide + GAP + wide ** 3 / (20 * curve * curve), line);
  });
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** The largest scale with which the circles of queries stand side by side on the ring. */
function ringScale(outer, ring) {
  const { whole } = arcTable(ring);
  const fits = (scale) => sum(slots(outer, (bytes) => Math.max(scale * Math.sqrt(bytes), SMALLEST), ring, whole)) <= whole;
  let [low, high] = [0, ring.rx];
  for (let step = 0; step < 40; step++) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function placeOuter(outer, ring, radius, places, graph) {
  if (outer.length === 0) return;
  const wanted = outer.map((query) => {
    let x = 0;
    let y = 0;
    for (const id of query.reads) {
      const place = places.get(id);
      if (!place) continue;
      const weight = 1 / Math.sqrt(graph.indexes.get(id).readers.size + 1); // what few read says more about where a query belongs
      x += (weight * (place.x - ring.x)) / ring.rx;
      y += (weight * (place.y - ring.y)) / ring.ry;
    }
    return { query, angle: Math.hypot(x, y) < 1e-9 ? hashed(query.id) : Math.atan2(y, x) };
  });
  wanted.sort((a, b) => a.angle - b.angle || (a.query.name < b.query.name ? -1 : 1));
  const arc = arcTable(ring);
  // side by side, with the same room between all
  const needed = slots(wanted.map(({ query }) => query), radius, ring, arc.whole);
  const room = (arc.whole - sum(needed)) / wanted.length;
  let reached = 0;
  const shares = needed.map((length) => {
    reached += length + room;
    return (reached - (length + room) / 2) / arc.whole;
  });
  // turn them so that they lie as near as possible to what was wanted
  let sine = 0;
  let cosine = 0;
  wanted.forEach(({ angle }, at) => {
    const off = angle - arc.angle(shares[at]);
    sine += Math.sin(off);
    cosine += Math.cos(off);
  });
  const turn = arc.share(Math.atan2(sine, cosine));
  wanted.forEach(({ query }, at) => {
    const angle = arc.angle(shares[at] + turn);
    places.set(query.id, { x: ring.x + ring.rx * Math.cos(angle), y: ring.y + ring.ry * Math.sin(angle), r: radius(query.bytes), angle });
  });
}

/** The length of an ellipse from angle 0 on, as a share of the whole, and back: room between places is a matter of arcs, not angles. */
function arcTable({ rx, ry }) {
  const samples = 360;
  const lengths = [0];
  for (let at = 1; at <= samples; at++) {
    const [a, b] = [((at - 1) / samples) * 2 * Math.PI, (at / samples) * 2 * Math.PI];
    lengths.push(lengths[at - 1] + Math.hypot(rx * (Math.cos(b) - Math.cos(a)), ry * (Math.sin(b) - Math.sin(a))));
  }
  const whole = lengths[samples];
  return {
    whole,
    share: (angle) => lengths[Math.round(((((angle / (2 * Math.PI)) % 1) + 1) % 1) * samples)] / whole,
    angle: (share) => {
      const length = (((share % 1) + 1) % 1) * whole;
      let low = 0;
      let high = samples;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (lengths[middle] <= length) low = middle;
        else high = middle;
      }
      return ((low + (length - lengths[low]) / (lengths[high] - lengths[low])) / samples) * 2 * Math.PI;
    },
  };
}

function hashed(text) {
  let found = 7;
  for (const letter of text) found = (found * 31 + letter.codePointAt(0)) % 360;
  return (found / 180) * Math.PI;
}

/**
 * Where the names of indexes stand, so that none lies on another name or on a circle: from id to {dx, dy, anchor}, relative to the
 * middle of the circle. Larger ones choose first; one that finds no room is left out. `names` has [id, lines] in the order of choice.
 */
export function labelPlaces(names, places, obstacles, width) {
  const found = new Map();
  const taken = [];
  const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const covers = (box, circle) => {
    const x = Math.max(box.left, Math.min(circle.x, box.right)) - circle.x;
    const y = Math.max(box.top, Math.min(circle.y, box.bottom)) - circle.y;
    return x * x + y * y < (circle.r - 1) ** 2;
  };
  for (const [id, lines] of names) {
    const { x, y, r } = places.get(id);
    const wide = Math.max(...lines.map((line) => line.length)) * 5.9;
    const high = lines.length * 13;
    const options = [
      { dx: 0, dy: r + 12, anchor: "middle", left: x - wide / 2, top: y + r + 2 }, { dx: 0, dy: -r - high + 8, anchor: "middle", left: x - wide / 2, top: y - r - high - 2 },
      { dx: r + 5, dy: 4 - (high - 13) / 2, anchor: "start", left: x + r + 4, top: y - high / 2 }, { dx: -r - 5, dy: 4 - (high - 13) / 2, anchor: "end", left: x - r - 4 - wide, top: y - high / 2 },
    ];
    for (const option of options) {
      const box = { left: option.left, right: option.left + wide, top: option.top, bottom: option.top + high };
      if (box.left < 0 || box.right > width || taken.some((other) => meets(box, other)) || obstacles.some((circle) => circle.id !== id && covers(box, circle))) continue;
      taken.push(box);
      found.set(id, option);
      break;
    }
  }
  return found;
}

/** The name of an index in one or two lines: "orders", "by o_custkey". */
export function shortName(name) {
  const [, of, by] = /^(.*) by \((.*)\)$/.exec(name) ?? [null, name, null];
  const cut = (text) => (text.length > 20 ? `${text.slice(0, 19)}…` : text);
  return by === null ? [cut(of)] : [cut(of), cut(`by ${by}`)];
}
