"""A small example engine that uses every feature of the engine protocol.

It counts. `Add` raises the total, now or at a later time; `Take` lowers it or is refused; `Draw` adds a seeded number;
`Ask` adds an answer from outside; `Advance` moves time and applies due additions.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar, Self, TypeAlias

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json, Reader, encode
from pendula.kernel.engine import NoOutside, Outcome, Outside, Reason, Refusal
from pendula.kernel.errors import InputRefused, WrongUsage
from pendula.kernel.rng import Pcg32, stream

# Sentences of refusals, as templates of their facts.
SENTENCES = {
    "bad_answer": "The outside must answer with an integer from 0.",
    "bad_bound": "A bound is from 1 to 2^31, not {below}.",
    "negative_amount": "An amount is at least 0, not {amount}.",
    "not_enough": "{amount} cannot be taken; the total is {total}.",
    "time_goes_forward": "It is {now}; time does not go back to {to}.",
}

STREAM = 0x54414C59  # "TALY": the random stream of this engine


class Add(Struct, frozen=True, tag="add", forbid_unknown_fields=True):
    """Raise the total by `amount`, now or at time `at`."""

    amount: int
    at: int | None = None


class Take(Struct, frozen=True, tag="take", forbid_unknown_fields=True):
    """Lower the total by `amount`; refused if the total is smaller."""

    amount: int


class Draw(Struct, frozen=True, tag="draw", forbid_unknown_fields=True):
    """Raise the total by a seeded number from 0 to `below` - 1."""

    below: int


class Ask(Struct, frozen=True, tag="ask", forbid_unknown_fields=True):
    """Raise the total by the answer from outside to the question `how_much`."""

    topic: str


class Advance(Struct, frozen=True, tag="advance", forbid_unknown_fields=True):
    to: int


Command: TypeAlias = Add | Take | Draw | Ask | Advance


class Changed(Struct, frozen=True, tag="changed"):
    by: int
    total: int
    at: int
    cause: str


class Due(Struct, frozen=True, order=True):
    """A later addition; the order is total and ends in the number of the addition."""

    at: int
    number: int
    amount: int


class State(Struct):
    now: int
    total: int
    added: int
    taken: int
    drawn: int
    asked: int
    number: int
    generator: tuple[int, int]
    due: list[Due]


read_state: Reader[State] = Reader(State)


class Tally:
    """Counts additions and removals; satisfies `pendula.kernel.engine.Engine`."""

    scheduler: ClassVar[str] = "tally"
    decisions: ClassVar[int] = 1
    time_unit: ClassVar[str] = "tick"
    commands: ClassVar[object] = Command
    events: ClassVar[object] = Changed

    def __init__(self, state: State) -> None:
        self.outside: Outside = NoOutside()
        self._state = state
        self._generator = Pcg32(*state.generator)

    @classmethod
    def create(cls, config: Json) -> Self:
        match config:
            case {"seed": int(seed)} if 0 <= seed < 1 << 64 and not isinstance(seed, bool):
                generator = stream(seed, epoch_id=0, constant=STREAM)
                drawing = (generator.state, generator.increment)
                nothing = dict.fromkeys(("now", "total", "added", "taken", "drawn", "asked", "number"), 0)
                return cls(State(**nothing, generator=drawing, due=[]))
        raise InputRefused("A tally needs a configuration {'seed': an integer from 0 to 2^64 - 1}", config=config)

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        cls.create(config)  # a bad configuration is refused here too
        try:
            engine = cls(read_state(state))
        except (msgspec.DecodeError, WrongUsage) as trouble:
            raise InputRefused(f"This is not a state of a tally: {trouble}") from None
        if broken := list(engine.broken()):
            raise InputRefused(f"This is not a state of a tally: {', '.join(broken)}", broken=broken)
        return engine

    def state(self) -> bytes:
        self._state.generator = (self._generator.state, self._generator.increment)
        return encode(self._state)

    def now(self) -> int:
        return self._state.now

    def next_due(self) -> int | None:
        return self._state.due[0].at if self._state.due else None

    def apply(self, command: Command) -> Outcome[Changed]:
        match command:
            case Add(amount, at):
                return self._add(amount, at)
            case Take(amount):
                return self._take(amount)
            case Draw(below):
                return self._draw(below)
            case Ask(topic):
                return self._ask(topic)
            case Advance(to):
                return self._advance(to)

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        return SENTENCES[code].format_map(facts)

    def why(self, question: Json) -> Reason:
        """Why a take of `amount` would be refused, as `{"take": amount}`."""
        match question:
            case {"take": int(amount)}:
                return self._why_take(amount)
        return Reason("unknown_question", 'A tally answers {"take": amount}.', {"asked": question})

    def broken(self) -> Iterable[str]:
        state = self._state
        if state.total != state.added + state.drawn + state.asked - state.taken:
            yield "total_is_what_came_less_what_went"
        if state.total < 0:
            yield "total_is_never_negative"
        if state.due != sorted(state.due) or any(due.at <= state.now for due in state.due):
            yield "due_additions_lie_ahead_in_order"

    def _add(self, amount: int, at: int | None) -> Outcome[Changed]:
        state = self._state
        if amount < 0:
            return _refused("negative_amount", {"amount": amount})
        if at is not None and at > state.now:
            state.due.append(Due(at, state.number, amount))
            state.due.sort()
            state.number += 1
            return Outcome(answer={"due": at})
        state.added += amount
        return self._change(amount, "add")

    def _take(self, amount: int) -> Outcome[Changed]:
        if amount < 0:
            return _refused("negative_amount", {"amount": amount})
        if amount > self._state.total:
            reason = self._why_take(amount)
            return _refused(reason.code, reason.facts)
        self._state.taken += amount
        return self._change(-amount, "take")

    def _draw(self, below: int) -> Outcome[Changed]:
        if not 1 <= below <= 1 << 31:
            return _refused("bad_bound", {"below": below})
        amount = self._generator.bounded(below)
        self._state.drawn += amount
        return self._change(amount, "draw")

    def _ask(self, topic: str) -> Outcome[Changed]:
        amount = self.outside.ask("how_much", {"topic": topic})
        if not isinstance(amount, int) or isinstance(amount, bool) or amount < 0:
            return _refused("bad_answer", {"answer": amount})
        self._state.asked += amount
        return self._change(amount, "ask")

    def _advance(self, to: int) -> Outcome[Changed]:
        state = self._state
        if to < state.now:
            facts: dict[str, Json] = {"now": state.now, "to": to}
            return _refused("time_goes_forward", facts)
        events: list[Changed] = []
        while state.due and state.due[0].at <= to:
            due = state.due.pop(0)
            state.now = due.at
            state.added += due.amount
            events.extend(self._change(due.amount, "due").events)
        state.now = to
        return Outcome(tuple(events), {"now": to})

    def _change(self, by: int, cause: str) -> Outcome[Changed]:
        self._state.total += by
        return Outcome((Changed(by, self._state.total, self._state.now, cause),), {"total": self._state.total})

    def _why_take(self, amount: int) -> Reason:
        total, coming = self._state.total, self._state.due
        if amount <= total:
            return Reason("enough", f"{amount} can be taken; the total is {total}.", {"total": total})
        because = tuple(
            Reason("comes_later", f"{due.amount} will be added at {due.at}.", {"amount": due.amount, "at": due.at})
            for due in coming
        )
        sentence = f"{amount} cannot be taken; the total is {total}, {amount - total} too few."
        return Reason("not_enough", sentence, {"amount": amount, "total": total}, because)


def _refused(code: str, facts: dict[str, Json]) -> Outcome[Changed]:
    return Outcome(refusal=Refusal(code, facts))
