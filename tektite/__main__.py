"""`python -m tektite` is the `tektite` command."""

from __future__ import annotations

from tektite.cli import main

if __name__ == "__main__":
    main()
