"""What participants want to pay in a tick: candidates in a shuffled order, accepted one by one, receiver and amount.

The draws and their order are part of the contract: each position has a generator of its own, so that a smaller budget
gives a prefix of the same plan. Floats occur only here and only before an amount becomes whole cents.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import log
from typing import NamedTuple

from pendula.credit.ledger import Book, People
from pendula.credit.model import Flow, Multiplier, Profile
from pendula.credit.money import ATOMS, CENT
from pendula.credit.profiles import Behaviour, Model, behaviour
from pendula.kernel.rng import Mersenne, action_seed, reseedable, tick_generator, tick_seed

POSITIONS_PER_ACTION = 50
REACH_HOPS = 3
REACH_MOST = 200
LEAST_DRAW = 0.10
LOW_CENTS_SHARE = 1000
Z_90 = 1.281551565545
USUAL_P50 = 50.0


class Planned(NamedTuple):
    """One payment that is wanted; `cents` are hundredths of a unit."""

    seq: int
    book: Book
    sender: int
    receiver: int
    cents: int


class Reach:
    """Whom one participant can reach in one equivalent: all of them, and by group, each in the order of ids."""

    __slots__ = ("all", "by_group")

    def __init__(self, everybody: list[int], by_group: dict[str, list[int]]) -> None:
        self.all = everybody
        self.by_group = by_group


class Market:
    """One equivalent as the planner sees it; what follows from the lines alone is kept until the lines change."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._topology = -1
        self.candidates: list[int] = []
        self._reach: dict[int, Reach] = {}
        self._largest_out: dict[int, int] = {}
        self._largest_in: dict[int, int] = {}

    def refresh(self) -> None:
        """Forget what no longer holds."""
        book = self.book
        if self._topology == book.topology:
            for h in book.changed_lines:
                self._largest_out.pop(book.debtor[h], None)
                self._largest_in.pop(book.creditor[h], None)
            return
        self._topology = book.topology
        self.candidates = [h for h in range(len(book)) if book.limit[h] > 0 and book.live(h)]
        self._reach, self._largest_out, self._largest_in = {}, {}, {}

    def reach(self, sender: int) -> Reach:
        if sender not in self._reach:
            self._reach[sender] = self._found(sender)
        return self._reach[sender]

    def _found(self, sender: int) -> Reach:
        book, limit = self.book, self.book.limit
        seen, layer = {sender: None}, [sender]
        for _ in range(REACH_HOPS):
            fresh: list[int] = []
            for u in layer:
                for v, h in book.ways_out[u]:
                    if v not in seen and limit[h] > 0 and len(seen) < REACH_MOST:
                        seen[v] = None
                        fresh.append(v)
            layer = fresh
        del seen[sender]
        everybody = sorted(seen)
        by_group: dict[str, list[int]] = {}
        for node in everybody:
            group = book.people.all[node].group
            if group is not None:
                by_group.setdefault(group, []).append(node)
        return Reach(everybody, by_group)

    def largest_out(self, sender: int) -> int:
        found = self._largest_out.get(sender)
        if found is None:
            limit = self.book.limit
            found = max((limit[h] for _, h in self.book.ways_out[sender]), default=0)
            self._largest_out[sender] = found
        return found

    def largest_in(self, receiver: int) -> int:
        found = self._largest_in.get(receiver)
        if found is None:
            limit = self.book.limit
            found = max((limit[h] for _, h in self.book.ways_in[receiver]), default=0)
            self._largest_in[receiver] = found
        return found

    def most(self, sender: int, receiver: int, bonus: Fraction) -> int:
        """The most that may be wanted: the largest limits of both ends less what is used, in atoms."""
        book = self.book
        out, into = self.largest_out(sender), self.largest_in(receiver)
        found = min(out - book.debts[sender], into - book.claims[receiver])
        unreduced = min(out, into)
        h = book.hop[sender].get(receiver)
        if h is not None and book.limit[h] > 0 and book.live(h):
            found = min(found, book.limit[h] - max(0, book.owed[h]))
            unreduced = min(unreduced, book.limit[h])
        found = max(0, found)
        if bonus and book.owes(receiver, sender) > 0:
            grown = found * (bonus.denominator + bonus.numerator) // bonus.denominator
            found = min(grown, max(unreduced, found))
        return found


