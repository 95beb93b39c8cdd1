"""A whole run of the oracle: the phases of a tick one after the other, and everything that came of it."""

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
from tests.credit.oracle.money import exact
from tests.credit.oracle.plan import Planned, Wish, planned
from tests.credit.oracle.routes import NO_CAPACITY, Outcome, pay
from tests.credit.oracle.timeline import apply_due
from tests.credit.oracle.world import Debts, Lines, Name, World, world_of

STATIC = "STATIC_CADENCE"
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


@dataclass
class OracleTick:
    """What one tick did, and the books after it."""

    tick: int
    injected: list[tuple[int, int, int, Fraction]] = field(default_factory=list)
    plan: list[Planned] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    decisions: dict[str, Decision] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
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
    """Runs a scenario from tick 0; work limits are never reached."""
    world = world_of(scenario, settings)
    policies = {equivalent: Policy(world.knobs) for equivalent in world.equivalents}
    ran, plans, books = OracleRun(), sha256(), sha256()
    for index in range(ticks):
        tick = one_tick(world, policies, ran.counters, seed, index, intensity)
        for action in tick.plan:
            plans.update(("|".join(str(part) for part in (index, *action)) + "\n").encode())
        for line in digest_text(world, index):
            books.update(line.encode())
        tick.plan_digest, tick.ledger_digest = plans.hexdigest(), books.hexdigest()
        ran.ticks.append(tick)
    ran.plan_digest, ran.ledger_digest = plans.hexdigest(), books.hexdigest()
    return ran


def one_tick(
    world: World, policies: dict[str, Policy], counters: Counters, seed: int, index: int, intensity: int
) -> OracleTick:
    tick = OracleTick(index)
    tick.injected = apply_due(world, index * world.knobs.number("SIMULATOR_TICK_MS_BASE"))
    tick.plan, wishes = planned(world, seed, index, intensity)
    execute(world, tick, counters)
    for equivalent in world.equivalents:
        tick.demand[equivalent] = demand(tick, wishes, equivalent)
    before = {equivalent: positions(world.debts, equivalent) for equivalent in world.equivalents}
    if world.knobs.is_on("CLEARING_ENABLED"):
        clear_by_policy(world, policies, tick)
    if before != {equivalent: positions(world.debts, equivalent) for equivalent in world.equivalents}:
        raise AssertionError("clearing changed a net position")
    cleared: list[Name] = [name for call in tick.calls for name in lines_of(call.equivalent, list(call.cycles))]
    tick.decay = decay(world, cleared)
    told = broken_laws(world.debts, world.lines)
    if told:
        raise AssertionError(f"tick {index}: {told}")
    tick.debts, tick.lines = dict(world.debts), deepcopy(world.lines)
    return tick


def demand(tick: OracleTick, wishes: list[Wish], equivalent: str) -> tuple[Fraction, Fraction, Fraction]:
    """What was wanted, how much of it was paid, and all that was paid."""
    paid = {
        action[0]: exact(action[4])
        for action, outcome in zip(tick.plan, tick.outcomes, strict=False)
        if outcome.code is None and action[3] == equivalent
    }
    mine = [(seq, amount) for seq, code, amount in wishes if code == equivalent]
    wanted = sum((amount for _, amount in mine), Fraction(0))
    served = sum((min(amount, paid[seq]) for seq, amount in mine if seq in paid), Fraction(0))
    return wanted, served, sum(paid.values(), Fraction(0))


def allowed(world: World) -> int | None:
    """How many payments the rate limit lets through in a tick; None where there is no limit."""
    limit = world.knobs.ratio("SIMULATOR_MAX_PAYMENTS_PER_SEC")
    if limit <= 0:
        return None
    return max(1, floor(limit * world.knobs.number("SIMULATOR_TICK_MS_BASE") / 1000))


def execute(world: World, tick: OracleTick, counters: Counters) -> None:
    executed = tick.plan[: allowed(world)]
    for _, sender, receiver, equivalent, amount in executed:
        tick.outcomes.append(pay(world, sender, receiver, equivalent, exact(amount)))
    committed = sum(outcome.code is None for outcome in tick.outcomes)
    counters.attempts_total += len(executed)
    counters.committed_total += committed
    counters.rejected_total += len(executed) - committed
    counters.dropped_total += len(tick.plan) - len(executed)
    counters.consec_all_rejected_ticks = counters.consec_all_rejected_ticks + 1 if tick.plan and not committed else 0


def clear_by_policy(world: World, policies: dict[str, Policy], tick: OracleTick) -> None:
    if world.knobs.word("SIMULATOR_CLEARING_POLICY") == "adaptive":
        clear_adaptively(world, policies, tick)
        return
    cadence = world.knobs.number("SIMULATOR_CLEARING_EVERY_N_TICKS")
    if cadence > 0 and tick.tick > 0 and tick.tick % cadence == 0:
        for equivalent in world.equivalents:
            call(world, tick, equivalent, STATIC, world.knobs.number("SIMULATOR_CLEARING_MAX_DEPTH"))


def clear_adaptively(world: World, policies: dict[str, Policy], tick: OracleTick) -> None:
    most = world.knobs.number(PREFIX + "MAX_EQ_PER_TICK")
    for equivalent in world.equivalents:
        observe(policies[equivalent], equivalent, tick)
        decision = policies[equivalent].decide(tick.tick)
        # Each equivalent is judged at every tick; the cap only keeps it from running.
        if most > 0 and len(tick.calls) >= most:
            decision = Decision(False, TOO_MANY, decision.rate)
        tick.decisions[equivalent] = decision
        if decision.should_run:
            done = call(world, tick, equivalent, decision.reason, decision.depth or 0)
            policies[equivalent].called(tick.tick, done.cleared_amount)


def observe(policy: Policy, equivalent: str, tick: OracleTick) -> None:
    mine = [outcome for action, outcome in zip(tick.plan, tick.outcomes, strict=False) if action[3] == equivalent]
    codes = [outcome.code for outcome in mine if not outcome.hopeless]
    policy.observe(len(codes), codes.count(NO_CAPACITY))


def call(world: World, tick: OracleTick, equivalent: str, reason: str, depth: int) -> Call:
    done = clear(world, equivalent, depth)
    made = Call(equivalent, reason, depth, tuple(done), volume(done), reduction(done))
    tick.calls.append(made)
    tick.growth += grow(world, equivalent, done)
    return made
