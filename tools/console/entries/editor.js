export { EditorState, Compartment, StateEffect, StateField, Prec } from "@codemirror/state";
export {
  EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, drawSelection,
  dropCursor, rectangularSelection, placeholder, Decoration, tooltips,
} from "@codemirror/view";
export { history, historyKeymap, defaultKeymap, indentWithTab, toggleComment } from "@codemirror/commands";
export {
  bracketMatching, indentOnInput, syntaxHighlighting, HighlightStyle, StreamLanguage, foldGutter, foldKeymap, LanguageSupport,
} from "@codemirror/language";
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, closeCompletion, startCompletion, completionStatus } from "@codemirror/autocomplete";
export { linter, lintGutter, setDiagnostics, lintKeymap, forEachDiagnostic } from "@codemirror/lint";
export { searchKeymap, highlightSelectionMatches, search } from "@codemirror/search";
export { sql, SQLDialect, PostgreSQL } from "@codemirror/lang-sql";
export { tags } from "@lezer/highlight";
