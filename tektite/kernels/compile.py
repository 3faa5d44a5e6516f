"""The decorator that declares a kernel, and the registry of kernels.

A kernel declares the one signature that it is ever called with. It takes and returns 64-bit integers and C-contiguous arrays of
them, with one or two dimensions; it may return a tuple. Where kernels are run, the decorator gives a function that checks its
arguments against the signature and calls machine code, which `tektite.kernels.ready` looks up when it is first needed. Where
kernels are built (see `tektite.kernels.toolchain`) it gives what Numba compiles.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tektite.kernels.content import module_name
from tektite.kernels.toolchain import BUILD_FOR, compiled, inlined, inner

__all__ = ["KERNELS", "Kernel", "inlined", "inner", "kernel", "kinds"]

_LETTERS = {"int64": "i", "int64[::1]": "v", "int64[:, ::1]": "m", "int64[:,::1]": "m"}
_TYPE = re.compile(r"int64(?:\[:, ?::1\]|\[::1\])?")


@dataclass
class Kernel:
    """A kernel that some module declared."""

    module: str
    name: str
    signature: str
    function: Any

    @property
    def symbol(self) -> str:
        """What its machine code is called in the library of its module."""
        return f"kernel_{self.name}"


KERNELS: list[Kernel] = []
"""Every kernel of the modules imported so far."""


def kinds(signature: str) -> tuple[str, str, bool]:
    """The kinds of the arguments and of the results that a signature declares, a letter each, and whether it returns a tuple.

    >>> kinds("Tuple((int64[::1], int64))(int64, int64[:, ::1])")
    ('im', 'vi', True)
    """
    returned, _, arguments = signature.rstrip(")").rpartition("(")
    several = returned.startswith("Tuple((")
    letters = ["".join(_LETTERS[kind] for kind in _TYPE.findall(part)) for part in (arguments, returned)]
    rest = _TYPE.sub("", signature).translate(str.maketrans("", "", "(), "))
    if rest not in ("", "Tuple", "void") or (rest == "void") != (not letters[1]):
        raise TypeError(f"a kernel takes and returns int64 and contiguous arrays of them, not {signature}")
    return letters[0], letters[1], several


def kernel(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function as a kernel: compiled for `signature` alone, run without the GIL."""

    def wrap(function: Callable[..., Any]) -> Any:
        module = module_name(function.__module__)
        if BUILD_FOR:
            made = compiled(function)
        else:
            from tektite.kernels.ready import define

            made = define(module, function.__name__, *kinds(signature))
        KERNELS.append(Kernel(module, function.__name__, signature, made))
        return made

    return wrap
