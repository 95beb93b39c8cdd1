"""Recorded runs: resumed, rebuilt at any tick and forked, with equal bytes."""

import pytest

from pendula.credit.authoring.villages import village
from pendula.credit.commands import Pause, Pay, Restart, Resume, SetIntensity, Stop, Tick
from pendula.credit.engine import Run
from pendula.credit.runs.forking import ForkRefused, compare_runs, fork
from pendula.credit.runs.headless import Headless, RunPlan, plan_run
from pendula.credit.runs.recording import NoCreditJournal, OtherRun, Recording, UnknownTick, last_tick, run_at
from pendula.credit.settings import InvalidSetting, Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Driver
from pendula.kernel.engine import NoOutside
from pendula.kernel.journal import FileJournal
from pendula.kernel.replay import replay
from pendula.testing import Crashed, FaultyDisk
from tests.credit.conftest import network

RING = network(("b", "a", 20), ("c", "b", 20), ("a", "c", 20))
OFTEN = change_settings(Settings(), {"clearing_every_n_ticks": "4", "actions_per_tick_max": "8"})
NEVER = change_settings(OFTEN, {"clearing_enabled": "off"})


def plan_of(scenario: dict[str, Json] = RING, seed: int = 3, settings: Settings = OFTEN) -> RunPlan:
    return plan_run(from_value(scenario), seed=seed, settings=settings)


def run_at_tick(ticks: int, plan: RunPlan | None = None) -> Run:
    headless = Headless(plan_of() if plan is None else plan)
    headless.step(ticks)
    return headless.run


def record_run(disk: FaultyDisk) -> None:
    with Recording.begin(plan_of(), disk) as recording:
        recording.step(3)


def test_a_fork_has_the_same_state_except_its_settings() -> None:
    run = run_at_tick(6)
    before = run.state()

    other = fork(run, NEVER)

    assert other.settings == NEVER
    assert (other.tick, other.digests(), other.counters) == (run.tick, run.digests(), run.counters)
    other.apply(Tick(5))
    assert run.state() == before


@pytest.mark.req("SIM-STO-8")
@pytest.mark.parametrize(("seed", "tick"), [(0, 0), (1, 1), (2, 4), (3, 5), (2**32, 11), (7, 30)])
def test_a_fork_with_the_same_settings_stays_equal(seed: int, tick: int) -> None:
    plan = plan_of(village(8, 1), seed, change_settings(OFTEN, {"amount_cap": "500"}))
    run = run_at_tick(tick, plan)

    comparison = compare_runs(run, fork(run, run.settings), 6)

    assert comparison.first_difference == {"plan": None, "ledger": None}
    assert comparison.original == comparison.fork
    assert comparison.settings == {}
    assert run.digests() == run_at_tick(tick + 6, plan).digests()


def test_differences_are_reported_from_their_first_tick() -> None:
    run = run_at_tick(6)

    comparison = compare_runs(run, fork(run, NEVER), 6)

    assert (comparison.tick, comparison.ticks) == (6, 6)
    assert comparison.settings == {"CLEARING_ENABLED": ("on", "off")}
    # The clearing of tick 8 changes the ledger after that tick; the plan can follow in the next.
    assert comparison.first_difference == {"ledger": 8, "plan": 9}
    assert comparison.original.digests == run_at_tick(12).digests()
    assert [row.tick for row in comparison.original.clearing] == [8]
    assert comparison.fork.clearing == ()


def test_differences_are_fork_minus_original() -> None:
    run = run_at_tick(6)

    comparison = compare_runs(run, fork(run, NEVER), 6)

    less, (left, right) = comparison.difference, (comparison.original, comparison.fork)
    assert less.counters["committed_total"] == right.counters.committed_total - left.counters.committed_total < 0
    assert less.cleared.calls == -1
    assert less.cleared.cleared_amount == f"-{left.cleared.cleared_amount}"
    debts = [float(branch.metrics["UAH"]["total_debt"] or 0) for branch in (left, right)]
    assert float(less.metrics["UAH"]["total_debt"] or 0) == pytest.approx(debts[1] - debts[0])


def test_a_comparison_reports_progress_tick_by_tick() -> None:
    run, progress = run_at_tick(2), list[int]()

    compare_runs(run, fork(run, NEVER), 3, progress.append)

    assert progress == [1, 2, 3]


@pytest.mark.parametrize("command", [Pause(), Stop()])
def test_a_stopped_or_paused_run_cannot_be_forked(command: Pause | Stop) -> None:
    run = run_at_tick(2)
    run.apply(command)

    with pytest.raises(ForkRefused) as refused:
        fork(run, NEVER)

    assert refused.value.tick == 2


def test_another_tick_length_and_unrelated_runs_are_rejected() -> None:
    run = run_at_tick(2)

    with pytest.raises(InvalidSetting):
        fork(run, change_settings(OFTEN, {"tick_ms_base": "500"}))
    with pytest.raises(ForkRefused):
        compare_runs(run, run_at_tick(3), 1)


