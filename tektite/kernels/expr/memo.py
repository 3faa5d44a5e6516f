"""Memo tables: results of functions of one to three words.

A table is a one-dimensional int64 array used as an open-addressing hash table:

    table[0]         number of arguments k
    table[1]         number of slots, a power of two
    table[2]         number of entries
    table[3 + (k + 1) * s]   slot s: the k argument words, then the result; a first word of NULL marks it empty

Many threads read a table while one thread, under its owner's lock, adds to it. An entry's first word is written last, with
release order, and read with acquire order, so a reader sees a complete entry or none. A full table is replaced by a larger
one, never moved.
"""

from __future__ import annotations

from typing import Any

from tektite.kernels.compile import inner, kernel
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.pages import address_of
from tektite.kernels.toolchain import intrinsic, types
from tektite.values.words import NULL

HEADER = 3


@intrinsic
def load_acquire(typing_context: Any, address: Any, index: Any) -> Any:
    """Like `load`; no later load of this thread is moved before it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], context.get_value_type(types.CPointer(types.int64)))
        return builder.load_atomic(builder.gep(pointer, [args[1]]), "acquire", 8)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store_release(typing_context: Any, address: Any, index: Any, value: Any) -> Any:
    """Like `store`; no earlier store of this thread is moved behind it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], context.get_value_type(types.CPointer(types.int64)))
        builder.store_atomic(args[2], builder.gep(pointer, [args[1]]), "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@inner
def mix(x, y, z):
    """A hash of up to three words; unused ones are 0."""
    h = x * -7046029254386353131
    h = (h ^ ((h >> 32) & 0xFFFFFFFF) ^ y) * -4658895280553007687
    h = (h ^ ((h >> 32) & 0xFFFFFFFF) ^ z) * -7723592293110705685
    return h ^ ((h >> 32) & 0xFFFFFFFF)


@inner
def find(table, x, y, z):
    """The index of the result for these arguments (unused ones are 0) in the table at address `table`; -1 if absent."""
    arguments = load(table, 0)
    last = load(table, 1) - 1
    slot = mix(x, y, z) & last
    while True:
        at = HEADER + (arguments + 1) * slot
        first = load_acquire(table, at)
        if first == NULL:
            return -1
        if first == x:
            if arguments == 1:
                return at + 1
            if load(table, at + 1) == y and (arguments == 2 or load(table, at + 2) == z):
                return at + arguments
        slot = (slot + 1) & last


@kernel("void(int64[::1], int64[:, ::1], int64[::1])")
def memo_insert(table, arguments, results):
    """Add the entries (arguments[:, i], results[i]) that the table lacks. It must have room for them."""
    count = arguments.shape[0]
    at_table = address_of(table)
    last = table[1] - 1
    for i in range(arguments.shape[1]):
        x = arguments[0, i]
        y = arguments[1, i] if count > 1 else 0
        z = arguments[2, i] if count > 2 else 0
        if find(at_table, x, y, z) >= 0:
            continue
        slot = mix(x, y, z) & last
        while table[HEADER + (count + 1) * slot] != NULL:
            slot = (slot + 1) & last
        at = HEADER + (count + 1) * slot
        if count > 1:
            store(at_table, at + 1, y)
        if count > 2:
            store(at_table, at + 2, z)
        store(at_table, at + count, results[i])
        store_release(at_table, at, x)
        table[2] += 1


@inner
def add_missing(missing, memo, x, y, z):
    """Put a record into the set of missing arguments at address `missing`, unless it is there or the set is full.

    missing[0] is the number of records, missing[1] the most it can hold, a power of two; missing[2] and [3] are not of the set.
    Records (memo, word, word, word) follow; behind them lies an open-addressing hash table of record numbers,
    counted from 1, in twice as many slots, all 0 at first.
    """
    used = load(missing, 0)
    capacity = load(missing, 1)
    if used == capacity:
        return
    index = missing + 8 * (4 + 4 * capacity)
    last = 2 * capacity - 1
    slot = (mix(x, y, z) + memo) & last
    while load(index, slot) != 0:
        other = 4 * load(index, slot)
        if (
            load(missing, other) == memo
            and load(missing, other + 1) == x
            and load(missing, other + 2) == y
            and load(missing, other + 3) == z
        ):
            return
        slot = (slot + 1) & last
    base = 4 * (used + 1)
    store(missing, base, memo)
    store(missing, base + 1, x)
    store(missing, base + 2, y)
    store(missing, base + 3, z)
    store(index, slot, used + 1)
    store(missing, 0, used + 1)
