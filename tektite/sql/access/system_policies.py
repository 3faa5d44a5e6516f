"""Built-in policies of the system relations: the rows that users see of them.

Everybody may read these relations, which needs no grant and cannot be revoked, and sees what the policies show: what is said of
tables and views that the user may read, and of its own queries and connections. Superusers see all, and so does whoever is
granted SELECT on the relation itself, by name or by a role other than PUBLIC.

A policy may show a row without some of its columns. No row is shown by two policies to the same user.

========================  ==========================================================================================
condition                 holds if the user
========================  ==========================================================================================
`may_read(name)`          may read the table or view
`may_read_all(name)`      may read it, and no policy hides rows of it
`may_know(dataflow)`      may read everything that `system.requirements` lists for the dataflow
`lacks(dataflow)`         may not read something of that
`may_know_name(name)`     may read everything that it lists for the name
`may_know_operator(id)`   may know the operator's dataflow
========================  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from tektite.engine.system.disclosure import QUERY
from tektite.engine.system.relations import SYSTEM
from tektite.sql.access.rights_trees import exists_in, holder, mine, named_column, protected_table, rights_table


@dataclass(frozen=True)
class SystemPolicy:
    """A policy on the rows of a system relation."""

    name: str
    using: str
    hides: tuple[str, ...] = ()
    """Columns that are NULL in rows that it shows."""


NOBODY: tuple[SystemPolicy, ...] = ()
"""Of a relation about the engine as a whole, such as its epochs: how much others write is not for everybody."""
OF_DATAFLOW = (SystemPolicy("known", "may_know(dataflow)"),)
OF_TARGET = (SystemPolicy("known", "may_know_operator(target)"),)
OF_ENTITY = (SystemPolicy("known", "may_know_operator(e)"),)
OF_USER = (SystemPolicy("own", "user_name = current_user"),)
OF_NAME = (SystemPolicy("known", "may_know_name(name)"),)

SYSTEM_POLICIES: dict[str, tuple[SystemPolicy, ...]] = {
    "system.views": (
        SystemPolicy("known", "may_know(dataflow)"),
        SystemPolicy("readable", "may_read(name) AND lacks(dataflow)", hides=("definition",)),
    ),
    "system.tables": (
        SystemPolicy("readable", "may_read_all(name)"),
        SystemPolicy(
            "limited", "may_read(name) AND NOT may_read_all(name)", hides=("rows", "bytes", "subscriptions", "changes")
        ),
    ),
    "system.indexes": (
        SystemPolicy("readable", "kind <> 'index' AND may_read_all(name)"),
        SystemPolicy("known", "kind = 'index' AND may_know(dataflow)"),
    ),
    "system.index_readers": OF_DATAFLOW,
    "system.dataflows": (SystemPolicy("known", "may_know(id)"),),
    "system.operators": OF_DATAFLOW,
    "system.channels": OF_TARGET,
    "system.loops": OF_DATAFLOW,
    "system.work": (SystemPolicy("known", "may_know_operator(operator)"),),
    "system.epoch_work": (SystemPolicy("known", "may_know_operator(operator)"),),
    "system.traffic": OF_TARGET,
    "system.merges": (
        SystemPolicy("readable", "dataflow IS NULL AND may_read_all(name)"),
        SystemPolicy("known", "may_know(dataflow)"),
    ),
    "system.sweeps": OF_NAME,
    "system.epochs": NOBODY,
    "system.clients": OF_USER,
    "system.queries": OF_USER,
    "system.plans": OF_NAME,
    "system.subscriptions": (SystemPolicy("readable", "may_read_all(name)"),),
    "system.memory": (
        SystemPolicy("known", "kind IN ('index', 'view', 'operators', 'waiting') AND may_know_name(owner)"),
    ),
    "system.storage": NOBODY,
    "system.positions": NOBODY,
    "system.connectors": NOBODY,
    "system.errors": (SystemPolicy("readable", 'may_read("view")'),),
    "system.advice": (SystemPolicy("known", "may_know_name(about)"),),
    "system.requirements": NOBODY,
    "timely.event.operates/name": OF_ENTITY,
    "timely.event.operates/shutdown?": OF_ENTITY,
    "differential.event/size": OF_ENTITY,
}
assert SYSTEM_POLICIES.keys() == SYSTEM.keys()
SYSTEM_OBJECTS = frozenset(f"table {name}" for name in SYSTEM_POLICIES)
"""The same relations as objects of grants."""


def may_read(name: exp.Expr) -> exp.Expr:
    return _met("sees", _object(name))


def may_read_all(name: exp.Expr) -> exp.Expr:
    return _met("sees_all", _object(name))


def may_know(dataflow: exp.Expr) -> exp.Expr:
    return _all_met("dataflow", dataflow)


def lacks(dataflow: exp.Expr) -> exp.Expr:
    return _unmet("dataflow", dataflow)


def may_know_name(name: exp.Expr) -> exp.Expr:
    return _all_met("name", name)


def may_know_operator(number: exp.Expr) -> exp.Expr:
    operators = protected_table("system.operators", "#o")
    its = exp.EQ(this=named_column("id", "#o"), expression=number)
    return exists_in(operators, its, may_know(named_column("dataflow", "#o")))


CONDITIONS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    condition.__name__: condition
    for condition in (may_read, may_read_all, may_know, lacks, may_know_name, may_know_operator)
}
"""The functions that the conditions of these policies call, by name."""


def _object(name: exp.Expr) -> exp.Expr:
    return exp.DPipe(this=exp.Literal.string("table "), expression=name)


def _met(view: str, object: exp.Expr) -> exp.Expr:
    """Whether the user is somebody whom a view of rights has with an object."""
    return exists_in(rights_table(view), mine("who"), exp.EQ(this=named_column("object"), expression=object))


def _all_met(column: str, value: exp.Expr) -> exp.Expr:
    """Whether a dataflow or a name is listed, and everything that it needs is met."""
    its = exp.EQ(this=named_column(column, "#q"), expression=value.copy())
    listed = exists_in(protected_table("system.requirements", "#q"), its)
    return exp.And(this=listed, expression=exp.Not(this=_unmet(column, value)))


def _unmet(column: str, value: exp.Expr) -> exp.Expr:
    """Whether something that a dataflow or a name needs is not met."""
    its = exp.EQ(this=named_column(column, "#q"), expression=value)
    needed = named_column("object", "#q")
    own = exists_in(
        protected_table("system.queries", "#u"),
        exp.EQ(this=named_column("user_name", "#u"), expression=holder()),
        exp.EQ(this=named_column("dataflow", "#u"), expression=named_column("dataflow", "#q")),
        exp.EQ(this=needed.copy(), expression=exp.Literal.string(QUERY)),
    )
    unmet = [exp.Not(this=_met("sees_all", needed)), exp.Not(this=own)]
    return exists_in(protected_table("system.requirements", "#q"), its, *unmet)
