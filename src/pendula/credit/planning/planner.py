"""Plans the payments of a tick: candidates in a shuffled order, accepted one by one, with receiver and amount.

The draws and their order are part of the contract: each position has its own generator, so that a smaller budget
gives a prefix of the same plan. Floats occur only here and only before an amount becomes whole cents.

The first number of a generator per position decides whether a candidate is accepted, and seeding that generator is most
of the work of a plan. Two runs of one seed use the same generators, whatever their settings: with `Draws`, the second
run looks up the draws of the first, and seeds only for accepted candidates. The order of candidates is cached, too.
"""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import log, nan
from typing import NamedTuple, TypeVar

from pendula.credit.ledger.book import Book, People
from pendula.credit.model import Flow, Multiplier, Profile
from pendula.credit.money import ATOMS, CENT, MOST
from pendula.credit.planning.profiles import Behaviour, Family, Model, behaviour
from pendula.kernel.rng import Mersenne, action_seed, reseedable, tick_generator, tick_seed

T = TypeVar("T")

BYTES_MOST = 256 * 1024 * 1024


class Draws:
    """Numbers by (seed, tick, position); stores at most about `most` bytes."""

    def __init__(self, most: int = BYTES_MOST) -> None:
        self._first: dict[tuple[int, int], array[float]] = {}
        self._orders: dict[tuple[int, int, int], array[int]] = {}
        self._left = most

    def first(self, seed: int, tick: int, positions: int) -> "array[float]":
        """The first draws of positions, NaN where unknown; the caller fills them in."""
        known = self._first.get((seed, tick))
        if known is None:
            known = array("d")
            if self._left > 0:
                self._first[seed, tick] = known
        if len(known) < positions:
            self._left -= 8 * (positions - len(known))
            known.extend([nan] * (positions - len(known)))
        return known

    def order(self, seed: int, tick: int, count: int) -> "array[int] | None":
        """The order of so many candidates in this tick, if it is known."""
        return self._orders.get((seed, tick, count))

    def keep_order(self, seed: int, tick: int, order: list[int]) -> None:
        if self._left > 0:
            self._left -= 4 * len(order)
            self._orders[seed, tick, len(order)] = array("i", order)


def candidate_order(draws: Draws | None, seed: int, tick: int, candidates: Sequence[T]) -> list[T]:
    """The candidates in the shuffled order of the tick."""
    if draws is None:
        return shuffled(tick_generator(seed, tick), candidates)
    places = draws.order(seed, tick, len(candidates))
    if places is None:
        fresh = shuffled(tick_generator(seed, tick), range(len(candidates)))
        draws.keep_order(seed, tick, fresh)
        return [candidates[place] for place in fresh]
    return [candidates[place] for place in places]


def shuffled(draw: Mersenne, items: Sequence[T]) -> list[T]:
    """A shuffled copy: same draws and order as `draw.shuffle`, in less than half of its time."""
    result, bits = list(items), draw.getrandbits
    for at in range(len(result) - 1, 0, -1):
        width = (at + 1).bit_length()
        other = bits(width)
        while other > at:
            other = bits(width)
        result[at], result[other] = result[other], result[at]
    return result


POSITIONS_PER_ACTION = 50
REACH_HOPS = 3
REACH_MOST = 200
LEAST_DRAW = 0.10
LOW_CENTS_SHARE = 1000
Z_90 = 1.281551565545
USUAL_P50 = 50.0
_MASK = 0xFFFFFFFF
NEVER = -2  # debts below any that a participant can have


class Planned(NamedTuple):
    """One planned payment, in cents.

    `wanted` is the demand before the ledger capped it. It is 0 for a payment beyond the demand, which replaces that of
    a payer without capacity.
    """

    seq: int
    book: Book
    sender: int
    receiver: int
    cents: int
    wanted: int = 0


class Plan(NamedTuple):
    """The payments of a tick, and its total demand in cents by equivalent."""

    payments: list[Planned]
    wanted: dict[str, int]


