"""The state of an open merge: an int64 array that kernels read and write by address.

Python owns it, the inputs, and the memory for the result's columns. There is room for whole words; a column uses as many
bytes a row as its words so far need. Memory that is never written costs nothing.

The inputs are `a` and `b`; rows have `nd` data, `nt` time and `nf` diff columns.
"""

from __future__ import annotations

from tektite.kernels.compile import inner
from tektite.kernels.layout.columns import NARROW_FROM, fitting_step
from tektite.kernels.layout.memory import GREATEST, LEAST, load, read, store
from tektite.kernels.layout.rows import address, count, step_of

RUNNING = 0
DONE = 1
OVERFLOWN = -1

DISTINCT = 0
STREAMED = 1
GROUPED = 2

# The state: first what concerns the whole merge ...
STATUS = 0
ROWS = 1  # rows of the result that are final
TAIL = 2  # 1 if one more row follows them that may still grow (STREAMED only)
DIRTY = 3  # the tail is a sum: it may be zero, or too large
TAKEN_A = 4
TAKEN_B = 5
SIZE_A = 6
SIZE_B = 7
DATA = 8
KEYS = 9
COLUMNS = 10
MODE = 11
COMPARED = 12  # how many columns rows are compared by
COMPARED_DATA = 13  # how many of those are data columns
SCANNED = 14  # rows looked at for columns that vary
FIELDS = 15
# ... then for each column, from FIELDS + PER_COLUMN * j ...
ADDRESS_A = 0
STEP_A = 1
CONSTANT_A = 2
ADDRESS_B = 3
STEP_B = 4
CONSTANT_B = 5
ROOM = 6  # address of the memory for this column of the result; NEEDED until Python has provided it, 0 if constant
LIVE = 7  # whether rows are written there: diff columns that are constant so far are not
FLOOR = 8
REFERENCE = 9  # the column's first word
VARIES = 10
UNFILLED = 11  # rows before this one still lack the constant that a diff column had until it came alive
ABOVE = 12  # the tail's carry
STEP = 13  # bytes that a row takes in ROOM
PER_COLUMN = 14
# ... and at last the numbers of the columns to compare.

NEEDED = -1


@inner
def column_field(state, j, field):
    """A field of column j."""
    return load(state, FIELDS + PER_COLUMN * j + field)


@inner
def set_column_field(state, j, field, word):
    """Set a field of column j."""
    store(state, FIELDS + PER_COLUMN * j + field, word)


@inner
def _set_side(state, j, side, head, floor, latest):
    """Describe column j of one input; `side` is ADDRESS_A or ADDRESS_B. A column that clamping makes constant becomes a constant
    of the state.
    """
    base = FIELDS + PER_COLUMN * j + side
    if step_of(head, j) != 0 and latest > floor:
        store(state, base, address(head, j))
        store(state, base + 1, step_of(head, j))
        store(state, base + 2, 0)
    else:
        store(state, base, state + 8 * (base + 2))
        store(state, base + 1, 0)
        store(state, base + 2, floor if step_of(head, j) != 0 else max(load(head, 5 + 3 * j), floor))


@inner
def _first_step(state, j, rows_a, rows_b):
    """The step that column j of the result begins with. A narrow column of an input is as narrow as its words allow; whether one
    of whole words could be narrower is not known. The ends of the first column, which is sorted, say so. Other columns begin as
    narrow as can be, and the first block that does not fit widens them.
    """
    if rows_a + rows_b < NARROW_FROM:
        return 8
    least = 1
    for side in range(2):
        rows = rows_a if side == 0 else rows_b
        base = FIELDS + PER_COLUMN * j + (ADDRESS_A if side == 0 else ADDRESS_B)
        at = load(state, base)
        by = load(state, base + 1)
        if by == 8 and j == 0 and rows > 0:
            least = max(least, fitting_step(load(at, 0), load(at, rows - 1)))
        elif by != 8:
            least = max(least, by)
    return least


