"""The end of an engine: what feeds it stops, closed epochs become durable, and everything is let go of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tektite.errors import ConflictError, FaultError
from tektite.storage.open_storage import OpenStorage

if TYPE_CHECKING:
    from tektite.engine.engine_core import EngineCore


def close(core: EngineCore, discard: bool = False) -> None:
    """Stop what feeds the engine, make every closed epoch durable, and drop everything; see `Engine.close`."""
    core.lock.check_process()
    try:
        while core.hooks.on_close:
            try:
                core.hooks.on_close[0]()
            finally:
                core.hooks.on_close.pop(0)
    except Exception:
        _end(core, discard)  # what feeds the engine has failed to stop: it ends all the same
        raise
    try:
        if core.storage is not None and not core.is_closed and not discard:
            _make_durable(core, core.storage)
    except ConflictError:
        _end(core)  # another engine has the storage: nothing more can be written
        raise
    _end(core, discard)


def _make_durable(core: EngineCore, storage: OpenStorage) -> None:
    """Make every closed epoch durable, or say that the engine stays open because that is impossible."""
    if core.lock.is_usable:
        with core.lock.held:
            core.lock.roll_forward()
    try:
        storage.writer.sync()
    except FaultError as error:
        if storage.writer.is_stopped:
            _end(core)
            raise
        raise FaultError(
            f"{error}. The engine stays open: make room and close it again, or give these epochs up by close(discard=True)"
        ) from error


def _end(core: EngineCore, discard: bool = False) -> None:
    """Let go of everything. May be repeated."""
    with core.lock.held:
        core.is_closed = True
        for view in reversed(list(core.views.values())):
            view.release()
        for table in core.inputs.values():
            table.end_feeds()
        for flow in reversed(list(core.coordinator.flows)):
            core.coordinator.remove(flow)
        core.views.clear()
        core.coordinator.executor.close()
    core.texts.close()
    if core.storage is not None:
        core.storage.close(discard)
