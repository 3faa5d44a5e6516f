"""The place of an error, for programs: the line and column that its message says, in its details."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tektite.errors import TektiteError


@contextmanager
def placed(source: str) -> Iterator[None]:
    """Give errors of this block `line` and `column`, if their messages name a place in a source. `source` is a pattern.

    >>> with placed("program"):
    ...     raise TektiteError("rule 'p(x).' (program:2:1): variable 'x' in the head is not bound")
    Traceback (most recent call last):
    tektite.errors.TektiteError: rule 'p(x).' (program:2:1): variable 'x' in the head is not bound
    """
    try:
        yield
    except TektiteError as error:
        found = re.search(rf"(?:^|\(){source}:(\d+):(\d+)(?=[:)])", str(error), re.MULTILINE)
        if found is not None and "line" not in error.details:
            error.details.update(line=int(found[1]), column=int(found[2]))
        raise
