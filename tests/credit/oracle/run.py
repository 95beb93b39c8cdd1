"""A run of the oracle: the phases of each tick, and their results."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from hashlib import sha256
from math import floor
from typing import Any

from tests.credit.oracle.adaptive import PREFIX, Decision, Policy
from tests.credit.oracle.clearing import Cleared, clear, reduction, volume
from tests.credit.oracle.drift import Change, decay, grow, lines_of
from tests.credit.oracle.ledger import broken_laws, digest_text, positions
from tests.credit.oracle.money import exact, text
from tests.credit.oracle.plan import Planned, budget, planned
from tests.credit.oracle.routes import NO_CAPACITY, Outcome, pay
from tests.credit.oracle.timeline import Dated, apply_due, dated
from tests.credit.oracle.world import Debts, Lines, Name, World, world_of

STATIC = "STATIC_CADENCE"
DATED = "SCENARIO"
GUARDED = "CLEARING_SKIPPED_GUARDRAIL"
TOO_MANY = "CLEARING_SKIPPED_MAX_EQ_PER_TICK"


@dataclass(frozen=True)
class Call:
    """One clearing call; the reason is the policy's."""

    equivalent: str
    reason: str
    depth: int
    cycles: tuple[Cleared, ...]
    cleared_amount: Fraction
    debt_reduction: Fraction


@dataclass(frozen=True)
class Order:
    """A payment to attempt: the tick of its plan, its entry in that plan, and the demand it serves."""

    tick: int
    action: Planned
    wanted: Fraction


@dataclass
class OracleTick:
    """What one tick did, and the books after it."""

    tick: int
    injected: list[tuple[int, int, int, Fraction]] = field(default_factory=list)
    plan: list[Planned] = field(default_factory=list)
    own: list[Order] = field(default_factory=list)
    tried: list[Order] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    decisions: dict[str, Decision] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    waiting: int = 0
    growth: list[Change] = field(default_factory=list)
    decay: list[Change] = field(default_factory=list)
    debts: Debts = field(default_factory=dict)
    lines: Lines = field(default_factory=dict)
    # by equivalent: wanted, served, volume
    demand: dict[str, tuple[Fraction, Fraction, Fraction]] = field(default_factory=dict)
    plan_digest: str = ""
    ledger_digest: str = ""


@dataclass
class Counters:
    attempts_total: int = 0
    committed_total: int = 0
    rejected_total: int = 0
    errors_total: int = 0
    timeouts_total: int = 0
    dropped_total: int = 0
    consec_all_rejected_ticks: int = 0


@dataclass
class OracleRun:
    """The ticks of a run, its counters and the two running digests."""

    ticks: list[OracleTick] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    plan_digest: str = ""
    ledger_digest: str = ""


def run(
    scenario: Mapping[str, Any], seed: int, ticks: int, intensity: int = 100, settings: Mapping[str, str] = {}
) -> OracleRun:
    """Run a scenario from tick 0; work limits are never reached."""
    world = world_of(scenario, settings)
    policies = {equivalent: Policy(world.knobs) for equivalent in world.equivalents}
    ran, plans, books = OracleRun(), sha256(), sha256()
    queue: list[Order] = []
    for index in range(ticks):
        tick = run_tick(world, policies, ran.counters, queue, seed, index, intensity)
        queue = queue_after(world, queue, tick, intensity, ran.counters)
        for action in tick.plan:
            plans.update(("|".join(str(part) for part in (index, *action)) + "\n").encode())
        for line in digest_text(world, index):
            books.update(line.encode())
        tick.plan_digest, tick.ledger_digest = plans.hexdigest(), books.hexdigest()
        ran.ticks.append(tick)
    ran.plan_digest, ran.ledger_digest = plans.hexdigest(), books.hexdigest()
    return ran


