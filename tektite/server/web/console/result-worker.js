// The worker of the Query page: it has a connection of its own, runs what the page asks for, and keeps the rows.
//
// To it: connect, run, stop, window, sort, chart, export. From it: state, began, result, changed, failed, ended, window, chart,
// exported. What belongs to a run has its ticket; the page forgets what belongs to an earlier one.

import { columnsOf, rowsOf } from "./arrow-tables.js";
import { FixedRows, LiveRowSet, chartOf, exported } from "./results.js";
import { Session } from "./session.js";

const TELL_EVERY = 120; // milliseconds between two messages about changes: more often nobody sees

let session = null;
let ticket = 0;
let rows = null;
let subscription = null;
let shown = { start: 0, count: 0 };
let sorting = null;
let chart = null;
let isDue = false;
let lastTold = 0;

const post = (kind, fields = {}) => self.postMessage({ kind, ticket, ...fields });
const plain = (failure) => ({ code: failure.code ?? "error", message: failure.message ?? String(failure), details: failure.details ?? {} });

/** Live changes need rows, results columns. */
let asColumns = false;
const decode = (stream) => (asColumns ? columnsOf(stream) : rowsOf(stream));

const tasks = {
  connect({ url, credentials }) {
    session?.close();
    session = new Session({ url, credentials, decode });
    session.onState((state) => post("state", { state }));
  },

  async run({ ticket: mine, request, fields, live }) {
    end();
    ticket = mine;
    rows = null;
    sorting = null;
    chart = null;
    if (live) follow(mine, fields);
    else await once(mine, request, fields);
  },

  stop() {
    if (subscription) {
      end();
      post("ended");
    } else {
      session?.cancel();
    }
  },

  window({ start, count }) {
    shown = { start, count };
    tellWindow();
  },

  sort({ sorting: wanted }) {
    sorting = wanted;
    rows?.sort(sorting);
    tellWindow();
  },

  chart({ spec }) {
    chart = spec;
    tellChart();
  },

  export({ format }) {
    if (rows) post("exported", { format, blob: exported(rows, format) });
  },
};

self.onmessage = ({ data: { kind, ...fields } }) => tasks[kind](fields);

async function once(mine, request, fields) {
  const began = performance.now();
  asColumns = true;
  try {
    const answer = await session.ask(request, fields);
    if (mine !== ticket) return;
    const milliseconds = performance.now() - began;
    rows = answer.table ? new FixedRows(answer.table.columns, answer.table.length) : null;
    post("result", { message: answer.message ?? "", predicates: answer.predicates, milliseconds, columns: rows?.columns ?? null, length: rows?.length ?? 0 });
    tellWindow();
  } catch (failure) {
    if (mine === ticket) post("failed", { failure: plain(failure), milliseconds: performance.now() - began });
  }
}

function follow(mine, query) {
  asColumns = false;
  const began = performance.now();
  const tell = (kind, fields) => mine === ticket && post(kind, fields);
  subscription = session.subscribe(query, {
    begin: (relation) => {
      if (rows) return; // it has resumed
      rows = new LiveRowSet(relation.columns.map((name, at) => ({ name, type: relation.types[at] })));
      rows.sort(sorting);
      tell("result", { message: "", isLive: true, milliseconds: performance.now() - began, columns: rows.columns, length: 0, isWaiting: relation.time !== null });
    },
    snapshot: (changes, time) => {
      rows.reset(changes);
      tellSoon(time);
    },
    changes: (changes, time) => {
      rows.apply(changes, performance.now());
      tellSoon(time, changes.length);
    },
    progress: (time) => tellSoon(time),
    error: (failure) => tell("failed", { failure: plain(failure), isLive: true }),
    end: (failure) => {
      subscription = null;
      if (failure) tell("failed", { failure: plain(failure) });
      else tell("ended", {});
    },
  });
}

function end() {
  subscription?.close();
  subscription = null;
}

let told = { time: null, changes: 0 };

function tellSoon(time, changes = 0) {
  told = { time, changes: told.changes + changes };
  if (isDue) return;
  isDue = true;
  const cost = performance.now();
  setTimeout(() => {
    isDue = false;
    if (!rows) return;
    post("changed", { ...told, length: rows.length });
    told = { ...told, changes: 0 };
    tellWindow();
    tellChart();
    lastTold = performance.now();
  }, Math.max(0, lastTold + TELL_EVERY - cost));
}

function tellWindow() {
  if (!rows) return;
  post("window", { start: shown.start, length: rows.length, rows: rows.window(shown.start, shown.count, performance.now()) });
}

function tellChart() {
  if (rows && chart) post("chart", { chart: chartOf(rows, chart) });
}
