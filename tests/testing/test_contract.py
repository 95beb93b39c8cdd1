"""The contract suite catches engines that break a law: one planted mistake a law."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

import pytest

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Reason
from pendula.testing import engine_contract
from pendula.testing.tally import Add, Changed, Command, State, Take, Tally
from tests.kernel.journals import COMMANDS, CONFIG, Generous


class Dicing(Tally):
    def _draw(self, below: int) -> Outcome[Changed]:
        return self._change(random.SystemRandom().randrange(1 << 60), "draw")


class Hashing(Tally):
    def _ask(self, topic: str) -> Outcome[Changed]:
        self.outside.ask("how_much", {"topic": topic})
        return Outcome(answer=hash(topic))


class Forgetful(Tally):
    def state(self) -> bytes:
        complete, self._state.due = self._state.due, []
        try:
            return super().state()
        finally:
            self._state.due = complete


class Sprawling(Tally):
    def state(self) -> bytes:
        return super().state() + b" "


class Trusting(Tally):
    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        try:
            return super().from_state(config, state)
        except Exception:
            return cls.create(config)


class Grudging(Tally):
    def _take(self, amount: int) -> Outcome[Changed]:
        outcome = super()._take(amount)
        if outcome.refusal is not None:
            self._state.number += 1
        return outcome


class Telling(Tally):
    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return code

    def why(self, question: Json) -> Reason:
        self._state.number += 1
        return super().why(question)


class Leaking(Tally):
    def broken(self) -> Iterable[str]:
        if self._state.taken:
            yield "nothing_is_ever_taken"


class Lossy(Tally):
    commands: ClassVar[Any] = Add


class Remembering(Tally):
    """Keeps something that decides outside of its state."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.calls = 0

    def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
        self.calls += 1
        return super()._add(amount + self.calls // 3, at)


MISTAKES: list[tuple[type[Tally], str]] = [
    (Dicing, "the same commands give the same bytes"),
    (Hashing, "other hash seeds give the same bytes"),
    (Remembering, "a restored engine goes on as the old one"),
    (Forgetful, "a restored engine goes on as the old one"),
    (Sprawling, "a state is canonical json"),
    (Trusting, "a bad state is refused"),
    (Grudging, "a refused command changes nothing"),
    (Telling, "a question changes nothing"),
    (Leaking, "invariants hold after every command"),
]


@pytest.mark.parametrize(("engine", "law"), MISTAKES, ids=lambda value: getattr(value, "__name__", ""))
def test_an_engine_with_a_mistake_breaks_its_law(engine: type[Tally], law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        engine_contract(engine, CONFIG, COMMANDS, questions=[{"take": 1}], outside=Generous())


def test_commands_that_do_not_survive_encoding_are_found() -> None:
    with pytest.raises(Exception, match="take"):
        engine_contract(Lossy, CONFIG, COMMANDS, questions=[{"take": 1}], outside=Generous())


def test_at_least_one_command_must_be_refused() -> None:
    commands: list[Command] = [Add(1), Take(1)]

    with pytest.raises(AssertionError, match="give one that is"):
        engine_contract(Tally, CONFIG, commands, questions=[{"take": 1}])


def test_at_least_one_question_is_required() -> None:
    with pytest.raises(AssertionError, match="no questions given"):
        engine_contract(Tally, CONFIG, COMMANDS, questions=[], outside=Generous())
