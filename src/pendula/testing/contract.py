"""The test suite that every engine must pass: `engine_contract(engine, config, commands, questions)`.

Each law is a function of a `Case`; the first violated law raises an `AssertionError` with its name. The commands should
exercise the engine, and at least one of them must be refused.
"""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from pendula.kernel.canonical import Json, decode, digest, encode
from pendula.kernel.driver import Driver, begin_recording, send
from pendula.kernel.engine import Answer, CommandReader, Engine, NoOutside, Outside, Reason, Recorded, Recorder
from pendula.kernel.errors import InputRefused
from pendula.kernel.frames import outcome_bytes
from pendula.kernel.replay import replay
from pendula.testing.crashing import every_crash_keeps_what_was_acknowledged
from pendula.testing.faulty_disk import FaultyDisk

C = TypeVar("C")
E = TypeVar("E")


class Case(Struct, frozen=True):
    """The input of the contract: engine, configuration, commands, questions."""

    engine: type[Engine[Any, Any]]
    config: Json
    commands: Sequence[Any]
    questions: Sequence[Json]
    outside: Outside


class Trace(Struct, frozen=True):
    """The record of a run: outcomes as bytes, the state after each command, the answers from outside."""

    outcomes: tuple[bytes, ...]
    states: tuple[bytes, ...]
    answers: tuple[tuple[Answer, ...], ...]


def engine_contract(
    engine: type[Engine[C, E]],
    config: Json,
    commands: Sequence[C],
    questions: Sequence[Json],
    outside: Outside | None = None,
) -> None:
    """Raise `AssertionError` with the name of the first law that `engine` breaks."""
    case = Case(engine, config, commands, questions, outside if outside is not None else NoOutside())
    for law in LAWS:
        try:
            law(case)
        except AssertionError as broken:
            raise AssertionError(f"{engine.__name__}: {law.__name__.replace('_', ' ')}: {broken}") from broken


def the_same_commands_give_the_same_bytes(case: Case) -> None:
    first, second = run(case), run(case)
    for n, (left, right) in enumerate(zip(first.outcomes, second.outcomes, strict=True)):
        assert left == right, f"command {n} gave {left!r}, then {right!r}"
    assert first.states == second.states, "the states differ"


def other_hash_seeds_give_the_same_bytes(case: Case) -> None:
    expected = fingerprint(run(case))
    for seed in ("1", "4242"):
        found = _run_elsewhere(case, seed)
        assert found == expected, f"PYTHONHASHSEED={seed} gave {found}, this process {expected}"


def a_restored_engine_goes_on_as_the_old_one(case: Case) -> None:
    expected = run(case)
    engine = case.engine.create(case.config)
    for n, command in enumerate(case.commands):
        before = engine.state()
        engine = case.engine.from_state(case.config, before)
        assert engine.state() == before, f"the state before command {n} does not survive from_state"
        engine.outside = Recorded(expected.answers[n])
        outcome = outcome_bytes(engine.apply(command)).whole()
        assert outcome == expected.outcomes[n], f"restored before command {n} it gave {outcome!r}"


def a_state_is_canonical_json(case: Case) -> None:
    for state in run(case).states:
        assert encode(decode(state)) == state, f"{state[:80]!r} is not canonical"


def a_bad_state_is_refused(case: Case) -> None:
    for bad in (b"", b"{}", b"[]", b"null", b'{"nonsense":1}'):
        try:
            case.engine.from_state(case.config, bad)
        except InputRefused:
            continue
        raise AssertionError(f"from_state took {bad!r}")


def a_refused_command_changes_nothing(case: Case) -> None:
    refused = 0
    for engine, command, recorder in _stepping(case):
        before = engine.state()
        engine.outside = recorder
        outcome = engine.apply(command)
        if outcome.refusal is not None:
            refused += 1
            assert engine.state() == before, f"{command} was refused and changed the state"
            assert not outcome.events, f"{command} was refused and gave events"
    assert refused, "none of the commands is refused; give one that is"


def a_question_changes_nothing(case: Case) -> None:
    assert case.questions, "no questions given; give at least one that `why` can answer"
    for engine, command, recorder in _stepping(case):
        before = engine.state()
        for question in case.questions:
            reason = engine.why(question)
            assert isinstance(reason, Reason), f"why({question}) gave {reason!r}"
            assert reason.code, f"why({question}) gave a reason without a code"
            assert reason.sentence, f"why({question}) gave a reason without a sentence"
            assert engine.state() == before, f"why({question}) changed the state"
        engine.outside = recorder
        engine.apply(command)


def invariants_hold_after_every_command(case: Case) -> None:
    for engine, command, recorder in _stepping(case):
        engine.outside = recorder
        engine.apply(command)
        assert not list(engine.broken()), f"after {command}: {list(engine.broken())}"
        due = engine.next_due()
        assert due is None or due >= engine.now(), f"after {command}: due at {due}, but it is {engine.now()}"


