"""`python -m tektite.kernels.warm` compiles every kernel that the cache lacks, and says how far it is.

Promise: when it ends, no later process on this machine compiles a kernel of these sources. Tests that run in
several processes call it first, because each of them would compile for itself otherwise. With `--help-out` it compiles beside
another process that does so, and ends when every kernel is there or being compiled.
"""

from __future__ import annotations

import sys

from tektite.kernels.compile import compile_what_nobody_compiles
from tektite.kernels.ready import ensure_compiled, import_kernels

if __name__ == "__main__":
    if sys.argv[1:] == ["--help-out"]:
        import_kernels()
        compile_what_nobody_compiles()
    else:
        ensure_compiled()
