// The rows of a result: those of a table that came once, or of a subscription that go on changing.
//
// Both kinds give a window of rows in an order, samples for charts, and texts for export. They live in a worker, where a million
// rows are no trouble to the page. Values are what JSON can hold: whole numbers beyond 2**53, decimals and dates are texts.

/** Rows that came once: columns of an Arrow table, read where they are needed. */
export class FixedRows {
  /** `columns` are {name, type, length, at(row)}. */
  constructor(columns, length) {
    this.columns = columns.map(({ name, type }) => ({ name, type }));
    this.length = length;
    this._columns = columns;
    this._order = null;
  }

  row(at) {
    const place = this._order ? this._order[at] : at;
    return this._columns.map((column) => column.at(place));
  }

  /** The value of a column in each row, in the order that rows came. */
  values(column) {
    const found = new Array(this.length);
    const { at } = this._columns[column];
    for (let row = 0; row < this.length; row += 1) found[row] = at(row);
    return found;
  }

  sort(sorting) {
    this._order = sorting ? orderOf(this.values(sorting.column), sorting.descending, isNumeric(this.columns[sorting.column].type)) : null;
  }

  window(start, count) {
    const rows = [];
    for (let at = start; at < Math.min(start + count, this.length); at += 1) rows.push({ values: this.row(at), count: 1, marks: null });
    return rows;
  }
}

const MARKED = 1600; // milliseconds for which a change is marked
const PAIRED = 5000; // rows of one change up to which it is found out which row became which

/**
 * Rows of a subscription. A row that is there several times is one, with a count. A row that goes and one that comes at the same
 * time, and that agree in what seems to be their key, are one row that has changed: it keeps its place, and its changed cells are
 * marked.
 */
export class LiveRowSet {
  constructor(columns) {
    this.columns = columns;
    this._rows = []; // {values, count, marks: {at, cells} or null}
    this._byKey = new Map();
    this._sorting = null;
    this._order = null;
    this._isSorted = true;
  }

  get length() {
    return this._rows.length;
  }

  /** Begin anew. */
  reset(changes) {
    this._rows = [];
    this._byKey = new Map();
    this._change(changes, null);
  }

  /** Take the changes of some times. */
  apply(changes, now) {
    this._change(changes, now);
  }

  _change(changes, now) {
    const net = new Map();
    for (const { row, diff } of changes) {
      const key = JSON.stringify(row);
      const found = net.get(key);
      if (found) found.diff += diff;
      else net.set(key, { key, values: row, diff });
    }
    const gone = [];
    const come = [];
    for (const each of net.values()) {
      if (each.diff === 0) continue;
      const known = this._byKey.get(each.key);
      if (known) {
        known.count += each.diff;
        if (known.count <= 0) gone.push({ ...each, row: known });
      } else if (each.diff > 0) {
        come.push(each);
      }
    }
    for (const { key } of gone) this._byKey.delete(key);
    const pairs = now !== null && gone.length && come.length && gone.length + come.length <= PAIRED ? paired(gone, come, this.columns) : new Map();
    for (const [added, removed] of pairs) {
      const { row } = removed;
      const cells = added.values.map((value, at) => value !== row.values[at]);
      Object.assign(row, { values: added.values, count: added.diff, marks: { at: now, cells } });
      this._byKey.set(added.key, row);
    }
    const replaced = new Set([...pairs.values()].map((removed) => removed.row));
    if (gone.length > replaced.size) this._rows = this._rows.filter((row) => row.count > 0 || replaced.has(row));
    for (const added of come) {
      if (pairs.has(added)) continue;
      const row = { values: added.values, count: added.diff, marks: now === null ? null : { at: now, cells: null } };
      this._rows.push(row);
      this._byKey.set(added.key, row);
    }
    this._isSorted = false;
  }

  values(column) {
    return this._rows.map((row) => row.values[column]);
  }

  sort(sorting) {
    this._sorting = sorting;
    this._isSorted = false;
  }

  _inOrder() {
    if (!this._isSorted) {
      const sorting = this._sorting;
      this._order = sorting ? orderOf(this.values(sorting.column), sorting.descending, isNumeric(this.columns[sorting.column].type)) : null;
      this._isSorted = true;
    }
    return this._order;
  }

  row(at) {
    const order = this._inOrder();
    return this._rows[order ? order[at] : at].values;
  }

  window(start, count, now = 0) {
    const order = this._inOrder();
    const rows = [];
    for (let at = start; at < Math.min(start + count, this._rows.length); at += 1) {
      const { values, count: times, marks } = this._rows[order ? order[at] : at];
      rows.push({ values, count: times, marks: marks && now - marks.at < MARKED ? marks.cells ?? "added" : null });
    }
    return rows;
  }
}

