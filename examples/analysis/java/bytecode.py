"""The instructions of the Java virtual machine (JVMS chapter 6): where the next one begins, where it may jump, what it does to
the stack.

`decode(code)` gives the instructions of a body in order. `EFFECTS` has, for each opcode that moves no references, how many
slots it pops and how many slots of plain values it pushes; the opcodes that it lacks are those that `stack` interprets one
by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

NULL, LDC, LDC_W, LDC2 = 1, 18, 19, 20
ALOAD, ALOAD_0, AALOAD, ASTORE, ASTORE_0, AASTORE = 25, 42, 50, 58, 75, 83
POP, POP2, DUP, DUP_X1, DUP_X2, DUP2, DUP2_X1, DUP2_X2, SWAP = range(87, 96)
IINC, GOTO, JSR, RET, TABLESWITCH, LOOKUPSWITCH = 132, 167, 168, 169, 170, 171
IRETURN, ARETURN, RETURN = 172, 176, 177
GETSTATIC, PUTSTATIC, GETFIELD, PUTFIELD = range(178, 182)
INVOKEVIRTUAL, INVOKESPECIAL, INVOKESTATIC, INVOKEINTERFACE, INVOKEDYNAMIC = range(182, 187)
NEW, NEWARRAY, ANEWARRAY, ARRAYLENGTH, ATHROW, CHECKCAST, INSTANCEOF = range(187, 194)
MONITORENTER, MONITOREXIT, WIDE, MULTIANEWARRAY, IFNULL, IFNONNULL, GOTO_W, JSR_W = range(194, 202)

# Slots popped and pushed, for ranges of opcodes.
RANGES = [
    (0, 0, 0, 0), (2, 8, 0, 1), (9, 10, 0, 2), (11, 13, 0, 1), (14, 15, 0, 2), (16, 17, 0, 1),
    (46, 46, 2, 1), (47, 47, 2, 2), (48, 48, 2, 1), (49, 49, 2, 2), (51, 53, 2, 1),
    (79, 79, 3, 0), (80, 80, 4, 0), (81, 81, 3, 0), (82, 82, 4, 0), (84, 86, 3, 0),
    (116, 116, 1, 1), (117, 117, 2, 2), (118, 118, 1, 1), (119, 119, 2, 2),
    (120, 120, 2, 1), (121, 121, 3, 2), (122, 122, 2, 1), (123, 123, 3, 2), (124, 124, 2, 1), (125, 125, 3, 2),
    (126, 126, 2, 1), (127, 127, 4, 2), (128, 128, 2, 1), (129, 129, 4, 2), (130, 130, 2, 1), (131, 131, 4, 2),
    (132, 132, 0, 0),
    (133, 133, 1, 2), (134, 134, 1, 1), (135, 135, 1, 2), (136, 137, 2, 1), (138, 138, 2, 2), (139, 139, 1, 1),
    (140, 141, 1, 2), (142, 142, 2, 1), (143, 143, 2, 2), (144, 144, 2, 1), (145, 147, 1, 1),
    (148, 148, 4, 1), (149, 150, 2, 1), (151, 152, 4, 1), (153, 158, 1, 0), (159, 166, 2, 0),
    (167, 167, 0, 0), (170, 171, 1, 0), (172, 172, 1, 0), (173, 173, 2, 0), (174, 174, 1, 0), (175, 175, 2, 0),
    (177, 177, 0, 0), (190, 190, 1, 1), (193, 193, 1, 1), (194, 195, 1, 0), (198, 199, 1, 0), (200, 200, 0, 0),
]  # fmt: skip
EFFECTS = {opcode: (pops, pushes) for first, last, pops, pushes in RANGES for opcode in range(first, last + 1)}
# Arithmetic comes in groups of four: int, long, float, double.
EFFECTS |= {opcode: ((2, 1), (4, 2))[opcode % 2] for opcode in range(96, 116)}

# Loads and stores of plain local variables: opcode: (slots, slot or None if the operand says it).
PLAIN_LOADS: dict[int, tuple[int, int | None]] = {21: (1, None), 22: (2, None), 23: (1, None), 24: (2, None)}
PLAIN_STORES: dict[int, tuple[int, int | None]] = {54: (1, None), 55: (2, None), 56: (1, None), 57: (2, None)}
for _place, _width in enumerate((1, 2, 1, 2)):
    PLAIN_LOADS |= {26 + 4 * _place + slot: (_width, slot) for slot in range(4)}
    PLAIN_STORES |= {59 + 4 * _place + slot: (_width, slot) for slot in range(4)}

ONE_BYTE = {16, LDC, NEWARRAY, RET, *range(21, 26), *range(54, 59)}
TWO_BYTES = {17, LDC_W, LDC2, *range(178, 185), NEW, ANEWARRAY, CHECKCAST, INSTANCEOF}
BRANCHES = {*range(153, 169), IFNULL, IFNONNULL}
WIDE_BRANCHES = {GOTO_W, JSR_W}
ENDS = {GOTO, GOTO_W, TABLESWITCH, LOOKUPSWITCH, RET, ATHROW, *range(IRETURN, RETURN + 1)}


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction: its place, its opcode, its operand (a slot, an index into the pool), and where it may continue."""

    at: int
    opcode: int
    operand: int
    successors: tuple[int, ...]
    dimensions: int = 0


