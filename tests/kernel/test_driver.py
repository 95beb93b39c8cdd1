"""The driver: what is acknowledged, what is published, what happens when something breaks."""

import threading
from typing import Any, ClassVar

import pytest

from pendula.kernel.canonical import Json, decode
from pendula.kernel.commit import GroupCommit
from pendula.kernel.driver import DiskLow, Driver, EngineDefect, JournalFull, ReplayDiffers, Ticket, UnknownRecord
from pendula.kernel.engine import Outcome
from pendula.kernel.errors import LimitExceeded, NotCanonical, WorldBroken
from pendula.kernel.journal import FileJournal, JournalBroken
from pendula.kernel.limits import Limit
from pendula.kernel.replay import OtherDecisions, replay
from pendula.kernel.stream import Gap
from pendula.testing import FaultyDisk, engine_contract
from pendula.testing.tally import Add, Ask, Changed, Command, Draw, Take, Tally
from tests.kernel.journals import COMMANDS, CONFIG, Generous, do, new_driver, new_journal, recovered


def inputs(driver: Driver[Command, Changed]) -> list[dict[str, Any]]:
    found: list[Any] = [decode(bytes(r.body)) for r in driver.journal.read() if r.kind == "input"]
    return found


def test_the_tally_fulfils_the_contract_of_engines() -> None:
    engine_contract(Tally, CONFIG, COMMANDS, questions=[{"take": 50}, "nonsense"], outside=Generous())


def test_an_outcome_cannot_be_read_before_it_is_durable() -> None:
    driver = new_driver(FaultyDisk())
    ticket = driver.submit(Add(3), by="ann")

    with pytest.raises(AssertionError, match="not durable yet"):
        _ = ticket.outcome
    driver.flush()

    assert ticket.outcome.answer == {"total": 3}


def test_the_journal_records_caller_time_and_request_id() -> None:
    driver = new_driver(FaultyDisk(), clock=lambda: "2026-02-21T00:00:00Z")
    driver.submit(Add(3), by="ann", request_id="r-1")
    driver.flush()

    (body,) = inputs(driver)
    assert body["command"] == {"type": "add", "amount": 3, "at": None}
    assert body["meta"] == {"at": "2026-02-21T00:00:00Z", "by": "ann", "request_id": "r-1"}


def test_a_refused_command_is_journalled_and_answered() -> None:
    driver = new_driver(FaultyDisk())
    ticket = driver.submit(Take(3), by="ann")
    driver.flush()

    assert ticket.outcome.refusal is not None
    assert ticket.outcome.refusal.code == "not_enough"
    assert len(inputs(driver)) == 1


def test_a_recovered_driver_has_the_state_of_the_old_one() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk, snapshot_every=5)
    do(driver, *COMMANDS)

    again = recovered(disk)

    assert again.engine.state() == driver.engine.state()
    assert list(again.engine.broken()) == []


def test_recovery_does_not_ask_the_outside_again() -> None:
    disk = FaultyDisk()
    do(new_driver(disk), *COMMANDS)
    outside = Generous()

    Driver.recover(FileJournal.open(disk), lambda _: Tally, outside=outside)

    assert outside.asked == 0


def test_a_clean_stop_leaves_a_snapshot_so_that_recovery_applies_nothing() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk)
    do(driver, *COMMANDS)
    driver.close()

    journal = FileJournal.open(disk)

    assert journal.snapshots()[-1][0] == journal.durable_n


def test_an_outcome_lost_in_a_crash_is_written_on_recovery() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk)
    do(driver, Add(3), Add(4))
    kept = list(driver.journal.read())[:3]
    cut = FaultyDisk()
    journal = new_journal(cut)
    for record in kept:
        journal.append(record.kind, record.t, bytes(record.body))
    journal.flush()

    again = recovered(cut)

    assert [r.kind for r in again.journal.read()] == ["input", "outcome", "input", "outcome"]
    assert [bytes(r.body) for r in again.journal.read()] == [bytes(r.body) for r in driver.journal.read()]


def test_recovery_stops_if_the_engine_now_decides_differently() -> None:
    class Changeling(Tally):
        def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
            return super()._add(amount + 1, at)

    disk = FaultyDisk()
    do(new_driver(disk), Add(3))

    with pytest.raises(ReplayDiffers, match="The outcome of record 0 differs"):
        Driver.recover(FileJournal.open(disk), lambda _: Changeling)


def test_recovery_refuses_a_journal_of_other_decisions() -> None:
    class Next(Tally):
        decisions = 2

    disk = FaultyDisk()
    do(new_driver(disk), Add(3))

    with pytest.raises(OtherDecisions) as caught:
        Driver.recover(FileJournal.open(disk), lambda _: Next)
    assert (caught.value.recorded, caught.value.present) == (1, 2)


