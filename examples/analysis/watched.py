"""An analysis of files that change: its rules, the facts of its files, and what changed since the files were last read.

`Analysis` knows nothing of a language. What it needs is a folder of rules and a function that gives the facts of some files,
unit by unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import tektite as tk
from examples.analysis.fact_base import FactBase, Facts

RULES = Path(__file__).parent / "rules"
Extract = Callable[[Sequence[Path]], Mapping[str, Facts]]


class Analysis:
    """Rules over the facts of some files."""

    def __init__(self, rules: str, extract: Extract, paths: Sequence[Path], workers: int = 1) -> None:
        self.engine = tk.Engine(workers)
        path = RULES / rules
        self.program = self.engine.datalog(path.read_text(encoding="utf-8"), source=str(path))
        self.extract, self.paths = extract, paths
        self.base = FactBase(self.engine)
        self.stamps: dict[Path, float] = {}

    def __enter__(self) -> Analysis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.close()

    def refresh(self) -> int:
        """Read the files if one of them changed. Gives the number of facts that changed; none if a file is unreadable."""
        stamps = {path: path.stat().st_mtime for given in self.paths for path in files(given)}
        if stamps == self.stamps:
            return 0
        units: dict[str, Facts | None] = dict(self.extract(self.paths))
        gone = {unit: None for unit in self.base.units if unit not in units}
        changed = self.base.replace(units | gone)
        self.stamps = stamps
        return changed

    def state(self, relation: str, rows: Sequence[tuple[str | int, ...]]) -> None:
        """Say facts that no file says, such as the sources and sinks of a taint analysis."""
        unit = f"stated {relation}"
        self.base.replace({unit: {relation: rows}})

    def ask(self, predicate: str) -> tk.View:
        """The view of a predicate, which is kept up to date from then on."""
        return self.program[predicate]


def files(path: Path) -> list[Path]:
    """A file, or the files of a folder."""
    return sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