class Planner:
    """The behaviour of everybody in a run; knows profiles and flow, draws as the requirements say."""

    def __init__(
        self,
        people: People,
        markets: Sequence[Market],
        profiles: Mapping[str, Profile],
        flow: Flow,
        presets: bool,
        cap: int | None,
    ) -> None:
        self.people = people
        self.markets = markets
        self.cap = cap
        self.flow = flow
        self.bonus = Fraction(flow.reciprocity_bonus)
        self.affinity = float(flow.default_affinity)
        known: dict[str | None, Behaviour] = {}
        for one in people.all:
            if one.profile not in known:
                known[one.profile] = behaviour(one.profile, profiles, presets)
        self.behaviours = [known[one.profile] for one in people.all]
        self.by_profile = known
        self.groups = sorted({one.group for one in people.all if one.group is not None})
        self._candidates: list[tuple[float, int, Market]] | None = None
        self._known: object = None

    def plan(self, seed: int, tick: int, budget: int, multipliers: tuple[Multiplier, ...] = ()) -> list[Planned]:
        """At most `budget` payments, numbered from 0."""
        candidates = self._accepting(multipliers)
        if not budget or not candidates:
            return []
        order = list(candidates)
        tick_generator(seed, tick).shuffle(order)
        base, count = tick_seed(seed, tick), len(order)
        draw, reseed = reseedable()
        planned: list[Planned] = []
        idle: dict[tuple[Market, int], bool] = {}
        for position in range(POSITIONS_PER_ACTION * budget):
            chance, sender, market = order[position % count]
            if chance == 0.0:
                continue
            key = (market, sender)
            if key not in idle:
                idle[key] = self._is_idle(market, sender)
            # Positions share no generator: where nothing can come of one, its draws are not missed.
            if idle[key]:
                continue
            reseed(action_seed(base, position))
            if draw.random() > chance:
                continue
            wanted = self._want(draw, market, sender)
            if wanted is not None:
                planned.append(Planned(len(planned), market.book, sender, *wanted))
                if len(planned) == budget:
                    break
        return planned

    def _accepting(self, multipliers: tuple[Multiplier, ...]) -> list[tuple[float, int, Market]]:
        """Every candidate with the chance that it is accepted, in the order (equivalent, creditor, debtor)."""
        for market in self.markets:
            market.refresh()
        known = (multipliers, tuple(market.book.topology for market in self.markets))
        if self._candidates is None or known != self._known:
            rates = [self._rate(node, multipliers) for node in range(len(self.people))]
            self._candidates = []
            for market in self.markets:
                code, debtor = market.book.code, market.book.debtor
                chances = [rate * one.weight(code) for rate, one in zip(rates, self.behaviours, strict=True)]
                self._candidates += [(chances[debtor[h]], debtor[h], market) for h in market.candidates]
            self._known = known
        return self._candidates

    def _rate(self, node: int, multipliers: tuple[Multiplier, ...]) -> float:
        one, rate = self.people.all[node], self.behaviours[node].tx_rate
        for multiplier in multipliers:
            if multiplier.scope in ("all", f"group:{one.group}", f"profile:{one.profile}"):
                rate *= multiplier.value
        return min(max(rate, 0.0), 1.0)

    def _is_idle(self, market: Market, sender: int) -> bool:
        """Whether no receiver and no draw could make this sender pay: it may owe no more, or less than it ever pays."""
        book, model = market.book, self.behaviours[sender].model(market.book.code)
        out = market.largest_out(sender)
        left = out - book.debts[sender]
        if left <= 0 or not market.reach(sender).all:
            return True
        grown = left * (self.bonus.denominator + self.bonus.numerator) // self.bonus.denominator
        ceiling = self._ceiling(min(grown, out), model)
        return ceiling < CENT or (model is not None and _least(model, ceiling) > ceiling)

    def _want(self, draw: Mersenne, market: Market, sender: int) -> tuple[int, int] | None:
        """The receiver and the cents, or None where this position wants nothing."""
        behaviour = self.behaviours[sender]
        receiver = self._receiver(draw, market, sender, behaviour)
        if receiver is None:
            return None
        model = behaviour.model(market.book.code)
        ceiling = self._ceiling(market.most(sender, receiver, self.bonus), model)
        cents = _cents(draw, ceiling, model)
        if cents is None:
            return None
        if behaviour.periodicity != 1.0 and not _in_turn(draw, cents, ceiling, model, behaviour.periodicity):
            return None
        return receiver, cents

    def _receiver(self, draw: Mersenne, market: Market, sender: int, behaviour: Behaviour) -> int | None:
        reach = market.reach(sender)
        if not reach.all:
            return None
        group = self.people.all[sender].group
        if self.flow.enabled and group is not None and behaviour.chains:
            affinity = self.affinity if behaviour.affinity is None else behaviour.affinity
            if draw.random() < affinity:
                targets = [target for start, target in behaviour.chains if start == group]
                if targets:
                    members = reach.by_group.get(draw.choice(targets))
                    if members:
                        return draw.choice(members)
        if behaviour.groups:
            members = reach.by_group.get(_roulette(draw, behaviour.groups))
            if members:
                return draw.choice(members)
        if self.groups:
            order = list(self.groups)
            draw.shuffle(order)
            for name in order:
                members = reach.by_group.get(name)
                if members:
                    return draw.choice(members)
            # Nobody within reach has a group.
        return draw.choice(reach.all)

    def _ceiling(self, most: int, model: Model | None) -> int:
        ceiling = most if self.cap is None else min(most, self.cap)
        return ceiling if model is None or model.max is None else min(ceiling, model.max)


