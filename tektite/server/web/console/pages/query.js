// Query: write SQL or Datalog, run it once or keep it live, and see the rows as a grid, a chart or a plan.

import { SYSTEM, readCatalog } from "../catalog.js";
import { Chart } from "../chart.js";
import { Editor } from "../editor.js";
import { Grid } from "../grid.js";
import { isNumeric, isTime, linesOf, suggested } from "../results.js";
import { compact, download, empty, fill, h, keys, number, problem, quoted, seconds, throttled, toast } from "../ui.js";

const FIRST = { sql: "SELECT name, state, lag, rows FROM system.views\n", datalog: "// Rules, and a goal that asks for some of their facts.\n" };
const REMEMBERED = 30;
const ALL = "all"; // every number of a result, as a line each
const stored = {
  get: (name, other) => {
    try {
      return JSON.parse(localStorage.getItem(`tektite-${name}`)) ?? other;
    } catch {
      return other;
    }
  },
  set: (name, value) => localStorage.setItem(`tektite-${name}`, JSON.stringify(value)),
};

export function mount(element, { session, parts }) {
  let language = stored.get("language", "sql");
  const texts = { ...FIRST, ...stored.get("texts", {}) };
  if (parts[0]) {
    language = "sql";
    texts.sql = parts[0];
  }
  let history = stored.get("history", []);
  let ticket = 0;
  let run = null; // {ticket, from, isLive, isBusy, columns, length}
  let tab = "grid";
  let spec = null;
  let isOver = false;

  // ---------------------------------------------------------------- elements

  const runButton = h("button.primary", { title: "Run once (Ctrl+Enter)", onclick: () => start(false) }, "Run");
  const liveButton = h("button", { title: "Keep the answer up to date (Ctrl+Shift+Enter)", "aria-pressed": "false", onclick: () => (run?.isLive ? stop() : start(true)) }, "Live");
  const stopButton = h("button", { hidden: true, onclick: () => stop() }, "Cancel");
  const languages = h("div.tabs", { role: "tablist", "aria-label": "Language" }, [["sql", "SQL"], ["datalog", "Datalog"]].map(([name, title]) => h("button", { role: "tab", data: { language: name }, onclick: () => choose(name) }, title)));
  const past = h("select.past", { "aria-label": "Earlier queries", onchange: () => recall() });
  const host = h("div.editor");
  const catalogBox = h("div.relations");
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter tables and views", oninput: () => drawCatalog() });
  const summary = h("div.summary", { role: "status" });
  const tabs = h("div.tabs", { role: "tablist", "aria-label": "Show as" }, [["grid", "Grid"], ["chart", "Chart"], ["plan", "Plan"]].map(([name, title]) => h("button", { role: "tab", data: { tab: name }, onclick: () => showTab(name) }, title)));
  const exports = h("div.bar.exports", { hidden: true }, ["csv", "json"].map((format) => h("button.quiet", { title: `Export all rows as ${format.toUpperCase()}`, onclick: () => worker.postMessage({ kind: "export", format }) }, format.toUpperCase())));
  const panel = h("div.panel", { role: "tabpanel" });
  const grid = new Grid({ onWindow: (from, count) => worker.postMessage({ kind: "window", start: from, count }), onSort: (sorting) => worker.postMessage({ kind: "sort", sorting }) });
  const chart = new Chart("Chart of the result");
  const choices = h("div.bar.chart-choices");
  const chartPanel = h("div.chart-panel", {}, choices, chart.element);
  const planPanel = h("div.plan-panel");
  const nothing = empty("Nothing has run yet", "Ctrl+Enter runs the query once. Ctrl+Shift+Enter keeps its answer up to date.");

  fill(element,
    h("div.query-layout", {},
      h("div.query-main", {},
        h("div.card.writing", {}, h("div.bar", {}, languages, h("span.space"), past, stopButton, liveButton, runButton), host),
        h("div.card.result", {}, h("div.bar", {}, summary, h("span.space"), exports, tabs), panel)),
      h("details.card.catalog", { open: innerWidth > 720 }, h("summary", "Tables and views"), filter, catalogBox)));

  // ---------------------------------------------------------------- the editor

  const editor = new Editor(host, {
    text: texts[language],
    language,
    label: "Query",
    onRun: () => start(false),
    onLive: () => start(true),
    onEscape: () => run?.isBusy && stop(),
    onChange: throttled(300, (text) => {
      texts[language] = text;
      stored.set("texts", texts);
    }),
    check: (text, name) => (name === "sql" ? checked(text) : null),
  });

  /** What is wrong with a query that nobody has run yet. Only what begins as a query is looked at, by EXPLAIN, which runs nothing. */
  async function checked(text) {
    const query = text.replace(/;\s*$/, "");
    if (session.state !== "open" || run?.isBusy || query.includes(";") || !/^\s*(--[^\n]*\n\s*)*(select|with|values|from)\b/i.test(query) || !/\S\s+\S/.test(query)) return null;
    try {
      await session.sql(`EXPLAIN\n${query}`);
      return null;
    } catch (failure) {
      if (!failure.details?.line) return null;
      failure.details.line -= 1;
      return failure;
    }
  }

  function choose(name) {
    texts[language] = editor.text;
    language = name;
    stored.set("language", name);
    editor.language = name;
    editor.text = texts[name];
    drawLanguages();
    editor.focus();
  }

  const drawLanguages = () => {
    for (const button of languages.children) button.setAttribute("aria-selected", String(button.dataset.language === language));
  };

  function drawPast() {
    fill(past, h("option", { value: "" }, "Earlier"), history.map(({ text, language: name }, at) => h("option", { value: at }, `${name === "sql" ? "" : "Datalog: "}${text.replace(/\s+/g, " ").slice(0, 80)}`)));
    past.disabled = !history.length;
  }

  function recall() {
    const found = history[Number(past.value)];
    if (past.value === "" || !found) return;
    if (found.language !== language) choose(found.language);
    editor.text = found.text;
    past.value = "";
    editor.focus();
  }

  function remember(text) {
    history = [{ text, language }, ...history.filter((each) => each.text !== text)].slice(0, REMEMBERED);
    stored.set("history", history);
    drawPast();
  }

  // ---------------------------------------------------------------- running

  const worker = new Worker(new URL("../result-worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data: { kind, ...message } }) => {
    if (!isOver && (message.ticket === run?.ticket || kind === "state")) handlers[kind]?.(message);
  };
  async function start(live) {
    const chosen = editor.chosen;
    if (!chosen.text.trim()) return;
    editor.showFailure(null);
    remember(chosen.text);
    run = { ticket: ++ticket, from: chosen, text: chosen.text, language, isLive: live, isBusy: true, columns: null, length: 0, time: null };
    drawState();
    const mine = run;
    try {
      const asked = language === "sql" ? { request: "sql", fields: live ? { sql: statement(chosen.text) } : { text: chosen.text } } : await datalogRequest(chosen.text, live);
      if (run === mine && !isOver) worker.postMessage({ kind: "run", ticket: mine.ticket, live, ...asked });
    } catch (failure) {
      if (run === mine) handlers.failed({ failure });
    }
  }

  const statement = (text) => text.trim().replace(/;\s*$/, "").replace(/^subscribe\s+/i, "");

  /** Registers the rules of a text, and asks for its goal or else for the last predicate that it defines. */
  async function datalogRequest(text, live) {
    const isQuery = /^\s*[[{]\s*:find\b/.test(text);
    const goal = isQuery ? null : /\?-[^]*$/.exec(text);
    const rules = isQuery ? "" : goal ? text.slice(0, goal.index) : text;
    const hasRules = /[^\s]/.test(rules.replace(/\/\/[^\n]*|\/\*[^]*?\*\//g, ""));
    let asked = isQuery ? text : goal?.[0];
    if (!asked && hasRules && !/:-|\.\s*$|^\s*\[/.test(rules)) {
      asked = text; // a goal without ?-
    } else if (hasRules) {
      const { predicates } = await session.ask("register", { datalog: rules, name: "console" });
      refreshCatalog();
      if (!asked) {
        const last = predicates.at(-1);
        if (!last) return { request: "sql", fields: { text: "" } };
        asked = goalOf(last, rules);
        if (!asked) return live ? { request: "interest", fields: { name: last } } : { request: "rows", fields: { relation: last } };
      }
    }
    if (goal) run.from = place(text, goal.index, run.from);
    return live ? { request: "interest", fields: { datalog: asked } } : { request: "query", fields: { text: asked } };
  }

  /** The goal that asks for all facts of a predicate, if a head of it is written out: a view of it would stay. */
  function goalOf(predicate, rules) {
    const head = [...rules.matchAll(/([\w.]+)\s*\(([^()]*)\)\s*(?=:-|\.)/g)].findLast(([, name]) => name === predicate);
    return head?.[2].trim() ? `${predicate}(${head[2].split(",").map((_, at) => `c${at + 1}`).join(", ")})` : null;
  }

  function place(text, index, from) {
    const lines = text.slice(0, index).split("\n");
    return { line: from.line + lines.length - 1, column: (lines.length === 1 ? from.column : 0) + lines.at(-1).length };
  }

  function stop() {
    worker.postMessage({ kind: "stop" });
  }

  const handlers = {
    result({ columns, length, milliseconds, message, isLive = false, isWaiting = false }) {
      Object.assign(run, { isBusy: isWaiting, columns, length, milliseconds, message });
      editor.showFailure(null);
      if (!columns) {
        fill(panel, empty(message || "Done"));
        if (!isLive) refreshCatalog();
      } else {
        const sorting = isLive ? writtenOrder(run.text, columns) : null;
        spec = suggested(columns);
        grid.begin(columns, length, sorting);
        if (sorting) worker.postMessage({ kind: "sort", sorting });
        if (tab === "plan") tab = "grid"; // who runs a query wants to see its rows
        showTab(tab);
      }
      drawState();
    },
    window({ start: from, rows, length }) {
      run.length = length;
      if (run.columns) grid.show(from, rows, length);
    },
    changed({ time, length, changes }) {
      Object.assign(run, { isBusy: false, time, length, changes });
      if (run.failure) {
        run.failure = null;
        showTab(tab);
      }
      drawState();
    },
    chart({ chart: found }) {
      if (tab === "chart" && run.columns) chart.show(found, run.columns);
    },
    exported({ format, blob }) {
      download(`tektite.${format}`, blob);
    },
    failed({ failure, isLive = false }) {
      Object.assign(run, { isBusy: false, isLive: run.isLive && isLive, failure });
      editor.showFailure(failure, run.from);
      fill(panel, problem(failure));
      drawState();
    },
    ended() {
      Object.assign(run, { isBusy: false, isLive: false });
      drawState();
    },
    state({ state }) {
      element.dataset.worker = state;
    },
  };

  /** The order that a text asks for at its end, if it is that of a column: subscriptions have none of their own. */
  function writtenOrder(text, columns) {
    const found = /order\s+by\s+"?(\w+)"?(\s+desc|\s+asc)?(?:\s+nulls\s+\w+)?\s*(?:limit\s+\d+\s*)?;?\s*$/i.exec(text);
    const column = found ? columns.findIndex(({ name }) => name.toLowerCase() === found[1].toLowerCase()) : -1;
    return column < 0 ? null : { column, descending: /desc/i.test(found[2] ?? "") };
  }

  function drawState() {
    const isBusy = run?.isBusy ?? false;
    stopButton.hidden = !isBusy;
    runButton.disabled = isBusy;
    liveButton.setAttribute("aria-pressed", String(run?.isLive ?? false));
    liveButton.textContent = run?.isLive && !isBusy ? "● Live" : "Live";
    exports.hidden = !run?.columns || Boolean(run.failure);
    const said = [];
    if (run && !isBusy && run.columns && !run.failure) said.push(h("strong", `${number(run.length)} ${run.length === 1 ? "row" : "rows"}`));
    if (run && !isBusy && !run.columns && run.message) said.push(h("strong", run.message));
    if (run?.milliseconds !== undefined && !run.isLive && !run.failure) said.push(seconds(run.milliseconds / 1000));
    if (run?.isLive && run.time !== null) said.push(`as of epoch ${number(run.time)}`);
    if (run?.failure) said.push(run.failure.code === "cancelled" ? "cancelled" : "failed");
    fill(summary, isBusy ? h("span.busy", run.isLive ? "installing" : "running") : said.flatMap((each, at) => (at ? [" · ", each] : [each])));
  }

  // ---------------------------------------------------------------- grid, chart, plan

  async function showTab(name) {
    tab = name;
    for (const button of tabs.children) button.setAttribute("aria-selected", String(button.dataset.tab === name));
    worker.postMessage({ kind: "chart", spec: null });
    if (name === "plan") {
      fill(panel, planPanel);
      await showPlan();
    } else if (!run?.columns) {
      if (!run) fill(panel, nothing);
      else if (run.failure) fill(panel, problem(run.failure));
    } else if (name === "grid") {
      fill(panel, grid.element);
      grid.resize(run.length);
    } else {
      fill(panel, chartPanel);
      drawChoices();
      askChart();
    }
  }

  function askChart() {
    const isDrawable = spec && (spec.kind === "histogram" || spec.kind === "bar" || spec.ys.length);
    chart.element.hidden = !isDrawable;
    worker.postMessage({ kind: "chart", spec: isDrawable ? spec : null });
  }

  function drawChoices() {
    const { columns } = run;
    spec ??= { kind: "bar", x: 0, ys: [] };
    const numbers = columns.map((_, at) => at).filter((at) => isNumeric(columns[at].type));
    const select = (label, options, chosen, change) => h("label", {}, label, h("select", { "aria-label": `Chart: ${label}`, onchange: (event) => { change(event.target.value); drawChoices(); askChart(); } }, options.map(([value, title]) => h("option", { value, selected: String(value) === String(chosen) }, title))));
    const named = (places) => places.map((at) => [at, columns[at].name]);
    const all = columns.map((_, at) => at);
    const isGraph = spec.kind === "graph";
    const lines = spec.kind === "line" ? linesOf(columns, spec.x) : [];
    const shown = lines.length > 1 ? [[ALL, "all numbers"]] : spec.kind === "bar" ? [["", "number of rows"]] : [];
    fill(choices,
      select("as", [["line", "Line"], ["bar", "Bars"], ["histogram", "Histogram"], ["graph", "Graph"]], spec.kind, (kind) => {
        const scaled = all.filter((at) => isNumeric(columns[at].type) || isTime(columns[at].type));
        const x = (kind === "line" || kind === "histogram") && !scaled.includes(spec.x) ? scaled[0] ?? spec.x : spec.x;
        const y = kind === "graph" ? all.find((at) => at !== x) : numbers.find((at) => at !== x) ?? numbers[0];
        spec = { kind, x, ys: kind === "line" ? linesOf(columns, x) : kind === "histogram" || y === undefined ? [] : [y] };
      }),
      select(isGraph ? "from" : spec.kind === "histogram" ? "of" : "by", named(all), spec.x, (at) => (spec = { ...spec, x: Number(at) })),
      spec.kind === "histogram" ? null : select(isGraph ? "to" : "show", [...shown, ...named(isGraph ? all : numbers)], spec.ys.length > 1 ? ALL : spec.ys[0] ?? "", (at) => (spec = { ...spec, ys: at === ALL ? lines : at === "" ? [] : [Number(at)] })));
  }

  let analyzes = false;
  let undraw = null;
  const analyze = h("label.analyze", {}, h("input", { type: "checkbox", onchange: (event) => { analyzes = event.target.checked; showPlan(); } }), "run it, and say where the time goes");
  const plan = h("div.plan");

  async function showPlan() {
    const chosen = editor.chosen;
    const text = statement(chosen.text);
    undraw?.();
    undraw = null;
    fill(planPanel, analyze, plan);
    if (language !== "sql" || !text) {
      fill(plan, empty("No plan", "A plan is shown for one query of SQL."));
      return;
    }
    fill(plan, h("p.muted.busy", "planning"));
    const mine = (planPanel.asked = {});
    try {
      // A line of its own, so that columns stay what they are.
      const explained = await session.sql(`EXPLAIN (${analyzes ? "ANALYZE, " : ""}FORMAT JSON)\n${text}`);
      const { draw } = await import("../explain.js");
      if (isOver || tab !== "plan" || planPanel.asked !== mine) return;
      undraw = draw(plan, explained.table.rows.map((row) => row[0]).join("\n"));
    } catch (failure) {
      if (planPanel.asked !== mine) return;
      if (failure.details?.line) editor.showFailure({ ...failure, message: failure.message, details: { ...failure.details, line: failure.details.line - 1 } }, chosen);
      fill(plan, problem(failure));
    }
  }

  // ---------------------------------------------------------------- the catalog

  let catalog = {};

  const refreshCatalog = throttled(1000, async () => {
    try {
      catalog = await readCatalog(session);
    } catch (failure) {
      if (failure.code !== "connection-lost") toast(`The catalog could not be read: ${failure.message}`, "error");
      return;
    }
    if (isOver) return;
    const system = Object.fromEntries(SYSTEM.map((name) => [`system.${name}`, { kind: "about the engine", columns: [] }]));
    editor.catalog = { ...catalog, ...system };
    drawCatalog();
  });

  const LISTED = 200; // more is found by the filter

  function drawCatalog() {
    const wanted = filter.value.toLowerCase();
    const names = Object.keys(catalog).filter((name) => name.toLowerCase().includes(wanted));
    if (!names.length) {
      fill(catalogBox, empty(Object.keys(catalog).length ? "Nothing of that name" : "No tables yet", Object.keys(catalog).length ? "" : "CREATE TABLE sales (shop text, amount int)"));
      return;
    }
    fill(catalogBox, names.slice(0, LISTED).map((name) => h("details", {},
      h("summary", {}, h("span.name", name), h("small.muted", catalog[name].kind)),
      h("ul", {}, catalog[name].columns.map((column) => h("li", {}, h("button.quiet", { title: "Insert", onclick: () => editor.insert(quoted(column.name)) }, column.name), h("small.muted", column.type)))),
      h("div.bar", {},
        h("button.quiet", { onclick: () => editor.insert(name.split(".").map(quoted).join(".")) }, "insert"),
        h("button.quiet", { onclick: () => { choose("sql"); editor.text = `SELECT * FROM ${name.split(".").map(quoted).join(".")}\n`; start(false); } }, "show rows")))),
    names.length > LISTED ? h("p.muted", `and ${compact(names.length - LISTED)} more`) : null);
  }

  const unbind = keys({ "/": () => editor.focus() });
  const unwatch = session.onState((state) => {
    if (state !== "open" || worker.isConnected) return;
    worker.isConnected = true;
    worker.postMessage({ kind: "connect", url: session.url, credentials: session.credentials });
    refreshCatalog();
  });
  drawLanguages();
  drawPast();
  drawState();
  showTab("grid");
  editor.focus();
  return () => {
    isOver = true;
    undraw?.();
    texts[language] = editor.text;
    stored.set("texts", texts);
    unbind();
    unwatch();
    worker.terminate();
    grid.close();
    chart.close();
    editor.close();
  };
}
