"""The C preprocessor, as Soufflé runs it over programs: #include and `.include`, #define with and without arguments, #if.

Promise: every line of the result knows the file and the line that it comes from, so that errors name what the author wrote.
Macros are not expanded in texts and comments. A program without directives is not touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tektite.datalog.syntax.conditions import is_true
from tektite.errors import IncorrectError, NotFoundError

DIRECTIVE = re.compile(
    r"[ \t]*(?:#[ \t]*(define|undef|include|ifdef|ifndef|if|elif|else|endif|error|warning|pragma|line)\b|\.(include|once)\b)(.*)",
    re.DOTALL,
)
USED = re.compile(rf"^{DIRECTIVE.pattern[:-4]}", re.MULTILINE)
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|[^\W\d]\w*|\n|[^\S\n]+|\d[\w.]*|##|.', re.DOTALL)
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
DEEPEST = 200
"""Files within files, and macros within macros: more include or expand themselves."""

LinePlace = tuple[str, int]


@dataclass(frozen=True)
class Macro:
    """The definition of a name; `parameters` is None for a macro without arguments."""

    body: tuple[str, ...]
    parameters: tuple[str, ...] | None = None


@dataclass
class PreprocessedText:
    """A program after the preprocessor, with the place that each line comes from."""

    text: str
    places: Sequence[LinePlace] | None = None


def preprocessed(
    text: str, source: str, macros: Mapping[str, str] | None = None, folders: Sequence[Path] = ()
) -> PreprocessedText:
    """A program without directives. Files are looked for beside the one that includes them, then in `folders`.

    >>> print(preprocessed("#define TWICE(x) x, x\\np(TWICE(1)).", "program").text.strip())
    p(1, 1).
    """
    if not macros and not USED.search(text):
        return PreprocessedText(text)
    work = Preprocessor(folders)
    for name, value in (macros or {}).items():
        work.macros[name] = Macro(tuple(TOKEN.findall(value)))
    work.run(text, source, 0)
    return PreprocessedText("\n".join(line for line, _ in work.lines), [place for _, place in work.lines])


@dataclass
class Preprocessor:
    """Reads files line by line, and keeps what is defined."""

    folders: Sequence[Path] = ()
    macros: dict[str, Macro] = field(default_factory=dict)
    lines: list[tuple[str, LinePlace]] = field(default_factory=list)
    once: set[Path] = field(default_factory=set)

    def run(self, text: str, source: str, depth: int) -> None:
        """Read one file."""
        if depth > DEEPEST:
            raise IncorrectError(f"{source}:1: files include each other, {DEEPEST} deep")
        lines = without_comments(text).split("\n")
        choices: list[
            tuple[bool, bool]
        ] = []  # for each #if around here: whether to read on, whether a branch was taken
        waiting: list[str] = []
        number = first = 0
        while number < len(lines):
            found = DIRECTIVE.fullmatch(lines[number])
            start = number
            number += 1
            if found is None:
                if all(reading for reading, _ in choices):
                    first = first if waiting else start
                    waiting.append(lines[start])
                continue
            rest = found[3]
            while rest.endswith("\\") and number < len(lines):
                rest = rest[:-1] + " " + lines[number]
                number += 1
            self._expand_lines(waiting, source, first)
            waiting = []
            where = f"{source}:{start + 1}"
            name, rest = found[1] or found[2], rest.strip()
            if name in ("if", "ifdef", "ifndef", "elif", "else", "endif"):
                self._choose(name, rest, choices, where)
            elif all(reading for reading, _ in choices):
                self._directive(name, rest, source, where, depth)
        self._expand_lines(waiting, source, first)
        if choices:
            raise IncorrectError(f"{source}:{len(lines)}: the file ends within an #if: an #endif is missing")

    # ------------------------------------------------------------------ directives

    def _choose(self, name: str, rest: str, choices: list[tuple[bool, bool]], where: str) -> None:
        if name in ("if", "ifdef", "ifndef"):
            reading = all(reading for reading, _ in choices)
            holds = reading and self._holds(name, rest, where)
            choices.append((holds, holds))
            return
        if not choices:
            raise IncorrectError(f"{where}: #{name} without #if")
        _, taken = choices.pop()
        if name != "endif":
            reading = all(reading for reading, _ in choices)
            holds = reading and not taken and (name == "else" or self._holds("if", rest, where))
            choices.append((holds, taken or holds))

    def _holds(self, name: str, rest: str, where: str) -> bool:
        if name != "if":
            if not re.fullmatch(r"[^\W\d]\w*", rest):
                raise IncorrectError(f"{where}: #{name} takes one name, not {rest!r}")
            return (rest in self.macros) == (name == "ifdef")
        tested = re.sub(
            r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))", lambda m: str(int((m[1] or m[2]) in self.macros)), rest
        )
        return is_true("".join(self.expanded(TOKEN.findall(tested), where)), where)

    def _directive(self, name: str, rest: str, source: str, where: str, depth: int) -> None:
        match name:
            case "define":
                self._define(rest, where)
            case "undef":
                self.macros.pop(rest, None)
            case "include":
                self._include("".join(self.expanded(TOKEN.findall(rest), where)), source, where, depth)
            case "once":
                self.once.add(Path(source).resolve())
            case "error":
                raise IncorrectError(f"{where}: #error {rest}")

    def _define(self, rest: str, where: str) -> None:
        found = re.match(r"([^\W\d]\w*)(\(([^()]*)\))?(.*)", rest, re.DOTALL)
        if found is None:
            raise IncorrectError(f"{where}: #define takes a name, and what it stands for; found {rest!r}")
        parameters = None
        if found[2] is not None:
            parameters = tuple(part.strip() for part in found[3].split(",")) if found[3].strip() else ()
        self.macros[found[1]] = Macro(tuple(TOKEN.findall(found[4].strip())), parameters)

    def _include(self, rest: str, source: str, where: str, depth: int) -> None:
        found = re.fullmatch(r'\s*(?:"([^"]*)"|<([^>]*)>)\s*', rest)
        if found is None:
            raise IncorrectError(f'{where}: #include takes a file, as in #include "rules.dl"; found {rest!r}')
        name = found[1] or found[2]
        for folder in (Path(source).parent, *self.folders):
            path = folder / name
            if path.is_file():
                if path.resolve() not in self.once:
                    self.run(path.read_text(encoding="utf-8"), str(path), depth + 1)
                return
        looked = ", ".join(str(folder) for folder in dict.fromkeys((Path(source).parent, *self.folders)))
        raise NotFoundError(f"{where}: there is no file {name!r} to include in: {looked}")

    # ------------------------------------------------------------------ macros

    def _expand_lines(self, waiting: list[str], source: str, first: int) -> None:
        """Take lines in that have no directive between them: the arguments of a macro may stand on several."""
        if not waiting:
            return
        text = "\n".join(waiting)
        if any(name in text for name in self.macros):
            text = "".join(self.expanded(TOKEN.findall(text), f"{source}:{first + 1}"))
        for at, line in enumerate(text.split("\n")):
            self.lines.append((line, (source, first + at + 1)))

    def expanded(self, tokens: Sequence[str], where: str, hidden: frozenset[str] = frozenset()) -> list[str]:
        """Tokens with macros replaced; `hidden` are those that are being replaced around here. Lines stay as many."""
        if len(hidden) > DEEPEST:
            raise IncorrectError(f"{where}: macros within macros, {DEEPEST} deep")
        found: list[str] = []
        at = 0
        while at < len(tokens):
            name = tokens[at]
            at += 1
            macro = self.macros.get(name) if name not in hidden else None
            if macro is None:
                found.append(name)
                continue
            if macro.parameters is None:
                found += self.expanded(macro.body, where, hidden | {name})
                continue
            start = at
            while at < len(tokens) and tokens[at].isspace():
                at += 1
            if at == len(tokens) or tokens[at] != "(":
                found.append(name)
                at = start
                continue
            given, at = arguments(tokens, at + 1, name, where)
            if macro.parameters == () and given == [[]]:
                given = []
            variadic = macro.parameters[-1:] == ("...",)
            if len(given) != len(macro.parameters) and not (variadic and len(given) >= len(macro.parameters) - 1):
                raise IncorrectError(
                    f"{where}: macro {name} takes {len(macro.parameters)} arguments, found {len(given)}"
                )
            body = self._filled(macro, given, where, hidden)
            found += self.expanded(body, where, hidden | {name})
            found += ["\n"] * sum(token.count("\n") for token in tokens[start:at])
        return found

    def _filled(self, macro: Macro, given: list[list[str]], where: str, hidden: frozenset[str]) -> list[str]:
        """A macro's body with its arguments in place: `#x` is the argument as a text, `a ## b` one name of two."""
        assert macro.parameters is not None
        plain = dict(zip(macro.parameters, given, strict=False))
        if macro.parameters[-1:] == ("...",):
            rest = given[len(macro.parameters) - 1 :]
            plain["__VA_ARGS__"] = [token for at, part in enumerate(rest) for token in ([",", " "] * (at > 0) + part)]
        body: list[str] = []
        tokens = list(macro.body)
        pasted = False
        for at, token in enumerate(tokens):
            following = next((t for t in tokens[at + 1 :] if not t.isspace()), "")
            if token == "##":
                while body and body[-1].isspace():
                    body.pop()
                pasted = True
            elif pasted and token.isspace() or token == "#" and following in plain:
                continue
            elif token in plain:
                if last_word(tokens[:at]) == "#":
                    shown = "".join(plain[token]).strip().replace("\\", "\\\\").replace('"', '\\"')
                    body.append(f'"{shown}"')
                elif pasted or following == "##":
                    body += plain[token]
                else:
                    body += self.expanded(plain[token], where, hidden)
                pasted = False
            else:
                body.append(token)
                pasted = False
        return TOKEN.findall("".join(body))


