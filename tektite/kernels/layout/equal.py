"""Which of some adjacent rows of a column have a word: compared at once, whatever the processor's vectors.

A word that does not fit the column's step is in none of its rows.
"""

from __future__ import annotations

from typing import Any

from tektite.kernels.compile import inner
from tektite.kernels.toolchain import intrinsic, ir, types

LANES = 32
"""Rows that are compared at once."""


def _lanes(builder: Any, args: Any, bits: int) -> Any:
    """A vector of rows, and one of the same length that holds the word in all places."""
    lane, number = ir.IntType(bits), ir.IntType(32)
    vector = ir.VectorType(lane, LANES)
    pointer = builder.gep(builder.inttoptr(args[0], lane.as_pointer()), [args[1]])
    rows = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=1)
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, builder.trunc(args[2], lane) if bits < 64 else args[2], number(0))
    return rows, builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(number, LANES), [0] * LANES))


def _equal_of(bits: int) -> Any:
    """An intrinsic (address, row, word): a number with bit k set if row + k, of integers of so many bits, equals the word's low
    bits.
    """

    @intrinsic
    def equal(typing_context: Any, address: Any, row: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            rows, word = _lanes(builder, args, bits)
            found = builder.bitcast(builder.icmp_signed("==", rows, word), ir.IntType(LANES))
            return builder.zext(found, ir.IntType(64))

        return types.int64(types.int64, types.int64, types.int64), generate

    return equal


_equal1, _equal2, _equal4, _equal8 = _equal_of(8), _equal_of(16), _equal_of(32), _equal_of(64)


@intrinsic
def has4(typing_context: Any, address: Any, row: Any, word: Any) -> Any:
    """1 if one of the LANES rows from `row` on, of integers of 4 bytes, equals the low bytes of the word, otherwise 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.IntType(32)
        rows, word = _lanes(builder, args, 32)
        same = builder.sext(builder.icmp_signed("==", rows, word), ir.VectorType(number, LANES))
        width = LANES
        while width > 8:  # the halves, until one vector of the processor is left
            width //= 2
            halves = [
                ir.Constant(ir.VectorType(number, width), list(range(start, start + width))) for start in (0, width)
            ]
            low, high = (builder.shuffle_vector(same, ir.Constant(same.type, ir.Undefined), half) for half in halves)
            same = builder.or_(low, high)
        signs = builder.icmp_signed("<", same, ir.Constant(same.type, [0] * width))
        found = builder.icmp_signed("!=", builder.bitcast(signs, ir.IntType(width)), ir.IntType(width)(0))
        return builder.zext(found, ir.IntType(64))

    return types.int64(types.int64, types.int64, types.int64), generate


@intrinsic
def lowest_bit(typing_context: Any, number: Any) -> Any:
    """The place of the lowest bit that is set; 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.int64(types.int64), generate


@inner
def equal_rows(at, by, row, word):
    """A number with bit k set if row + k of a stored column has the word, for k < LANES."""
    if by == 4:
        return _equal4(at, row, word) if word == (word << 32) >> 32 else 0
    if by == 8:
        return _equal8(at, row, word)
    if by == 2:
        return _equal2(at, row, word) if word == (word << 48) >> 48 else 0
    return _equal1(at, row, word) if word == (word << 56) >> 56 else 0
