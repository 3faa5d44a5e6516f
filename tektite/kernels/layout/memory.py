"""Raw loads and stores, and the bit casts between words and floats, for use inside kernels.

`load(p, i)` is C's `((int64_t *)p)[i]`. Addresses are integers, so one array of them describes any number of buffers. The
caller keeps the buffers alive during the call.

A column is an address and a *step*: 8, 4, 2 or 1 bytes from one signed integer to the next, or 0 if all rows share one word.
`read(p, step, i)` reads it without a branch: it loads eight bytes where row i begins and shifts the upper ones out. So it reads
up to seven bytes behind a column of step 4, 2 or 1, and these must be readable.
"""

from __future__ import annotations

from typing import Any

from tektite.kernels.toolchain import intrinsic, ir, types


@intrinsic
def load(typing_context: Any, address: Any, index: Any) -> Any:
    """The 64-bit word at `address + 8 * index`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], context.get_value_type(types.CPointer(types.int64)))
        return builder.load(builder.gep(pointer, [args[1]]))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def store(typing_context: Any, address: Any, index: Any, value: Any) -> Any:
    """Write `value` to `address + 8 * index`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], context.get_value_type(types.CPointer(types.int64)))
        builder.store(args[2], builder.gep(pointer, [args[1]]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def read(typing_context: Any, address: Any, step: Any, index: Any) -> Any:
    """The word in row `index` of the column at `address`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = context.get_value_type(types.int64)
        place = builder.add(args[0], builder.mul(args[1], args[2]))
        found = builder.load(builder.inttoptr(place, integer.as_pointer()), align=1)
        # 64 - 8 * step, and 0 for a step of 0: what lies above the integer's own bits.
        above = builder.and_(builder.mul(args[1], integer(-8)), integer(63))
        return builder.ashr(builder.shl(found, above), above)

    return types.int64(types.int64, types.int64, types.int64), generate


def _load_of(bits: int) -> Any:
    """An intrinsic like `load` for signed integers of so many bits."""

    @intrinsic
    def load_narrow(typing_context: Any, address: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            narrow = ir.IntType(bits)
            pointer = builder.inttoptr(args[0], narrow.as_pointer())
            return builder.sext(builder.load(builder.gep(pointer, [args[1]]), align=1), ir.IntType(64))

        return types.int64(types.int64, types.int64), generate

    return load_narrow


def _store_of(bits: int) -> Any:
    """An intrinsic like `store` for integers of so many bits; what lies above them is lost."""

    @intrinsic
    def store_narrow(typing_context: Any, address: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            narrow = ir.IntType(bits)
            pointer = builder.inttoptr(args[0], narrow.as_pointer())
            builder.store(builder.trunc(args[2], narrow), builder.gep(pointer, [args[1]]), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), generate

    return store_narrow


load4 = _load_of(32)
store4 = _store_of(32)
store2 = _store_of(16)
store1 = _store_of(8)


@intrinsic
def float_from_bits(typing_context: Any, bits: Any) -> Any:
    """Reinterpret 64 bits as a double."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic
def bits_from_float(typing_context: Any, value: Any) -> Any:
    """Reinterpret a double as 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate
