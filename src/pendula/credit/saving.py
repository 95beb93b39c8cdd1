"""Save and load the state of a run as canonical JSON; a restored run continues with exactly the same ticks."""

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec import Struct, field

from pendula.credit.events import LastError
from pendula.credit.model import OPEN_POLICY, LineStatus, Participant, ParticipantStatus, Trustline
from pendula.credit.money import MOST
from pendula.credit.settings import ClearingMode, Settings, check_settings
from pendula.credit.state.clearing_policy import AdaptivePolicy, Memory
from pendula.credit.state.counters import Counters, Demand
from pendula.credit.state.digests import Saved, running_digest
from pendula.credit.state.network import HopCount, Network, SavedCount
from pendula.credit.state.run_state import Demonstration, RunState, Waiting
from pendula.kernel.canonical import Json, Reader, encode
from pendula.kernel.errors import InputRefused

STATES = ("running", "paused", "stopped", "error")


class InvalidState(InputRefused):
    """The input is not a state of a run."""

    code = "invalid_state"


class Line(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A line with its history; amounts in atoms, `owed` below 0 if the creditor owes the debtor."""

    creditor: str
    debtor: str
    limit: int
    status: LineStatus
    owed: int
    original: int
    clearing_count: int = 0
    last_clearing: int = -1
    cleared_volume: int = 0


class State(Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a run; members that are called as those of `RunState` are these as they are."""

    tick: int
    state_word: str = field(name="state")
    intensity: int
    settings: Settings
    counters: Counters
    demand: dict[str, Demand]
    last_error: LastError | None
    fired: int
    failed_ticks: int
    all_rejected: int
    by_hand: int
    added: tuple[Participant, ...]
    statuses: dict[str, ParticipantStatus]
    lines: dict[str, tuple[Line, ...]]
    policies: dict[str, Memory]
    plan_digest: Saved
    ledger_digest: Saved
    measured: dict[str, dict[str, str | None]]
    keys: dict[str, tuple[str, Json]]
    calls: dict[str, int]
    last_clearing: dict[str, Json]
    stop_source: str | None
    stop_reason: str | None
    demonstration: Demonstration
    hops: dict[str, tuple[SavedCount, ...]]
    queue: tuple[Waiting, ...]


# All others are made of parts of the run.
KEPT = tuple(
    name
    for name in State.__struct_fields__
    if name not in ("added", "statuses", "lines", "policies", "plan_digest", "ledger_digest", "hops")
)

_read: Reader[State] = Reader(State)


def save(run: RunState) -> bytes:
    known = {participant.id: participant.status for participant in run.scenario.participants}
    people = run.network.people.all
    return encode(
        State(
            **{name: getattr(run, name) for name in KEPT},
            added=tuple(participant for participant in people if participant.id not in known),
            statuses={
                participant.id: participant.status
                for participant in people
                if known.get(participant.id, participant.status) is not participant.status
            },
            lines={code: _lines(run.network, code) for code in run.network.ledgers},
            policies={code: policy.memory() for code, policy in run.policies.items()},
            plan_digest=run.plan_digest.save(),
            ledger_digest=run.ledger_digest.save(),
            hops={code: _counts(run.network, code) for code in run.network.ledgers},
        )
    )


@contextmanager
def undone_if_it_fails(run: RunState) -> Iterator[None]:
    """Restore the run if external code fails within; only runs that ask some during a command need it."""
    solver = run.settings.clearing_mode is ClearingMode.OPTIMAL or run.settings.clearing_yardstick
    others = run.config.engine == "external" or run.config.behaviour is not None
    before = save(run) if others or solver else None
    try:
        yield
    except Exception:
        if before is not None:
            load(run, before)
        raise


def _lines(network: Network, code: str) -> tuple[Line, ...]:
    ledger, names = network.ledgers[code], network.people.names
    book, trust = ledger.book, ledger.trust
    return tuple(
        Line(
            creditor=names[book.creditor[h]],
            debtor=names[book.debtor[h]],
            limit=book.limit[h],
            status=book.status[h],
            owed=book.owed[h],
            original=trust.original[h],
            clearing_count=trust.clearing_count.get(h, 0),
            last_clearing=trust.last_clearing.get(h, -1),
            cleared_volume=trust.cleared_volume.get(h, 0),
        )
        for h in range(len(book))
    )


def _counts(network: Network, code: str) -> tuple[SavedCount, ...]:
    ledger, names = network.ledgers[code], network.people.names
    book, of = ledger.book, ledger.hops.of
    return tuple(
        SavedCount(names[book.creditor[h]], names[book.debtor[h]], *msgspec.structs.astuple(of[h])) for h in sorted(of)
    )


def load(run: RunState, state: bytes) -> None:
    """Load a state into `run`, which has the same configuration; raises `InputRefused` before anything changes."""
    try:
        saved = _read(state)
    except msgspec.DecodeError as trouble:
        raise InvalidState(f"This is not a state of a run: {trouble}") from None
    settings = check_settings(saved.settings)
    if saved.state_word not in STATES or not 0 <= saved.intensity <= 100 or min(saved.tick, saved.fired) < 0:
        raise InvalidState("This is not a state of a run: a number or a word is out of range")
    network = _network(run, saved, settings)
    if saved.policies.keys() != network.ledgers.keys() or saved.demand.keys() != network.ledgers.keys():
        raise InvalidState("This is not a state of a run: its equivalents differ from those of the scenario")
    digests = running_digest(saved.plan_digest), running_digest(saved.ledger_digest)
    for name in KEPT:
        setattr(run, name, getattr(saved, name))
    run.network = network
    run.plan_digest, run.ledger_digest = digests
    run.policies = {code: AdaptivePolicy(settings, saved.policies[code]) for code in network.ledgers}


def _network(run: RunState, saved: State, settings: Settings) -> Network:
    network = Network(run.scenario, settings)
    if saved.lines.keys() != network.ledgers.keys():
        raise InvalidState("This is not a state of a run: its equivalents differ from those of the scenario")
    present = {participant.id for participant in run.scenario.participants}
    if any(person.id in present for person in saved.added) or not saved.statuses.keys() <= present:
        raise InvalidState("This is not a state of a run: its participants differ from those of the scenario")
    people = [*run.scenario.participants, *saved.added]
    people = [
        msgspec.structs.replace(participant, status=saved.statuses.get(participant.id, participant.status))
        for participant in people
    ]
    known = {participant.id for participant in people}
    rows: dict[str, list[Trustline]] = {}
    policies = network.policies()
    for code, lines in saved.lines.items():
        if any(not _sound(line, known) for line in lines):
            raise InvalidState(f"This is not a state of a run: a line in {code} is invalid")
        rows[code] = [
            Trustline(
                code,
                line.creditor,
                line.debtor,
                line.limit,
                policies.get((code, line.creditor, line.debtor), OPEN_POLICY),
                line.status,
            )
            for line in lines
        ]
    network.rebuild(people, rows)
    for code, lines in saved.lines.items():
        _fill(network, code, lines)
    for code, counts in saved.hops.items():
        _count(network, code, counts)
    return network


def _count(network: Network, code: str, counts: tuple[SavedCount, ...]) -> None:
    ledger = network.ledgers.get(code)
    for saved in counts:
        h = None if ledger is None else ledger.book.line(saved.creditor, saved.debtor)
        numbers = saved.attempts, saved.rejected, saved.errors, saved.timeouts
        sound = (
            min(*numbers, saved.closed) >= 0 and sum(numbers[1:]) <= saved.attempts and saved.closed <= saved.rejected
        )
        if ledger is None or h is None or h in ledger.hops.of or not sound:
            raise InvalidState(f"This is not a state of a run: the counts of a hop in {code} are invalid")
        ledger.hops.of[h] = HopCount(*numbers, saved.closed)


def _sound(line: Line, known: set[str]) -> bool:
    amounts = 0 <= line.limit <= MOST and 0 <= line.original <= MOST and abs(line.owed) <= MOST
    ends = line.creditor in known and line.debtor in known and line.creditor != line.debtor
    return ends and amounts and line.cleared_volume >= 0


def _fill(network: Network, code: str, lines: tuple[Line, ...]) -> None:
    ledger = network.ledgers[code]
    if len({(line.creditor, line.debtor) for line in lines}) != len(lines):
        raise InvalidState(f"This is not a state of a run: a line in {code} appears twice")
    for line in lines:
        h = ledger.book.line(line.creditor, line.debtor)
        assert h is not None
        if line.owed > 0:
            ledger.book.move(h, line.owed)
        elif line.owed < 0 and ledger.book.back[h] < 0:
            raise InvalidState(f"This is not a state of a run: a debt in {code} has no line")
        ledger.trust.original[h] = line.original
        if line.clearing_count:
            ledger.trust.clearing_count[h] = line.clearing_count
            ledger.trust.last_clearing[h] = line.last_clearing
            ledger.trust.cleared_volume[h] = line.cleared_volume
    for line in lines:
        h = ledger.book.line(line.creditor, line.debtor)
        if h is None or ledger.book.owed[h] != line.owed:
            raise InvalidState(f"This is not a state of a run: two lines in {code} disagree about a debt")
    for _ in ledger.drifts():
        pass
    ledger.settle()
