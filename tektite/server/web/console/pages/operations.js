// Operations: how the engine is, what it does, who is connected, what fails; and what can be ended or dropped.

import { EpochChart } from "../epochs.js";
import { List } from "../list.js";
import { bytes, compact, confirmed, empty, fill, h, number, problem, seconds, throttled, toast } from "../ui.js";

const moment = (text) => (text === null ? NaN : Date.parse(/[zZ]|[+-]\d\d(:?\d\d)?$/.test(text) ? text : `${text}Z`));
const ago = (text) => seconds(Math.max(0, (Date.now() - moment(text)) / 1000));
const state = (row) => h(`span.badge.${{ current: "good", behind: "warn" }[row.state] ?? "bad"}`, row.state);

/** Parts whose rows are about no table or view: who sees only what it may read sees nothing of them. */
const WHOLE = new Set(["epochs", "storage", "positions"]);

export function mount(element, { session }) {
  const figures = h("dl.figures");
  const note = h("p.muted", { hidden: true }, "You see what is about tables and views that you may read, and your own connections.");
  const bodies = new Map();
  let status = null;
  const followed = [];
  const redraws = [];
  const known = {};
  const card = (name, title, kind = "") => {
    const body = h("div", {}, h("p.muted.busy", "loading"));
    bodies.set(name, body);
    return h(`section.card${kind}`, { "aria-label": title, data: { part: name } }, h("h2", title), body);
  };
  fill(element, h("div.title", {}, h("h1", "Operations")), figures, note,
    h("div.cards", {}, card("epochs", "Epochs", ".wide"), card("clients", "Clients", ".wide"), card("views", "Views"), card("errors", "Errors"),
      card("sweeps", "Sweeps and Spark jobs"), card("indexes", "Indexes and their batches"), card("memory", "Memory"), card("storage", "Storage"),
      card("subscriptions", "Subscriptions"), card("positions", "Sources"), card("advice", "Advice")));

  /** Shows rows of a relation in a card; `show(rows)` gives them to what `content` is. */
  const follow = (name, query, content, show) => {
    let shown = null;
    const place = (said, ...children) => {
      if (shown !== said) fill(bodies.get(name), ...children);
      shown = said;
    };
    const draw = throttled(250, (live) => {
      if (live.failure) {
        const isRight = live.failure.code === "permission-denied";
        place(live.failure, isRight ? empty("This is not for you to see", live.failure.message.split("\n")[0]) : problem(live.failure));
        return;
      }
      if (!live.isReady || status === null) return;
      known[name] = [...live.rows.values()];
      if (known[name].length === 0 && WHOLE.has(name) && status.seen_in_part.includes(`system.${name}`)) {
        place("whole", empty("This is about the engine as a whole", `A superuser lets you see it: GRANT SELECT ON system.${name} TO ${session.user}`));
      } else {
        place("rows", content);
        show(known[name]);
      }
      drawFigures();
    });
    const live = session.live(query, draw);
    followed.push(live);
    redraws.push(() => draw(live));
  };
  const listed = (name, query, options, order = null) => {
    const list = new List({ label: name, ...options });
    follow(name, query, list.element, (rows) => list.show(order ? rows.sort(order) : rows));
    return list;
  };

  // ---------------------------------------------------------------- what can be done

  const attempt = async (work, done) => {
    try {
      await work();
      toast(done);
    } catch (failure) {
      toast(failure.message.split(/\nline \d+:/)[0], "error");
    }
  };
  const drop = async (row) => {
    if (await confirmed(`Drop ${row.name}?`, `The view ${row.name} and its ${number(row.rows)} rows will be gone for everybody. Those who follow it are told.`, "Drop the view")) {
      await attempt(() => session.ask("drop", { relation: row.name, kind: "view" }), `${row.name} was dropped`);
    }
  };
  const cancel = async (row) => {
    if (await confirmed("Cancel this query?", `${row.user_name} runs: ${row.running}`, "Cancel the query")) {
      await attempt(() => session.ask("cancel-client", { client: row.number }), "The query was cancelled");
    }
  };
  const action = (title, label, act, isOff) => ["", (row) => h("button.quiet", { "aria-label": label(row()), onclick: () => act(row()) }, title), "action", { isAction: true, isOff }];

  // ---------------------------------------------------------------- the cards

  const chart = new EpochChart();
  follow("epochs", { sql: "SELECT * FROM system.epochs", by: "epoch" }, chart.element, (rows) => chart.show(rows.sort((a, b) => a.epoch - b.epoch)));

  const clients = listed("clients", { sql: "SELECT * FROM system.clients", by: "number" }, {
    key: (row) => row.number,
    nothing: "Nobody is connected",
    filter: (row) => `${row.user_name} ${row.address} ${row.running}`,
    columns: [
      ["user", (row) => row.user_name], ["protocol", (row) => row.protocol], ["address", (row) => row.address],
      ["connected", (row) => ago(row.since), "right", { ages: true }], ["subscriptions", (row) => number(row.subscriptions), "right"],
      ["runs", (row) => (row.running === null ? "" : h("code", row.running)), "grow"],
      ["for", (row) => (row.running_since === null ? "" : ago(row.running_since)), "right", { ages: true }],
      action("cancel", (row) => `Cancel what client ${row.number} runs`, cancel, (row) => row.running === null),
    ],
  }, (a, b) => a.number - b.number);

  const views = new List({
    label: "views",
    key: (row) => row.name,
    nothing: "No views",
    filter: (row) => row.name,
    columns: [
      ["view", (row) => h("a", { href: `#/dataflow/${encodeURIComponent(row.name)}` }, row.name), "grow"], ["state", state],
      ["lag", (row) => number(row.lag), "right"], ["rows", (row) => compact(row.rows), "right"], ["memory", (row) => bytes(row.bytes), "right"],
      action("drop", (row) => `Drop ${row.name}`, drop),
    ],
  });
  follow("views", { sql: "SELECT name, state, lag, rows, bytes FROM system.views", by: "name" }, views.element,
    (rows) => views.show(rows.sort((a, b) => b.lag - a.lag || b.bytes - a.bytes || (a.name < b.name ? -1 : 1))));

  listed("errors", { sql: "SELECT * FROM system.errors" }, {
    key: (row) => JSON.stringify(row), nothing: "No errors", filter: (row) => `${row.view} ${row.message}`,
    columns: [["view", (row) => row.view], ["kind", (row) => row.kind], ["message", (row) => row.message, "grow"]],
  });
  listed("sweeps", { sql: "SELECT * FROM system.sweeps", by: "number" }, {
    key: (row) => row.number, nothing: "Nothing has run yet", filter: (row) => `${row.name} ${row.place} ${row.reason}`,
    columns: [["dataflow", (row) => row.name, "grow"], ["epochs", (row) => (row.time > row.first ? `${row.first}–${row.time}` : `${row.first}`), "right"], ["changes", (row) => compact(row.rows), "right"], ["time", (row) => seconds(row.seconds), "right"],
      ["where", (row) => h("span", { title: row.reason ?? "" }, row.place)]],
  }, (a, b) => b.number - a.number);
  listed("indexes", { sql: "SELECT name, columns, batches, rows, bytes, readers FROM system.indexes" }, {
    key: (row) => `${row.name} ${row.columns}`, nothing: "No indexes", filter: (row) => row.name,
    columns: [["index", (row) => h("span", { title: row.columns }, row.name), "grow"], ["readers", (row) => number(row.readers), "right"], ["batches", (row) => number(row.batches), "right"], ["rows", (row) => compact(row.rows), "right"], ["memory", (row) => bytes(row.bytes), "right"]],
  }, (a, b) => b.bytes - a.bytes);
  listed("memory", { sql: "SELECT kind, owner, bytes FROM system.memory" }, {
    key: (row) => `${row.kind} ${row.owner}`, nothing: "Nothing is held", filter: (row) => `${row.kind} ${row.owner}`,
    columns: [["owner", (row) => row.owner, "grow"], ["kind", (row) => row.kind], ["memory", (row) => bytes(row.bytes), "right"]],
  }, (a, b) => b.bytes - a.bytes);
  listed("storage", { sql: "SELECT * FROM system.storage" }, {
    key: (row) => row.url, nothing: "The engine has no storage",
    columns: [["where", (row) => row.url, "grow"], ["version", (row) => number(row.version), "right"], ["files", (row) => number(row.files), "right"], ["bytes", (row) => bytes(row.bytes), "right"], ["durable epoch", (row) => number(row.durable), "right"]],
  });
  listed("subscriptions", { sql: "SELECT * FROM system.subscriptions", by: ["kind", "name"] }, {
    key: (row) => `${row.kind} ${row.name}`, nothing: "Nobody follows a table or a view", filter: (row) => row.name,
    columns: [["relation", (row) => row.name, "grow"], ["kind", (row) => row.kind], ["followers", (row) => number(row.subscriptions), "right"]],
  }, (a, b) => b.subscriptions - a.subscriptions);
  listed("positions", { sql: "SELECT * FROM system.positions" }, {
    key: (row) => row.source, nothing: "No sources", columns: [["source", (row) => row.source, "grow"], ["read up to", (row) => h("code", row.position)]],
  });
  listed("advice", { sql: "SELECT * FROM system.advice" }, {
    key: (row) => JSON.stringify(row), nothing: "Nothing to advise", columns: [["about", (row) => row.about], ["advice", (row) => row.message, "grow"], ["memory", (row) => bytes(row.bytes), "right"]],
  });

  // ---------------------------------------------------------------- figures

  const drawFigures = throttled(250, () => {
    const epochs = known.epochs ?? [];
    const span = epochs.length > 1 ? (moment(epochs.at(-1).at) - moment(epochs[0].at)) / 1000 : 0;
    const shown = [
      ["epoch", status ? number(status.epoch) : "–"],
      ["changes a second", span > 0 ? compact(Math.round(epochs.reduce((sum, row) => sum + row.rows, 0) / span)) : "–"],
      ["views not current", known.views ? `${number(known.views.filter((row) => row.state !== "current").length)} of ${number(known.views.length)}` : "–"],
      ["clients", known.clients ? number(known.clients.length) : "–"],
      ["memory", known.memory?.length ? bytes(known.memory.reduce((sum, row) => sum + row.bytes, 0)) : "–"],
      ["up", status ? seconds(status.seconds) : "–"],
    ];
    fill(figures, shown.map(([name, value]) => h("div.figure", {}, h("dt", name), h("dd", value))));
  });
  let isOver = false;
  let timer = null;
  const look = async () => {
    try {
      const isFirst = status === null;
      status = await session.ask("status");
      note.hidden = status.seen_in_part.length === 0;
      if (isFirst) for (const redraw of redraws) redraw();
    } catch (failure) {
      if (failure.code !== "connection-lost" && failure.code !== "closed" && !isOver) toast(failure.message, "error");
    }
    if (isOver) return;
    drawFigures();
    if (known.clients) clients.show(known.clients); // they have been there for longer
    timer = setTimeout(look, 1000);
  };
  drawFigures();
  look();
  return () => {
    isOver = true;
    clearTimeout(timer);
    chart.close();
    for (const live of followed) live.close();
  };
}