def commands_survive_their_bytes(case: Case) -> None:
    for command in case.commands:
        again = msgspec.json.decode(encode(command), type=case.engine.commands)
        assert encode(again) == encode(command), f"{command} came back as {again}"


def a_misspelt_member_of_a_command_is_refused(case: Case) -> None:
    read_command = CommandReader[Any](case.engine)
    for command in case.commands:
        written = encode(command)
        try:
            read_command(written[:-1] + b',"zz":1}')
        except msgspec.DecodeError:
            continue
        raise AssertionError(f"{command} was accepted with an unknown member")


def a_journal_replays_without_the_outside(case: Case) -> None:
    driver = _driven(case, snapshot_every=3)
    report = replay(driver.journal, lambda _: case.engine)
    assert report.first_difference is None, f"{report.first_difference}"
    assert report.commands == len(case.commands), f"{report.commands} of {len(case.commands)} commands replayed"


def the_past_is_what_it_was(case: Case) -> None:
    expected = run(case)
    driver = _driven(case, snapshot_every=4)
    inputs = [record.n for record in driver.journal.read() if record.kind == "input"]
    for n, state in zip(inputs, expected.states, strict=True):
        assert driver.engine_at(n).state() == state, f"engine_at({n}) differs from the live engine at that record"


def a_crash_loses_nothing_acknowledged(case: Case) -> None:
    answers = run(case).answers
    every_crash_keeps_what_was_acknowledged(case.engine, case.config, case.commands, answers)


# Cheap laws first; the last one starts processes.
LAWS: tuple[Callable[[Case], None], ...] = (
    the_same_commands_give_the_same_bytes,
    invariants_hold_after_every_command,
    a_refused_command_changes_nothing,
    a_question_changes_nothing,
    commands_survive_their_bytes,
    a_misspelt_member_of_a_command_is_refused,
    a_state_is_canonical_json,
    a_bad_state_is_refused,
    a_restored_engine_goes_on_as_the_old_one,
    a_journal_replays_without_the_outside,
    the_past_is_what_it_was,
    a_crash_loses_nothing_acknowledged,
    other_hash_seeds_give_the_same_bytes,
)


def run(case: Case) -> Trace:
    """Apply all commands to a fresh engine."""
    outcomes, states, answers = [], [], []
    for engine, command, recorder in _stepping(case):
        engine.outside = recorder
        outcomes.append(outcome_bytes(engine.apply(command)).whole())
        states.append(engine.state())
        answers.append(tuple(recorder.answers))
    return Trace(tuple(outcomes), tuple(states), tuple(answers))


def fingerprint(trace: Trace) -> str:
    return digest([item.decode() for item in (*trace.outcomes, *trace.states)])


def _stepping(case: Case) -> Iterator[tuple[Engine[Any, Any], Any, Recorder]]:
    engine = case.engine.create(case.config)
    for command in case.commands:
        yield engine, command, Recorder(case.outside)


def _driven(case: Case, snapshot_every: int) -> Driver[Any, Any]:
    kind = case.engine
    engine = kind.create(case.config)
    driver: Driver[Any, Any] = begin_recording(
        engine, case.config, FaultyDisk(), outside=case.outside, snapshot_every=snapshot_every
    )
    for command in case.commands:
        send(driver, command, "contract")
    return driver


def _run_elsewhere(case: Case, hash_seed: str) -> str:
    """The fingerprint of the same run in a process with another hash seed."""
    message = encode(
        {
            "engine": f"{case.engine.__module__}:{case.engine.__qualname__}",
            "config": case.config,
            "commands": [decode(encode(command)) for command in case.commands],
            "answers": [list(answers) for answers in run(case).answers],
            # An empty entry means the current directory.
            "path": [entry or str(Path.cwd()) for entry in sys.path],
        }
    )
    process = subprocess.run(
        [sys.executable, "-c", "from pendula.testing.contract import run_elsewhere; run_elsewhere()"],
        input=message,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        check=False,
    )
    assert process.returncode == 0, f"the run in another process failed: {process.stderr.decode()[-2000:]}"
    return process.stdout.decode().strip()


class Message(Struct):
    """The run of a contract for a process with another hash seed."""

    engine: str
    config: Json
    commands: list[Raw]
    answers: list[list[Answer]]
    path: list[str]


def run_elsewhere() -> None:
    """Print the fingerprint of the run of a `Message` on the standard input."""
    message = msgspec.json.Decoder(Message, float_hook=Decimal).decode(sys.stdin.buffer.read())
    sys.path[:] = message.path
    module, _, name = message.engine.partition(":")
    kind = importlib.import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    engine = kind.create(message.config)
    read_command = CommandReader[object](type(engine))
    outcomes, states = [], []
    for raw, answers in zip(message.commands, message.answers, strict=True):
        engine.outside = Recorded(answers)
        outcomes.append(outcome_bytes(engine.apply(read_command(raw))).whole())
        states.append(engine.state())
    sys.stdout.write(fingerprint(Trace(tuple(outcomes), tuple(states), ())) + "\n")
