"""Decisions compared with Mesa: the same village, rules for receiver and amount, and payments per tick."""

from collections.abc import Sequence
from decimal import Decimal
from itertools import count
from typing import Any

from bench import credit_ours as ours
from bench.measuring.cpu_time import Rounds
from pendula.cli.benchmarks import Progress, Row, Target, compared
from pendula.credit.authoring.villages import village

PARTICIPANTS = 10_000
SEED = 7
CAP = 500
TICKS, TICKS_QUICK = 20, 5
FIVE_TIMES = Target(">=", Decimal(5))


def rows(quick: bool, progress: Progress) -> list[Row]:
    from bench import credit_mesa

    scenario: dict[str, Any] = village(PARTICIPANTS, SEED)
    ticks = TICKS_QUICK if quick else TICKS
    progress("the village in Mesa")
    model = credit_mesa.Village(scenario, SEED, float(CAP))
    budget = _payments_per_tick(model, ticks)
    progress("decisions: do the plans agree?")
    planner = ours.Plans(scenario, SEED, CAP)
    examined = _examined(scenario, planner, budget)
    progress(f"decisions of {PARTICIPANTS} participants")
    numbers = count()

    def decide() -> None:
        for _ in range(ticks):
            planner.plan(next(numbers), budget)

    def step() -> None:
        for _ in range(ticks):
            model.step()

    agents = len(model.agents)
    measured = Rounds({"ours": decide, "Mesa": step}, 3 if quick else 5)
    row = compared(
        f"decisions, {PARTICIPANTS} participants",
        examined * ticks / measured.seconds("ours"),
        agents * ticks / measured.seconds("Mesa"),
        "decisions/s",
        against="Mesa, shuffle_do",
        ratio=measured.times_faster("ours", "Mesa") * examined / agents,
        target=FIVE_TIMES,
        fairness=f"{budget} payments planned a tick on both sides, from {examined} decisions of ours and {agents} of "
        "Mesa; "
        "nothing is paid on either side; Mesa draws from one generator and counts in floats, ours counts exactly and "
        "seeds a Mersenne Twister for every decision, as the rules require, so that a smaller budget gives a prefix of "
        "the same plan: that alone takes nearly as long as a decision of Mesa",
    )
    return [row]


def _payments_per_tick(model: Any, ticks: int) -> int:
    """The mean after one warm-up tick."""
    model.step()
    total = 0
    for _ in range(ticks):
        model.step()
        total += len(model.planned)
    return round(total / ticks)


def _examined(scenario: dict[str, Any], planner: "ours.Plans", budget: int) -> int:
    """Decisions per plan of this size, counted by the plain planner; both plans must be equal."""
    from bench.credit_plain import Run, Settings

    tick = PARTICIPANTS  # long after the warm-up and every event
    run = Run(scenario, Settings(SEED, Decimal(CAP), budget))
    planned = run.planner.plan(tick, 100, run.graphs, run.active)
    mine: Sequence[tuple[str, str, Decimal]] = planner.plan(tick, budget)
    assert mine == [(action.sender, action.receiver, action.amount) for action in planned], "the plans differ"
    return run.planner.examined
