"""Raw 64-bit loads and stores, and the bit casts between words and floats, for use inside kernels.

`load(p, i)` is C's `((int64_t *)p)[i]`. Addresses travel as integers, so that one array of them describes any
number of buffers; whoever passes an address keeps the buffer alive for the length of the call.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


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
