"""Whose memory the result of a program lies in: the input's where nothing changes, constants in the head alone."""

from __future__ import annotations

import datetime
import threading
from typing import Any

import numpy as np
import pytest

from tektite.expr import Expr, RowProgram, col, compile, lit, when
from tektite.expr.steps import TextFunction
from tektite.expr.text import Memo, memo_for
from tektite.kernels.layout.rows import head_of_array, select_columns
from tektite.values.types import Date, Int, String
from tektite.values.words import NULL
from tests.support.expression_twin import Rows, TextDictionary, read
from tests.support.fault_injection import Injector
from tests.support.patience import PATIENCE

COLUMNS = {"a": (0, Int), "b": (1, Int)}
a, b = col("a"), col("b")
HERE = TextDictionary()


def program(*outputs: Expr, where: Expr | None = None) -> Any:
    return compile(list(outputs), where, COLUMNS, HERE)


def table(n: int) -> tuple[np.ndarray, int]:
    """An array of rows and the address of their head, which `table` holds on to."""
    array = np.arange(4 * n, dtype=np.int64).reshape(4, n)
    head = head_of_array(array, n)
    table.head = head  # type: ignore[attr-defined]
    return array, int(head[1])


def stored(head: np.ndarray, column: int) -> bool:
    return bool(head[4 + 3 * column] == 8)


def column_address(head: np.ndarray, column: int) -> int:
    return int(head[3 + 3 * column])


@pytest.mark.parametrize("n", [2, 5000])
@pytest.mark.parametrize("where", [None, a >= 0, lit(True)])
def test_columns_are_shared_when_no_row_is_filtered(n: int, where: Expr | None) -> None:
    array, source = table(n)
    (held, buf), head = program(b, a + b, lit(7), a, where=where).run(source, 2, 1, 1, NULL, array)
    assert held is array
    for column, origin in ((0, 1), (3, 0), (4, 2), (5, 3)):
        assert column_address(head, column) == array.ctypes.data + 8 * n * origin
    assert column_address(head, 1) == buf.ctypes.data and len(buf) == n
    assert not stored(head, 2) and head[5 + 3 * 2] == 7
    assert read(head).tolist() == [
        array[1].tolist(),
        (array[0] + array[1]).tolist(),
        [7] * n,
        *array[[0, 2, 3]].tolist(),
    ]


def test_a_projection_touches_no_row() -> None:
    array, source = table(10)
    (_, buf), head = program(b, lit("x"), b).run(source, 2, 1, 1, NULL, array)
    assert len(buf) == 0
    assert column_address(head, 0) == column_address(head, 2) == array.ctypes.data + 8 * 10
    assert head[5 + 3] == HERE.word("x")


def test_a_filtered_result_does_not_hold_the_input() -> None:
    array, source = table(10)
    keep, head = program(a, b, where=a % 2 == 0).run(source, 2, 1, 1, NULL, array)
    assert isinstance(keep, np.ndarray) and len(keep) == 20
    assert read(head).tolist() == array[:, ::2].tolist()


def test_equal_outputs_are_one_column() -> None:
    array, source = table(10)
    (_, buf), head = program(a + b, b, a + b).run(source, 2, 1, 1, NULL, array)
    assert column_address(head, 0) == column_address(head, 2) and len(buf) == 10


@pytest.mark.parametrize("n", [0, 1, 2, 3000])
@pytest.mark.parametrize("where", [a < 0, a.is_null(), lit(False), lit(None), a == lit(None)])
def test_a_filter_that_selects_nothing_gives_no_rows(n: int, where: Expr) -> None:
    array, source = table(n)
    keep, head = program(a, a + 1, lit(3), where=where).run(source, 2, 1, 1, 0, array)
    assert head[0] == 0 and head[2] == 5 and read(head).shape == (5, 0)
    assert isinstance(keep, np.ndarray) and len(keep) == 0


