"""The preprocessor does what the C preprocessor does to Datalog programs, and keeps lines where they were."""

from __future__ import annotations

from pathlib import Path

import pytest

import tektite as tk
from tektite.datalog.syntax.preprocessor import preprocessed
from tektite.datalog.syntax.textbook import parse_program

CASES = {
    "a name": ("#define N 3\np(N). q(NN).", "p(3). q(NN)."),
    "a name without a value": ("#define N\np(1 N).", "p(1 )."),
    "arguments": ("#define E(a, b) e(b, a)\np :- E(x, f(y, z)).", "p :- e(f(y, z), x)."),
    "no arguments": ("#define E() e(1)\np :- E(), E.", "p :- e(1), E."),
    "arguments that are macros": ("#define A B\n#define B 1\n#define E(x) e(x)\nE(A).", "e(1)."),
    "macros that name themselves": ("#define A A + B\n#define B A\nA.", "A + A."),
    "names of two parts": ("#define C(a, b) a ## _ ## b\nC(x, y)(1).", "x_y(1)."),
    "arguments as texts": ("#define S(x) #x\np(S(a + \"b\")).", 'p("a + \\"b\\"").'),
    "any number of arguments": ("#define E(n, ...) n(__VA_ARGS__)\nE(p, 1, 2). E(q).", "p(1, 2). q()."),
    "arguments on two lines": ("#define E(a, b) e(a, b)\nE(1,\n  2).\nq.", "e(1, 2)\n.\nq."),
    "a definition on two lines": ("#define E(a) e(a), \\\n  f(a)\np :- E(1).", "p :- e(1),    f(1)."),
    "texts and comments stay": ('#define N 3\np("N"). // N\n/* N */ q(N).', 'p("N").  \n  q(3).'),
    "what is undefined": ("#define N 3\n#undef N\np(N).", "p(N)."),
    "ifdef": ("#define N\n#ifdef N\na.\n#else\nb.\n#endif\nc.", "a.\nc."),
    "ifndef": ("#ifndef N\na.\n#endif", "a."),
    "if with elif": ("#define N 2\n#if N == 1\na.\n#elif N == 2 && defined(N)\nb.\n#elif 1\nc.\n#else\nd.\n#endif", "b."),
    "if within if": ("#if 0\n#if 1\na.\n#else\nb.\n#endif\n#else\nc.\n#endif", "c."),
    "conditions as in C": ("#if (1 + 2 * 3 == 7) && !X && -1 < 0 && 7 / 2 == 3 && 5 % 3 >= 2 || 0\na.\n#endif", "a."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_program_is_preprocessed(text: str, expected: str) -> None:
    assert preprocessed(text, "program").text == expected


def test_every_line_knows_where_it_comes_from(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text('\na.\n.include "b.dl"\n')
    (tmp_path / "b.dl").write_text(".once\nb.")
    main = str(tmp_path / "main.dl")
    found = preprocessed('#include "a.dl"\n#include "b.dl"\n\nmain.', main)
    assert found.places is not None
    named = [
        (Path(file).name, line, text) for (file, line), text in zip(found.places, found.text.split("\n"), strict=True)
    ]
    assert [entry for entry in named if entry[2]] == [("a.dl", 2, "a."), ("b.dl", 2, "b."), ("main.dl", 4, "main.")]


def test_folders_are_searched_and_macros_given(tmp_path: Path) -> None:
    (tmp_path / "b.dl").write_text("b(N).")
    assert preprocessed('#include "b.dl"', "program", {"N": "4"}, [tmp_path]).text == "b(4)."


WRONG = {
    "a file that is not there": ('\n#include "no.dl"', tk.NotFoundError, "program:2: there is no file 'no.dl' to include in: "),
    "a file without quotes": ("#include no.dl", tk.IncorrectError, "program:1: #include takes a file"),
    "an if without an end": ("#if 1\na.", tk.IncorrectError, "program:2: the file ends within an #if"),
    "an end without an if": ("#endif", tk.IncorrectError, "program:1: #endif without #if"),
    "arguments that do not end": ("#define E(a) a\n\nE(1.", tk.IncorrectError, "program:2: the arguments of macro E do not end"),
    "arguments too few": ("#define E(a, b) a\nE(1).", tk.IncorrectError, "macro E takes 2 arguments, found 1"),
    "an error": ("#error too old", tk.IncorrectError, "program:1: #error too old"),
    "a condition that ends early": ("#if 1 +\n#endif", tk.IncorrectError, "program:1: #if: the condition ends too early"),
    "a condition that is none": ("#if 1 ~ 2\n#endif", tk.IncorrectError, "program:1: #if: did not expect '~'"),
    "a division by zero": ("#if 1 / 0\n#endif", tk.IncorrectError, "program:1: #if: a division by zero"),
    "a name that is none": ("#ifdef 1\n#endif", tk.IncorrectError, "program:1: #ifdef takes one name, not '1'"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "error", "message"), WRONG.values(), ids=WRONG.keys())
def test_program_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_program(text)


def test_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text('#include "a.dl"')
    with pytest.raises(tk.IncorrectError, match="files include each other"):
        preprocessed('#include "a.dl"', str(tmp_path / "main.dl"))
