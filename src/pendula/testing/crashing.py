"""Crash at every disk call of a run, recover, and check that exactly the acknowledged commands survive."""

from collections.abc import Sequence
from typing import Any

from pendula.kernel.canonical import Json, encode
from pendula.kernel.driver import Driver, new_journal
from pendula.kernel.engine import Answer, Engine, Recorded
from pendula.kernel.frames import read_input
from pendula.kernel.journal import FileJournal, JournalMissing
from pendula.testing.faulty_disk import Crashed, FaultyDisk

SEGMENT_BYTES = 600  # small, so that every run rotates segments


class Script:
    """An outside that replays the answers of another run, command by command."""

    def __init__(self) -> None:
        self._answers = Recorded(())

    def use(self, answers: Sequence[Answer]) -> None:
        self._answers = Recorded(answers)

    def ask(self, name: str, question: Json) -> Json:
        return self._answers.ask(name, question)


class Run:
    """A live run on a disk that may crash: the submitted commands, and how many were acknowledged."""

    def __init__(self, kind: type[Engine[Any, Any]], config: Json, answers: Sequence[Sequence[Answer]]) -> None:
        self.kind = kind
        self.config = config
        self.answers = answers
        self.outside = Script()
        self.acknowledged = 0
        self.existed = False

    def begin(self, disk: FaultyDisk) -> Driver[Any, Any]:
        journal = new_journal(self.kind, self.config, disk, segment_bytes=SEGMENT_BYTES)
        self.existed = True
        return Driver(self.kind.create(self.config), journal, outside=self.outside, snapshot_every=4)

    def go_on(self, driver: Driver[Any, Any], commands: Sequence[Any], done: int, flush_every: int) -> None:
        """Submit the commands after the first `done`, several to a flush."""
        for index in range(done, len(commands)):
            self.outside.use(self.answers[index])
            driver.submit(commands[index], by="crash")
            if (index + 1) % flush_every == 0 or index + 1 == len(commands):
                driver.flush()
                self.acknowledged = index + 1
        driver.close()


def every_crash_keeps_what_was_acknowledged(
    kind: type[Engine[Any, Any]],
    config: Json,
    commands: Sequence[Any],
    answers: Sequence[Sequence[Answer]],
    *,
    flush_every: int = 2,
    seeds: Sequence[int] = (0, 1, 2, 3),
) -> int:
    """Raise `AssertionError` at the first crash that loses or invents a command; returns the number of crashes."""
    whole = Run(kind, config, answers)
    disk = FaultyDisk()
    whole.go_on(whole.begin(disk), commands, 0, flush_every)
    final = _states(kind, config, commands, answers)
    crashes = 0
    for call in range(len(disk.calls)):
        for seed in seeds:
            _crash_and_recover(Run(kind, config, answers), commands, final, call, seed, flush_every)
            crashes += 1
    return crashes


def _crash_and_recover(
    run: Run, commands: Sequence[Any], states: Sequence[bytes], call: int, seed: int, flush_every: int
) -> None:
    place = f"crash at disk call {call}, seed {seed}"
    disk = FaultyDisk({call: "crash"})
    try:
        run.go_on(run.begin(disk), commands, 0, flush_every)
        raise AssertionError(f"{place}: there was no such call")
    except Crashed:
        pass
    left = disk.after_crash(seed)
    try:
        journal = FileJournal.open(left, segment_bytes=SEGMENT_BYTES)
    except JournalMissing:
        assert not run.existed, f"{place}: the journal is gone"
        return
    driver: Driver[Any, Any] = Driver.recover(journal, lambda _: run.kind, outside=run.outside, snapshot_every=4)
    kept = [bytes(read_input(record.body).command) for record in journal.read() if record.kind == "input"]
    assert len(kept) >= run.acknowledged, f"{place}: {run.acknowledged} acknowledged, {len(kept)} kept"
    submitted = [encode(command) for command in commands]
    assert kept == submitted[: len(kept)], f"{place}: the journal holds what was never submitted"
    assert driver.engine.state() == states[len(kept)], (
        f"{place}: the recovered state is not that of {len(kept)} commands"
    )
    run.go_on(driver, commands, len(kept), flush_every)
    again = Driver.recover(FileJournal.open(left, read_only=True), lambda _: run.kind)
    assert again.engine.state() == states[-1], f"{place}: after going on, the final state differs"


def _states(
    kind: type[Engine[Any, Any]], config: Json, commands: Sequence[Any], answers: Sequence[Sequence[Answer]]
) -> list[bytes]:
    """The state before the first command and after each."""
    engine = kind.create(config)
    states = [engine.state()]
    for command, stored in zip(commands, answers, strict=True):
        engine.outside = Recorded(stored)
        engine.apply(command)
        states.append(engine.state())
    return states
