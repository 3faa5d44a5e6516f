"""`python -m tektite.kernels.warm` builds every kernel that the package and the cache lack, and says how far it is.

Promise: when it ends, no later process on this machine compiles a kernel of these sources. Tests that run in several processes
call it first, because each of them would wait for the others otherwise.
"""

from __future__ import annotations

from tektite.kernels.ready import ensure_compiled

if __name__ == "__main__":
    ensure_compiled()
