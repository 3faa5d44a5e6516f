"""Whole numbers and truth values that callers pass: those of Python and of NumPy alike, and nothing that is merely like one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tektite.errors import IncorrectError


def whole_number(value: object, least: int | None = None) -> int | None:
    """An integer of Python or NumPy, as one of Python's; None for anything else, such as a truth value, and for what is below
    `least`.

    >>> import numpy as np
    >>> whole_number(3), whole_number(np.int32(3)), whole_number(3.0), whole_number(True), whole_number(-1, 0)
    (3, 3, None, None, None)
    """
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        return None
    found = int(value)
    return None if least is not None and found < least else found


def truth_value(value: Any, what: str) -> bool:
    """True or False as it was given. Raises for anything else: every text that is not empty would be taken for true.

    >>> truth_value("no", "autocommit")
    Traceback (most recent call last):
    tektite.errors.IncorrectError: autocommit is True or False, not 'no'
    """
    if not isinstance(value, bool | np.bool_):
        raise IncorrectError(f"{what} is True or False, not {value!r}")
    return bool(value)