def last_word(tokens: Sequence[str]) -> str:
    """The last token that is not space."""
    return next((token for token in reversed(tokens) if not token.isspace()), "")


def arguments(tokens: Sequence[str], at: int, name: str, where: str) -> tuple[list[list[str]], int]:
    """The arguments of a macro's call that begin at a token, and the place behind them."""
    found: list[list[str]] = [[]]
    depth = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token == ")" and depth == 0:
            return [trimmed(part) for part in found], at
        if token == "," and depth == 0:
            found.append([])
            continue
        depth += (token in ("(", "[", "{")) - (token in (")", "]", "}"))
        found[-1].append(" " if token == "\n" else token)
    raise IncorrectError(f"{where}: the arguments of macro {name} do not end: a ')' is missing")


def trimmed(tokens: list[str]) -> list[str]:
    """Tokens without the space around them."""
    while tokens and tokens[0].isspace():
        tokens = tokens[1:]
    while tokens and tokens[-1].isspace():
        tokens = tokens[:-1]
    return tokens


def without_comments(text: str) -> str:
    """A text with space for its comments, on as many lines."""

    def space(found: re.Match[str]) -> str:
        return found[1] if found[1] else " " + "\n" * found[0].count("\n")

    return COMMENT.sub(space, text)


def defined(given: Iterable[str]) -> dict[str, str]:
    """Macros as the command line has them: NAME, or NAME=value.

    >>> defined(["A", "B=2"])
    {'A': '1', 'B': '2'}
    """
    pairs = (macro.partition("=") for text in given for macro in text.split())
    return {name: value if sign else "1" for name, sign, value in pairs}