def test_no_rows_give_no_rows() -> None:
    array, source = table(0)
    for where in (None, a > 0):
        _, head = program(a, a + b, where=where).run(source, 2, 1, 1, 5, array)
        assert read(head).shape == (4, 0)


def test_a_single_row_needs_no_memory() -> None:
    array, source = table(5)
    keep, head = program(a, a + b, where=a == 3).run(source, 2, 1, 1, NULL, array)
    assert len(keep) == 0 and read(head).tolist() == [[3], [3 + 8], [13], [18]]
    assert not any(stored(head, column) for column in range(4))


def constant_source(array: np.ndarray, head: np.ndarray) -> np.ndarray:
    """The same rows with column b the constant 100 and the epoch the constant 4."""
    return select_columns(int(head[1]), np.array([4, 0, -2, -1, 3, 100, 4], np.int64))


def test_constant_columns_stay_constant() -> None:
    array, _ = table(3000)
    head = constant_source(array, table.head)  # type: ignore[attr-defined]
    run = program(a + b, b, b * 2 + 1, when(b > 5, b), where=a % 3 == 0).run
    keep, out = run(int(head[1]), 2, 1, 1, 9, array)
    assert [stored(out, column) for column in range(6)] == [True, False, False, False, False, True]
    assert [int(out[5 + 3 * column]) for column in (1, 2, 3, 4)] == [100, 201, 100, 9]
    assert len(keep) == 2 * 1000
    assert read(out)[[0, 5]].tolist() == [(array[0, ::3] + 100).tolist(), array[3, ::3].tolist()]


def test_a_filter_on_constant_columns_is_all_or_nothing() -> None:
    array, _ = table(3000)
    head = constant_source(array, table.head)  # type: ignore[attr-defined]
    (_, buf), out = program(a, b + 1, where=b == 100).run(int(head[1]), 2, 1, 1, NULL, array)
    assert column_address(out, 0) == array.ctypes.data and len(buf) == 0 and out[5 + 3] == 101
    _, out = program(a, b + 1, where=b != 100).run(int(head[1]), 2, 1, 1, NULL, array)
    assert out[0] == 0


@pytest.mark.parametrize("where", [None, a >= 0, a % 2 == 0])
@pytest.mark.parametrize("outputs", [(a,), (a + 1, b)])
def test_epochs_are_clamped_and_shared_only_if_none_is_earlier(where: Expr | None, outputs: tuple[Expr, ...]) -> None:
    array, source = table(10)  # epochs 20 .. 29
    for lo in (NULL, 20, 25, 99):
        _, head = program(*outputs, where=where).run(source, 2, 1, 1, lo, array)
        kept = array[2, ::2] if where is not None and str(where) == "a % 2 == 0" else array[2]
        assert read(head)[len(outputs)].tolist() == np.maximum(kept, lo).tolist()
        shared = column_address(head, len(outputs)) == array.ctypes.data + 8 * 20
        assert shared == (len(kept) == 10 and lo <= 20)
    assert array[2].tolist() == list(range(20, 30))


def test_any_number_of_times_and_diffs() -> None:
    array = np.arange(7 * 6, dtype=np.int64).reshape(7, 6)
    head = head_of_array(array, 6)
    for where in (None, a % 2 == 1):
        _, out = program(a + 1, where=where).run(int(head[1]), 2, 3, 2, 14, array)
        kept = array if where is None else array[:, 1::2]
        expected = [kept[0] + 1, np.maximum(kept[2], 14), *kept[3:]]
        assert read(out).tolist() == [column.tolist() for column in expected]


def test_a_value_of_the_filter_is_an_output_too() -> None:
    array, source = table(5000)
    part = a % 7
    _, head = program(part, part + 1, part == 3, where=(part > 2) & (part < 5)).run(source, 2, 1, 1, NULL, array)
    rest = array[0] % 7
    rest = rest[(rest > 2) & (rest < 5)]
    assert read(head)[:3].tolist() == [rest.tolist(), (rest + 1).tolist(), (rest == 3).astype(int).tolist()]