class Fragile(Tally):
    """Fails in the middle of a change when 13 is added."""

    def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
        if amount == 13:
            self._state.total += 1
            raise ZeroDivisionError("thirteen")
        return super()._add(amount, at)


def test_a_defect_leaves_no_trace_and_the_engine_continues() -> None:
    journal = new_journal(FaultyDisk())
    driver: Driver[Command, Changed] = Driver(Fragile.create(CONFIG), journal, outside=Generous())
    first = driver.submit(Add(5), by="ann")
    before = driver.engine.state()

    with pytest.raises(EngineDefect, match="thirteen"):
        driver.submit(Add(13), by="ann")

    assert first.outcome.answer == {"total": 5}
    assert driver.engine.state() == before
    do(driver, Add(1))
    assert len(inputs(driver)) == 2
    assert [r.kind for r in journal.read()].count("note") == 1


class Mute(Exception):
    """Even the message of an exception is user code."""

    def __repr__(self) -> str:
        raise KeyboardInterrupt


class Torn(Exception):
    def __repr__(self) -> str:
        return "half \ud800"


class Raising(Tally):
    """Raises the given exception when 13 is added, in the middle of a change."""

    raises: ClassVar[BaseException]

    def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
        if amount == 13:
            self._state.total += 1
            raise self.raises
        return super()._add(amount, at)


@pytest.mark.parametrize(("defect", "words"), [(Mute(), "Mute"), (Torn(), r"half \ud800")])
def test_a_defect_without_a_message_is_a_defect(defect: Exception, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Raising, "raises", defect, raising=False)
    driver: Driver[Command, Changed] = Driver(Raising.create(CONFIG), new_journal(FaultyDisk()))
    before = driver.engine.state()

    with pytest.raises(EngineDefect) as caught:
        driver.submit(Add(13), by="ann")

    assert caught.value.defect == words
    assert driver.engine.state() == before
    do(driver, Add(1))
    assert len(inputs(driver)) == 1


@pytest.mark.parametrize("end", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_system_exit_in_an_engine_thread_ends_only_the_command(
    end: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Raising, "raises", end, raising=False)
    disk = FaultyDisk()
    driver: Driver[Command, Changed] = Driver(Raising.create(CONFIG), new_journal(disk))
    work: GroupCommit[Command, Ticket[Changed]] = GroupCommit(lambda one: driver.submit(one, by="ann"), driver.flush)
    work.call(Add(5))

    with pytest.raises(EngineDefect, match="left no trace"):
        work.call(Add(13))

    assert work.call(Add(2)).outcome.answer == {"total": 7}
    work.close()
    driver.close()
    assert replay(FileJournal.open(disk, read_only=True), lambda _: Tally).first_difference is None


def test_after_a_failed_flush_nothing_is_acknowledged_or_accepted() -> None:
    trial = FaultyDisk()
    do(new_driver(trial), Add(1))
    disk = FaultyDisk({len(trial.calls): "no_space"})
    driver = new_driver(disk)
    stream = driver.subscribe()
    do(driver, Add(1))
    stream.take(10)
    ticket = driver.submit(Add(2), by="ann")

    with pytest.raises(JournalBroken):
        driver.flush()

    with pytest.raises(JournalBroken):
        _ = ticket.outcome
    with pytest.raises(JournalBroken):
        driver.submit(Add(3), by="ann")
    assert stream.take(10) == []
    assert isinstance(driver.broken, WorldBroken)


def test_low_space_refuses_new_inputs_before_the_disk_is_full() -> None:
    disk = FaultyDisk(free_bytes=10_000)
    driver = new_driver(disk, {"min_free_bytes": 5_000})
    disk.free = 4_999
    do(driver, Add(1))
    before = driver.engine.state()

    with pytest.raises(DiskLow):
        driver.submit(Add(1), by="ann")

    assert driver.engine.state() == before


def test_a_journal_at_its_limit_is_pruned_and_continues() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk, {"segment_bytes": 2_000}, journal_bytes=20_000)

    for _ in range(300):
        do(driver, Add(1))

    assert driver.journal.first_n > 0
    assert driver.journal.total_bytes <= 20_000
    assert recovered(disk).engine.state() == driver.engine.state()


def test_a_journal_that_cannot_be_pruned_refuses_with_its_numbers() -> None:
    driver = new_driver(FaultyDisk(), journal_bytes=700)

    with pytest.raises(JournalFull) as caught:
        for _ in range(50):
            do(driver, Add(1))

    assert caught.value.allowed == 700
    assert caught.value.value > 700


