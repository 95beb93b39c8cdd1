"""Parses the events of a scenario: stress, injections, payments, clearings and notes."""

from collections.abc import Mapping
from decimal import Decimal

from pendula.credit.model import (
    AddParticipant,
    CreateTrustline,
    DatedClearing,
    DatedPayment,
    Effect,
    EventType,
    FreezeParticipant,
    InjectDebt,
    Multiplier,
    Participant,
    ParticipantStatus,
    ParticipantType,
    TimelineEvent,
    Trustline,
)
from pendula.credit.money import CENT, InvalidAmount, atoms
from pendula.credit.reading.scope import FaultCode, Reading, identifier
from pendula.documents import Cursor, Members
from pendula.documents.faults import shown
from pendula.kernel.canonical import Json

OPS = ("add_participant", "create_trustline", "freeze_participant", "inject_debt")
MULTIPLIER_MOST = 10.0
EFFECTS_MOST = 500


def read_events(at: Cursor, reading: Reading) -> tuple[TimelineEvent, ...]:
    count = iter(range(1 << 62))
    return at.list_of(lambda item: _event(item, next(count), reading), default=())


def _event(at: Cursor, index: int, reading: Reading) -> TimelineEvent:
    members = reading.members(at, ("time", "type"), ("op", "label", "description", "effects", "params", "metadata"))
    kind = members["type"].choice(EventType, default=EventType.NOTE)
    params, metadata = _open(members["params"]), _open(members["metadata"])
    for name in ("op", "label"):
        members[name].text(default=None)
    if kind is EventType.NOTE:
        members["effects"].list_of(_open, default=())
    return TimelineEvent(
        index=index,
        type=kind,
        time=_time(members["time"], reading),
        description=members["description"].text(default=None),
        metadata=metadata,
        duration=_duration(metadata, params),
        multipliers=_multipliers(members["effects"]) if kind is EventType.STRESS else (),
        effects=_effects(members, reading) if kind is EventType.INJECT else (),
        most=_most(members["metadata"], metadata, reading),
        actions=_actions(at, members, kind, reading),
    )


def _actions(
    at: Cursor, members: Members, kind: EventType, reading: Reading
) -> tuple[DatedPayment | DatedClearing, ...]:
    """The actions of an event of type payment or clearing: one in `params`, or one for each of `effects`."""
    if kind not in (EventType.PAYMENT, EventType.CLEARING):
        return ()
    places = list(members["effects"].list_of(_object, default=()))
    if members["params"].given or not places:
        places.insert(0, members["params"])
    actions: list[DatedPayment | DatedClearing] = []
    for place in places:
        names = ("from", "to", "amount", "equivalent")
        entry = place.object(optional=names, unknown="keep") if place.is_object else None
        if kind is EventType.CLEARING:
            given = None if entry is None else entry["equivalent"].unless_null()
            base = reading.base
            actions.append(DatedClearing(base if given is None or not given.given else _known_code(given, reading)))
        elif entry is None or not any(entry[name].given for name in names[:3]):
            message = "this event pays nothing; params takes from, to, amount and equivalent"
            reading.warn("event_without_action", at, message)
        else:
            actions.append(_payment(place, reading))
    return tuple(actions)


def _payment(at: Cursor, reading: Reading) -> DatedPayment:
    members = at.object(required=("from", "to", "amount"), optional=("equivalent",), unknown="keep")
    sender, receiver = members["from"].text(min=1), members["to"].text(min=1)
    amount = reading.money(members["amount"], least=None)
    if members["amount"].given and (amount <= 0 or amount % CENT):
        allowed = ("an amount above 0 with at most 2 digits after the point",)
        members["amount"].refuse("a payment is above 0 and in whole hundredths", code="invalid_amount", allowed=allowed)
    if sender and sender == receiver:
        members["to"].refuse(f"{sender!r} cannot pay itself", code=FaultCode.SELF_PAYMENT)
    return DatedPayment(sender, receiver, _known_code(members["equivalent"], reading), amount)


def _known_code(at: Cursor, reading: Reading) -> str:
    """An equivalent of the scenario; its base by default."""
    if not at.unless_null().given and reading.base is None:
        at.refuse("there is neither an equivalent nor a baseEquivalent", code="unknown_equivalent")
        return ""
    code = reading.code_or_base(at)
    if code and reading.codes is not None and code not in reading.codes:
        at.refuse(f"the scenario has no equivalent {code!r}", code="unknown_equivalent", allowed=reading.codes)
    return code


def _object(at: Cursor) -> Cursor:
    _open(at)
    return at


def _open(at: Cursor) -> dict[str, Json]:
    return at.map_of(lambda item: item.any(), default={})


def _time(at: Cursor, reading: Reading) -> int | None:
    if at.is_text:
        word = at.text(min=1, max=50)
        reading.warn("time_not_in_ms", at, f"the time {word!r} never comes; times are milliseconds")
        return None
    return at.integer(min=0)


