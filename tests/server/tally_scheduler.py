"""The example engine `tally` as a scheduler of the server, for the routes and pages that every engine has."""

from typing import Any

import msgspec

from pendula.demo import Demo
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine
from pendula.server.runtime.scheduler_spec import ChoicesView, QuestionView, SchedulerSpec, form
from pendula.testing.tally import Add, Advance, Ask, Command, Draw, Take, Tally

LATER = 5


class Sevens:
    """Answers every question with 7."""

    def ask(self, name: str, question: Json) -> Json:
        return 7


def next_command(engine: Engine[Any, Any], number: int) -> Command:
    """Demo: schedule an addition, draw a bonus, subtract (sometimes too much), advance time."""
    now = engine.now()
    match number % 4:
        case 0:
            return Add(now % 13 + 1, now + LATER)
        case 1:
            return Draw(6)
        case 2:
            return Take(now % 17 + 1)
        case _:
            return Advance(now + 1)


def choices(engine: Tally) -> ChoicesView:
    """Questions and commands for the present total."""
    total = msgspec.json.decode(engine.state())["total"]
    return ChoicesView(
        [QuestionView(f"Why {total + 1} cannot be taken", {"take": total + 1})],
        [
            form("Add", Add, {"amount": 3}),
            form("Take", Take, {"amount": min(1, total)}),
            form("Draw a number", Draw, {"below": 6}),
            form("Ask how much", Ask, {"topic": "how_much"}),
            form("Advance time", Advance, {"to": engine.now() + 1}),
        ],
    )


SCHEDULER = SchedulerSpec(
    name="tally",
    title="Tally",
    sentence="Counts additions and removals: the smallest engine.",
    engine=Tally,
    demo=Demo("demo", {"seed": 1}, next_command),
    outside=Sevens(),
    choices=choices,
)
