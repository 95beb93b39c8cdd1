"""Columns over trucks: for every resource one bit per truck, in words of 64.

One word of all resources is contiguous, so that a query about one truck, or about many resources, reads no more than
needed.
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_WORD = 64
_BITS = [np.uint64(1 << bit) for bit in range(_WORD)]
_ALL_BUT = [~bit for bit in _BITS]


class Column:
    """A set of trucks for every resource."""

    def __init__(self, size: int, trucks: int) -> None:
        count = max(1, -(-trucks // _WORD))
        self._words = [np.zeros(size, dtype=np.uint64) for _ in range(count)]
        self._places = range(count)

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._words, twin._places = [word.copy() for word in self._words], self._places
        return twin

    def add(self, i: int, resources: Ints) -> None:
        self._words[i // _WORD][resources] |= _BITS[i % _WORD]

    def remove(self, i: int, resources: Ints) -> None:
        self._words[i // _WORD][resources] &= _ALL_BUT[i % _WORD]

    def clear(self, i: int) -> None:
        """Remove a truck everywhere."""
        self._words[i // _WORD] &= _ALL_BUT[i % _WORD]

    def at(self, resource: int) -> int:
        """The trucks of one resource, as bits."""
        return as_mask([int(word[resource]) for word in self._words])

    def over(self, resources: Ints) -> int:
        """The trucks of any of the resources, as bits."""
        return as_mask([int(np.bitwise_or.reduce(word[resources])) for word in self._words])

    def besides(self, i: int, resources: Ints) -> Words:
        """Nonzero for each of the resources that has a truck other than this one."""
        own = i // _WORD
        words = self._words[own][resources]
        words &= _ALL_BUT[i % _WORD]
        for place in self._places:
            if place != own:
                words |= self._words[place][resources]
        return words

    def words_besides(self, i: int, resources: Ints) -> list[Words]:
        """The trucks of each of the resources without this one, word by word."""
        words = [word[resources] for word in self._words]
        words[i // _WORD] &= _ALL_BUT[i % _WORD]
        return words


def as_mask(words: list[int]) -> int:
    """The trucks of some words as the bits of one number."""
    mask = words[0]
    for place in range(1, len(words)):
        mask |= words[place] << (place * _WORD)
    return mask


def trucks_of(mask: int) -> list[int]:
    """The trucks of a mask, ascending."""
    trucks = []
    while mask:
        low = mask & -mask
        trucks.append(low.bit_length() - 1)
        mask ^= low
    return trucks