/** Which of the rows that come replaces which that goes: a Map from the one to the other. */
function paired(gone, come, columns) {
  const found = new Map();
  let left = gone;
  const candidates = columns.length > 1 && columns.length <= 12 ? columns.map((_, masked) => columns.map((__, at) => at).filter((at) => at !== masked)) : [];
  const named = columns.map((_, at) => at).filter((at) => !isNumeric(columns[at].type) || columns[at].type === "date");
  if (named.length && named.length < columns.length) candidates.push(named);
  if (columns.length > 1) candidates.push([0]);
  for (const key of candidates) {
    if (!left.length) break;
    const sign = (values) => JSON.stringify(key.map((at) => values[at]));
    const waiting = new Map();
    for (const each of left) if (!waiting.has(sign(each.values))) waiting.set(sign(each.values), each);
    for (const added of come) {
      if (found.has(added)) continue;
      const removed = waiting.get(sign(added.values));
      if (!removed) continue;
      waiting.delete(sign(added.values));
      found.set(added, removed);
    }
    const taken = new Set(found.values());
    left = left.filter((each) => !taken.has(each));
  }
  return found;
}

export const isNumeric = (type) => /^(int|float|decimal|bigint|double|real|numeric|smallint)/.test(type);
export const isTime = (type) => /^(date|timestamp)/.test(type);

/** A value as a number, for sorting and drawing; NaN for what is none. */
export const numeric = (value) => (value === null || value === "" ? NaN : Number(value));

/** Row numbers in the order of some values; NULL is last. */
export function orderOf(values, descending, asNumbers) {
  const order = new Uint32Array(values.length);
  for (let at = 0; at < order.length; at += 1) order[at] = at;
  const sign = descending ? -1 : 1;
  if (asNumbers) {
    const numbers = Float64Array.from(values, numeric);
    return order.sort((a, b) => {
      const x = numbers[a];
      const y = numbers[b];
      return Number.isNaN(x) ? (Number.isNaN(y) ? a - b : 1) : Number.isNaN(y) ? -1 : x < y ? -sign : x > y ? sign : a - b;
    });
  }
  return order.sort((a, b) => {
    const x = values[a];
    const y = values[b];
    return x === null ? (y === null ? a - b : 1) : y === null ? -1 : x < y ? -sign : x > y ? sign : a - b;
  });
}

// ---------------------------------------------------------------- charts

const LINE_POINTS = 1500; // about as many as a screen has columns
const BARS = 40;
const BINS = 40;
const EDGES = 400;
const SCANNED = 2_000_000;

/** Place on an axis: a number, or the milliseconds of a date. */
const placed = (type) => (isTime(type) ? (value) => (value === null ? NaN : Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(value) || !value.includes("T") ? value : `${value}Z`)) : numeric);

/** What a chart shows of the rows; `shown` and `total` say how much that is. */
export function chartOf(rows, { kind, x, ys }) {
  const make = { line, bar, histogram, graph }[kind];
  return { kind, x, ys, total: rows.length, ...make(rows, x, ys) };
}

function line(rows, x, ys) {
  const place = placed(rows.columns[x].type);
  const at = Float64Array.from(rows.values(x), place);
  const order = orderOf(at, false, true).filter((row) => !Number.isNaN(at[row]));
  const step = Math.max(1, Math.ceil((order.length * 2) / LINE_POINTS));
  const columns = ys.map((y) => Float64Array.from(rows.values(y), numeric));
  const picked = [];
  if (step === 1) {
    picked.push(...order);
  } else {
    // Of each piece the rows with the least and the greatest value of the first column: peaks stay.
    for (let start = 0; start < order.length; start += step) {
      let low = order[start];
      let high = order[start];
      for (let place = start + 1; place < Math.min(start + step, order.length); place += 1) {
        const row = order[place];
        if (columns[0][row] < columns[0][low]) low = row;
        if (columns[0][row] > columns[0][high]) high = row;
      }
      picked.push(...(low === high ? [low] : at[low] <= at[high] ? [low, high] : [high, low]));
    }
  }
  return {
    isTime: isTime(rows.columns[x].type),
    data: [picked.map((row) => at[row]), ...columns.map((column) => picked.map((row) => (Number.isNaN(column[row]) ? null : column[row])))],
    shown: picked.length,
  };
}