def _duration(*sources: Mapping[str, Json]) -> int:
    for source in sources:
        value = source.get("duration_ms")
        # 3000.0 counts as a whole number: a journal writes it as 3000.
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            continue
        if Decimal(value).is_finite() and Decimal(value).to_integral_value() == value:
            return max(0, int(value))
    return 0


def _most(at: Cursor, metadata: Mapping[str, Json], reading: Reading) -> int | None:
    value = metadata.get("max_total_amount")
    if isinstance(value, str | int | Decimal) and not isinstance(value, bool):
        try:
            return atoms(value, round_down=True)
        except InvalidAmount:
            pass
    if value is not None:
        reading.warn("bound_ignored", at, f"max_total_amount {shown(value)} is not an amount and bounds nothing")
    return None


def _multipliers(at: Cursor) -> tuple[Multiplier, ...]:
    """The multipliers of a rate; effects of another form are ignored."""
    multipliers = []
    for effect in at.list_of(_open, default=()):
        value = effect.get("value")
        if effect.get("op") != "mult" or effect.get("field") != "tx_rate":
            continue
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            continue
        if not Decimal(value).is_finite() or value <= 0:
            continue
        scope = effect.get("scope", "all")
        if isinstance(scope, str) and (scope == "all" or scope.startswith(("group:", "profile:"))):
            multipliers.append(Multiplier(scope, float(min(Decimal(value), Decimal(MULTIPLIER_MOST)))))
    return tuple(multipliers)


def _effects(members: Members, reading: Reading) -> tuple[Effect, ...]:
    at = members["effects"]
    if not at.given:
        at.list_of(_open)
        return ()
    return tuple(effect for effect in at.list_of(lambda item: _effect(item, reading), min=1) if effect is not None)


def _effect(at: Cursor, reading: Reading) -> Effect | None:
    members = at.object(required=("op",), unknown="keep")
    match members["op"].any():
        case "add_participant":
            return _add(at, reading)
        case "create_trustline":
            members = reading.members(at, ("op", "from", "to", "equivalent", "limit"))
            return CreateTrustline(_line(members, "from", "to", reading))
        case "freeze_participant":
            members = reading.members(at, ("op", "participant_id"), ("freeze_trustlines",))
            return FreezeParticipant(
                members["participant_id"].text(min=1), members["freeze_trustlines"].boolean(default=True)
            )
        case "inject_debt":
            return _debt(at, reading)
        case op if members["op"].given:
            members["op"].refuse(f"{shown(op)} is not an injection", allowed=OPS)
    return None


def _line(members: Members, creditor: str, debtor: str, reading: Reading) -> Trustline:
    ends = members[creditor].text(min=1), members[debtor].text(min=1)
    return Trustline(reading.code(members["equivalent"]), *ends, reading.money(members["limit"], least=None))


def _add(at: Cursor, reading: Reading) -> AddParticipant:
    members = reading.members(at, ("op", "participant"), ("initial_trustlines",))
    one = reading.members(members["participant"], ("id", "type"), ("name", "status", "groupId", "behaviorProfileId"))
    participant = Participant(
        id=identifier(one["id"]),
        type=one["type"].choice(ParticipantType),
        name=one["name"].text(default=None),
        status=one["status"].choice(ParticipantStatus, default=ParticipantStatus.ACTIVE),
        group=one["groupId"].text(default=None),
        profile=one["behaviorProfileId"].text(default=None),
    )
    lines = members["initial_trustlines"].list_of(lambda line: _initial(line, participant.id, reading), default=())
    return AddParticipant(participant, lines)


def _initial(at: Cursor, new: str, reading: Reading) -> Trustline:
    members = reading.members(at, ("sponsor", "equivalent", "limit"), ("direction",))
    sponsor = members["sponsor"].text(min=1)
    directions = ("sponsor_credits_new", "new_credits_sponsor")
    direction = members["direction"].text(default=directions[0])
    if direction not in directions:
        members["direction"].refuse(f"{direction!r} is not a direction", code="invalid_enum", allowed=directions)
    ends = (sponsor, new) if direction == directions[0] else (new, sponsor)
    return Trustline(reading.code(members["equivalent"]), *ends, reading.money(members["limit"], least=None))


def _debt(at: Cursor, reading: Reading) -> InjectDebt:
    """`creditor` and `debtor` are aliases of `from` and `to`."""
    members = reading.members(at, ("op", "equivalent", "amount"), ("from", "to", "creditor", "debtor"))
    creditor, debtor = _end(members, "from", "creditor"), _end(members, "to", "debtor")
    amount = members["amount"].any()
    amount_in_atoms = 0
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        reading.money(members["amount"], least=None)
    else:
        try:
            amount_in_atoms = atoms(amount, round_down=True)
        except InvalidAmount as refused:
            members["amount"].refuse(refused.message, code=refused.code)
    whole = amount_in_atoms // CENT * CENT
    return InjectDebt(creditor, debtor, reading.code(members["equivalent"]), whole)


def _end(members: Members, name: str, alias: str) -> str:
    end, other = members[name].text(min=1, default=""), members[alias].text(min=1, default="")
    if not members[name].given and not members[alias].given:
        members[name].text()
    return end or other
