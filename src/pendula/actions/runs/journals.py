"""Reads the journal of a world: its events, its processes, the answers of its user code."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec

from pendula.actions.engine import World
from pendula.actions.events import Event
from pendula.kernel.bodies import Answer, read_input, read_outcome
from pendula.kernel.canonical import decode
from pendula.kernel.errors import InputRefused
from pendula.kernel.journal import Journal
from pendula.kernel.replay import first_engine

_read_events = msgspec.json.Decoder(list[Event], float_hook=Decimal).decode


def history_of(journal: Journal, kind: type[World]) -> Iterator[Event]:
    """The header of the first epoch in the journal, then all later events."""
    engine, start = first_engine(journal, kind)
    assert isinstance(engine, World)
    yield engine.header()
    for record in journal.read(start):
        if record.kind == "outcome":
            yield from _read_events(read_outcome(record.body).events)


def processes_in(journal: Journal) -> set[str]:
    """The names of processes whose first step was submitted."""
    names: set[str] = set()
    for record in journal.read(journal.first_n):
        if record.kind == "input":
            command: Any = decode(bytes(read_input(record.body).command))
            steps = command.get("actions", ()) if command["type"] == "submit" else ()
            names |= {str(step["process"]) for step in steps if isinstance(step, dict) and step.get("process")}
    return names


def answers_in(journal: Journal) -> Iterator[Answer]:
    """All questions to user code with their answers. Raises `InputRefused` if the journal was pruned."""
    if journal.first_n > 0:
        raise InputRefused("The beginning of the journal was pruned: processes cannot be replayed")
    for record in journal.read(0):
        if record.kind == "input":
            yield from read_input(record.body).stored_answers()
