"""Sorts numbers, of rows for example, by a comparison that the caller passes in.

Promise: numbers that the comparison does not tell apart keep their order. Numbers that come in order cost one comparison each.
"""

from __future__ import annotations

from typing import Any

from tektite.kernels.compile import inner
from tektite.kernels.layout.memory import load, store
from tektite.kernels.layout.scratch import keep, scratch

# Up to this many numbers are sorted by insertion.
_SHORT = 16


def number_sort_of(is_after: Any) -> Any:
    """A function (numbers, many, sought) that sorts the `many` words at the address `numbers`, so that `is_after(sought, x, y)`
    is true of no word x and the next one y. It is a merge sort, bottom up, from runs sorted by insertion.
    """

    @inner
    def insert(numbers, start, stop, sought):
        for r in range(start + 1, stop):
            number = load(numbers, r)
            place = r
            while place > start and is_after(sought, load(numbers, place - 1), number):
                store(numbers, place, load(numbers, place - 1))
                place -= 1
            store(numbers, place, number)

    @inner
    def sort(numbers, many, sought):
        for start in range(0, many, _SHORT):
            insert(numbers, start, min(start + _SHORT, many), sought)
        if many <= _SHORT:
            return
        memory, (spare,) = scratch((many,))
        width = _SHORT
        while width < many:
            for left in range(0, many - width, 2 * width):
                middle = left + width
                right = min(middle + width, many)
                if not is_after(sought, load(numbers, middle - 1), load(numbers, middle)):
                    continue
                for r in range(left, middle):
                    store(spare, r - left, load(numbers, r))
                x = 0
                y = middle
                place = left
                while x < width and y < right:
                    if is_after(sought, load(spare, x), load(numbers, y)):
                        store(numbers, place, load(numbers, y))
                        y += 1
                    else:
                        store(numbers, place, load(spare, x))
                        x += 1
                    place += 1
                while x < width:
                    store(numbers, place, load(spare, x))
                    x += 1
                    place += 1
            width *= 2
        keep(memory)

    return sort
