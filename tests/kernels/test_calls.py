"""Calls of kernels: arguments are checked against the signature, results are arrays of their own, errors are Python's."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

from tektite.kernels.compile import kinds
from tektite.kernels.layout.rows import copy_out, head_of_array, slice_rows
from tests.kernels.probes import parts_of, transposed, words_for

MATRIX = np.arange(6, dtype=np.int64).reshape(2, 3)


def test_integers_and_arrays_come_and_go() -> None:
    assert transposed(2, MATRIX).tolist() == [[0, 3, 0, 3], [1, 4, 1, 4], [2, 5, 2, 5]]
    assert parts_of(1, 2, 3) == (1, 6, 8, 16)


@pytest.mark.parametrize("number", [2, np.int64(2), np.uint8(2), True + True])
def test_every_integer_of_python_and_numpy_is_one(number: Any) -> None:
    assert transposed(number, MATRIX).shape == (3, 4)


@pytest.mark.parametrize(
    "array",
    [
        MATRIX.astype(np.int32),
        MATRIX.astype(np.uint64),
        MATRIX.astype(np.float64),
        MATRIX.astype(">i8"),
        MATRIX.T,
        MATRIX[:, :2],
        MATRIX[0],
        MATRIX.tolist(),
        None,
    ],
    ids=["int32", "uint64", "float64", "swapped", "transposed", "cut", "flat", "list", "none"],
)
def test_array_that_is_not_as_declared_is_refused(array: Any) -> None:
    with pytest.raises(
        TypeError, match="probes.transposed takes a contiguous int64 array of 2 dimensions as argument 2"
    ):
        transposed(1, array)


@pytest.mark.parametrize("number", [1.5, "1", None, MATRIX])
def test_number_that_is_no_integer_is_refused(number: Any) -> None:
    with pytest.raises(TypeError):
        transposed(number, MATRIX)


def test_integer_beyond_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError):
        transposed(2**63, MATRIX)


@pytest.mark.parametrize("arguments", [(), (1,), (1, MATRIX, 2)])
def test_wrong_number_of_arguments_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=f"takes 2 arguments, not {len(arguments)}"):
        transposed(*arguments)


def test_memory_that_there_is_not_is_an_error() -> None:
    with pytest.raises(MemoryError):
        words_for(2**58)


def test_result_lives_as_long_as_a_part_of_it_is_used() -> None:
    parts = [words_for(100_000)[10:20] for _ in range(100)]
    for number, part in enumerate(parts):
        part[:] = number
    gc.collect()
    assert [part.tolist() for part in parts] == [[number] * 10 for number in range(100)]


def test_results_are_freed() -> None:
    resource = pytest.importorskip("resource")
    words_for(1 << 20)[:] = 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        words_for(1 << 20)[:] = 1  # 8 MiB each
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


def test_read_only_arrays_can_be_read() -> None:
    frozen = MATRIX.copy()
    frozen.flags.writeable = False
    head = head_of_array(frozen, 3)
    out = np.empty((2, 3), np.int64)
    copy_out(int(head[1]), out)
    assert out.tolist() == MATRIX.tolist()


def test_threads_call_at_the_same_time() -> None:
    array = np.arange(200_000, dtype=np.int64).reshape(2, -1)  # a head keeps the address alone
    head = head_of_array(array, 100_000)
    wrong = []

    def work(start: int) -> None:
        for i in range(start, start + 300):
            part = slice_rows(int(head[1]), i, i + 10)
            out = np.empty((2, 10), np.int64)
            copy_out(int(part[1]), out)
            if out[0].tolist() != list(range(i, i + 10)):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("signature", "found"),
    [
        ("void(int64)", ("i", "", False)),
        ("int64(int64[::1], int64)", ("vi", "i", False)),
        ("int64[:, ::1]()", ("", "m", False)),
        ("Tuple((int64,))(int64[:,::1])", ("m", "i", True)),
        ("Tuple((int64[::1], int64, int64[:, ::1]))(int64, int64)", ("ii", "vim", True)),
    ],
)
def test_kinds_of_a_signature(signature: str, found: tuple[str, str, bool]) -> None:
    assert kinds(signature) == found


@pytest.mark.parametrize(
    "signature", ["float64(int64)", "int64(int64[:])", "void(int32)", "(int64)", "int64(UniTuple(int64, 2))"]
)
def test_signature_of_other_types_is_refused(signature: str) -> None:
    with pytest.raises(TypeError, match="takes and returns int64"):
        kinds(signature)
