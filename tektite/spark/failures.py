"""Turns the failure of a Spark job into a one-line message: what its task said, without stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tektite.errors import (
    ConflictError,
    FaultError,
    FunctionError,
    IncorrectError,
    NotFoundError,
    TektiteError,
    UnsupportedError,
    public_name,
)

_RAISED: Final = re.compile(r"(?!(org|java|scala|py4j)\.)[\w.]*(Error|Exception|Exit|Interrupt)\b")
"""A line that ends a Python traceback."""

_CONDITION: Final = re.compile(r"(?:Caused by: )?(?:[\w.$]+: )?(\[[A-Z][A-Z0-9_.]+\] .*)")
"""A line that names one of Spark's own error conditions, such as [CAST_INVALID_INPUT]."""

_WRAPPING: Final = re.compile(
    r"\[(STREAM_FAILED|FAILED_READ_FILE|FOREACH_BATCH_USER_FUNCTION_ERROR|TASK_WRITE_FAILED)\b"
)
"""Conditions that say only where something failed."""

_KINDS: Final = {
    kind.__name__: kind
    for kind in (IncorrectError, NotFoundError, ConflictError, UnsupportedError, FaultError, FunctionError)
}

FAILED: Final = "Spark's job failed, and nothing counts: "


@contextmanager
def explained(what: str, failed: str = FAILED) -> Iterator[None]:
    """Turn a failure in Spark into an error that says what went wrong, in one line."""
    try:
        yield
    except TektiteError:
        raise
    except Exception as error:
        raise failed_job(what, error, failed) from error


def error_text(error: TektiteError, where: str = "") -> str:
    """An error in the form in which a task reports it to the driver. It raises nothing: Spark would run the task again.

    >>> error_from_text(error_text(ConflictError("two rows"), " (partition 3)"), "table 't'")
    ConflictError("table 't': two rows (partition 3)")
    """
    return f"{public_name(error)}: {error}{where}"


def error_from_text(text: str, what: str = "") -> TektiteError:
    """The inverse of `error_text`."""
    kind, _, message = text.partition(": ")
    return _KINDS.get(kind, FaultError)(message if what in message else f"{what}: {message}")


def failed_job(what: str, error: BaseException, failed: str = FAILED) -> FaultError:
    """The error for a failed Spark job."""
    said = reason(error)
    if "ModuleNotFoundError" in said or "ImportError" in said or "Can't get attribute" in said:
        return FaultError(
            f"{what}: Spark's executors cannot load what the tasks need ({said}): install the same packages there, or "
            "send an environment along (spark.archives); tektite.spark.preflight(spark) says what each of them lacks"
        )
    return FaultError(f"{what}: {failed}{said}")


def reason(error: BaseException) -> str:
    """The line of a Spark error that names the Python exception, or Spark's own error condition, or its last line.

    >>> reason(Exception("Job aborted\\n  File x, line 3\\nOSError: no space\\n\\tat org.apache.spark.Task\\n"))
    'OSError: no space'
    >>> reason(Exception("[CAST_INVALID_INPUT] The value 'x' is malformed.\\n== SQL (line 1) ==\\nselect cast(s\\n   ^^^^"))
    "[CAST_INVALID_INPUT] The value 'x' is malformed."
    """
    if isinstance(error, TektiteError):
        return str(error)
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("at ", "File ", "Traceback", "..."))]
    told = [line for line in lines if _RAISED.match(line)] or [line for line in lines if "crashed" in line]
    named = [
        found.group(1) for line in lines if (found := _CONDITION.match(line)) and not _WRAPPING.match(found.group(1))
    ]
    caused = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return (told or named[-1:] or caused or lines or [type(error).__name__])[-1]
