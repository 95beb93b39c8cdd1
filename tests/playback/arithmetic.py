"""The numbers of the oracle: PCG32, SplitMix64, integer weights and one step of the round, by definition."""

from collections.abc import Sequence
from fractions import Fraction

WSUM = 65536
TWO_32, TWO_64 = 2**32, 2**64


class Pcg:
    """PCG32 with the standard seeding."""

    def __init__(self, initstate: int, initseq: int) -> None:
        self.increment = (2 * initseq + 1) % TWO_64
        self.state = 0
        self.draw()
        self.state = (self.state + initstate) % TWO_64
        self.draw()

    def draw(self) -> int:
        old = self.state
        self.state = (old * 6364136223846793005 + self.increment) % TWO_64
        word = (((old >> 18) ^ old) >> 27) % TWO_32
        turn = old >> 59
        return ((word >> turn) | (word << (-turn % 32))) % TWO_32

    def below(self, n: int) -> int:
        if n == 1:
            return 0
        while True:
            m = self.draw() * n
            if m % TWO_32 >= (TWO_32 - n) % n:
                return m >> 32


def mix(value: int) -> int:
    z = (value + 0x9E3779B97F4A7C15) % TWO_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % TWO_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % TWO_64
    return z ^ (z >> 31)


def stream(seed: int, epoch: int, constant: int) -> Pcg:
    return Pcg(mix(mix(mix(seed) ^ epoch) ^ constant), constant)


def integers(shares: Sequence[Fraction]) -> list[int]:
    """Largest remainder; every positive share gets at least one unit."""
    weights = [int(share * WSUM) for share in shares]
    rests = [share * WSUM - weight for share, weight in zip(shares, weights, strict=True)]
    for _ in range(WSUM - sum(weights) if shares else 0):
        lucky = rests.index(max(rests))
        weights[lucky] += 1
        rests[lucky] = Fraction(-1)
    for index, share in enumerate(shares):
        if share > 0 and weights[index] == 0:
            weights[weights.index(max(weights))] -= 1
            weights[index] = 1
    return weights


def round_robin(credits: list[int], weights: Sequence[int]) -> int:
    """One step by its definition."""
    for index, weight in enumerate(weights):
        credits[index] += weight
    eligible = [index for index, weight in enumerate(weights) if weight > 0]
    most = max(credits[index] for index in eligible)
    chosen = next(index for index in eligible if credits[index] == most)
    credits[chosen] -= WSUM
    return chosen
