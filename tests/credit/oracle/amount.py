"""Amounts of payments: the ceiling from limits, debts and caps, the draw, rounding, frequency of large amounts."""

from fractions import Fraction
from math import log
from random import Random

from tests.credit.oracle.money import ATOM, CENT, NOTHING, down_to, exact, up_to
from tests.credit.oracle.profiles import Model, Profile
from tests.credit.oracle.world import Lines, World

LOWEST = Fraction(1, 10)
LARGEST = 10**12 - Fraction(1, 10**8)
NINETIETH = 1.281551565545
USUAL_MEDIAN = 50.0


def upper_limit(world: World, live: Lines, sender: str, receiver: str, equivalent: str) -> Fraction:
    """The headroom of both ends, with the bonus for a receiver that owes the sender."""
    out = max(line.limit for (_, _, debtor), line in live.items() if debtor == sender)
    into = max(line.limit for (_, creditor, _), line in live.items() if creditor == receiver)
    owes = sum((debt for (code, who, _), debt in world.debts.items() if (code, who) == (equivalent, sender)), NOTHING)
    owed = sum((debt for (code, _, to), debt in world.debts.items() if (code, to) == (equivalent, receiver)), NOTHING)
    whole, left = [out, into], [out - owes, into - owed]
    if (equivalent, receiver, sender) in live:
        limit = live[equivalent, receiver, sender].limit
        whole.append(limit)
        left.append(limit - world.debt(equivalent, sender, receiver))
    least = max(NOTHING, min(left))
    bonus = reciprocity(world)
    if bonus > 0 and world.debt(equivalent, receiver, sender) > 0:
        return min(down_to(ATOM, least * (1 + bonus)), *whole)
    return least


def reciprocity(world: World) -> Fraction:
    if "flow" not in world.scenario.get("settings", {}):
        return NOTHING
    return exact(world.section("flow").get("reciprocity_bonus", "0.15"))


def amount(
    world: World, live: Lines, sender: str, receiver: str, equivalent: str, profile: Profile, draw: Random
) -> Fraction | None:
    """Whole cents, or None if the position is skipped."""
    ceiling = min(
        upper_limit(world, live, sender, receiver, equivalent),
        bound(world, live, sender, receiver, equivalent, profile),
    )
    return up_to_ceiling(ceiling, equivalent, profile, draw)


def demand(
    world: World, live: Lines, sender: str, receiver: str, equivalent: str, profile: Profile, draw: Random
) -> Fraction | None:
    """The demanded amount, independent of debts."""
    return up_to_ceiling(bound(world, live, sender, receiver, equivalent, profile), equivalent, profile, draw)


def bound(world: World, live: Lines, sender: str, receiver: str, equivalent: str, profile: Profile) -> Fraction:
    """The smaller of cap and largest amount of the model; without both, limits bound models without percentiles."""
    model, cap = profile.model(equivalent), world.knobs.cap()
    bounds = [] if cap is None else [cap]
    if model is not None and model.max is not None:
        bounds.append(model.max)
    if bounds:
        return min(bounds)
    if model is not None and model.family == "normal":
        if (model.mean or model.p50) and (model.sd or model.p90):
            return LARGEST
    elif (
        model is not None
        and model.family != "triangular"
        and not model.shares
        and model.p50 is not None
        and model.p90 is not None
        and model.p90 > max(model.p50, LOWEST if model.min is None else model.min)
    ):
        return LARGEST
    out = [line.limit for (_, _, debtor), line in live.items() if debtor == sender]
    into = [line.limit for (_, creditor, _), line in live.items() if creditor == receiver]
    return min(max(out), max(into))


def up_to_ceiling(ceiling: Fraction, equivalent: str, profile: Profile, draw: Random) -> Fraction | None:
    model = profile.model(equivalent)
    least = least_of(model, ceiling)
    if ceiling <= 0 or (least is not None and least > ceiling):
        return None
    drawn = exact(drawn_amount(model, ceiling, least, draw))
    paid = down_to(CENT, min(drawn, ceiling))
    if least is not None and paid < least:
        paid = up_to(CENT, least)
    if paid <= 0 or paid > ceiling:
        return None
    return paid if is_accepted(profile, model, paid, ceiling, draw) else None


def least_of(model: Model | None, ceiling: Fraction) -> Fraction | None:
    if model is None or model.min is None:
        return None
    return down_to(ATOM, model.min * ceiling) if model.shares else model.min


def percentile(value: Fraction | None, model: Model, ceiling: Fraction) -> float | None:
    if value is None:
        return None
    return float(value) * float(ceiling) if model.shares else float(value)


def drawn_amount(model: Model | None, ceiling: Fraction, least: Fraction | None, draw: Random) -> float:
    top = float(ceiling)
    if model is None:
        return 0.1 + draw.random() * top
    low = float(LOWEST if least is None else least)
    if model.family == "normal":
        return max(low, draw.normalvariate(*bell(model, low, top)))
    p50, p90 = percentile(model.p50, model, ceiling), percentile(model.p90, model, ceiling)
    if p50 is None:
        return draw.triangular(low, top, (low + top) / 2)
    median = min(max(p50, low), top)
    if p90 is not None and model.family != "triangular":
        upper = min(max(p90, median), top)
        if upper > median:
            return draw.lognormvariate(log(median), log(upper / median) / NINETIETH)
    return draw.triangular(low, top, median)


def bell(model: Model, low: float, top: float) -> tuple[float, float]:
    """Mean and deviation of normal amounts."""
    centre = model.mean if model.mean is not None else model.p50
    mean = (low + top) / 2 if centre is None else float(centre)
    mean = min(max(mean, low), top)
    if model.sd is not None:
        return mean, float(model.sd)
    if centre is not None and model.p90 is not None and model.p90 > centre:
        return mean, (float(model.p90) - float(centre)) / NINETIETH
    return mean, (top - low) / 6


def acceptance(factor: float, paid: float, p50: float) -> float:
    """The probability that an amount is accepted."""
    damping = 1 + factor * log(max(paid / p50, 0.1))
    return 0.0 if damping <= 0 else min(1.0, max(0.0, 1 / damping))


def is_accepted(profile: Profile, model: Model | None, paid: Fraction, ceiling: Fraction, draw: Random) -> bool:
    if profile.periodicity == 1:
        return True
    p50 = None if model is None else percentile(model.p50, model, ceiling)
    if p50 is None and model is not None and model.mean is not None:
        p50 = float(model.mean)
    share = acceptance(profile.periodicity, float(paid), USUAL_MEDIAN if p50 is None else p50)
    return draw.random() <= share and share > 0
