// A view as a table: rows stay where they are, changed cells and new rows are marked for a moment.

/** How many leading columns tell all rows apart, before and after: these name a row. All columns if fewer do not. */
export function keyLength(before, after, width) {
  for (let length = 1; length < width; length++) {
    const isUnique = (rows) => new Set(rows.map((row) => JSON.stringify(row.slice(0, length)))).size === rows.length;
    if (isUnique(before) && isUnique(after)) return length;
  }
  return width;
}

/** For each row the marks of its cells: "added" for all of a new row, "changed" where a row has another value than before. */
export function marks(before, after, width) {
  const length = keyLength(before, after, width);
  const key = (row) => JSON.stringify(row.slice(0, length));
  const known = new Map(before.map((row) => [key(row), row]));
  return after.map((row) => {
    const old = known.get(key(row));
    return row.map((value, at) => (old === undefined ? "added" : old[at] !== value ? "changed" : ""));
  });
}

function element(name, kind, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

export function render({ model, el }) {
  const columns = model.get("columns");
  const isNumber = columns.map(([, type]) => /^(int|float|decimal)/.test(type));
  const root = element("div", "tektite-live");
  const caption = element("div", "caption");
  const title = element("strong", "", model.get("title"));
  const state = element("span", "state");
  state.setAttribute("role", "status");
  caption.append(title, state);
  const table = element("table");
  const head = element("tr");
  columns.forEach(([name, type], at) => {
    const cell = element("th", isNumber[at] ? "number" : "", name);
    cell.title = type;
    head.append(cell);
  });
  const body = element("tbody");
  const top = element("thead");
  top.append(head);
  table.append(top, body);
  const problem = element("pre", "problem");
  root.append(caption, table, problem);
  el.append(root);
  let before = null;

  function draw() {
    const { rows, time, many, error, ended } = model.get("state");
    const marked = before === null ? null : marks(before, rows, columns.length);
    before = rows;
    const more = many > rows.length ? `, ${rows.length} of about ${many} rows` : `, ${rows.length} row${rows.length === 1 ? "" : "s"}`;
    state.textContent = error === null ? (time === null ? "no epoch closed yet" : `time ${time}${more}`) : ended ? "ended" : "cannot be read";
    root.classList.toggle("ended", ended);
    problem.hidden = error === null;
    problem.textContent = error ?? "";
    body.replaceChildren(...rows.map((row, line) => {
      const tr = element("tr");
      row.forEach((value, at) => tr.append(element("td", `${isNumber[at] ? "number " : ""}${value === null ? "null " : ""}${marked?.[line][at] ?? ""}`.trim(), value ?? "NULL")));
      return tr;
    }));
  }

  draw();
  model.on("change:state", draw);
  return () => model.off("change:state", draw);
}

export default { render };
