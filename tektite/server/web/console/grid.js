// A grid of any number of rows. It holds elements for the rows that are seen, asks for those by `onWindow(start, count)`, and is
// given them by `show`. Keys: arrows, Page Up and Down, Home, End choose a row; Enter shows it whole; Ctrl+C copies it.

import { isNumeric } from "./results.js";
import { dialog, fill, h, toast } from "./ui.js";

const ROW = 28; // pixels, as in style.css
const HEAD = 33;
const TALLEST = 12_000_000; // pixels: browsers cannot show taller elements; beyond, scrolling goes faster
const MARKED = 900; // milliseconds before a mark fades
const SPARE = 8; // rows beyond the seen ones

/** A value as people read it: a timestamp without the T and without zeros at its end. */
export const shownValue = (value, type = "") => (value === null ? "NULL" : type.startsWith("timestamp") ? String(value).replace("T", " ").replace(/\.(\d*?)0+(?=Z?$)/, (_, digits) => (digits ? `.${digits}` : "")) : String(value));

export class Grid {
  constructor({ onWindow, onSort, label = "Result" }) {
    this.element = h("div.grid", { tabindex: 0, role: "grid", "aria-label": label });
    this._onWindow = onWindow;
    this._onSort = onSort;
    this._columns = [];
    this._length = 0;
    this._rows = new Map(); // row number -> {values, count, marks}
    this._pool = [];
    this._selected = null;
    this._sorting = null;
    this._asked = null;
    this._widths = [];
    this._head = h("div.head", { role: "row" });
    this._space = h("div.space");
    fill(this.element, this._head, this._space);
    this.element.addEventListener("scroll", () => this._scrolled(), { passive: true });
    this.element.addEventListener("keydown", (event) => this._key(event));
    this._resized = new ResizeObserver(() => this._scrolled());
    this._resized.observe(this.element);
  }

  close() {
    this._resized.disconnect();
  }

  /** Other columns, [{name, type}], and as many rows. */
  begin(columns, length, sorting = null) {
    this._columns = columns;
    this._rows.clear();
    this._selected = null;
    this._sorting = sorting;
    this._asked = null;
    this._isMeasured = false;
    this._widths = columns.map(({ name }) => Math.max(name.length + 7, 9));
    for (const { element } of this._pool) element.remove();
    this._pool = [];
    this.element.scrollTop = 0;
    this._drawHead();
    this.resize(length);
  }

  /** Another number of rows. */
  resize(length) {
    this._length = length;
    this.element.setAttribute("aria-rowcount", length + 1);
    this._space.style.height = `${Math.min(length * ROW, TALLEST)}px`;
    this._scrolled(true);
  }

  /** Rows from one on: [{values, count, marks}]. */
  show(start, rows, length) {
    if (length !== this._length) {
      this._length = length;
      this.element.setAttribute("aria-rowcount", length + 1);
      this._space.style.height = `${Math.min(length * ROW, TALLEST)}px`;
    }
    this._rows.clear();
    rows.forEach((row, at) => this._rows.set(start + at, row));
    if (!this._isMeasured && rows.length) this._measure(rows);
    this._draw();
  }

  _measure(rows) {
    this._isMeasured = true;
    this._columns.forEach((_, at) => {
      for (const { values } of rows) this._widths[at] = Math.max(this._widths[at], Math.min(shownValue(values[at], this._columns[at].type).length + 3, 42));
    });
    this._drawHead();
  }

  _template() {
    const widths = this._widths.map((width) => `minmax(${width}ch, ${width}fr)`);
    return `var(--count) ${widths.join(" ")}`;
  }

  _drawHead() {
    const template = this._template();
    this._head.style.gridTemplateColumns = template;
    this._head.style.width = this._space.style.width = this._width;
    fill(this._head, h("span"), this._columns.map(({ name, type }, at) => {
      const isSorted = this._sorting?.column === at;
      const arrow = isSorted ? (this._sorting.descending ? " ▾" : " ▴") : "";
      return h(`button${isNumeric(type) ? ".number" : ""}`, {
        role: "columnheader", "aria-label": name, title: `${name}: ${type}`, "aria-sort": isSorted ? (this._sorting.descending ? "descending" : "ascending") : "none",
        onclick: () => this._sort(at),
      }, name + arrow, h("small", type));
    }));
    for (const { element } of this._pool) Object.assign(element.style, { gridTemplateColumns: template, width: this._width });
  }

  /** Head and rows are as wide as each other: as the grid, or as their columns. */
  get _width() {
    return `max(100%, calc(var(--count) + ${this._widths.reduce((sum, width) => sum + width, 0)}ch))`;
  }

  _sort(column) {
    const known = this._sorting;
    if (known?.column !== column) this._sorting = { column, descending: isNumeric(this._columns[column].type) };
    else if (known.descending === isNumeric(this._columns[column].type)) this._sorting = { column, descending: !known.descending };
    else this._sorting = null;
    this._drawHead();
    this._onSort(this._sorting);
  }