def test_the_past_of_a_pruned_journal_ends_at_its_first_snapshot() -> None:
    driver = new_driver(FaultyDisk(), {"segment_bytes": 1_000}, journal_bytes=20_000)
    for _ in range(300):
        do(driver, Draw(9))
    first_snapshot = driver.journal.snapshots()[0][0]

    assert driver.engine_at(first_snapshot).now() == 0
    with pytest.raises(UnknownRecord):
        driver.engine_at(driver.journal.first_n - 1)
    with pytest.raises(UnknownRecord):
        driver.engine_at(driver.journal.durable_n + 1)


def test_answers_reach_the_engine_as_they_will_on_replay() -> None:
    class Odd:
        def ask(self, name: str, question: Json) -> Json:
            return (1, 2)

    class Curious(Tally):
        def _ask(self, topic: str) -> Outcome[Changed]:
            self.seen = self.outside.ask("pair", None)
            return Outcome()

    engine = Curious.create(CONFIG)
    driver: Driver[Command, Changed] = Driver(engine, new_journal(FaultyDisk()), outside=Odd())
    do(driver, COMMANDS[4])

    assert engine.seen == [1, 2]


def nothing_happened(driver: Driver[Command, Changed], disk: FaultyDisk, before: bytes) -> None:
    """The engine is where it was, goes on, and the journal agrees."""
    assert driver.engine.state() == before
    do(driver, Add(1))
    assert recovered(disk).engine.state() == driver.engine.state()


def test_a_caller_name_that_cannot_be_encoded_is_refused_without_effect() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk)
    before = driver.engine.state()

    with pytest.raises(NotCanonical):
        driver.submit(Add(5), by="\ud800")

    nothing_happened(driver, disk, before)


def test_a_command_with_too_large_records_is_refused_without_effect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = FaultyDisk()
    driver = new_driver(disk)
    do(driver, Add(1))
    before = driver.engine.state()
    monkeypatch.setattr("pendula.kernel.frames.RECORD_BYTES", Limit("record_bytes", 900, "bytes", "x", "Too large"))

    with pytest.raises(LimitExceeded):
        driver.submit(Ask("x" * 1000), by="ann")

    nothing_happened(driver, disk, before)


def test_a_state_too_large_for_a_snapshot_stops_neither_a_command_nor_a_clean_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Growing(Tally):
        def state(self) -> bytes:
            return b"[%b]" % b",".join([b"1"] * 2000)

    monkeypatch.setattr("pendula.kernel.frames.RECORD_BYTES", Limit("record_bytes", 900, "bytes", "x", "Too large"))
    disk = FaultyDisk()
    driver: Driver[Command, Changed] = Driver(Growing.create(CONFIG), new_journal(disk), snapshot_every=2)
    do(driver, Add(1), Add(1), Add(1))
    driver.close()
    driver.close()

    assert [record.kind for record in FileJournal.open(disk).read()].count("note") == 2
    assert len([record for record in FileJournal.open(disk).read() if record.kind == "input"]) == 3


def test_an_engine_cannot_change_a_recorded_answer() -> None:
    class Told:
        def ask(self, name: str, question: Json) -> Json:
            return [3, 1, 2]

    class Sorting(Tally):
        def _ask(self, topic: str) -> Outcome[Changed]:
            answer: Any = self.outside.ask("numbers", None)
            answer.pop()
            return self._change(len(answer), "ask")

    disk = FaultyDisk()
    driver: Driver[Command, Changed] = Driver(Sorting.create(CONFIG), new_journal(disk), outside=Told())
    do(driver, Ask("x"))

    assert inputs(driver)[0]["answers"][0]["answer"] == [3, 1, 2]
    assert Driver.recover(FileJournal.open(disk), lambda _: Sorting).engine.state() == driver.engine.state()


def test_an_engine_that_cannot_be_rebuilt_accepts_no_more_commands() -> None:
    class Moody(Fragile):
        bonus = 0

        def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
            return super()._add(amount if amount == 13 else amount + Moody.bonus, at)

    driver: Driver[Command, Changed] = Driver(Moody.create(CONFIG), new_journal(FaultyDisk()))
    do(driver, Add(3))
    Moody.bonus = 1

    with pytest.raises(WorldBroken, match="could not be rebuilt"):
        driver.submit(Add(13), by="ann")
    with pytest.raises(WorldBroken, match="could not be rebuilt"):
        driver.submit(Add(1), by="ann")


def test_integers_of_any_length_survive_journal_snapshot_and_configuration() -> None:
    disk = FaultyDisk()
    huge = 10**4999
    config: Json = {"seed": 7, "note": huge}
    journal = FileJournal.create(disk, scheduler="tally", decisions=1, time_unit="tick", config=config)
    driver: Driver[Command, Changed] = Driver(Tally.create(config), journal, snapshot_every=2)
    do(driver, Add(huge), Add(huge), Add(1))
    driver.close()

    again = recovered(disk)

    assert again.engine.state() == driver.engine.state()
    assert len(again.subscribe("0.0").take(10)) == 2
    assert replay(FileJournal.open(disk, read_only=True), lambda _: Tally).first_difference is None