def decode(code: bytes) -> Iterator[Instruction]:
    """The instructions of a body, in order.

    >>> [(one.at, one.opcode, one.successors) for one in decode(bytes([42, 199, 0, 5, 1, 176, 42, 176]))]
    [(0, 42, (1,)), (1, 199, (4, 6)), (4, 1, (5,)), (5, 176, ()), (6, 42, (7,)), (7, 176, ())]
    """
    at = 0
    while at < len(code):
        instruction, at = decode_one(code, at)
        yield instruction


def decode_one(code: bytes, at: int) -> tuple[Instruction, int]:
    """The instruction at a place, and the place of the next."""
    start, opcode = at, code[at]
    at += 1
    operand, dimensions = 0, 0
    targets: tuple[int, ...] = ()
    if opcode == WIDE:
        opcode = code[at]
        operand = number(code, at + 1, 2)
        at += 5 if opcode == IINC else 3
    elif opcode in ONE_BYTE:
        operand, at = code[at], at + 1
    elif opcode in TWO_BYTES:
        operand, at = number(code, at, 2), at + 2
    elif opcode == IINC:
        operand, at = code[at], at + 2
    elif opcode in (INVOKEINTERFACE, INVOKEDYNAMIC):
        operand, at = number(code, at, 2), at + 4
    elif opcode == MULTIANEWARRAY:
        operand, dimensions, at = number(code, at, 2), code[at + 2], at + 3
    elif opcode in BRANCHES:
        targets, at = (start + number(code, at, 2, signed=True),), at + 2
    elif opcode in WIDE_BRANCHES:
        targets, at = (start + number(code, at, 4, signed=True),), at + 4
    elif opcode in (TABLESWITCH, LOOKUPSWITCH):
        offsets, at = switch(code, opcode, at)
        targets = tuple(dict.fromkeys(start + offset for offset in offsets))
    following = () if opcode in ENDS else (at,)
    return Instruction(start, opcode, operand, (*following, *targets), dimensions), at


def switch(code: bytes, opcode: int, at: int) -> tuple[list[int], int]:
    """The offsets of a switch, and the place after it. Its numbers begin at a multiple of four."""
    at += -at % 4
    default = number(code, at, 4, signed=True)
    if opcode == TABLESWITCH:
        low, high = number(code, at + 4, 4, signed=True), number(code, at + 8, 4, signed=True)
        at, step, count = at + 12, 4, high - low + 1
        first = at
    else:
        count = number(code, at + 4, 4)
        at, step = at + 8, 8
        first = at + 4
    offsets = [number(code, first + step * place, 4, signed=True) for place in range(count)]
    return [default, *offsets], at + step * count


def number(code: bytes, at: int, count: int, signed: bool = False) -> int:
    return int.from_bytes(code[at : at + count], "big", signed=signed)