def test_a_fork_starts_without_an_outside() -> None:
    assert isinstance(fork(run_at_tick(1), NEVER).outside, NoOutside)


def test_a_recorded_run_equals_an_unrecorded_one() -> None:
    disk = FaultyDisk()
    plain = Headless(plan_of())
    plain.step(10)

    with Recording.begin(plan_of(), disk) as recording:
        recording.step(9)
        recording.headless.step(1)

    assert recording.headless.result() == plain.result()
    report = replay(FileJournal.open(disk, read_only=True), lambda _: Run)
    assert (report.commands, report.first_difference) == (10, None)


def test_ticks_are_published_only_after_they_are_durable() -> None:
    disk = FaultyDisk()
    heard: list[int] = []

    with Recording.begin(plan_of(), disk) as recording:
        recording.step(
            6,
            lambda events: heard.append(
                last_tick(FileJournal.open(disk.after_crash(len(heard)), read_only=True)) - len(heard)
            ),
        )

    assert len(heard) == 6
    assert min(heard) >= 1


@pytest.mark.parametrize("call", range(16))
def test_every_crash_can_be_resumed_to_the_same_end(call: int) -> None:
    whole = Headless(plan_of())
    whole.step(8)
    first_disk = FaultyDisk()
    Recording.begin(plan_of(), first_disk)
    disk = FaultyDisk({len(first_disk.calls) + call: "crash"})
    published: list[int] = []
    with pytest.raises(Crashed), Recording.begin(plan_of(), disk) as recording:
        for _ in range(8):
            recording.step(1, lambda events: published.append(len(events)))

    replayed: list[int] = []
    with Recording.resume(plan_of(), disk.after_crash(call)) as recording:
        recording.replay_history(lambda events: replayed.append(len(events)))
        assert replayed[: len(published)] == published
        recording.step(8 - recording.headless.run.tick)

    assert recording.headless.result() == whole.result()


def test_only_the_same_run_can_be_resumed() -> None:
    disk = FaultyDisk()
    record_run(disk)

    with pytest.raises(OtherRun) as refused:
        Recording.resume(plan_of(settings=NEVER), disk)

    assert refused.value.path == "$.settings.clearing_enabled"


def test_a_journal_of_another_scheduler_is_rejected() -> None:
    disk = FaultyDisk()
    FileJournal.create(disk, scheduler="tally", decisions=1, time_unit="s", config={}).close()

    with pytest.raises(NoCreditJournal):
        Recording.resume(plan_of(), disk)


def test_a_resumed_run_must_replay_its_history_first() -> None:
    disk = FaultyDisk()
    record_run(disk)

    with Recording.resume(plan_of(), disk) as recording, pytest.raises(AssertionError):
        recording.headless.step(1)


@pytest.mark.parametrize("snapshot_every", [1, 3, 1000])
def test_a_run_can_be_rebuilt_at_every_tick(snapshot_every: int) -> None:
    disk = FaultyDisk()
    with Recording.begin(plan_of(), disk, snapshot_every=snapshot_every) as recording:
        recording.step(9)
    journal = FileJournal.open(disk, read_only=True)

    for tick in range(10):
        assert run_at(journal, tick).state() == run_at_tick(tick).state()
    assert last_tick(journal) == 9
    with pytest.raises(UnknownTick) as refused:
        run_at(journal, 10)
    assert refused.value.last == 9


def journal_of(disk: FaultyDisk, *commands: object) -> FileJournal:
    """A journal of these commands, as a server would write it."""
    config = plan_of().json
    journal = FileJournal.create(
        disk, scheduler=Run.scheduler, decisions=Run.decisions, time_unit=Run.time_unit, config=config
    )
    driver = Driver(Run.create(config), journal)
    for command in commands:
        driver.submit(command, by="test")  # type: ignore[arg-type]
    driver.close()
    return FileJournal.open(disk, read_only=True)


def test_a_tick_inside_a_longer_command_can_be_rebuilt() -> None:
    journal = journal_of(FaultyDisk(), Tick(4), Tick(5))

    for tick in range(10):
        assert run_at(journal, tick).state() == run_at_tick(tick).state()


def test_commands_after_a_tick_belong_to_its_state() -> None:
    pay = Pay("a", "b", "UAH", "1.00")
    journal = journal_of(FaultyDisk(), Tick(), pay, SetIntensity(50), Pause(), Resume(), Tick())
    expected = run_at_tick(1)
    for command in (pay, SetIntensity(50), Pause(), Resume()):
        expected.apply(command)

    assert run_at(journal, 1).state() == expected.state()
    assert run_at(journal, 0).state() == run_at_tick(0).state()


def test_after_a_restart_the_latest_tick_counts() -> None:
    journal = journal_of(FaultyDisk(), Tick(3), Restart(), SetIntensity(10), Tick(2))

    assert run_at(journal, 1).intensity == 10
    assert run_at(journal, 3).intensity == 100
    assert last_tick(journal) == 2
