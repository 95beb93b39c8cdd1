"""The plan of a tick: budget, shuffled candidates, acceptance, receiver and amount of each position."""

from collections.abc import Mapping
from fractions import Fraction
from math import floor
from random import Random
from typing import Any

from tests.credit.oracle.amount import amount, demand
from tests.credit.oracle.money import exact, text
from tests.credit.oracle.profiles import profile_of
from tests.credit.oracle.receiver import receiver
from tests.credit.oracle.timeline import stressed_rate
from tests.credit.oracle.world import Debts, World, world_of

# seq, sender, receiver, equivalent, amount with two decimals
Planned = tuple[int, str, str, str, str]
# the payment planned for it, equivalent, amount
Demand = tuple[int | None, str, Fraction]

MULTIPLIER = 1_000_003
POSITIONS_PER_ACTION = 50


def tick_seed(seed: int, tick: int) -> int:
    return (seed * MULTIPLIER + tick) % 2**32


def action_seed(seed: int, tick: int, position: int) -> int:
    return (tick_seed(seed, tick) * MULTIPLIER + position) % 2**32


def ramp(world: World, tick: int) -> Fraction:
    warmup = world.section("warmup")
    length = int(warmup.get("ticks", 0))
    if tick >= length:
        return Fraction(1)
    least = min(Fraction(1), max(Fraction(0), exact(warmup.get("floor", "0.1"))))
    return least + (1 - least) * Fraction(tick, length)


def budget(world: World, tick: int, intensity: int) -> int:
    if intensity == 0:
        return 0
    most = world.knobs.number("SIMULATOR_ACTIONS_PER_TICK_MAX")
    share = floor(most * intensity * ramp(world, tick) / 100)
    return max(share, world.knobs.number("SIMULATOR_ACTIONS_PER_TICK_MIN"))


def planned(world: World, seed: int, tick: int, intensity: int) -> tuple[list[Planned], list[Demand]]:
    """The payments of one tick, in order, against the current debts, and the demand independent of debts.

    A demand has the number of the payment planned at its position, or None.
    """
    count = budget(world, tick, intensity)
    sim_time_ms = tick * world.knobs.number("SIMULATOR_TICK_MS_BASE")
    live = {equivalent: world.live_lines(equivalent) for equivalent in world.equivalents}
    candidates = sorted(name for lines in live.values() for name in lines)
    Random(tick_seed(seed, tick)).shuffle(candidates)
    profiles = {who: profile_of(world, who) for who in world.participants}
    payments: list[Planned] = []
    demands: list[Demand] = []
    for position in range(POSITIONS_PER_ACTION * count):
        if not candidates or len(payments) == count == len(demands):
            break
        equivalent, _, sender = candidates[position % len(candidates)]
        profile = profiles[sender]
        rate = stressed_rate(world, world.participants[sender], profile.acceptance(intensity), sim_time_ms)
        probability = rate * profile.weight(equivalent)
        if probability == 0:
            continue
        draw = Random(action_seed(seed, tick, position))
        if draw.random() > probability:
            continue
        to = receiver(world, live[equivalent], sender, profile, draw)
        if to is None:
            continue
        again = Random()
        again.setstate(draw.getstate())
        demanded = demand(world, live[equivalent], sender, to, equivalent, profile, draw)
        paid = demanded
        if not profile.fixed_demand:
            paid = amount(world, live[equivalent], sender, to, equivalent, profile, again)
        seq = len(payments) if paid is not None and len(payments) < count else None
        if demanded is not None and len(demands) < count:
            demands.append((seq, equivalent, demanded))
        if seq is not None and paid is not None:
            payments.append((seq, sender, to, equivalent, text(paid, 2)))
    return payments, demands


def plan(
    scenario: Mapping[str, Any],
    seed: int,
    tick: int,
    intensity: int = 100,
    settings: Mapping[str, str] = {},
    debts: Debts | None = None,
) -> list[Planned]:
    """The plan of one tick of an unchanged scenario with exactly these debts."""
    world = world_of(scenario, settings)
    world.debts = dict(debts or {})
    return planned(world, seed, tick, intensity)[0]
