"""Internal relations in trees of SQL: what a statement reads for itself, such as a table without the conditions of its policies.

Their names begin with `#`, and a mark of the node says that the program made it. The parser never sets the mark, so no text can
read such a relation, whatever name it writes, and no common table expression of a text stands in for one.
"""

from __future__ import annotations

from sqlglot import exp

INTERNAL = "#"
"""The prefix of the names of internal relations."""
HOLDER = "#holder"
"""The label of the parameter that is whose rights count, in the conditions of policies."""
MARK = "internal"


def internal_table(name: str, alias: str | None = None) -> exp.Table:
    """An internal relation as a member of FROM.

    >>> is_internal(internal_table("#rights holds")), is_internal(exp.to_table('"#rights holds"'))
    (True, False)
    """
    called = None if alias is None else exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
    return exp.Table(**{"this": exp.to_identifier(name, quoted=True), "alias": called, MARK: True})


def is_internal(node: exp.Table) -> bool:
    """Whether the program made a member of FROM, rather than a text."""
    return bool(node.args.get(MARK))
