"""Raises an exception at the n-th line of Tektite that a call executes, as an interrupt or a lack of memory would."""

from __future__ import annotations

import dis
import functools
import sys
import threading
from collections.abc import Callable
from contextlib import _GeneratorContextManager
from types import CodeType, FrameType
from typing import Any

import tektite

_ROOT = tektite.__path__[0]
_ENTER: CodeType = _GeneratorContextManager.__enter__.__code__
_EXIT: CodeType = _GeneratorContextManager.__exit__.__code__


class Injector:
    """Counts the lines of the package that the calling thread executes in `call`, and raises at one of them.

    Lines in `only`, paths inside the package, are counted; all, if there are none. Behind the first part of a function that is a
    context manager, and before its last, there are two more points: an interrupt may come there, before the `with` statement
    knows of the block, and when the block is over. What was raised is kept, as an interactive Python does, so that its frames
    stay.
    """

    def __init__(self, only: tuple[str, ...] = ()) -> None:
        self._only = only
        self.lines = 0
        self.where = ""
        self.raised: BaseException | None = None

    def call(
        self, function: Callable[[], Any], at: int | None = None, error: type[BaseException] | None = None
    ) -> bool:
        """Call a function, raising `error` at line number `at`, from 1 on; whether that line was reached."""
        self.lines = 0
        self.raised = None
        reached = False

        def pass_point(frame: FrameType) -> None:
            nonlocal reached
            self.lines += 1
            if self.lines == at:
                reached = True
                self.where = f"{frame.f_code.co_filename.removeprefix(_ROOT)}:{frame.f_lineno}"
                assert error is not None
                raise error("injected")

        def trace_line(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line" and frame.f_lasti not in _ends_of_with(frame.f_code):
                pass_point(frame)
            return trace_line

        def trace_enter(frame: FrameType, event: str, value: Any) -> Any:
            if event == "return" and sys.exc_info()[0] is None and frame.f_back is not None:
                pass_point(frame.f_back)
            return trace_enter

        def is_counted(frame: FrameType | None) -> bool:
            name = "" if frame is None else frame.f_code.co_filename
            return name.startswith(_ROOT) and (not self._only or name[len(_ROOT) + 1 :].startswith(self._only))

        def trace_call(frame: FrameType, event: str, _: Any) -> Any:
            if frame.f_code is _ENTER and is_counted(frame.f_back):
                return trace_enter
            if frame.f_code is _EXIT and is_counted(frame.f_locals["self"].gen.gi_frame):
                pass_point(frame)
            return trace_line if is_counted(frame) else None

        before = sys.gettrace()
        assert threading.current_thread() is threading.main_thread()
        sys.settrace(trace_call)
        try:
            function()
        except BaseException as found:
            if not (reached and error is not None and _stems_from(found, error)):
                raise
            self.raised = found
        finally:
            sys.settrace(before)
        return reached


@functools.cache
def _ends_of_with(code: CodeType) -> frozenset[int]:
    """Where the end of a `with` block calls `__exit__`. Tracing shows these as lines of their own, but no interrupt comes there:
    CPython looks for signals behind calls and jumps backwards, and does not allocate memory.
    """
    instructions = list(dis.get_instructions(code))
    found = set[int]()
    for at in range(len(instructions) - 2):
        if all(each.opname == "LOAD_CONST" and each.argval is None for each in instructions[at : at + 3]):
            found.add(instructions[at].offset)
            if at and instructions[at - 1].opname == "SWAP":  # a value that is returned goes below what is called
                found.add(instructions[at - 1].offset)
    return frozenset(found)


def _stems_from(found: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an exception is an injected one, or was raised because of it."""
    while found is not None:
        if isinstance(found, kind) or "injected" in str(found):
            return True
        found = found.__cause__ or found.__context__
    return False
