"""Custom behaviours: Python objects that plan the payments of a tick, registered by name.

    class Generous:
        version = 1

        def plan(self, view: View, draw: Draw) -> Iterator[Proposal]:
            for member in view.participants:
                for receiver in view.reachable(member.id, "UAH"):
                    if member.active and view.can_pay(member.id, receiver, "UAH", Decimal(5)):
                        yield propose(member.id, receiver, "UAH", Decimal(5))

    register_behaviour("generous", Generous())

The run asks through its `Outside`, which records the answer: a replay calls no behaviour. Amounts are `Decimal`. An
impossible proposal becomes a failed payment with a code; an exception ends the tick.
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
from pendula.credit.ledger.routing import FoundRoutes
from pendula.credit.money import MOST, InvalidAmount, atoms, text
from pendula.credit.state.network import EquivalentLedger
from pendula.credit.tick.questions import Proposal as Proposal
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine, NoAnswerSource
from pendula.kernel.errors import InputRefused, WrongUsage, in_words
from pendula.kernel.rng import action_generator, tick_generator, tick_seed
from pendula.kernel.wording import shown

QUESTION = "plan"
TEXT_MOST = 250  # longer than any valid id or amount: a cut text stays invalid

_NAME = regex(r"[A-Za-z0-9_.:-]{1,80}")


class UnknownBehaviour(InputRefused):
    """No behaviour of this name is registered. Facts: `behaviour`, `known`."""

    code = "unknown_behaviour"


class InvalidBehaviour(InputRefused):
    """The object is not a behaviour, or its name is taken. Facts: `behaviour`."""

    code = "invalid_behaviour"


class OtherBehaviourVersion(InputRefused):
    """The run was made with another version of the behaviour. Facts: `behaviour`, `wanted`, `registered`."""

    code = "other_behaviour_version"


class BehaviourFailed(InputRefused):
    """A behaviour raised an exception; the tick did not happen. Facts: `behaviour`, `tick`, `defect`."""

    code = "behaviour_failed"


class NotInNetwork(InputRefused):
    """The run does not have this participant or equivalent. Facts: `name`."""

    code = "not_in_network"


class Member(Struct, frozen=True):
    """A participant as a behaviour sees it."""

    id: str
    type: str
    group: str | None
    profile: str | None
    active: bool


class Line(Struct, frozen=True):
    """A line of trust: `debtor` may owe `creditor` up to `limit` and owes `debt`; `live` if payments may use it."""

    equivalent: str
    creditor: str
    debtor: str
    limit: Decimal
    debt: Decimal
    live: bool


class Draw:
    """Deterministic random numbers: one generator for the tick, one for each position within it."""

    def __init__(self, seed: int, tick: int) -> None:
        self._seed = tick_seed(seed, tick)
        self.tick: Random = tick_generator(seed, tick)

    def at(self, position: int) -> Random:
        """A new generator, independent of other positions."""
        return action_generator(self._seed, position)


class View:
    """Read-only view of a run before the payments of a tick. Raises `NotInNetwork` for unknown names.

    Everything is in the order of ids and codes. Valid only during the call it is passed to.
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
        """The cap of planned payments in the settings; a behaviour should respect it."""
        cap = self._run.settings.amount_cap
        return None if cap is None else _units(cap)

    @property
    def equivalents(self) -> tuple[str, ...]:
        return tuple(self._run.network.ledgers)

    @cached_property
    def participants(self) -> tuple[Member, ...]:
        people = self._run.network.people
        return tuple(
            Member(participant.id, participant.type.value, participant.group, participant.profile, active)
            for participant, active in zip(people.all, people.active, strict=True)
        )

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """In the order (equivalent, creditor, debtor)."""
        names = self._run.network.people.names
        books = [ledger.book for ledger in self._run.network.ledgers.values()]
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
        """What the debtor owes the creditor; 0 if the creditor owes the debtor."""
        return _units(self._ledger(equivalent).book.owes(self._node(debtor), self._node(creditor)))

    def capacity(self, sender: str, receiver: str, equivalent: str) -> Decimal:
        """The capacity from sender to receiver over their direct line."""
        book = self._ledger(equivalent).book
        h = book.hop[self._node(sender)].get(self._node(receiver))
        return _units(max(0, book.capacity[h]) if h is not None and book.live(h) else 0)

    def position(self, participant: str, equivalent: str) -> Decimal:
        """What the participant is owed less what it owes."""
        return _units(self._ledger(equivalent).book.position(self._node(participant)))

    def reachable(self, participant: str, equivalent: str) -> tuple[str, ...]:
        """Receivers the built-in planner considers: within three hops of live lines, whatever their capacity."""
        market, names = self._ledger(equivalent).market, self._run.network.people.names
        market.refresh()
        return tuple(names[node] for node in market.members(self._node(participant), None))

    def can_pay(self, sender: str, receiver: str, equivalent: str, amount: Decimal | str | int) -> bool:
        """Whether this payment alone would find routes now; reserves nothing."""
        processor, ends = self._ledger(equivalent).processor, (self._node(sender), self._node(receiver))
        wanted = _atoms(amount)
        if wanted <= 0 or ends[0] == ends[1]:
            return False
        payment = processor.find_routes(*ends, wanted)
        return isinstance(payment, FoundRoutes) and payment.amount == wanted

    def _ledger(self, equivalent: str) -> EquivalentLedger:
        try:
            return self._run.network.ledgers[equivalent]
        except KeyError:
            raise NotInNetwork(f"The run has no equivalent {equivalent!r}", name=equivalent) from None

    def _node(self, participant: str) -> int:
        try:
            return self._run.network.people.index[participant]
        except KeyError:
            raise NotInNetwork(f"The run has no participant {participant!r}", name=participant) from None


