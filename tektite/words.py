"""Values as 64-bit words. NULL is one reserved word that no value takes."""

from __future__ import annotations

NULL = -(2**63)
