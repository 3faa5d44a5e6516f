// A table of rows that is kept up to date in place: a row keeps its elements while it is there, so that the focus stays where it is.

import { empty, fill, h } from "./ui.js";

const SHOWN = 100; // rows; more are found by the filter

/**
 * `columns` are [title, row -> text or element, class, {isAction, isOff, ages}]; `key` is a function of a row. What a column gives is made again
 * when the row has changed, or each time if it ages; an action, which is a button, only once, by a function that asks for the row when it is used;
 * it is disabled while `isOff(row)`.
 */
export class List {
  constructor({ columns, key, nothing, filter = null, label = "" }) {
    this._columns = columns;
    this._key = key;
    this._nothing = nothing;
    this._filter = filter;
    this._lines = new Map();
    this._rows = [];
    this._body = h("tbody");
    this._more = h("p.muted.more");
    this._table = h("div.scroll", { tabindex: 0, role: "region", "aria-label": label }, h("table.list", {},
      h("thead", {}, h("tr", {}, columns.map(([title, , kind]) => h(`th${kind ? `.${kind}` : ""}`, { scope: "col" }, title)))), this._body));
    this._search = h("input.filter", { type: "search", placeholder: "Filter", "aria-label": `Filter ${label}`, hidden: true, oninput: () => this.show(this._rows) });
    this._empty = empty(nothing);
    this.element = h("div.listing", {}, this._search, this._table, this._empty, this._more);
  }

  /** Other rows, in their order. */
  show(rows) {
    this._rows = rows;
    this._search.hidden = !this._filter || rows.length <= 12;
    const wanted = this._search.hidden ? "" : this._search.value.toLowerCase();
    const found = wanted ? rows.filter((row) => this._filter(row).toLowerCase().includes(wanted)) : rows;
    const seen = new Set();
    let place = this._body.firstChild;
    for (const row of found.slice(0, SHOWN)) {
      const key = this._key(row);
      seen.add(key);
      const line = this._lines.get(key) ?? this._line(key);
      this._update(line, row);
      if (line.element === place) place = place.nextSibling;
      else this._body.insertBefore(line.element, place);
    }
    for (const [key, line] of this._lines) {
      if (seen.has(key)) continue;
      line.element.remove();
      this._lines.delete(key);
    }
    this._table.hidden = !found.length;
    this._empty.hidden = Boolean(found.length);
    this._more.textContent = found.length > SHOWN ? `and ${found.length - SHOWN} more` : "";
  }

  _line(key) {
    const cells = this._columns.map(([, , kind]) => h(`td${kind ? `.${kind}` : ""}`));
    const line = { element: h("tr", {}, cells), cells, row: null, text: null };
    this._lines.set(key, line);
    return line;
  }

  _update(line, row) {
    const text = JSON.stringify(row);
    const isNew = line.row === null;
    line.row = row;
    this._columns.forEach(([, content, , options], at) => {
      if (options?.isAction) {
        if (isNew) fill(line.cells[at], content(() => line.row));
        line.cells[at].firstChild.disabled = options.isOff?.(row) ?? false;
      } else if (text !== line.text || options?.ages) {
        const made = content(row);
        if (made instanceof Node) fill(line.cells[at], made);
        else if (line.cells[at].textContent !== String(made)) line.cells[at].textContent = made;
      }
    });
    line.text = text;
  }
}
