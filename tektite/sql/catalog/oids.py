"""Oids: the numbers by which tools refer to objects. They follow from names, so that they are the same after a restart."""

from __future__ import annotations

import zlib

FIRST = 16384
"""PostgreSQL's own objects have smaller ones."""
SPAN = (1 << 31) - FIRST
"""Oids stay below 2^31: some tools hold them in 32 bits with a sign."""
FIXED = {
    "schema pg_catalog": 11, "schema public": 2200, "schema information_schema": 13000,
    "relation pg_catalog.pg_type": 1247, "relation pg_catalog.pg_attribute": 1249, "relation pg_catalog.pg_proc": 1255,
    "relation pg_catalog.pg_class": 1259, "relation pg_catalog.pg_attrdef": 2604, "relation pg_catalog.pg_constraint": 2606,
    "relation pg_catalog.pg_description": 2609, "relation pg_catalog.pg_index": 2610, "relation pg_catalog.pg_namespace": 2615,
    "relation pg_catalog.pg_database": 1262, "relation pg_catalog.pg_am": 2601, "relation pg_catalog.pg_collation": 3456,
}  # fmt: skip
"""Oids that tools know by heart."""


class Oids:
    """Numbers for named objects; two that would have the same get neighbouring ones, in the order in which they are named."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {number: name for name, number in FIXED.items()}
        self._numbers: dict[str, int] = dict(FIXED)

    def of(self, kind: str, name: str) -> int:
        """The oid of an object of a kind.

        >>> Oids().of("relation", "public.t") == Oids().of("relation", "public.t")
        True
        """
        key = f"{kind} {name}"
        found = self._numbers.get(key)
        if found is None:
            found = FIRST + zlib.crc32(key.encode()) % SPAN
            while found in self._names:
                found = FIRST + (found - FIRST + 1) % SPAN
            self._names[found] = key
            self._numbers[key] = found
        return found