class Market:
    """One equivalent as the planner sees it; caches everything derived from lines until they change."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._topology = -1
        self.candidates: list[int] = []
        self._members: dict[tuple[int, str | None], tuple[int, ...]] = {}
        self._others: dict[tuple[int, str], tuple[int, ...]] = {}
        self._groups: dict[str, set[int]] = {}
        self._out: Sequence[tuple[int, ...]] = ()
        self.spare: dict[int, int] = {}
        self._largest_out: dict[int, int] = {}
        self._largest_in: dict[int, int] = {}

    def refresh(self) -> None:
        """Drop outdated caches."""
        book = self.book
        if self._topology == book.topology:
            for h in book.changed_lines:
                self._largest_out.pop(book.debtor[h], None)
                self.spare.pop(book.debtor[h], None)
                self._largest_in.pop(book.creditor[h], None)
            return
        self._topology = book.topology
        self.candidates = [h for h in range(len(book)) if book.limit[h] > 0 and book.live(h)]
        self._members, self._largest_out, self._largest_in, self.spare = {}, {}, {}, {}
        self._others, self._groups = {}, {}
        for node, person in enumerate(book.people.all):
            if person.group is not None:
                self._groups.setdefault(person.group, set()).add(node)
        self._out = self._hops()

    def _hops(self) -> Sequence[tuple[int, ...]]:
        """Neighbours over live lines with a limit; reuses those of the book if all lines have one."""
        book, limit = self.book, self.book.limit
        if all(limit[h] > 0 for h in range(len(book)) if book.live(h)):
            return book.out
        return [tuple(v for v in ways if limit[book.hop[u][v]] > 0) for u, ways in enumerate(book.out)]

    def members(self, sender: int, group: str | None) -> tuple[int, ...]:
        """Participants the sender can reach, of one group or of all, in the order of ids."""
        key = (sender, group)
        nodes = self._members.get(key)
        if nodes is None:
            reached = self._reached(sender)
            # Iterating over a set is safe here: the result is sorted.
            nodes = tuple(sorted(reached if group is None else reached & self._groups.get(group, set())))
            self._members[key] = nodes
        return nodes

    def others(self, sender: int, group: str) -> tuple[int, ...]:
        """Participants the sender can reach outside a group, in the order of ids."""
        nodes = self._others.get((sender, group))
        if nodes is None:
            within = self._groups.get(group, set())
            nodes = tuple(node for node in self.members(sender, None) if node not in within)
            self._others[sender, group] = nodes
        return nodes

    def _reached(self, sender: int) -> set[int]:
        out, seen, layer = self._out, {sender}, {sender}
        for _ in range(REACH_HOPS):
            layer = set().union(*[out[node] for node in layer]) - seen
            if len(seen) + len(layer) >= REACH_MOST:
                return self._reached_in_order(sender)
            seen |= layer
        seen.discard(sender)
        return seen

    def _reached_in_order(self, sender: int) -> set[int]:
        """The same in order: beyond `REACH_MOST`, the order of ids decides who is included."""
        out, seen, layer = self._out, {sender}, [sender]
        for _ in range(REACH_HOPS):
            fresh: list[int] = []
            for u in layer:
                for v in out[u]:
                    if v not in seen and len(seen) < REACH_MOST:
                        seen.add(v)
                        fresh.append(v)
            layer = fresh
        seen.discard(sender)
        return seen

    def largest_out(self, sender: int) -> int:
        largest = self._largest_out.get(sender)
        if largest is None:
            limit, hop = self.book.limit, self.book.hop[sender]
            largest = max((limit[hop[v]] for v in self.book.out[sender]), default=0)
            self._largest_out[sender] = largest
        return largest

    def largest_in(self, receiver: int) -> int:
        largest = self._largest_in.get(receiver)
        if largest is None:
            limit, hop = self.book.limit, self.book.hop
            largest = max((limit[hop[u][receiver]] for u in self.book.into[receiver]), default=0)
            self._largest_in[receiver] = largest
        return largest

    def most(self, sender: int, receiver: int, bonus: Fraction) -> int:
        """The largest amount to plan: the largest limits of both ends less what is used, in atoms."""
        book = self.book
        out, into = self.largest_out(sender), self.largest_in(receiver)
        headroom = min(out - book.debts[sender], into - book.claims[receiver])
        unreduced = min(out, into)
        h = book.hop[sender].get(receiver)
        if h is not None and book.limit[h] > 0 and book.live(h):
            headroom = min(headroom, book.limit[h] - max(0, book.owed[h]))
            unreduced = min(unreduced, book.limit[h])
        headroom = max(0, headroom)
        if bonus and book.owes(receiver, sender) > 0:
            grown = headroom * (bonus.denominator + bonus.numerator) // bonus.denominator
            headroom = min(grown, max(unreduced, headroom))
        return headroom


Candidate = tuple[float, int, Market]


class Planner:
    """Plans payments from profiles and flow; its draws are part of the requirements."""

    def __init__(
        self,
        people: People,
        markets: Sequence[Market],
        profiles: Mapping[str, Profile],
        flow: Flow,
        presets: bool,
        cap: int | None,
    ) -> None:
        self.draws: Draws | None = None
        self.people = people
        self.markets = markets
        self.cap = cap
        self.flow = flow
        self.bonus = Fraction(flow.reciprocity_bonus)
        self.affinity = float(flow.default_affinity)
        known: dict[str | None, Behaviour] = {}
        for participant in people.all:
            if participant.profile not in known:
                known[participant.profile] = behaviour(participant.profile, profiles, presets)
        self.behaviours = [known[participant.profile] for participant in people.all]
        self.by_profile = known
        self.groups = sorted({participant.group for participant in people.all if participant.group is not None})
        self._candidates: list[Candidate] | None = None
        self._known: object = None
        self._by_intensity = any(entry.base_p for entry in known.values())
        for market in markets:
            # `spare` depends on the cap and the profiles of this planner.
            market.spare.clear()

    def plan(
        self, seed: int, tick: int, budget: int, multipliers: tuple[Multiplier, ...] = (), intensity: int = 100
    ) -> list[Planned]:
        """At most `budget` payments, numbered from 0."""
        return self.plan_with_demand(seed, tick, budget, multipliers, intensity).payments

    def plan_with_demand(
        self, seed: int, tick: int, budget: int, multipliers: tuple[Multiplier, ...] = (), intensity: int = 100
    ) -> Plan:
        """At most `budget` payments, and the demand of the first `budget` accepted candidates.

        The demand does not depend on limits or debts.
        """
        candidates = self._accepting(multipliers, intensity)
        plan = Plan([], {})
        if not budget or not candidates:
            return plan
        order, most = candidate_order(self.draws, seed, tick, candidates), POSITIONS_PER_ACTION * budget
        first = action_seed(tick_seed(seed, tick), 0)
        known = () if self.draws is None else self.draws.first(seed, tick, most)
        draw, reseed = reseedable()
        random = draw.random
        demand = _Demand(budget)
        for position, chance, sender, market, able in self._hopeful(order, most, demand):
            # Comparisons with NaN are false: unknown numbers are drawn.
            if known and known[position] > chance:
                continue
            number = (first + position) & _MASK
            reseed(number)
            drawn = random()
            if known:
                known[position] = drawn
            if drawn > chance:
                continue
            receiver = self._receiver(draw, market, sender)
            bound = self._bound(market, sender, receiver)
            ceiling = self._ceiling(market, sender, receiver, bound) if able else 0
            cents = self._cents(draw, market, sender, ceiling)
            wanted = cents
            if demand.open and ceiling < bound:
                # Repeat the same draws, up to acceptance and receiver, with another ceiling.
                reseed(number)
                random()
                self._receiver(draw, market, sender)
                wanted = self._cents(draw, market, sender, bound)
            if wanted is not None and demand.open:
                demand.open -= 1
                code = market.book.code
                plan.wanted[code] = plan.wanted.get(code, 0) + wanted
            else:
                wanted = 0
            if cents is not None and len(plan.payments) < budget:
                plan.payments.append(Planned(len(plan.payments), market.book, sender, receiver, cents, wanted))
            if len(plan.payments) == budget and not demand.open:
                break
        return plan

    def _hopeful(
        self, order: list[Candidate], most: int, demand: "_Demand"
    ) -> Iterator[tuple[int, float, int, Market, bool]]:
        """Positions below `most` whose candidate may want something, with the candidate and whether it can pay.

        Senders that owe too much cannot pay, whatever the draws; they are skipped once the demand is known, because
        seeding a generator is most of the work.
        """
        accepted: list[tuple[int, float, int, Market, bool]] = []
        for position, (chance, sender, market) in enumerate(order[:most]):
            if chance:
                spare = market.spare.get(sender)
                if spare is None:
                    spare = market.spare[sender] = self._spare(market, sender)
                if spare != NEVER:
                    able = self.behaviours[sender].fixed_demand or market.book.debts[sender] <= spare
                    candidate = (position, chance, sender, market, able)
                    accepted.append(candidate)
                    if able or demand.open:
                        yield candidate
        if not accepted:
            return
        for begin in range(len(order), most, len(order)):
            for place, chance, sender, market, able in accepted:
                if begin + place >= most:
                    return
                if able or demand.open:
                    yield begin + place, chance, sender, market, able

    def _spare(self, market: Market, sender: int) -> int:
        """The debts above which the sender cannot pay any receiver; -1 if its lines are too small.

        `NEVER` where the cap or the largest amount of the profile forbids it, whatever the lines are.
        """
        model = self.behaviours[sender].model(market.book.code)
        least = 0 if model is None or model.min is None or model.shares else model.min
        needed = max(CENT, least)
        ceilings = [most for most in (self.cap, None if model is None else model.max) if most is not None]
        if any(needed > most for most in ceilings):
            return NEVER
        whole = self.bonus.denominator
        return max(-1, market.largest_out(sender) - -(-needed * whole // (whole + self.bonus.numerator)))

    def _accepting(self, multipliers: tuple[Multiplier, ...], intensity: int) -> list[Candidate]:
        """Every candidate with its probability of acceptance, in the order (equivalent, creditor, debtor)."""
        for market in self.markets:
            market.refresh()
        at = intensity if self._by_intensity else None
        known = (multipliers, at, tuple(market.book.topology for market in self.markets))
        if self._candidates is None or known != self._known:
            rates = [self._rate(node, multipliers, intensity) for node in range(len(self.people))]
            self._candidates = []
            for market in self.markets:
                code, debtor = market.book.code, market.book.debtor
                chances = [rate * pattern.weight(code) for rate, pattern in zip(rates, self.behaviours, strict=True)]
                self._candidates += [(chances[debtor[h]], debtor[h], market) for h in market.candidates]
            self._known = known
        return self._candidates

    def _rate(self, node: int, multipliers: tuple[Multiplier, ...], intensity: int) -> float:
        one, rate = self.people.all[node], self.behaviours[node].rate(intensity)
        for multiplier in multipliers:
            if multiplier.scope in ("all", f"group:{one.group}", f"profile:{one.profile}"):
                rate *= multiplier.value
        return min(max(rate, 0.0), 1.0)

    def _bound(self, market: Market, sender: int, receiver: int) -> int:
        """The ceiling of the demand, independent of debts: the cap and the largest amount of the profile.

        Where neither is given and the amounts have no percentiles of their own, the limits of both ends bound it.
        """
        model = self.behaviours[sender].model(market.book.code)
        ceilings = [most for most in (self.cap, None if model is None else model.max) if most is not None]
        if ceilings:
            return min(ceilings)
        if model is not None and _has_percentiles(model):
            return MOST
        return min(market.largest_out(sender), market.largest_in(receiver))

    def _ceiling(self, market: Market, sender: int, receiver: int, bound: int) -> int:
        """The ceiling of the plan: the bound and, except for a fixed demand, the remaining capacity of both ends."""
        if self.behaviours[sender].fixed_demand:
            return bound
        return min(bound, market.most(sender, receiver, self.bonus))

    def _cents(self, draw: Mersenne, market: Market, sender: int, ceiling: int) -> int | None:
        """The amount of a position, or None if the ceiling allows none."""
        behaviour = self.behaviours[sender]
        model = behaviour.model(market.book.code)
        cents = _cents(draw, ceiling, model)
        if cents is None or behaviour.periodicity == 1.0:
            return cents
        return cents if _in_turn(draw, cents, ceiling, model, behaviour.periodicity) else None

    def _receiver(self, draw: Mersenne, market: Market, sender: int) -> int:
        """Draw a receiver; a candidate has a line to pay over, so one is always reachable."""
        behaviour = self.behaviours[sender]
        group = self.people.all[sender].group
        if self.flow.enabled and group is not None and behaviour.chains:
            affinity = self.affinity if behaviour.affinity is None else behaviour.affinity
            if draw.random() < affinity:
                targets = [target for start, target in behaviour.chains if start == group]
                if targets:
                    members = market.members(sender, draw.choice(targets))
                    if members:
                        return draw.choice(members)
        if group is not None and behaviour.cluster_bias is not None:
            inside, outside = market.members(sender, group), market.others(sender, group)
            first, second = (inside, outside) if draw.random() < behaviour.cluster_bias else (outside, inside)
            return draw.choice(first or second)
        if behaviour.groups:
            members = market.members(sender, _roulette(draw, behaviour.groups))
            if members:
                return draw.choice(members)
        if self.groups:
            order = list(self.groups)
            draw.shuffle(order)
            for name in order:
                members = market.members(sender, name)
                if members:
                    return draw.choice(members)
            # No reachable participant has a group.
        return draw.choice(market.members(sender, None))


class _Demand:
    """The number of candidates whose demand is still open."""

    def __init__(self, budget: int) -> None:
        self.open = budget


def _has_percentiles(model: Model) -> bool:
    """Whether amounts are log-normal by absolute percentiles, which need no ceiling."""
    if model.family is Family.NORMAL:
        return (model.mean or model.p50) is not None and (model.deviation or model.p90) is not None
    if model.shares or model.p50 is None or model.p90 is None or model.family is Family.TRIANGULAR:
        return False
    low = LEAST_DRAW if model.min is None else model.min / ATOMS
    return model.p90 > max(model.p50, low)


def _cents(draw: Mersenne, ceiling: int, model: Model | None) -> int | None:
    """An amount up to the ceiling; None if the ceiling allows none."""
    if ceiling <= 0:
        return None
    least = 0 if model is None else _least(model, ceiling)
    if least > ceiling:
        return None
    raw = 0.1 + draw.random() * (ceiling / ATOMS) if model is None else _drawn(draw, model, ceiling, least)
    cents = min(_floor_cents(raw), ceiling // CENT)
    if cents * CENT < least:
        cents = -(-least // CENT)
        if cents * CENT > ceiling:
            return None
    return cents if cents > 0 else None


def _least(model: Model, ceiling: int) -> int:
    if model.min is None:
        return 0
    return ceiling * model.min // LOW_CENTS_SHARE if model.shares else model.min


def _drawn(draw: Mersenne, model: Model, ceiling: int, least: int) -> float:
    """A raw amount of the model: of its family, else log-normal if two percentiles are given, else triangular."""
    top = ceiling / ATOMS
    low = LEAST_DRAW if model.min is None else least / ATOMS
    scale = top if model.shares else 1.0
    if model.family is Family.NORMAL:
        return max(low, draw.normalvariate(*_normal(model, low, top)))
    p50 = None if model.p50 is None else min(max(model.p50 * scale, low), top)
    if p50 is not None and model.p90 is not None and model.family is not Family.TRIANGULAR:
        p90 = min(max(model.p90 * scale, p50), top)
        if p90 > p50:
            return draw.lognormvariate(log(p50), log(p90 / p50) / Z_90)
    mode = p50 if p50 is not None else min(max((low + top) / 2, low), top)
    return draw.triangular(low, top, mode)


def _normal(model: Model, low: float, top: float) -> tuple[float, float]:
    """Mean and standard deviation: as given, else from the percentiles, else from the bounds."""
    middle = model.p50 if model.mean is None else model.mean
    mean = min(max((low + top) / 2 if middle is None else middle, low), top)
    if model.deviation is not None:
        return mean, model.deviation
    if model.p90 is not None and middle is not None and model.p90 > middle:
        return mean, (model.p90 - middle) / Z_90
    return mean, (top - low) / 6


def _floor_cents(raw: float) -> int:
    """Whole cents of the shortest decimal form of a draw."""
    whole, _, fraction = repr(raw).partition(".")
    if "e" in fraction or "e" in whole:
        return int(Fraction(repr(raw)) * 100)
    return int(whole) * 100 + int((fraction + "0")[:2])


def _in_turn(draw: Mersenne, cents: int, ceiling: int, model: Model | None, factor: float) -> bool:
    """Large amounts are less frequent."""
    middle = None if model is None else model.mean if model.p50 is None else model.p50
    p50 = USUAL_P50 if middle is None else middle
    if model is not None and model.shares:
        p50 *= ceiling / ATOMS
    divisor = 1 + factor * log(max(cents / 100 / p50, 0.1))
    chance = 0.0 if divisor <= 0 else min(max(1 / divisor, 0.0), 1.0)
    return draw.random() <= chance


def _roulette(draw: Mersenne, weights: tuple[tuple[str, float], ...]) -> str:
    total = 0.0
    for _, weight in weights:
        total += weight
    wanted, sum_so_far = draw.random() * total, 0.0
    for name, weight in weights:
        sum_so_far += weight
        if sum_so_far >= wanted:
            return name
    return weights[-1][0]


def budget(most: int, least: int, percent: int, ramp: Fraction) -> int:
    """The number of payments a tick may plan; exact."""
    actions = most * percent * ramp.numerator // (100 * ramp.denominator)
    return max(actions, least) if percent > 0 else actions


def ramp(ticks: int, floor: Fraction, tick: int) -> Fraction:
    """From `floor` to 1 over the first `ticks` ticks."""
    if tick >= ticks:
        return Fraction(1)
    low = min(max(floor, Fraction(0)), Fraction(1))
    return low + (1 - low) * Fraction(tick, ticks)
