"""`core_of`: from what users hold to what the rest of Tektite works with.

`Engine`, `Table` and `View` have the methods that docs/reference.md documents, and no others. Whatever languages, loads,
executors and tests need beyond that is on their cores, which are internal and documented where they are defined:

========  ====================================  ==========================================================
users     core                                  what the core is for
========  ====================================  ==========================================================
Engine    `tektite.engine.engine_core`          inputs, views, catalog, lock, storage, closing epochs, hooks
Table     `tektite.engine.input_core`           declaration, pending updates, the input's part in closing epochs
View      `tektite.engine.view_core`            definition, dataflow, trace, reading
========  ====================================  ==========================================================

A core's names without underscore are for the whole package; its others are its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from tektite.engine.engine import Engine
    from tektite.engine.engine_core import EngineCore
    from tektite.engine.input_core import InputCore
    from tektite.engine.routing import RoutedAnswer
    from tektite.engine.table import Table
    from tektite.engine.view import View
    from tektite.engine.view_core import ViewCore

HIDDEN_PREFIX = "__"
"""Begins the names of inputs and views that languages need for themselves."""


@overload
def core_of(facade: Engine) -> EngineCore: ...
@overload
def core_of(facade: Table) -> InputCore: ...
@overload
def core_of(facade: View) -> ViewCore: ...
@overload
def core_of(facade: RoutedAnswer) -> ViewCore: ...
@overload
def core_of(facade: Table | View | RoutedAnswer) -> InputCore | ViewCore: ...
def core_of(facade: Any) -> Any:
    """The core of an engine, an input or a view.

    >>> import tektite as tk
    >>> engine = tk.Engine()
    >>> edges = engine.create_table("edges", {"src": tk.Int, "dst": tk.Int})
    >>> core_of(edges).trace.rows
    0
    """
    return facade._core
