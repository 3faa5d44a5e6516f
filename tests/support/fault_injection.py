"""Raises an exception at the n-th line of Tektite that a call executes, as an interrupt or a lack of memory would."""

from __future__ import annotations

import dis
import functools
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import tektite

_ROOT = tektite.__path__[0]


class Injector:
    """Counts the lines of the package that the calling thread executes in `call`, and raises at one of them.

    Lines in `only`, paths inside the package, are counted; all, if there are none.
    """

    def __init__(self, only: tuple[str, ...] = ()) -> None:
        self._only = only
        self.lines = 0
        self.where = ""

    def call(
        self, function: Callable[[], Any], at: int | None = None, error: type[BaseException] | None = None
    ) -> bool:
        """Call a function, raising `error` at line number `at`, from 1 on; whether that line was reached."""
        self.lines = 0
        reached = False

        def trace_line(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal reached
            if event == "line" and frame.f_lasti not in _ends_of_with(frame.f_code):
                self.lines += 1
                if self.lines == at:
                    reached = True
                    self.where = f"{frame.f_code.co_filename.removeprefix(_ROOT)}:{frame.f_lineno}"
                    assert error is not None
                    raise error("injected")
            return trace_line

        def trace_call(frame: FrameType, event: str, _: Any) -> Any:
            name = frame.f_code.co_filename
            if not name.startswith(_ROOT) or (self._only and not name[len(_ROOT) + 1 :].startswith(self._only)):
                return None
            return trace_line

        before = sys.gettrace()
        assert threading.current_thread() is threading.main_thread()
        sys.settrace(trace_call)
        try:
            function()
        except BaseException as found:
            if not (reached and error is not None and _stems_from(found, error)):
                raise
        finally:
            sys.settrace(before)
        return reached


@functools.cache
def _ends_of_with(code: CodeType) -> frozenset[int]:
    """Where the end of a `with` block calls `__exit__`. Tracing shows these as lines of their own, but no interrupt comes there:
    CPython looks for signals behind calls and jumps backwards, and does not allocate memory.
    """
    instructions = list(dis.get_instructions(code))
    return frozenset(
        first.offset
        for first, second, third in zip(instructions, instructions[1:], instructions[2:], strict=False)
        if all(each.opname == "LOAD_CONST" and each.argval is None for each in (first, second, third))
    )


def _stems_from(found: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an exception is an injected one, or was raised because of it."""
    while found is not None:
        if isinstance(found, kind) or "injected" in str(found):
            return True
        found = found.__cause__ or found.__context__
    return False