def _cents(draw: Mersenne, ceiling: int, model: Model | None) -> int | None:
    """An amount up to the ceiling; None where the ceiling allows none."""
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
    """A raw amount of the model: log-normal where two percentiles tell how, triangular otherwise."""
    top = ceiling / ATOMS
    low = LEAST_DRAW if model.min is None else least / ATOMS
    scale = top if model.shares else 1.0
    p50 = None if model.p50 is None else min(max(model.p50 * scale, low), top)
    if p50 is not None and model.p90 is not None:
        p90 = min(max(model.p90 * scale, p50), top)
        if p90 > p50:
            return draw.lognormvariate(log(p50), log(p90 / p50) / Z_90)
    mode = p50 if p50 is not None else min(max((low + top) / 2, low), top)
    return draw.triangular(low, top, mode)


def _floor_cents(raw: float) -> int:
    """Whole cents of the shortest decimal form of a draw."""
    whole, _, fraction = repr(raw).partition(".")
    if "e" in fraction or "e" in whole:
        return int(Fraction(repr(raw)) * 100)
    return int(whole) * 100 + int((fraction + "0")[:2])


def _in_turn(draw: Mersenne, cents: int, ceiling: int, model: Model | None, factor: float) -> bool:
    """Large amounts come less often."""
    p50 = USUAL_P50 if model is None or model.p50 is None else model.p50
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
    """How many payments a tick may plan; exact."""
    found = most * percent * ramp.numerator // (100 * ramp.denominator)
    return max(found, least) if percent > 0 else found


def ramp(ticks: int, floor: Fraction, tick: int) -> Fraction:
    """From `floor` to 1 over the first `ticks` ticks."""
    if tick >= ticks:
        return Fraction(1)
    low = min(max(floor, Fraction(0)), Fraction(1))
    return low + (1 - low) * Fraction(tick, ticks)
