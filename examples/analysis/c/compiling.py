"""C sources to LLVM's textual representation, by clang. Without clang, .ll files that another machine made can be read.

clang emits what it would hand to its optimiser (`-O1 -disable-llvm-passes`), with line numbers. Any version whose text
llvmlite's LLVM reads will do: text of an older version is read by a newer one.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

# Debian calls the program by its version; newer first.
NAMES = ["clang", *(f"clang-{version}" for version in range(22, 13, -1))]
OPTIONS = ["-O1", "-Xclang", "-disable-llvm-passes", "-gline-tables-only", "-S", "-emit-llvm", "-w", "-o", "-"]


class CannotCompile(ValueError):
    """A source that does not compile, or no compiler."""


def find_clang() -> str | None:
    """The path of clang, if there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def llvm_text(path: Path, options: Sequence[str] = ()) -> str:
    """A source as LLVM's text. `options` are clang's, such as `-I` and `-D`."""
    if path.suffix == ".ll":
        return path.read_text(encoding="utf-8", errors="replace")
    clang = find_clang()
    if clang is None:
        raise CannotCompile(f"{path}: there is no clang. Install Debian's package clang, or give .ll files")
    done = subprocess.run([clang, *OPTIONS, *options, str(path)], capture_output=True, check=False)
    if done.returncode:
        raise CannotCompile(f"{path}: clang says {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace")
