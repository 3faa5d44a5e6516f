"""Succession: a dataflow continues the results of another one, which computes the same by another graph.

Promise: whoever reads, follows or holds a result notices nothing. The result's trace stays, with all its history, handles and
holds; from the switch on, another graph appends to it. That is exact, because both dataflows have answered the same epochs, and
their results are equal as of the last of these: what the successor emits from then on are the changes of what the trace holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from tektite.dataflow.errors import EVER, ErrorSource
from tektite.dataflow.flow import Dataflow


def after_switch(
    former: Sequence[tuple[ErrorSource, ...]], errors: Sequence[tuple[ErrorSource, ...]], epoch: int
) -> list[tuple[ErrorSource, ...]]:
    """The errors that results depend on: those of a former graph up to an epoch, then those of another one."""
    return [
        (*before, *(source.within(epoch, EVER) for source in after)) if before else after
        for before, after in zip(former, errors, strict=True)
    ]


class Succession:
    """The switch from one dataflow to another. Making it prepares the switch, and changes nothing for the old dataflow."""

    def __init__(self, old: Dataflow, new: Dataflow) -> None:
        """Neither dataflow runs, and both have answered the epochs before `old.low`."""
        self.old = old
        self.new = new
        self.epoch = old.low
        self._traces = list(zip(new.results, old.results, strict=True))
        for _, shown in self._traces:
            shown.keep_batches()  # what the old graph would compute them from goes with it
        self._swept, self._failed = old.on_swept, old.on_failed
        self._outlets = old.outlets
        self._nodes = [node for scope in new.root.scopes() for node in scope.nodes]
        own = {id(trace): kept for trace, kept in self._traces if trace is not kept}
        self._moved = [
            (reader, reader.handle_on(own[id(reader.trace)]))
            for node in self._nodes
            for reader in node.reads
            if id(reader.trace) in own
        ]
        kept = [trace for trace in new.traces if id(trace) not in own]
        self._kept = [*kept, *dict.fromkeys(own.values())]
        self._former = [self._still_readable(errors) for errors in old.result_errors]
        self._errors = after_switch(self._former, new.result_errors, self.epoch)

    @staticmethod
    def is_ready(old: Dataflow, new: Dataflow) -> bool:
        """Whether a dataflow has come as far as another one."""
        return new.swept and not new.running and not old.running and new.low == old.low

    def _still_readable(self, errors: tuple[ErrorSource, ...]) -> tuple[ErrorSource, ...]:
        """The errors of epochs before the switch that somebody can still read."""
        since = min([time[0] for trace in self.old.results for time in trace.since()], default=self.epoch)
        earlier = [source.within(0, self.epoch) for source in errors]
        return tuple([source for source in earlier if source.until > max(since, source.since)])

    def apply(self) -> None:
        """Make the switch. May be repeated."""
        old, new = self.old, self.new
        for own, kept in self._traces:
            for node in self._nodes:
                if node.mints is own:
                    node.mint_into(kept)
        for reader, handle in self._moved:
            reader.move(handle)
        new.traces = tuple(self._kept)
        new.results = tuple([kept for _, kept in self._traces])
        new.former_errors = tuple(self._former)
        new.result_errors = tuple(self._errors)
        new.hold_errors()
        new.sources = tuple([source for source in new.sources if source is not old])
        new.first = old.first
        new.limit = old.limit
        new.on_swept, new.on_failed = self._swept, self._failed
        for handle in self._outlets:
            handle.wake = new
        new.outlets = self._outlets
