"""What a user is told of a Spark job that failed: what its task said, in a line, and not the traces of its stack."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tektite.errors import FaultError, TektiteError

_RAISED: Final = re.compile(r"(?!(org|java|scala|py4j)\.)[\w.]*(Error|Exception|Exit|Interrupt)\b")
"""A line that ends a Python traceback."""


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn the failure of a Spark job into an error that says in a line what the failed task said."""
    try:
        yield
    except TektiteError:
        raise
    except Exception as error:
        raise failed_job(what, error) from error


def failed_job(what: str, error: BaseException) -> FaultError:
    """What to tell a user of a Spark job that failed."""
    said = reason(error)
    if "ModuleNotFoundError" in said or "ImportError" in said or "Can't get attribute" in said:
        return FaultError(
            f"{what}: Spark's executors cannot load what the tasks need ({said}): install the same packages there, or "
            "send an environment along (spark.archives); tektite.spark.preflight(spark) says what each of them lacks"
        )
    return FaultError(f"{what}: Spark's job failed, and nothing counts: {said}")


def reason(error: BaseException) -> str:
    """The line of a Spark error that names what was raised in Python, or its last one.

    >>> reason(Exception("Job aborted\\n  File x, line 3\\nOSError: no space\\n\\tat org.apache.spark.Task\\n"))
    'OSError: no space'
    """
    if isinstance(error, TektiteError):
        return str(error)
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback", "..."))]
    told = [line for line in lines if _RAISED.match(line)] or [line for line in lines if "crashed" in line]
    return (told or lines or [type(error).__name__])[-1]
