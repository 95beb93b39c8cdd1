"""A run of the hall whose inputs come in an order drawn from a seed: prints the digest of every tick.

python -m tests.fleet.tick.permutations TICKS SEED
"""

import sys
from random import Random

from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.tick import TickInputs, TickOutputs
from tests.fleet.sites import scene
from tests.fleet.tick.yard import Yard


def digests(ticks: int, seed: int) -> list[str]:
    """Digests of results, commands and snapshot, tick by tick; with seed 0 in the given order."""
    yard = Yard(scene("reference-hall"), reference_fleet(4), [FL_STD])
    yard.endless = True
    tick, order = yard.traffic.tick, Random(seed)

    def shuffled(inputs: TickInputs) -> TickOutputs:
        reports, routes = [*inputs.reports], [*inputs.routes]
        if seed:
            order.shuffle(reports)
            order.shuffle(routes)
        return tick(TickInputs(inputs.now_ms, tuple(reports), tuple(routes)))

    yard.traffic.tick = shuffled  # type: ignore[method-assign]
    return [yard.step().digest() for _ in range(ticks)]


if __name__ == "__main__":
    sys.stdout.write("\n".join(digests(int(sys.argv[1]), int(sys.argv[2]))) + "\n")
