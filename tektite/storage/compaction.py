"""Chooses stored batches to merge, and merges them. The number of live batches stays logarithmic in the rows.

Levels grow by factors of FAN, from 64 rows on. From the newest batch to the oldest, a batch counts at least as high as those
after it. FAN neighbours of one level are merged. So an (arrangement, shard) at rest has fewer than FAN live batches a level,
and each row is written about log(rows) / log(FAN) times, and up to FAN times more while it is among the first 64. A spine in
memory merges by twos, since readers go through its batches at every epoch. Files are read at a start only, so they are
rewritten less often.
"""

from __future__ import annotations

from collections.abc import Sequence

from tektite.storage.batchfile import BatchSection, TextSection
from tektite.storage.files import Files
from tektite.storage.manifest import Live, ManifestState
from tektite.trace.merge import merge_all
from tektite.trace.times import Frontier

FAN = 8
LOFTY = 64
"""A level that no batch reaches."""


def level(rows: int) -> int:
    """The level of a batch with so many rows.

    >>> [level(rows) for rows in (0, 63, 64, 511, 512, 10**6)]
    [0, 0, 1, 1, 2, 5]
    """
    return max((rows >> 3).bit_length() - 1, 0) // 3


def due_run(rows: Sequence[int]) -> tuple[int, int] | None:
    """The neighbours to merge, as a range of positions, given the rows of each batch from oldest to newest.

    >>> due_run([10_000] + 7 * [1]), due_run([10_000] + 9 * [1]), due_run(4 * [1] + [500] + 3 * [100])
    (None, (1, 10), (0, 8))
    """
    stop, highest = len(rows), 0
    for first in reversed(range(-1, len(rows))):
        height = level(rows[first]) if first >= 0 else LOFTY
        if height > highest:
            if stop - first > FAN:
                return first + 1, stop
            stop, highest = first + 1, height
    return None


def last_epoch(state: ManifestState, arrangement: str) -> int:
    """The last durable epoch of an arrangement: no reader of the files asks for earlier ones."""
    return max(state.lows.get(arrangement, 0) - 1, 0)


def holds_history(state: ManifestState, lives: Sequence[Live]) -> bool:
    """Whether rows of batches of one arrangement and shard may cancel once they are merged, or one of them is rewritten: there
    are several, or a single one that distinguishes epochs that no reader asks for, because they were written together.
    """
    if len(lives) != 1:
        return len(lives) > 1
    section = lives[0].section
    if section.shape[1] != 1:
        return False
    first = max([time[0] for frontier in (section.lower, section.since) for time in frontier], default=0)
    last = min([time[0] - 1 for time in section.upper], default=first)
    return first < min(last, last_epoch(state, section.arrangement))


def merged_section(files: Files, state: ManifestState, inputs: Sequence[Live]) -> BatchSection | TextSection:
    """The section that replaces neighbouring live sections of one arrangement and shard, or some sections of texts."""
    first = inputs[0].section
    if first.kind == "texts":
        return TextSection.joined(files.open(state.files[live.file]).texts(live.index) for live in inputs)
    since: Frontier = ((last_epoch(state, first.arrangement),),) if first.shape[1] == 1 else ()
    batch = merge_all([files.batch(state, live) for live in inputs], first.shape, since, files.memory)
    return BatchSection(first.arrangement, first.shard, first.shape, batch)
