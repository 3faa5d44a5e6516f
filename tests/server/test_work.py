"""Calls that are cancelled, and what they leave behind in Python: nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from tektite.server.work import CallCancelled, CancellableCall
from tests.support.patience import PATIENCE

TRACED = """
import sys, threading, time
from tektite.server.work import CallCancelled, CancellableCall

def wait():
    while True:
        time.sleep(0.001)

def cancelled():
    call = CancellableCall(wait)
    threading.Timer(0.05, call.cancel).start()
    try:
        call.run()
    except CallCancelled:
        pass

def run():
    for _ in range(100):
        CancellableCall(lambda: 1).run()
    {cancel}

thread = threading.Thread(target=run)
thread.start()
thread.join()
lines = []

def trace(frame, event, argument):
    lines.append(event)
    return trace

def traced():
    return 1

sys.settrace(trace)
traced()
sys.settrace(None)
print(lines)
"""


@pytest.mark.parametrize("cancel", ["", "cancelled()"], ids=["none", "one"])
def test_python_does_not_look_for_exceptions_after_calls(cancel: str) -> None:
    # Some versions of Python would look for ever, where a program is traced.
    ran = subprocess.run(
        [sys.executable, "-c", TRACED.format(cancel=cancel)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert ran.stdout == "['call', 'line', 'return']\n", ran.stderr


def test_a_cancel_that_comes_too_late_hits_no_other_call() -> None:
    ended: list[object] = []

    def work() -> None:
        for delay in range(300):
            begun = threading.Event()

            def function(begun: threading.Event = begun, delay: int = delay) -> int:
                begun.set()
                time.sleep(delay % 7 / 50_000)
                return 1

            call = CancellableCall(function)
            other = threading.Thread(target=lambda begun=begun, call=call: (begun.wait(), call.cancel()))
            other.start()
            try:
                ended.append(call.run())
            except CallCancelled:
                ended.append(None)
            other.join()
            ended.append(CancellableCall(lambda: 2).run())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE)
    assert ended[1::2] == [2] * 300 and {*ended[::2]} <= {1, None}
