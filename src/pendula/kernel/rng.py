"""Reproducible random numbers: equal seeds give equal numbers on every machine, and streams are independent.

PCG32 with jumps in both directions, the derivation of its streams, and the per-tick Mersenne generators. The state of
the `random` module is never used.
"""

from collections.abc import Callable
from random import Random
from typing import Self

from pendula.kernel.errors import WrongUsage

Mersenne = Random  # the type of the per-tick generators

_MASK_32 = (1 << 32) - 1
_MASK_64 = (1 << 64) - 1
_TWICE = (1 << 32) + 1
_MULTIPLIER = 6364136223846793005
_INVERSE = pow(_MULTIPLIER, -1, 1 << 64)
_TICK_FACTOR = 1_000_003


class Pcg32:
    """PCG-XSH-RR 64/32; `Pcg32(state, increment)` continues a generator with these two numbers."""

    __slots__ = ("_state", "increment")

    def __init__(self, state: int, increment: int) -> None:
        if not 0 <= state <= _MASK_64:
            raise WrongUsage(f"The state {state} is not an unsigned 64-bit integer", state=state)
        if not 0 <= increment <= _MASK_64 or increment % 2 == 0:
            raise WrongUsage(f"The increment {increment} is not an odd unsigned 64-bit integer", increment=increment)
        self._state = state
        self.increment = increment

    @classmethod
    def seeded(cls, initstate: int, initseq: int) -> Self:
        """The standard seeding routine; both numbers modulo 2**64."""
        generator = cls(0, (initseq << 1 | 1) & _MASK_64)
        generator.next()
        generator._state = (generator._state + initstate) & _MASK_64
        generator.next()
        return generator

    @property
    def state(self) -> int:
        return self._state

    def next(self) -> int:
        """The next number, 0..2**32 - 1."""
        state = self._state
        self._state = (state * _MULTIPLIER + self.increment) & _MASK_64
        return _output(state)

    def back(self) -> int:
        """Undo the last `next` and return its number."""
        self._state = (self._state - self.increment) * _INVERSE & _MASK_64
        return _output(self._state)

    def advance(self, steps: int) -> None:
        """Skip `steps` numbers, backwards if negative, in O(log steps)."""
        multiplier, increment = _MULTIPLIER, self.increment
        factor, summand = 1, 0
        # The period is 2**64: one step back is 2**64 - 1 steps forward.
        left = steps & _MASK_64
        while left:
            if left & 1:
                factor = factor * multiplier & _MASK_64
                summand = (summand * multiplier + increment) & _MASK_64
            increment = (multiplier + 1) * increment & _MASK_64
            multiplier = multiplier * multiplier & _MASK_64
            left >>= 1
        self._state = (factor * self._state + summand) & _MASK_64

    def bounded(self, n: int) -> int:
        """A number 0..n - 1, each equally likely, for n from 1 to 2**32; n = 1 draws nothing."""
        if not 1 <= n <= 1 << 32:
            raise WrongUsage(f"The bound {n} is not within 1..2**32", n=n)
        if n == 1:
            return 0
        threshold = ((1 << 32) - n) % n
        while True:
            product = self.next() * n
            if product & _MASK_32 >= threshold:
                return product >> 32


def _output(state: int) -> int:
    # With the 32 bits repeated, a shift is a rotation.
    return ((state >> 18 ^ state) >> 27 & _MASK_32) * _TWICE >> (state >> 59) & _MASK_32


def mix(value: int) -> int:
    """One step of SplitMix64: every input bit changes about half of the output bits."""
    z = (value + 0x9E3779B97F4A7C15) & _MASK_64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK_64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK_64
    return z ^ z >> 31


def stream(global_seed: int, epoch_id: int, constant: int) -> Pcg32:
    """The stream named by `constant` in one epoch; epoch numbers wrap at 2**64."""
    return Pcg32.seeded(mix(mix(mix(global_seed) ^ epoch_id) ^ constant), constant)


def tick_seed(seed: int, tick_index: int) -> int:
    """The seed of one tick, 32 bits."""
    return (seed * _TICK_FACTOR + tick_index) & _MASK_32


def tick_generator(seed: int, tick_index: int) -> Random:
    """A new Mersenne Twister for one tick."""
    return Random(tick_seed(seed, tick_index))


def action_seed(seed_of_tick: int, position: int) -> int:
    """The seed of one candidate position within a tick, 32 bits."""
    return (seed_of_tick * _TICK_FACTOR + position) & _MASK_32


def action_generator(seed_of_tick: int, position: int) -> Random:
    """A new Mersenne Twister for one candidate position."""
    return Random(action_seed(seed_of_tick, position))


def reseedable() -> tuple[Random, Callable[[int], None]]:
    """A Mersenne Twister and the function that reseeds it, for many short streams in sequence.

    It gives the numbers of `Random(seed)` without the checks of its seeding and without a new object each time.
    """
    generator = Random(0)
    return generator, super(Random, generator).seed
