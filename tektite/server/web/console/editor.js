// The editor: CodeMirror for SQL and Datalog, with completion from the catalog and errors underlined where they are.
//
// It lives in a shadow root: there, CodeMirror's styles are sheets that the page's policy allows.

import * as cm from "./vendor/editor.js";

const style = cm.EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13.5px", height: "100%" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "10px 0" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--accent-soft)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--faint)", border: "none", paddingLeft: "4px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--sunken) 60%, transparent)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line-strong)", borderRadius: "6px", boxShadow: "var(--shadow)", maxWidth: "min(560px, 90vw)" },
  ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "16em" },
  ".cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", marginLeft: "1em" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-diagnostic": { padding: "8px 12px", whiteSpace: "pre-wrap", fontFamily: "var(--font)" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "4px", textDecorationSkipInk: "none" },
  ".cm-lintPoint-error:after": { borderBottomColor: "var(--bad)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
  ".cm-searchMatch": { backgroundColor: "var(--changed)" },
});

const { tags } = cm;
const colours = cm.HighlightStyle.define([
  { tag: tags.keyword, color: "var(--c2)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--c5)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--c3)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name), tags.function(tags.variableName)], color: "var(--c4)" },
  { tag: [tags.operator, tags.punctuation], color: "var(--muted)" },
  { tag: tags.definition(tags.variableName), color: "var(--c1)" },
]);

// PostgreSQL's own list has every word that stands in some statement, such as name and rows, which are columns here.
const SQL = cm.SQLDialect.define({
  doubleDollarQuotedStrings: true,
  operatorChars: "+-*/<>=~!@#%^&|`?",
  specialVar: "$",
  keywords: `add advance all alter analyze and any array as asc begin between both by cascade case cast check column commit conflict constraint copy create
cross cube current current_date current_timestamp current_user deallocate default delete desc distinct do drop else end escape except execute exists explain
false fetch filter following for foreign from full function grant group grouping having if ilike in index inner insert intersect interval into is
join key lateral leading left like limit materialized natural not nothing null nulls offset on or order outer over partition policy preceding prepare
primary range recursive references refresh rename reset restrict returning revoke right role rollback rollup row schema select set sets show similar sink
source subscribe table tablesample then to token trailing true truncate unbounded union unique update user using values view when where window with within`.replaceAll("\n", " "),
  types: "bigint boolean bool char date decimal double float int integer json numeric precision real smallint text time timestamp timestamptz varchar",
  builtin: "",
});

const datalog = cm.StreamLanguage.define({
  name: "datalog",
  startState: () => ({ isComment: false }),
  token(stream, state) {
    if (state.isComment) {
      if (stream.match(/.*?\*\//)) state.isComment = false;
      else stream.skipToEnd();
      return "comment";
    }
    if (stream.eatSpace()) return null;
    if (stream.match("/*")) {
      state.isComment = true;
      return "comment";
    }
    if (stream.match("//") || stream.match(";;")) {
      stream.skipToEnd();
      return "comment";
    }
    if (stream.match(/^"(?:[^"\\]|\\.)*"?/)) return "string";
    if (stream.match(/^:(?:find|where|in|with)\b/) || stream.match(/^\.(?:decl|input|output|type|comp|init|include|printsize)\b/)) return "keyword";
    if (stream.match(/^:[\w./?-]+/)) return "typeName";
    if (stream.match(/^(?::-|\?-|<=|>=|!=|[!<>=+*/%^-])/)) return "operator";
    if (stream.match(/^-?\d+(?:\.\d+)?/)) return "number";
    if (stream.match(/^[A-Za-z_][\w.]*(?=\s*\()/)) return "variableName.definition";
    if (stream.match(/^(?:count|sum|min|max|avg|mean|not|or|and|nil)\b/)) return "keyword";
    if (stream.match(/^[?$@]?[A-Za-z_][\w-]*/)) return "variableName";
    stream.next();
    return "punctuation";
  },
  languageData: { commentTokens: { line: "//", block: { open: "/*", close: "*/" } } },
});

/**
 * An editor in an element. `check(text, language)` gives a promise of a failure or null, for what is typed. The catalog is
 * {relation: {kind, columns: [{name, type}]}}.
 */
export class Editor {
  constructor(host, { text, language, onRun, onLive, onEscape, onChange, check, label }) {
    const root = host.attachShadow({ mode: "open" });
    const box = document.createElement("div");
    box.style.height = "100%";
    root.append(box);
    this._language = new cm.Compartment();
    this._name = language;
    this._catalog = {};
    const key = (name, run) => ({ key: name, preventDefault: true, run: () => (run(), true) });
    this._view = new cm.EditorView({
      root,
      parent: box,
      state: cm.EditorState.create({
        doc: text,
        extensions: [
          cm.Prec.highest(cm.keymap.of([key("Mod-Enter", () => this._run(onRun)), key("Mod-Shift-Enter", () => this._run(onLive))])),
          cm.lineNumbers(), cm.highlightActiveLineGutter(), cm.highlightSpecialChars(), cm.history(), cm.drawSelection(), cm.dropCursor(),
          cm.EditorState.allowMultipleSelections.of(true), cm.indentOnInput(), cm.syntaxHighlighting(colours), cm.bracketMatching(),
          cm.closeBrackets(), cm.autocompletion({ icons: false }), cm.rectangularSelection(), cm.highlightActiveLine(), cm.highlightSelectionMatches(),
          cm.EditorView.lineWrapping, cm.tooltips({ position: "fixed" }),
          cm.EditorView.contentAttributes.of({ "aria-label": label }),
          cm.keymap.of([...cm.closeBracketsKeymap, ...cm.completionKeymap, ...cm.lintKeymap, ...cm.defaultKeymap, ...cm.searchKeymap, ...cm.historyKeymap, { key: "Escape", run: () => (onEscape(), false) }]),
          this._language.of(this._support()),
          cm.linter((view) => this._checked(view, check), { delay: 500 }),
          cm.EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
          style,
        ],
      }),
    });
  }

  _run(run) {
    cm.closeCompletion(this._view);
    run();
  }

  get text() {
    return this._view.state.doc.toString();
  }

  set text(text) {
    this._view.dispatch({ changes: { from: 0, to: this._view.state.doc.length, insert: text } });
  }

  /** What is selected, or everything; and the line and column at which that begins, from 0. */
  get chosen() {
    const { state } = this._view;
    const { from, to } = state.selection.main;
    if (from === to) return { text: this.text, line: 0, column: 0 };
    const line = state.doc.lineAt(from);
    return { text: state.sliceDoc(from, to), line: line.number - 1, column: from - line.from };
  }

  insert(text) {
    this._view.dispatch(this._view.state.replaceSelection(text));
    this._view.focus();
  }

  focus() {
    this._view.focus();
  }

  set language(name) {
    this._name = name;
    this._view.dispatch({ effects: this._language.reconfigure(this._support()) });
  }

  set catalog(catalog) {
    this._catalog = catalog;
    this._view.dispatch({ effects: this._language.reconfigure(this._support()) });
  }

  _support() {
    if (this._name === "datalog") {
      const complete = (context) => {
        const word = context.matchBefore(/[\w.]+/);
        if (!word && !context.explicit) return null;
        const options = Object.entries(this._catalog).map(([name, { kind, columns }]) => ({ label: name, detail: kind, apply: `${name}(${columns.map((column) => column.name).join(", ")})` }));
        return { from: word ? word.from : context.pos, options };
      };
      return [datalog, datalog.data.of({ autocomplete: complete })];
    }
    const schema = {};
    for (const [name, { kind, columns }] of Object.entries(this._catalog)) {
      schema[name] = { self: { label: name.split(".").at(-1), detail: kind, type: "class" }, children: columns.map((column) => ({ label: column.name, detail: column.type, type: "property" })) };
    }
    return cm.sql({ dialect: SQL, schema, upperCaseKeywords: true, defaultSchema: "public" });
  }

  async _checked(view, check) {
    const { doc } = view.state;
    const failure = await check(doc.toString(), this._name);
    if (!failure || view.state.doc !== doc) return this._kept(view);
    return [this._diagnostic(failure)];
  }

  /** What a run has underlined stays until the text changes. */
  _kept(view) {
    const found = [];
    if (this._failedText === view.state.doc.toString()) cm.forEachDiagnostic(view.state, (each, from, to) => found.push({ ...each, from, to }));
    return found;
  }

  /** Underline the place of a failure; `from` is where the text that was run begins. */
  showFailure(failure, from = { line: 0, column: 0 }) {
    this._failedText = failure ? this.text : null;
    this._view.dispatch(cm.setDiagnostics(this._view.state, failure && failure.details?.line ? [this._diagnostic(failure, from)] : []));
  }

  _diagnostic(failure, start = { line: 0, column: 0 }) {
    const { doc } = this._view.state;
    const { line = 1, column = 1 } = failure.details;
    const found = doc.line(Math.min(Math.max(line + start.line, 1), doc.lines));
    let from = Math.min(found.from + column - 1 + (line === 1 ? start.column : 0), found.to);
    const word = /^[\w"$.]+|^\S/.exec(doc.sliceString(from, found.to))?.[0] ?? "";
    const to = Math.min(from + Math.max(word.length, 1), doc.length);
    if (from === to && from > 0) from -= 1;
    return { from, to, severity: "error", message: failure.message.split(/\nline \d+:/)[0] };
  }

  close() {
    this._view.destroy();
  }
}