def run_tick(
    world: World,
    policies: dict[str, Policy],
    counters: Counters,
    queue: list[Order],
    seed: int,
    index: int,
    intensity: int,
) -> OracleTick:
    tick = OracleTick(index)
    sim_time_ms = index * world.knobs.number("SIMULATOR_TICK_MS_BASE")
    tick.injected = apply_due(world, sim_time_ms)
    due, silent = dated(world, sim_time_ms), budget(world, index, intensity) == 0
    first = [dated_action(seq, event) for seq, event in enumerate(entry for entry in due if entry.payment is not None)]
    rest, demands = planned(world, seed, index, intensity)
    tick.plan = first + [(action[0] + len(first), *action[1:]) for action in rest]
    by_seq = {seq: amount for seq, _, amount in demands if seq is not None}
    own = [Order(index, action, exact(action[4])) for action in first]
    own += [Order(index, action, by_seq.get(action[0] - len(first), Fraction(0))) for action in tick.plan[len(first) :]]
    late = [] if silent else queue
    tick.own = own
    tick.tried = [*own[: len(first)], *late, *own[len(first) :]][: allowed(world)]
    execute(world, tick, counters, due)
    for equivalent in world.equivalents:
        fresh = [amount for _, code, amount in demands if code == equivalent]
        known = [action for action in first if action[1] in world.participants and action[2] in world.participants]
        fresh += [exact(action[4]) for action in known if action[3] == equivalent]
        tick.demand[equivalent] = (sum(fresh, Fraction(0)), *paid_in(tick, equivalent))
    tick.waiting = len(queue_after(world, queue, tick, intensity, Counters()))
    before = {equivalent: positions(world.debts, equivalent) for equivalent in world.equivalents}
    if world.knobs.is_on("CLEARING_ENABLED"):
        clear_by_policy(world, policies, tick, silent)
    if before != {equivalent: positions(world.debts, equivalent) for equivalent in world.equivalents}:
        raise AssertionError("clearing changed a net position")
    cleared: list[Name] = [name for call in tick.calls for name in lines_of(call.equivalent, list(call.cycles))]
    tick.decay = [] if silent else decay(world, cleared)
    broken = broken_laws(world.debts, world.lines)
    if broken:
        raise AssertionError(f"tick {index}: {broken}")
    tick.debts, tick.lines = dict(world.debts), deepcopy(world.lines)
    return tick


def dated_action(seq: int, entry: Dated) -> Planned:
    if entry.payment is None:
        raise AssertionError("a clearing is no payment")
    sender, receiver, amount = entry.payment
    return seq, sender, receiver, entry.equivalent, text(amount, 2)


def paid_in(tick: OracleTick, equivalent: str) -> tuple[Fraction, Fraction]:
    """The paid part of the demand, now or earlier, and the paid volume."""
    served = volume = Fraction(0)
    for order, outcome in zip(tick.tried, tick.outcomes, strict=True):
        if outcome.code is None and order.action[3] == equivalent:
            paid = exact(order.action[4])
            volume += paid
            served += min(paid, order.wanted)
    return served, volume


def allowed(world: World) -> int | None:
    """How many payments the rate limit allows in a tick; None without a limit."""
    limit = world.knobs.ratio("SIMULATOR_MAX_PAYMENTS_PER_SEC")
    if limit <= 0:
        return None
    return max(1, floor(limit * world.knobs.number("SIMULATOR_TICK_MS_BASE") / 1000))


def queue_after(world: World, queue: list[Order], tick: OracleTick, intensity: int, counters: Counters) -> list[Order]:
    """The waiting payments after a tick, oldest first; the others are dropped."""
    silent = budget(world, tick.tick, intensity) == 0
    left = [order for order in queue if silent or order not in tick.tried]
    held = [order for order in tick.own if order not in tick.tried]
    waiting = left + held
    most = world.knobs.number("SIMULATOR_QUEUE_MAX") if world.knobs.word("SIMULATOR_ON_LIMIT") == "wait" else 0
    waiting_after = waiting[: max(most, len(left) if silent else 0)]
    counters.dropped_total += len(waiting) - len(waiting_after)
    return waiting_after