def test_a_full_journal_accepts_commands_after_a_restart() -> None:
    disk = FaultyDisk()
    driver = new_driver(disk, {"segment_bytes": 1 << 30}, journal_bytes=1 << 30)
    for _ in range(100):
        do(driver, Add(1))
    assert driver.journal.total_bytes > 20_000

    small = recovered(disk, journal_bytes=20_000)
    for _ in range(100):
        do(small, Add(1))

    assert small.journal.total_bytes <= 20_000
    assert recovered(disk).engine.state() == small.engine.state()


def test_a_large_state_is_not_written_at_every_command() -> None:
    class Heavy(Tally):
        def state(self) -> bytes:
            return super().state()[:-1] + b',"z":"' + b"x" * 3000 + b'"}'

    driver: Driver[Command, Changed] = Driver(Heavy.create(CONFIG), new_journal(FaultyDisk()), journal_bytes=20_000)
    for _ in range(40):
        do(driver, Add(1))

    kinds = [record.kind for record in driver.journal.read()]
    assert 0 < kinds.count("snapshot") <= kinds.count("input") // 2


def test_a_second_thread_waits_until_the_first_command_is_applied() -> None:
    inside, go_on = threading.Event(), threading.Event()

    class Slow(Tally):
        def _draw(self, below: int) -> Outcome[Changed]:
            inside.set()
            assert go_on.wait(120)
            return super()._draw(below)

    driver: Driver[Command, Changed] = Driver(Slow.create(CONFIG), new_journal(FaultyDisk()))
    first = threading.Thread(target=driver.submit, args=(Draw(5), "one"))
    first.start()
    inside.wait(120)
    second = threading.Thread(target=driver.submit, args=(Add(1), "two"))
    second.start()
    second.join(0.05)
    assert second.is_alive()

    go_on.set()
    first.join()
    second.join()
    driver.flush()
    assert [body["meta"]["by"] for body in inputs(driver)] == ["one", "two"]


class Waiting(FaultyDisk):
    """Its syncs wait to be let through."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.let = threading.Event(), threading.Event()
        self.let.set()

    def sync(self, name: str) -> None:
        self.entered.set()
        assert self.let.wait(120)
        super().sync(name)


def test_commands_submitted_during_a_flush_are_not_acknowledged_by_it() -> None:
    disk = Waiting()
    driver = new_driver(disk)
    do(driver, Add(1))
    stream = driver.subscribe()
    early = driver.submit(Add(1), by="early")
    disk.entered.clear()
    disk.let.clear()
    flushing = threading.Thread(target=driver.flush)
    flushing.start()
    disk.entered.wait(120)
    late = driver.submit(Add(1), by="late")
    assert [record.n for record in driver.journal.read()] == [0, 1], "what is written is not durable yet"
    disk.let.set()
    flushing.join()

    assert early.done
    assert not late.done
    assert len(stream.take(10)) == 1
    assert [record.n for record in driver.journal.read()] == [0, 1, 2, 3]


def test_a_journal_without_events_is_shorter_recovers_and_replays() -> None:
    whole, short = FaultyDisk(), FaultyDisk()
    kept, spared = new_driver(whole), new_driver(short, keep_events=False)
    do(kept, *COMMANDS)
    do(spared, *COMMANDS)

    again = recovered(short)

    assert again.engine.state() == kept.engine.state()
    assert spared.journal.total_bytes < kept.journal.total_bytes
    assert replay(spared.journal, lambda _: Tally).first_difference is None


def test_events_that_are_not_journalled_become_a_gap_after_they_leave_the_buffer() -> None:
    driver = new_driver(FaultyDisk(), keep_events=False, buffer_events=1)
    first = driver.submit(Add(3), by="ann")
    do(driver, Add(1), Add(1))

    items = driver.subscribe(f"{first.n}.0").take(10)

    assert isinstance(items[0], Gap)


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_the_changes_of_an_interrupted_command_are_never_written(end: type[BaseException]) -> None:
    class BrokenOff(Tally):
        def apply(self, command: Command) -> Outcome[Changed]:
            outcome = super().apply(command)
            if command == Add(5):
                raise end
            return outcome

    disk = FaultyDisk()
    driver = Driver(BrokenOff.create(CONFIG), new_journal(disk))
    driver.submit(Add(3), by="ann")
    with pytest.raises(end):
        driver.submit(Add(5), by="ann")
    with pytest.raises(WorldBroken, match="was interrupted"):
        driver.submit(Add(7), by="ann")
    driver.close()

    assert replay(FileJournal.open(disk, read_only=True), lambda _: Tally).first_difference is None
    fresh: Any = decode(Tally.create(CONFIG).state())
    assert decode(recovered(disk).engine.state()) == fresh | {"added": 3, "total": 3}
