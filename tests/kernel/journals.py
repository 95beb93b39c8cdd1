"""Journals and drivers over the tiny engine, for the tests beside this file."""

from typing import Any

from pendula.kernel.canonical import Json
from pendula.kernel.disk import Disk
from pendula.kernel.driver import Driver
from pendula.kernel.journal import FileJournal
from pendula.testing.tally import Add, Advance, Ask, Changed, Command, Draw, Take, Tally

CONFIG: Json = {"seed": 7}


class Generous:
    """An outside that answers every question with 5 and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, name: str, question: Json) -> Json:
        self.asked += 1
        return 5


COMMANDS: tuple[Command, ...] = (
    Add(10),
    Take(3),
    Take(100),
    Draw(1000),
    Ask("rain"),
    Add(4, at=20),
    Add(6, at=10),
    Advance(15),
    Draw(6),
    Advance(30),
    Take(1),
    Advance(29),
)


def new_journal(disk: Disk, **options: Any) -> FileJournal:
    return FileJournal.create(disk, scheduler="tally", decisions=1, time_unit="tick", config=CONFIG, **options)


def new_driver(disk: Disk, journal_options: dict[str, Any] | None = None, **options: Any) -> Driver[Command, Changed]:
    journal = new_journal(disk, **(journal_options or {}))
    return Driver(Tally.create(CONFIG), journal, outside=Generous(), **options)


def recovered(disk: Disk, **options: Any) -> Driver[Command, Changed]:
    return Driver.recover(FileJournal.open(disk), lambda _: Tally, outside=Generous(), **options)


def do(driver: Driver[Command, Changed], *commands: Command) -> None:
    """Submit and acknowledge commands, one flush for all."""
    for command in commands:
        driver.submit(command, by="test")
    driver.flush()