def execute(world: World, tick: OracleTick, counters: Counters, due: list[Dated]) -> None:
    """Apply every payment in order; a dated clearing runs between the dated payments around it."""
    turns: list[Dated | Order] = []
    payments = iter(tick.tried)
    mine = sum(entry.payment is not None for entry in due)
    mine = sum(order in tick.tried for order in tick.own[:mine])
    for entry in due:
        if entry.payment is None:
            turns.append(entry)
        elif mine:
            turns.append(next(payments))
            mine -= 1
    for turn in [*turns, *payments]:
        if isinstance(turn, Order):
            _, sender, receiver, equivalent, amount = turn.action
            tick.outcomes.append(pay(world, sender, receiver, equivalent, exact(amount)))
        elif world.knobs.is_on("CLEARING_ENABLED"):
            call(world, tick, turn.equivalent, DATED, world.knobs.number("SIMULATOR_CLEARING_MAX_DEPTH"))
    committed = sum(outcome.code is None for outcome in tick.outcomes)
    counters.attempts_total += len(tick.tried)
    counters.committed_total += committed
    counters.rejected_total += len(tick.tried) - committed
    counters.consec_all_rejected_ticks = counters.consec_all_rejected_ticks + 1 if tick.tried and not committed else 0


def clear_by_policy(world: World, policies: dict[str, Policy], tick: OracleTick, silent: bool) -> None:
    if world.knobs.word("SIMULATOR_CLEARING_POLICY") == "adaptive":
        clear_adaptively(world, policies, tick, silent)
        return
    if silent:
        return
    cadence = world.knobs.number("SIMULATOR_CLEARING_EVERY_N_TICKS")
    if cadence > 0 and tick.tick > 0 and tick.tick % cadence == 0:
        for equivalent in world.equivalents:
            call(world, tick, equivalent, STATIC, world.knobs.number("SIMULATOR_CLEARING_MAX_DEPTH"))


def clear_adaptively(world: World, policies: dict[str, Policy], tick: OracleTick, silent: bool) -> None:
    most, before = world.knobs.number(PREFIX + "MAX_EQ_PER_TICK"), len(tick.calls)
    for equivalent in world.equivalents:
        observe(policies[equivalent], equivalent, tick)
    guarded = is_guarded(world, tick)
    for equivalent in world.equivalents:
        policy = policies[equivalent]
        decision = Decision(False, GUARDED, policy.rate()) if guarded else policy.decide(tick.tick)
        # Each equivalent is judged at every tick; the cap only prevents the call.
        if most > 0 and len(tick.calls) - before >= most and not guarded:
            decision = Decision(False, TOO_MANY, decision.rate)
        if silent:
            continue
        tick.decisions[equivalent] = decision
        if decision.should_run:
            done = call(world, tick, equivalent, decision.reason, decision.depth or 0)
            policy.called(tick.tick, done.cleared_amount)


def is_guarded(world: World, tick: OracleTick) -> bool:
    """Whether the queue or the calls in flight exceed their thresholds; the oracle has one call in flight at most."""
    limits = (
        (world.knobs.number(PREFIX + "QUEUE_DEPTH_THRESHOLD"), tick.waiting),
        (world.knobs.number(PREFIX + "INFLIGHT_THRESHOLD"), min(1, len(tick.tried))),
    )
    return any(limit > 0 and value > limit for limit, value in limits)


def observe(policy: Policy, equivalent: str, tick: OracleTick) -> None:
    mine = [done for order, done in zip(tick.tried, tick.outcomes, strict=True) if order.action[3] == equivalent]
    codes = [outcome.code for outcome in mine if not outcome.hopeless]
    policy.observe(len(codes), codes.count(NO_CAPACITY))


def call(world: World, tick: OracleTick, equivalent: str, reason: str, depth: int) -> Call:
    done = clear(world, equivalent, depth)
    made = Call(equivalent, reason, depth, tuple(done), volume(done), reduction(done))
    tick.calls.append(made)
    tick.growth += grow(world, equivalent, done)
    return made