  get _seen() {
    return Math.ceil(Math.max(this.element.clientHeight - HEAD, 0) / ROW) + 1;
  }

  /** How many rows one pixel of scrolling is, times the height of a row. */
  get _ratio() {
    const whole = this._length * ROW;
    if (whole <= TALLEST) return 1;
    const view = this.element.clientHeight - HEAD;
    return (whole - view) / (TALLEST - view);
  }

  get _first() {
    return Math.max(0, Math.min(Math.floor((this.element.scrollTop * this._ratio) / ROW), Math.max(this._length - 1, 0)));
  }

  _scrolled(isNew = false) {
    if (!this._columns.length) return;
    const start = Math.max(0, this._first - SPARE);
    const count = this._seen + 2 * SPARE;
    const asked = `${start} ${count}`;
    if (isNew || asked !== this._asked) {
      this._asked = asked;
      this._onWindow(start, count);
    }
    this._draw(false);
  }

  _draw(isNew = true) {
    const first = this._first;
    const offset = this.element.scrollTop - ((this.element.scrollTop * this._ratio) % ROW);
    const needed = Math.min(this._seen, this._length - first);
    while (this._pool.length < needed) this._pool.push(this._line());
    this._pool.forEach((line, at) => {
      const number = first + at;
      const row = at < needed ? this._rows.get(number) : undefined;
      line.element.hidden = at >= needed;
      if (at >= needed) return;
      line.element.style.transform = `translateY(${offset + at * ROW + HEAD}px)`;
      if (line.number === number && line.row === row && !isNew) return;
      this._fillLine(line, number, row);
    });
    const counts = [...this._rows.values()].some((row) => row.count > 1);
    this.element.style.setProperty("--count", counts ? "6ch" : "0px");
  }

  _line() {
    const count = h("div.cell.count");
    const cells = this._columns.map(({ type }) => h(`div.cell${isNumeric(type) ? ".number" : ""}`, { role: "gridcell" }));
    const element = h("div.row", { role: "row" }, count, cells);
    Object.assign(element.style, { gridTemplateColumns: this._template(), width: this._width });
    const line = { element, count, cells, number: -1, row: undefined };
    element.addEventListener("click", () => this._select(line.number));
    element.addEventListener("dblclick", () => this._open(line.number));
    this.element.append(element);
    return line;
  }

  _fillLine(line, number, row) {
    const isOther = line.number !== number;
    line.number = number;
    line.row = row;
    line.element.setAttribute("aria-rowindex", number + 2);
    line.element.setAttribute("aria-selected", String(number === this._selected));
    line.count.textContent = row && row.count > 1 ? `×${row.count}` : "";
    line.cells.forEach((cell, at) => {
      const value = row ? row.values[at] : undefined;
      const text = value === undefined ? "" : shownValue(value, this._columns[at].type);
      if (cell.textContent !== text) cell.textContent = text;
      cell.classList.toggle("null", value === null);
      const mark = !row?.marks ? null : row.marks === "added" ? "added" : row.marks[at] ? "changed" : null;
      if (isOther) cell.classList.remove("changed", "added");
      if (mark) {
        cell.classList.add(mark);
        clearTimeout(cell.fading);
        cell.fading = setTimeout(() => cell.classList.remove("changed", "added"), MARKED);
      }
    });
  }

  // ---------------------------------------------------------------- choosing

  _select(number) {
    this._selected = number;
    const ratio = this._ratio;
    const view = this.element.clientHeight - HEAD - ROW;
    if (number < this._first + 1) this.element.scrollTop = (number * ROW) / ratio;
    else if (number * ROW > this.element.scrollTop * ratio + view) this.element.scrollTop = Math.ceil((number * ROW - view) / ratio);
    this._draw();
  }

  _key(event) {
    if (event.target !== this.element || !this._length) return;
    const page = Math.max(this._seen - 2, 1);
    const at = this._selected ?? -1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this._length - 1 }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this._select(Math.max(0, Math.min(to, this._length - 1)));
    } else if (event.key === "Enter" && this._selected !== null) {
      event.preventDefault();
      this._open(this._selected);
    } else if (event.key === "c" && (event.ctrlKey || event.metaKey) && !String(getSelection())) {
      const row = this._rows.get(this._selected);
      if (row) navigator.clipboard?.writeText(row.values.map((value) => (value === null ? "" : value)).join("\t")).then(() => toast("The row was copied"));
    }
  }

  _open(number) {
    const row = this._rows.get(number);
    if (!row) return;
    dialog(`Row ${number + 1}`, h("dl.record", {}, this._columns.map(({ name, type }, at) => [h("dt", name), h("dd", {}, h("pre", shownValue(row.values[at], type)))])));
  }
}
