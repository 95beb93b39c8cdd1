"""Behaviour of one's own: a Python object that plans the payments of a tick, registered under a name.

    class Generous:
        version = 1

        def plan(self, view: View, draw: Draw) -> Iterator[Wish]:
            for member in view.participants:
                for receiver in view.reachable(member.id, "UAH"):
                    if member.active and view.can_pay(member.id, receiver, "UAH", Decimal(5)):
                        yield wish(member.id, receiver, "UAH", Decimal(5))

    register_behaviour("generous", Generous())

The run asks through its `Outside`, which records the answer: a replay calls no behaviour at all. Money is `Decimal`
wherever a behaviour meets it. A wish that cannot be is a failed payment with a code; an exception ends the tick.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cached_property
from itertools import islice
from random import Random
from re import compile as regex
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from pendula.credit.engine import Run
from pendula.credit.ledger.routing import Found
from pendula.credit.money import MOST, InvalidAmount, atoms, text
from pendula.credit.state.network import EquivalentDesk
from pendula.credit.tick.questions import Wish as Wish
from pendula.kernel.bodies import NoAnswerSource
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine
from pendula.kernel.errors import InputRefused, WrongUsage, in_words
from pendula.kernel.rng import action_generator, tick_generator, tick_seed
from pendula.kernel.wording import shown

QUESTION = "plan"
TEXT_MOST = 250  # longer than any id or amount may be: what is cut to this is still none

_NAME = regex(r"[A-Za-z0-9_.:-]{1,80}")


class UnknownBehaviour(InputRefused):
    """Nobody registered a behaviour of this name. Facts: `behaviour`, `known`."""

    code = "unknown_behaviour"


class InvalidBehaviour(InputRefused):
    """What should be registered is not a behaviour, or its name is taken. Facts: `behaviour`."""

    code = "invalid_behaviour"


class OtherBehaviourVersion(InputRefused):
    """The run was made with another version of the behaviour. Facts: `behaviour`, `wanted`, `registered`."""

    code = "other_behaviour_version"


class BehaviourFailed(InputRefused):
    """An exception came out of a behaviour: that tick did not happen. Facts: `behaviour`, `tick`, `defect`."""

    code = "behaviour_failed"


class NotInNetwork(InputRefused):
    """A view was asked about a participant or an equivalent that the run does not have. Facts: `name`."""

    code = "not_in_network"


class Member(Struct, frozen=True):
    """A participant as a behaviour sees it."""

    id: str
    type: str
    group: str | None
    profile: str | None
    active: bool


class Line(Struct, frozen=True):
    """A line of trust: `debtor` may owe `creditor` up to `limit` and owes `debt`; `live` if value may flow over it."""

    equivalent: str
    creditor: str
    debtor: str
    limit: Decimal
    debt: Decimal
    live: bool


class Draw:
    """Chance that comes out the same every time: one generator for the tick, one for each position within it."""

    def __init__(self, seed: int, tick: int) -> None:
        self._seed = tick_seed(seed, tick)
        self.tick: Random = tick_generator(seed, tick)

    def at(self, position: int) -> Random:
        """A new generator; what is drawn from it disturbs no other position."""
        return action_generator(self._seed, position)


class View:
    """A run as it stands before the payments of a tick: to look at. Raises `NotInNetwork` for names it does not have.

    Everything is in the order of ids and codes. It is good for the call it is handed to.
    """

    def __init__(self, run: Run, budget: int) -> None:
        self._run = run
        self.budget = budget

    @property
    def tick(self) -> int:
        return self._run.tick

    @property
    def sim_time_ms(self) -> int:
        return self._run.sim_time_ms

    @property
    def cap(self) -> Decimal | None:
        """The largest amount that the settings let a planned payment have; it is for the behaviour to keep it."""
        cap = self._run.settings.amount_cap
        return None if cap is None else _units(cap)

    @property
    def equivalents(self) -> tuple[str, ...]:
        return tuple(self._run.network.desks)

    @cached_property
    def participants(self) -> tuple[Member, ...]:
        people = self._run.network.people
        return tuple(
            Member(one.id, one.type.value, one.group, one.profile, active)
            for one, active in zip(people.all, people.active, strict=True)
        )

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """In the order (equivalent, creditor, debtor)."""
        names = self._run.network.people.names
        books = [desk.book for desk in self._run.network.desks.values()]
        return tuple(
            Line(
                book.code,
                names[book.creditor[h]],
                names[book.debtor[h]],
                _units(book.limit[h]),
                _units(book.debt(h)),
                book.live(h),
            )
            for book in books
            for h in range(len(book))
        )

    def debt(self, debtor: str, creditor: str, equivalent: str) -> Decimal:
        """What one owes the other; 0 where it is the other way round."""
        return _units(self._desk(equivalent).book.owes(self._node(debtor), self._node(creditor)))

    def capacity(self, sender: str, receiver: str, equivalent: str) -> Decimal:
        """What may flow from one to the other directly, without anybody between."""
        book = self._desk(equivalent).book
        h = book.hop[self._node(sender)].get(self._node(receiver))
        return _units(max(0, book.capacity[h]) if h is not None and book.live(h) else 0)

    def position(self, participant: str, equivalent: str) -> Decimal:
        """What the participant is owed less what it owes."""
        return _units(self._desk(equivalent).book.position(self._node(participant)))

    def reachable(self, participant: str, equivalent: str) -> tuple[str, ...]:
        """Whom the built-in planner would consider: up to three hops of live lines away, whatever is used of them."""
        market, names = self._desk(equivalent).market, self._run.network.people.names
        market.refresh()
        return tuple(names[node] for node in market.members(self._node(participant), None))

    def can_pay(self, sender: str, receiver: str, equivalent: str, amount: Decimal | str | int) -> bool:
        """Whether this payment alone would find its routes now; nothing is held back for it."""
        cashier, ends = self._desk(equivalent).cashier, (self._node(sender), self._node(receiver))
        wanted = _atoms(amount)
        if wanted <= 0 or ends[0] == ends[1]:
            return False
        found = cashier.find_routes(*ends, wanted)
        return isinstance(found, Found) and found.amount == wanted

    def _desk(self, equivalent: str) -> EquivalentDesk:
        try:
            return self._run.network.desks[equivalent]
        except KeyError:
            raise NotInNetwork(f"The run has no equivalent {equivalent!r}", name=equivalent) from None

    def _node(self, participant: str) -> int:
        try:
            return self._run.network.people.index[participant]
        except KeyError:
            raise NotInNetwork(f"The run has no participant {participant!r}", name=participant) from None


class Behaviour(Protocol):
    """Wants payments. The same view and the same draws have to give the same wishes; +1 to `version` when they do not.

    Wishes beyond the budget of the view are not asked for.
    """

    version: int

    def plan(self, view: View, draw: Draw) -> Iterable[Wish]: ...


_registered: dict[str, Behaviour] = {}


def register_behaviour(name: str, behaviour: Behaviour, *, replace: bool = False) -> None:
    """Make a behaviour known to runs of this process; a name that is taken is given anew only with `replace`."""
    if not _NAME.fullmatch(name):
        message = f"{name!r} is not a name for a behaviour; use 1 to 80 letters, digits and . _ : -"
        raise InvalidBehaviour(message, behaviour=name)
    version: Any = getattr(behaviour, "version", None)
    if type(version) is not int or version < 0 or not callable(getattr(behaviour, "plan", None)):
        message = f"The behaviour {name!r} needs a whole number `version`, 0 or more, and a method `plan`"
        raise InvalidBehaviour(message, behaviour=name)
    if not replace and _registered.get(name, behaviour) is not behaviour:
        message = f"A behaviour {name!r} is registered already; `replace=True` puts another in its place"
        raise InvalidBehaviour(message, behaviour=name)
    _registered[name] = behaviour


def registered(name: str) -> Behaviour:
    """The behaviour of this name; raises `UnknownBehaviour` with the names there are."""
    try:
        return _registered[name]
    except KeyError:
        known = sorted(_registered)
        there = f"known are {', '.join(known)}" if known else "none is registered"
        raise UnknownBehaviour(f"No behaviour is called {name!r}; {there}", behaviour=name, known=known) from None


def wish(sender: str, receiver: str, equivalent: str, amount: Decimal | str | int) -> Wish:
    """A payment that a behaviour wants; the amount is whole cents above nothing."""
    return Wish(sender, receiver, equivalent, _plain(amount))


class _Asked(Struct, frozen=True):
    behaviour: str
    version: int
    tick: int
    budget: int


class BehaviourOutside:
    """Answers `plan` with what the registered behaviour wants, as [{"from", "to", "equivalent", "amount"}].

    With a journal, hand over `lambda: driver.engine`: after a failure the driver has built the run anew. A run without
    a journal that a behaviour has failed in does not go on: its tick had begun.
    """

    def __init__(self, run: Run | Callable[[], Engine[Any, Any]]) -> None:
        self._run = run
        self._failed: tuple[Run, BehaviourFailed] | None = None

    def ask(self, name: str, question: Json) -> Json:
        if name != QUESTION:
            raise NoAnswerSource(f"A behaviour answers {QUESTION!r} and not {name!r}", name=name, question=question)
        asked = msgspec.convert(question, _Asked)
        run = self._run() if callable(self._run) else self._run
        assert isinstance(run, Run)
        if self._failed is not None and self._failed[0] is run:
            raise self._failed[1]
        behaviour = registered(asked.behaviour)
        if behaviour.version != asked.version:
            message = f"The run wants {asked.behaviour!r} of version {asked.version}; registered is {behaviour.version}"
            versions = {"wanted": asked.version, "registered": behaviour.version}
            raise OtherBehaviourVersion(message, behaviour=asked.behaviour, **versions)
        if run.tick != asked.tick:
            message = "The run that was handed over is not the one that asks; with a journal, hand over the driver's"
            raise WrongUsage(message, tick=asked.tick, stands_at=run.tick)
        try:
            wanted = behaviour.plan(View(run, asked.budget), Draw(run.seed, run.tick))
            return [_written(one) for one in islice(wanted, asked.budget)]
        except Exception as defect:
            words = in_words(defect)
            failed = BehaviourFailed(
                f"The behaviour {asked.behaviour!r} failed at tick {asked.tick}: {words}",
                behaviour=asked.behaviour,
                tick=asked.tick,
                defect=words,
            )
            self._failed = run, failed
            raise failed from defect


def _written(one: object) -> Json:
    """A wish for the record; None for what is none, which the run notes as a bad answer."""
    if not isinstance(one, Wish):
        return None
    parts = one.sender, one.receiver, one.equivalent, _plain(one.amount)
    if not all(isinstance(part, str) for part in parts):
        return None
    # A lone surrogate has no place in a record, and no name has one: what is written instead is unknown as well.
    safe = [part[:TEXT_MOST].encode(errors="replace").decode() for part in parts]
    return dict(zip(("from", "to", "equivalent", "amount"), safe, strict=True))


def _plain(amount: Any) -> Any:
    """An amount without exponent; what is no amount stays no amount, for the run to refuse."""
    try:
        return text(_atoms(amount))
    except InvalidAmount as refused:
        return amount if isinstance(amount, str) else refused.code


def _atoms(amount: Decimal | str | int) -> int:
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise InvalidAmount.of("not_an_amount", repr(amount))
    if isinstance(amount, int) and abs(amount) > MOST:
        raise InvalidAmount.of("too_many_digits", shown(amount))
    return atoms(amount)


def _units(amount: int) -> Decimal:
    # From text: exact, whatever the precision of the decimal context.
    return Decimal(text(amount))
