"""The limit on a process's memory, and amounts of memory as users write them."""

from __future__ import annotations

import math
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from tektite.errors import IncorrectError

SHARE = 0.75
"""The share of what the process may use that an engine plans with, where nothing else is said."""

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    _UNITS |= {f"{_letter}b": 1000**_power, _letter: 1024**_power, f"{_letter}ib": 1024**_power}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def bytes_from(amount: object, what: str) -> int:
    """An amount of memory in bytes; `what` names it in errors.

    >>> bytes_from("1.5 GiB", "memory_limit"), bytes_from(4096, "limit"), bytes_from("2 MB", "limit")
    (1610612736, 4096, 2000000)
    """
    if isinstance(amount, str) and (found := _AMOUNT.fullmatch(amount)) and found[2].lower() in _UNITS:
        size = int(float(found[1]) * _UNITS[found[2].lower()])
    elif isinstance(amount, int) and not isinstance(amount, bool):
        size = amount
    else:
        raise IncorrectError(f"{what} is a number of bytes or a text such as '512 MiB', not {amount!r}")
    if size <= 0:
        raise IncorrectError(f"{what} is more than 0 bytes, not {amount!r}")
    return size


def default_limit() -> int | None:
    """The memory that an engine may use by default: a share of the least of the limits of the process's control groups, its
    resource limits and the machine's memory; None if none of them is known.
    """
    found = [*_group_limits(), *_resource_limits()]
    with suppress(AttributeError, ValueError, OSError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return int(min(found) * SHARE) if found else None


def _resource_limits() -> list[int]:
    if sys.platform == "win32":
        return []
    import resource

    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return [limit for limit in limits if 0 < limit < math.inf and limit != resource.RLIM_INFINITY]


def _group_limits() -> list[int]:
    """The limits of the control groups (of both versions) that the process is in, from its own up to the root."""
    found: list[int] = []
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, kinds, path = line.split(":", 2)
            if kinds not in ("", "memory"):
                continue
            root = Path("/sys/fs/cgroup", kinds)
            name = "memory.limit_in_bytes" if kinds else "memory.max"
            group = root / path.lstrip("/")
            while group.is_relative_to(root):
                with suppress(OSError, ValueError):
                    found.append(int((group / name).read_text()))
                if group == root:
                    break
                group = group.parent
    return found