function bar(rows, x, ys) {
  const labels = rows.values(x);
  const values = ys.length ? rows.values(ys[0]) : labels.map(() => 1);
  const sums = new Map();
  for (let row = 0; row < labels.length; row += 1) {
    const value = numeric(values[row]);
    if (!Number.isNaN(value)) sums.set(labels[row], (sums.get(labels[row]) ?? 0) + value);
  }
  const bars = [...sums].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
  return { bars: bars.slice(0, BARS), shown: Math.min(BARS, bars.length), total: bars.length };
}

function histogram(rows, x) {
  const place = placed(rows.columns[x].type);
  const numbers = Float64Array.from(rows.values(x), place).filter((value) => Number.isFinite(value));
  if (!numbers.length) return { isTime: false, data: [[], []], shown: 0 };
  let [low, high] = [Infinity, -Infinity];
  for (const value of numbers) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const width = high > low ? (high - low) / BINS : 1;
  const counts = new Array(high > low ? BINS : 1).fill(0);
  for (const value of numbers) counts[Math.min(counts.length - 1, Math.floor((value - low) / width))] += 1;
  return { isTime: isTime(rows.columns[x].type), width, data: [counts.map((_, at) => low + (at + 0.5) * width), counts], shown: numbers.length };
}

function graph(rows, x, ys) {
  const edges = [];
  const total = rows.length;
  const step = Math.max(1, Math.floor(total / EDGES));
  for (let at = 0; at < Math.min(total, SCANNED) && edges.length < EDGES; at += step) {
    const row = rows.row(at);
    if (row[x] !== null && row[ys[0]] !== null) edges.push([String(row[x]), String(row[ys[0]])]);
  }
  return { edges, shown: edges.length };
}

const MOST_LINES = 8; // as many as there are colours

/** The numbers that a chart shows as lines over another column; that column itself if it is the only number. */
export function linesOf(columns, x) {
  const numbers = columns.map((_, at) => at).filter((at) => isNumeric(columns[at].type));
  const others = numbers.filter((at) => at !== x);
  return (others.length ? others : numbers).slice(0, MOST_LINES);
}

/** The chart that suits some columns best, as {kind, x, ys}; null where none does. */
export function suggested(columns) {
  const of = (test) => columns.map((_, at) => at).filter((at) => test(columns[at].type));
  const times = of(isTime);
  const numbers = of(isNumeric);
  const labels = of((type) => !isNumeric(type) && !isTime(type));
  const named = (at, pattern) => pattern.test(columns[at].name);
  if (columns.length >= 2 && columns[0].type === columns[1].type && named(0, /^(src|source|from|a|x|parent|child)/i) && named(1, /^(dst|target|to|b|y|z|parent|child)/i)) {
    return { kind: "graph", x: 0, ys: [1] };
  }
  const isByTime = !labels.length || times[0] < labels[0]; // a moment behind a label is the last one of something, or the like
  if (times.length && numbers.length && isByTime) return { kind: "line", x: times[0], ys: linesOf(columns, times[0]) };
  if (labels.length && numbers.length) return { kind: "bar", x: labels[0], ys: numbers.slice(-1) };
  if (numbers.length >= 2) return { kind: "line", x: numbers[0], ys: linesOf(columns, numbers[0]) };
  if (numbers.length === 1) return { kind: "histogram", x: numbers[0], ys: [] };
  if (columns.length === 1) return { kind: "bar", x: 0, ys: [] };
  if (columns.length >= 2) return { kind: "graph", x: 0, ys: [1] };
  return null;
}

// ---------------------------------------------------------------- export

const PIECE = 20000; // rows of a piece of a file

/** A file of all rows, in their order: "csv" or "json". A row that is there several times is written as often. */
export function exported(rows, format) {
  const pieces = [];
  const names = rows.columns.map(({ name }) => name);
  const cell = (value) => {
    if (value === null) return "";
    const text = String(value);
    return text === "" || /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  if (format === "csv") pieces.push(`${names.map(cell).join(",")}\r\n`);
  let isFirst = true;
  for (let start = 0; start < rows.length; start += PIECE) {
    const lines = [];
    for (const { values, count } of rows.window(start, PIECE)) {
      const text = format === "csv" ? `${values.map(cell).join(",")}\r\n` : JSON.stringify(Object.fromEntries(names.map((name, at) => [name, values[at]])));
      for (let time = 0; time < count; time += 1) lines.push(text);
    }
    if (format === "csv") pieces.push(lines.join(""));
    else pieces.push((isFirst ? "[\n" : ",\n") + lines.join(",\n"));
    isFirst = false;
  }
  if (format === "json") pieces.push(isFirst ? "[]\n" : "\n]\n");
  return new Blob(pieces, { type: format === "csv" ? "text/csv" : "application/json" });
}
