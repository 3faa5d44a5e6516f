"""SpanExport: what an engine does, as spans of OpenTelemetry: epochs with their phases and sweeps, installations, and requests of
a server's clients.

The spans come from what system relations come from: the journal of epochs and sweeps, and hooks. Epochs that only update system
relations have none. The package `opentelemetry-api` is needed, and a provider that an exporter hears (`opentelemetry-sdk`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tektite.dataflow.journal import PHASES, ClosedEpoch, Sweep
from tektite.engine.hooks import Installation, ServedRequest
from tektite.errors import UnsupportedError

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanKind, TracerProvider

    from tektite.engine.engine_core import EngineCore

WAITING = 256
"""Sweeps that may wait for the epoch or the installation that they belong to."""


class SpanExport:
    """The spans of one engine, until `stop`. Made by `Engine.export_spans`.

    >>> import tektite as tk
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> engine = tk.Engine()
    >>> type(engine.export_spans(TracerProvider())).__name__
    'SpanExport'
    """

    def __init__(self, core: EngineCore, provider: TracerProvider | None) -> None:
        try:
            from opentelemetry import trace
        except ImportError:
            raise UnsupportedError(
                "spans need the package opentelemetry-api: pip install 'tektite[opentelemetry]'"
            ) from None
        self._trace = trace
        self._core = core
        self._tracer = (provider or trace.get_tracer_provider()).get_tracer("tektite")
        self._sweeps: list[tuple[Sweep, float]] = []
        """Sweeps that have ended since the last epoch or installation, and when they began, in seconds since 1970."""
        with core.lock.held:
            journal = core.coordinator.journal
            journal.notes_epochs = True
            self._heard: list[tuple[list[Any], Any]] = [
                (journal.epoch_listeners, self._closed), (journal.listeners, self._swept),
                (core.hooks.installed, self._installed), (core.hooks.requested, self._requested),
            ]  # fmt: skip
            for listeners, listener in self._heard:
                listeners.append(listener)
        core.hooks.on_close.append(self.stop)

    def stop(self) -> None:
        """Export no more. May be repeated.

        >>> import tektite as tk
        >>> from opentelemetry.sdk.trace import TracerProvider
        >>> engine = tk.Engine()
        >>> spans = engine.export_spans(TracerProvider())
        >>> spans.stop()
        """
        with self._core.lock.held:
            for listeners, listener in self._heard:
                if listener in listeners:
                    listeners.remove(listener)
            journal = self._core.coordinator.journal
            journal.notes_epochs = bool(journal.epoch_listeners) or self._core.system.needs_epochs()

    def _swept(self, sweep: Sweep) -> None:
        if self._core.system.is_refreshing:
            return
        if len(self._sweeps) >= WAITING:
            self._give_sweeps(None)
        self._sweeps.append((sweep, time.time() - sweep.seconds))

    def _closed(self, closed: ClosedEpoch) -> None:
        about = {"tektite.epoch": closed.epoch, "tektite.rows": closed.rows}
        whole = self._begun("epoch", closed.at, about)
        at = closed.at
        for phase in PHASES:
            if phase in closed.phases:
                part = self._begun(f"epoch.{phase}", at, {"tektite.epoch": closed.epoch}, whole)
                if phase == "sweep":
                    self._give_sweeps(part)
                at += closed.phases[phase]
                part.end(_nanoseconds(at))
        whole.end(_nanoseconds(at))

    def _installed(self, made: Installation) -> None:
        span = self._begun("install", made.at, {"tektite.view": made.name})
        self._give_sweeps(span)
        span.end(_nanoseconds(made.at + made.seconds))

    def _requested(self, request: ServedRequest) -> None:
        words = request.text.split(None, 1)
        about = {
            "db.system.name": "tektite", "db.query.text": request.text, "user.name": request.user_name,
            "network.protocol.name": request.protocol, "client.address": request.address,
        }  # fmt: skip
        span = self._begun(
            f"request {words[0].upper() if words else ''}".strip(), request.at, about, None, self._trace.SpanKind.SERVER
        )
        if request.error is not None:
            span.set_status(self._trace.StatusCode.ERROR, request.error)
        span.end(_nanoseconds(request.at + request.seconds))

    def _give_sweeps(self, parent: Span | None) -> None:
        """Make spans of the sweeps that wait, below another one."""
        waiting, self._sweeps = self._sweeps, []
        for sweep, at in waiting:
            about: dict[str, str | int] = {
                "tektite.dataflow": sweep.name, "tektite.rows": sweep.rows, "tektite.from_epoch": sweep.first,
                "tektite.to_epoch": sweep.time, "tektite.place": sweep.where,
            }  # fmt: skip
            self._begun("sweep", at, about, parent).end(_nanoseconds(at + sweep.seconds))

    def _begun(
        self,
        name: str,
        at: float,
        about: Mapping[str, str | int],
        parent: Span | None = None,
        kind: SpanKind | None = None,
    ) -> Span:
        context = None if parent is None else self._trace.set_span_in_context(parent)
        chosen = kind or self._trace.SpanKind.INTERNAL
        return self._tracer.start_span(name, context, chosen, attributes=about, start_time=_nanoseconds(at))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