def test_several_threads_run_one_program() -> None:
    dictionary = TextDictionary()
    texts = [f"text {n % 997}" for n in range(4000)]
    parts = [Rows({"s": String, "n": Int}, [(text, n) for n, text in enumerate(texts[k:] + texts[:k])], dictionary)
             for k in range(4)]  # fmt: skip
    runner = parts[0].compile([col("s").upper(), col("n") * 3], col("s").like("%7%") & (col("n") % 2 == 0))
    alone = parts[0].compile([col("s").upper(), col("n") * 3], col("s").like("%7%") & (col("n") % 2 == 0))
    results = [alone.run(int(part.head[1]), 2, 1, 1, NULL, part.array) for part in parts]
    expected = [read(head).tolist() for _, head in results]
    wrong: list[Any] = []

    def work(k: int) -> None:
        for _ in range(20):
            keep, head = runner.run(int(parts[k].head[1]), 2, 1, 1, NULL, parts[k].array)
            if read(head).tolist() != expected[k]:
                wrong.append(k)
            del keep

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_leaves_no_program_a_table_that_is_gone(error: type[BaseException]) -> None:
    texts = [("x" * n,) for n in range(50)]
    wanted = [(n,) for n in range(50)]
    function = TextFunction("length", (None,), (String,), Int)

    def in_use() -> tuple[Memo, Rows, RowProgram]:
        source = Rows({"s": String}, texts, TextDictionary())
        program = source.compile([col("s").length()])
        assert rows_of(program, source) == wanted
        return memo_for(function, source.dictionary), source, program

    def rows_of(program: RowProgram, source: Rows) -> list[tuple[int, ...]]:
        _, head = program.run(int(source.head[1]), 1, 1, 1, NULL, source.array)
        return [(n,) for n in read(head)[0].tolist()]

    injector = Injector(("expr/text.py",))
    memo, *_ = in_use()
    injector.call(memo.forget)
    assert injector.lines > 5
    for at in range(1, injector.lines + 1):
        memo, source, program = in_use()
        assert injector.call(memo.forget, at, error)
        for _ in range(2):
            assert rows_of(program, source) == wanted, injector.where
            assert int(memo.cell[0]) == memo._tables[-1].ctypes.data, injector.where


def test_a_memo_is_read_while_it_grows() -> None:
    dictionary = TextDictionary()
    function = TextFunction("length", (None,), (String,), Int)
    memo = memo_for(function, dictionary)
    source = Rows({"s": String}, [("x" * (n % 50),) for n in range(2000)], dictionary)
    runner = source.compile([col("s").length()])
    assert runner._memos == (memo,)
    stop, has_read = threading.Event(), threading.Semaphore(0)
    failures: list[str] = []

    def read_on() -> None:
        while not stop.is_set():
            _, head = runner.run(int(source.head[1]), 1, 1, 1, NULL, source.array)
            if read(head)[0].tolist() != [n % 50 for n in range(2000)]:
                failures.append("wrong")
            has_read.release()

    readers = [threading.Thread(target=read_on) for _ in range(2)]
    for reader in readers:
        reader.start()
        assert has_read.acquire(timeout=PATIENCE)
    for k in range(60):
        words = np.array([[dictionary.word(f"{k} {n}") for n in range(200)]], np.int64)
        memo.learn(words, dictionary)
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures and len(memo) == 50 + 60 * 200
    assert len(memo._tables) == 1  # those that it outgrew went with their last reader


def test_dates_of_all_eras_agree_with_python() -> None:
    days = [datetime.date.fromordinal(n) for n in range(1, 3652059, 1777)]
    source = Rows({"d": Date}, [(day,) for day in days], TextDictionary())
    d = col("d")
    got = source.run(
        [d.year(), d.month(), d.day(), d.weekday(), d.truncate("month"), d.add_months(1).add_months(-1).year()]
    )
    assert [row[:5] for row in got] == [(x.year, x.month, x.day, x.weekday(), x.replace(day=1)) for x in days]
