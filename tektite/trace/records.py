"""Records: what `Batch`, `Spine`, `Handle` and `Trace` inherit from C, and the classes that are C as a whole.

A record has a fixed set of attributes and the methods that every small epoch calls; see native/traces.c. The class that is
derived from it has the others, and what those methods call where something rare is to be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.kernels.ready import calls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Self

    from tektite.trace.batch import Batch
    from tektite.trace.chunk import KernelRows
    from tektite.trace.times import Frontier
    from tektite.trace.trace import Handle, Trace
    from tektite.values.words import Words

    class BatchRecord(KernelRows):
        """Rows and their frontiers."""

        lower: Frontier
        upper: Frontier
        _since: Frontier | Words

        @classmethod
        def of(cls, rows: KernelRows, lower: Frontier, upper: Frontier, since: Frontier | Words) -> Self:
            """Rows that are sorted and consolidated, as a batch."""

        @classmethod
        def makes(cls) -> None:
            """Let C make batches of this class."""

    class Version:
        """A version of a trace, as a reader sees it: an immutable list of batches. `table` lists the addresses of their heads,
        oldest first.
        """

        batches: tuple[Batch, ...]
        table: Words

        def __init__(self, batches: tuple[Batch, ...]) -> None: ...

        @property
        def rows(self) -> int:
            """Rows of all batches."""

        @property
        def bytes(self) -> int:
            """Memory of all batches."""

    class SpineRecord:
        """The part of a spine that is written in C, for small batches."""

        @property
        def version(self) -> Version:
            """The current batches."""

        def insert(self, batch: Batch) -> None:
            """Append the batch that follows all others, and do its share of merging."""

        def append(self, batches: list[Batch]) -> None:
            """Append batches that follow all others. Appending the same ones again right away does nothing."""

        def make_room(self, rows: int) -> None:
            """Do the merging that a batch of this many rows pays for before it is appended. The contents stay."""

    class HandleRecord:
        """The queue of a handle."""

        @property
        def queued(self) -> int:
            """The rows of all batches that wait."""

        def waiting(self) -> bool:
            """Whether a batch waits in some queue."""

        def put(self, shard: int, batches: Sequence[Batch], version: Version) -> None:
            """Queue batches that are minted. `version` is what the shard holds before them."""

        def take(self, shard: int) -> tuple[Version, tuple[Batch, ...], Version]:
            """Consume the whole queue of a shard: (old, delta, new)."""

        def take_before(self, shard: int, epoch: int) -> tuple[Version, tuple[Batch, ...], Version]:
            """Consume exactly the updates before `epoch`, splitting queued batches that straddle it."""

    class Mint:
        """Batches of one shard that are ready to be minted. `version` is what the shard holds before them, and `routed` what of
        them guarded handles get, if there are some.
        """

        batches: list[Batch]
        routed: dict[Handle, list[Batch]]
        shard: int
        trace: Trace
        version: Version

        def apply(self) -> None:
            """Mint the batches. An exception may end this at any point: called again before anything else is minted, it does
            what is left.
            """

    class TraceRecord:
        """The part of a trace that is written in C: it appends batches."""

        def mint(self, shard: int, rows: KernelRows, upper: Frontier) -> None:
            """Append sorted, consolidated rows as the batch of all updates up to `upper`: to the queue of every handle, and to
            the spine if somebody reads versions.
            """

        def prepare(self, shard: int, chunks: list[Any], upper: Frontier) -> Mint:
            """Minting in two steps, for who may not fail half way: what can fail is done here, and `Mint.apply` does the rest.
            The chunks, none of them empty, are one batch each. Nothing else may be minted in between.
            """

        def settle(self, shard: int) -> None:
            """Do the merging that `Mint.apply` has left. Rows whose multiplicities do not add up to 64 bits stay apart, for
            whoever adds them up to report.
            """

        def version(self, shard: int) -> Version:
            """Everything minted so far, as far as it is kept."""

    EMPTY: Version
    NO_BATCHES: list[Batch]
else:
    BatchRecord = calls().BatchRecord
    Version = calls().Version
    SpineRecord = calls().SpineRecord
    HandleRecord = calls().HandleRecord
    Mint = calls().Mint
    TraceRecord = calls().TraceRecord
    EMPTY = calls().EMPTY
    """The version without batches."""
    NO_BATCHES = calls().NO_BATCHES
    """The queue of a shard for which nothing waits. Nobody adds to it."""