@inner
def prepare(state, a, b, nd, nt, nf, frontier, latest_a, latest_b):
    """Write the state of a merge of `a` and `b` that has not begun."""
    columns = nd + nt + nf
    for x in range(FIELDS):
        store(state, x, 0)
    rows_a = count(a)
    rows_b = count(b)
    store(state, SIZE_A, rows_a)
    store(state, SIZE_B, rows_b)
    store(state, DATA, nd)
    store(state, KEYS, nd + nt)
    store(state, COLUMNS, columns)
    if rows_a == 0:
        a = b
        latest_a = latest_b
    elif rows_b == 0:
        b = a
        latest_b = latest_a
    mode = DISTINCT
    compared = 0
    collapsed_a = False
    collapsed_b = False
    for j in range(columns):
        is_time = nd <= j < nd + nt
        floor = LEAST
        if is_time and frontier.shape[0] > 0:
            floor = frontier[0, j - nd]
            for f in range(1, frontier.shape[0]):
                floor = min(floor, frontier[f, j - nd])
        _set_side(state, j, ADDRESS_A, a, floor, latest_a if j == nd else GREATEST)
        _set_side(state, j, ADDRESS_B, b, floor, latest_b if j == nd else GREATEST)
        if is_time:
            varies_a = step_of(a, j) != 0
            varies_b = step_of(b, j) != 0
            if (varies_a and collapsed_a) or (varies_b and collapsed_b):
                mode = GROUPED
            elif (varies_a or varies_b) and mode == DISTINCT:
                mode = STREAMED
            collapsed_a = collapsed_a or (varies_a and floor > LEAST)
            collapsed_b = collapsed_b or (varies_b and floor > LEAST)
        constant = (
            column_field(state, j, STEP_A) == 0
            and column_field(state, j, STEP_B) == 0
            and column_field(state, j, CONSTANT_A) == column_field(state, j, CONSTANT_B)
        )
        if not constant and j < nd + nt:
            store(state, FIELDS + PER_COLUMN * columns + compared, j)
            compared += 1
        if j < nd:
            store(state, COMPARED_DATA, compared)
        set_column_field(state, j, ROOM, 0 if constant and j < nd + nt else NEEDED)
        set_column_field(state, j, LIVE, 0 if constant else 1)
        set_column_field(state, j, FLOOR, floor)
        set_column_field(state, j, REFERENCE, column_field(state, j, CONSTANT_A) if constant else 0)
        set_column_field(state, j, VARIES, 0)
        set_column_field(state, j, UNFILLED, 0)
        set_column_field(state, j, ABOVE, 0)
        set_column_field(state, j, STEP, _first_step(state, j, rows_a, rows_b))
    if compared == 0 and mode == DISTINCT:
        mode = STREAMED  # all rows are equal; planning has nothing to tell them by
    store(state, MODE, mode)
    store(state, COMPARED, compared)
    if rows_a + rows_b == 0:
        store(state, STATUS, DONE)


@inner
def _word(state, j, source):
    """Column j of the input row that `source` names: row i of the first input is i, row k of the second ~k."""
    base = FIELDS + PER_COLUMN * j
    if source >= 0:
        word = read(load(state, base + ADDRESS_A), load(state, base + STEP_A), source)
    else:
        word = read(load(state, base + ADDRESS_B), load(state, base + STEP_B), ~source)
    return max(word, load(state, base + FLOOR))


@inner
def compare(state, x, y, start, stop):
    """-1, 0 or 1 as input row x is before, equal to or behind y in the compared columns start..stop."""
    names = FIELDS + PER_COLUMN * load(state, COLUMNS)
    for c in range(start, stop):
        j = load(state, names + c)
        left = _word(state, j, x)
        right = _word(state, j, y)
        if left != right:
            return -1 if left < right else 1
    return 0