class Behaviour(Protocol):
    """Proposes payments. The same view and draws must give the same proposals; increment `version` when they change.

    Proposals beyond the budget of the view are not consumed.
    """

    version: int

    def plan(self, view: View, draw: Draw) -> Iterable[Proposal]: ...


_registered: dict[str, Behaviour] = {}


def register_behaviour(name: str, behaviour: Behaviour, *, replace: bool = False) -> None:
    """Register a behaviour for runs of this process; an existing name is replaced only with `replace`."""
    if not _NAME.fullmatch(name):
        message = f"{name!r} is not a name for a behaviour; use 1 to 80 letters, digits and . _ : -"
        raise InvalidBehaviour(message, behaviour=name)
    version: Any = getattr(behaviour, "version", None)
    if type(version) is not int or version < 0 or not callable(getattr(behaviour, "plan", None)):
        message = f"The behaviour {name!r} needs a whole number `version`, 0 or more, and a method `plan`"
        raise InvalidBehaviour(message, behaviour=name)
    if not replace and _registered.get(name, behaviour) is not behaviour:
        message = f"A behaviour {name!r} is registered already; pass `replace=True` to replace it"
        raise InvalidBehaviour(message, behaviour=name)
    _registered[name] = behaviour


def find_behaviour(name: str) -> Behaviour:
    """The behaviour of this name; raises `UnknownBehaviour` with the known names."""
    try:
        return _registered[name]
    except KeyError:
        known = sorted(_registered)
        there = f"known are {', '.join(known)}" if known else "none is registered"
        raise UnknownBehaviour(f"No behaviour is called {name!r}; {there}", behaviour=name, known=known) from None


def propose(sender: str, receiver: str, equivalent: str, amount: Decimal | str | int) -> Proposal:
    """Propose a payment; the amount is positive and in whole cents."""
    return Proposal(sender, receiver, equivalent, _plain(amount))


class _PlanQuestion(Struct, frozen=True):
    behaviour: str
    version: int
    tick: int
    budget: int


class BehaviourOutside:
    """Answers `plan` with the proposals of the registered behaviour, as [{"from", "to", "equivalent", "amount"}].

    With a journal, pass `lambda: driver.engine`: after a failure the driver rebuilds the run. A run without a journal
    cannot continue after a failed behaviour: its tick had begun.
    """

    def __init__(self, run: Run | Callable[[], Engine[Any, Any]]) -> None:
        self._run = run
        self._failed: tuple[Run, BehaviourFailed] | None = None

    def ask(self, name: str, question: Json) -> Json:
        if name != QUESTION:
            raise NoAnswerSource(f"A behaviour answers {QUESTION!r} and not {name!r}", name=name, question=question)
        plan_question = msgspec.convert(question, _PlanQuestion)
        run = self._run() if callable(self._run) else self._run
        assert isinstance(run, Run)
        if self._failed is not None and self._failed[0] is run:
            raise self._failed[1]
        behaviour = find_behaviour(plan_question.behaviour)
        if behaviour.version != plan_question.version:
            needed = f"version {plan_question.version} of {plan_question.behaviour!r}"
            message = f"The run needs {needed}; registered is {behaviour.version}"
            versions = {"wanted": plan_question.version, "registered": behaviour.version}
            raise OtherBehaviourVersion(message, behaviour=plan_question.behaviour, **versions)
        if run.tick != plan_question.tick:
            message = "The run that was passed is not the one that asks; with a journal, pass `lambda: driver.engine`"
            raise WrongUsage(message, tick=plan_question.tick, stands_at=run.tick)
        try:
            proposals = behaviour.plan(View(run, plan_question.budget), Draw(run.seed, run.tick))
            return [_proposal_json(proposal) for proposal in islice(proposals, plan_question.budget)]
        except Exception as defect:
            words = in_words(defect)
            failed = BehaviourFailed(
                f"The behaviour {plan_question.behaviour!r} failed at tick {plan_question.tick}: {words}",
                behaviour=plan_question.behaviour,
                tick=plan_question.tick,
                defect=words,
            )
            self._failed = run, failed
            raise failed from defect


def _proposal_json(proposal: object) -> Json:
    """A proposal for the record; None for anything else, which the run notes as invalid."""
    if not isinstance(proposal, Proposal):
        return None
    parts = proposal.sender, proposal.receiver, proposal.equivalent, _plain(proposal.amount)
    if not all(isinstance(part, str) for part in parts):
        return None
    # Records cannot hold lone surrogates. No valid name has one, so the replacement is an unknown name, too.
    safe = [part[:TEXT_MOST].encode(errors="replace").decode() for part in parts]
    return dict(zip(("from", "to", "equivalent", "amount"), safe, strict=True))


def _plain(amount: Any) -> Any:
    """An amount without exponent; an invalid amount stays invalid, and the run refuses it."""
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
    # From text: exact in any decimal context.
    return Decimal(text(amount))
