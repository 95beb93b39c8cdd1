"""Whole ticks of a village compared with the plain implementation, and the cost of digests."""

from decimal import Decimal
from typing import Any

from bench import credit_ours as ours
from bench.credit_loads import Debt
from bench.measuring.cpu_time import Rounds
from pendula.cli.benchmarks import Progress, Row, Target, compared
from pendula.credit.authoring.villages import village
from pendula.credit.commands import Tick

PARTICIPANTS = 100
SEED = 7
CAP = 500
ACTIONS_MOST = 20  # the default
TICKS, TICKS_QUICK = 200, 60
UNCLEARED_TICKS = 100

TWENTY_TIMES = Target(">=", Decimal(20))
DIGEST = Target("<=", Decimal("1.05"))


def rows(quick: bool, progress: Progress) -> list[Row]:
    scenario: dict[str, Any] = village(PARTICIPANTS, SEED)
    ticks = TICKS_QUICK if quick else TICKS
    progress(f"{ticks} ticks of a village: checking that both sides agree")
    attempts = assert_agreement(scenario, ticks)
    progress(f"{ticks} ticks of a village")
    results = [_beside_the_plain(scenario, ticks, attempts, 3 if quick else 7)]
    progress("cost of digests")
    return [*results, _digests(scenario, ticks, 9 if quick else 25)]


def debts_without_clearing(ticks: int = UNCLEARED_TICKS) -> list[Debt]:
    """The debts of the village after `ticks` ticks without clearing."""
    run = ours.run_of(village(PARTICIPANTS, SEED), SEED, CAP, clearing=False)
    run.apply(Tick(ticks))
    return ours.debts_of(run)


def assert_agreement(scenario: dict[str, Any], ticks: int) -> int:
    """Compare every planned payment, and every debt and limit after every tick; return the number of attempts."""
    run, plain = ours.run_of(scenario, SEED, CAP), _plain(scenario)
    run.apply(Tick(ticks))
    for _ in range(ticks):
        plain.tick()
    digests = run.digests()
    assert digests["plan"] == plain.plan_digest.hexdigest(), "the plans differ"
    assert digests["ledger"] == plain.ledger_digest.hexdigest(), "the ledgers differ"
    assert run.counters.committed_total == plain.counters.committed, "the committed payments differ"
    assert any(cleared.cycles for cleared in plain.counters.cleared), "nothing was cleared"
    attempts: int = plain.counters.attempts
    return attempts


def _plain(scenario: dict[str, Any]) -> Any:
    from bench.credit_plain import Run, Settings

    return Run(scenario, Settings(SEED, Decimal(CAP), ACTIONS_MOST))


def _beside_the_plain(scenario: dict[str, Any], ticks: int, attempts: int, rounds: int) -> Row:
    runs = [ours.run_of(scenario, SEED, CAP) for _ in range(rounds)]
    plains = [_plain(scenario) for _ in range(rounds)]

    def ours_ticks() -> None:
        run = runs.pop()
        for _ in range(ticks):
            run.apply(Tick())

    def plain_ticks() -> None:
        run = plains.pop()
        for _ in range(ticks):
            run.tick()

    measured = Rounds({"ours": ours_ticks, "plain": plain_ticks}, rounds)
    return compared(
        f"ticks, village of {PARTICIPANTS} at full intensity",
        ticks / measured.seconds("ours"),
        ticks / measured.seconds("plain"),
        "ticks/s",
        against="networkx and decimals",
        ratio=measured.times_faster("ours", "plain"),
        target=TWENTY_TIMES,
        fairness=f"{attempts} attempts in {ticks} ticks; plans, debts and limits after every tick are equal, "
        "both sides check every invariant and digest the ledger; ours also makes the events, metrics and reasons; a "
        "Mersenne Twister is seeded for each decision, as the rules require, which costs both sides alike",
    )


def _digests(scenario: dict[str, Any], ticks: int, rounds: int) -> Row:
    sides = {
        name: [ours.run_of(scenario, SEED, CAP, digest=digest) for _ in range(rounds)]
        for name, digest in (("with", True), ("without", False))
    }

    def run_ticks(name: str) -> None:
        run = sides[name].pop()
        for _ in range(ticks):
            run.apply(Tick())

    measured = Rounds({"with": lambda: run_ticks("with"), "without": lambda: run_ticks("without")}, rounds)
    return compared(
        "a tick with the digest of its ledger",
        measured.seconds("with") / ticks * 1e3,
        measured.seconds("without") / ticks * 1e3,
        "ms",
        against="without",
        ratio=measured.share("with", "without"),
        target=DIGEST,
    )
