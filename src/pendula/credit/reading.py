"""Parses a scenario file into a `Scenario`, with every fault and its place; strict or lenient. Reads settings files.

Strict is the default. Lenient accepts `id` for `scenario_id` and `status` on a line, ignores unknown members and
rounds down amounts with too many digits; each of these is a warning.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from re import compile as regex
from typing import Any

from msgspec import Struct

from pendula.credit.model import (
    CODE_FORM,
    ID_FORM,
    OPEN_POLICY,
    AddParticipant,
    CreateTrustline,
    DatedClearing,
    DatedPayment,
    Drift,
    Effect,
    EventType,
    Flow,
    FreezeParticipant,
    InjectDebt,
    LineStatus,
    Multiplier,
    Participant,
    ParticipantStatus,
    ParticipantType,
    Policy,
    Profile,
    Scenario,
    TimelineEvent,
    Trustline,
    Warmup,
)
from pendula.credit.money import CENT, InvalidAmount, atoms
from pendula.credit.planning.profiles import PRESETS
from pendula.credit.settings import BY_NAME, BY_VARIABLE, InvalidSetting, parse_setting
from pendula.documents import Cursor, Document, Members, path_text
from pendula.documents.faults import shown, suggestion
from pendula.kernel.canonical import Json

FORM_OF_ID = "1 to 200 of a-z, A-Z, 0-9 and _ . : -"
FORM_OF_CODE = "1 to 16 capital letters, digits and _"

_CODE = regex(CODE_FORM)


class FaultCode(StrEnum):
    """Faults of a scenario that other documents do not have."""

    UNKNOWN_PARTICIPANT = "unknown_participant"
    SELF_LINE = "self_line"
    SELF_PAYMENT = "self_payment"
    PROFILE_LOOP = "profile_loop"


class Caution(Struct, frozen=True):
    """A warning for the author of a scenario; the scenario runs nevertheless."""

    code: str
    path: str
    message: str


class Reading:
    """The context of reading a scenario: strictness, known codes, warnings."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.warnings: list[Caution] = []
        self.base: str | None = None
        self.codes: tuple[str, ...] | None = None

    def members(self, at: Cursor, required: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> Members:
        """The members of a closed object; unknown ones are faults, or warnings in lenient reading."""
        members = at.object(required=required, optional=optional, unknown="keep" if self.lenient else "refuse")
        if self.lenient:
            for name in members.extra:
                self.warn("unknown_member", at, f"the member {name!r} is not known here and was ignored")
        return members

    def warn(self, code: str, at: Cursor, message: str) -> None:
        self.warnings.append(Caution(code, path_text(at.path), message))

    def money(self, at: Cursor, least: int | None = 0) -> int:
        """An amount in atoms; a fault if it is below `least`."""
        value = at.any()
        if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
            if at.given:
                at.refuse(f"{shown(value)} is not an amount", allowed=("a number", "a decimal string"))
            else:
                at.decimal()
            return 0
        try:
            amount = atoms(value)
        except InvalidAmount as refused:
            if not self.lenient or refused.kind != "too_fine":
                at.refuse(refused.message, code=refused.code, allowed=("a decimal of at most 12 and 8 digits",))
                return 0
            amount = atoms(value, round_down=True)
            self.warn("amount_rounded", at, f"{value} was rounded down to 8 digits after the point")
        if least is not None and amount < least:
            at.refuse(f"{value} is below {least}", code="invalid_amount", allowed=(f"at least {least}",))
            return 0
        return amount

    def code(self, at: Cursor) -> str:
        """An equivalent's code, trimmed and in capitals."""
        return _code(at, at.text(min=1))

    def code_or_base(self, at: Cursor) -> str:
        if at.unless_null().given:
            return self.code(at)
        if self.base is None:
            at.refuse("there is neither an equivalent nor a baseEquivalent", code="missing_field")
            return ""
        return self.base


def identifier(at: Cursor) -> str:
    """An id of the format."""
    return at.text(min=1, max=200, pattern=ID_FORM, form=FORM_OF_ID)


def _code(at: Cursor, text: str) -> str:
    code = text.strip().upper()
    if text and not _CODE.fullmatch(code):
        at.refuse(f"{text[:50]!r} is not the code of an equivalent", allowed=(FORM_OF_CODE,))
        return ""
    return code


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
            return CreateTrustline(_added_line(members, "from", "to", reading))
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


def _added_line(members: Members, creditor: str, debtor: str, reading: Reading) -> Trustline:
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


FALSE = (False, 0, "0", "false", "no", "off")
TRUE = (True, 1, "1", "true", "yes", "on")
ROOT = ("name", "description", "seed", "baseEquivalent", "equivalents", "groups", "behaviorProfiles", "events")


def read_scenario(document: Document, *, lenient: bool = False) -> Scenario:
    """The scenario of a document; raises `DocumentRefused` with every fault."""
    return read_with_warnings(document, lenient=lenient)[0]


def read_with_warnings(document: Document, *, lenient: bool = False) -> tuple[Scenario, tuple[Caution, ...]]:
    """The scenario, and warnings of lenient reading and of unknown references."""
    reading = Reading(lenient)
    scenario = document.read(lambda root: _scenario(root, reading))
    return scenario, tuple(reading.warnings)


def _scenario(root: Cursor, reading: Reading) -> Scenario:
    name_of_id, members = _root(root, reading)
    reading.base = reading.code(members["baseEquivalent"]) or None if members["baseEquivalent"].given else None
    codes = members["equivalents"].list_of(reading.code, min=1, default=())
    _unique(members["equivalents"], codes, "equivalent")
    if root.is_object and "equivalents" not in members and "baseEquivalent" not in members:
        root.refuse("one of equivalents and baseEquivalent is needed", code="missing_field")
    participants = members["participants"].list_of(lambda at: _participant(at, reading), min=1)
    _unique(members["participants"], [participant.id for participant in participants], "participant", "id")
    # Without participants, every end of every line would be reported.
    known = {participant.id for participant in participants} if participants else None
    lines = members["trustlines"].list_of(lambda at: _line(at, reading, known))
    _unique(members["trustlines"], [(line.equivalent, line.creditor, line.debtor) for line in lines], "line")
    groups = members["groups"].list_of(lambda at: _group(at, reading), default=())
    profiles = _profiles(members["behaviorProfiles"], reading)
    _refer(members["participants"], participants, set(groups), set(profiles), reading)
    settings = (
        reading.members(members["settings"], optional=("warmup", "trust_drift", "flow"))
        if "settings" in members
        else None
    )
    members["description"].text(default=None)
    used = {*codes, *((reading.base,) if reading.base else ()), *(line.equivalent for line in lines)} - {""}
    reading.codes = tuple(sorted(used))
    return Scenario(
        id=members[name_of_id].text(min=1),
        equivalents=tuple(sorted(used)),
        participants=tuple(sorted(participants, key=lambda participant: participant.id)),
        lines=tuple(sorted(lines, key=lambda line: (line.equivalent, line.creditor, line.debtor))),
        groups=groups,
        profiles=profiles,
        events=read_events(members["events"], reading),
        warmup=_warmup(settings["warmup"], reading) if settings else Warmup(),
        drift=_drift(settings["trust_drift"], reading) if settings else Drift(),
        flow=_flow(settings["flow"], reading) if settings else Flow(),
        name=members["name"].text(default=None),
        seed=members["seed"].integer(min=0, default=None),
    )


def _root(root: Cursor, reading: Reading) -> tuple[str, Members]:
    """The members of a scenario, and the name of the one that holds its id."""
    required, name_of_id = ["schema_version", "scenario_id", "participants", "trustlines"], "scenario_id"
    optional = [*ROOT, "settings"]
    if reading.lenient and root.is_object:
        root_members = root.object(optional=("schema_version", "scenario_id", "id"), unknown="keep")
        if "scenario_id" not in root_members and "id" in root_members:
            required[1] = name_of_id = "id"
            reading.warn("id_for_scenario_id", root_members["id"], "id stands for scenario_id")
        if "schema_version" not in root_members:
            required.remove("schema_version")
            optional.append("schema_version")
            reading.warn("no_schema_version", root, "schema_version is missing")
    members = reading.members(root, tuple(required), tuple(optional))
    members["schema_version"].text(default="") if reading.lenient else members["schema_version"].text()
    return name_of_id, members


def _unique(at: Cursor, entries: Iterable[Any], noun: str, member: str | None = None) -> None:
    """Report every duplicate at its own place."""
    seen: dict[Any, int] = {}
    elements: list[Cursor] = []
    for index, entry in enumerate(entries):
        empty = entry == "" or (isinstance(entry, tuple) and "" in entry)
        if not empty and seen.setdefault(entry, index) != index:
            elements = elements or list(at.list_of(lambda element: element))
            name = entry if isinstance(entry, str) else " ".join(entry)
            place = elements[index]
            if member is not None:
                place = place.object(optional=(member,), unknown="keep")[member]
            place.refuse(f"the {noun} {name!r} appears twice, first at [{seen[entry]}]", code="not_unique")


def _participant(at: Cursor, reading: Reading) -> Participant:
    members = reading.members(at, ("id", "type"), ("name", "status", "groupId", "behaviorProfileId", "metadata"))
    _open_object(members["metadata"])
    return Participant(
        id=identifier(members["id"]),
        type=members["type"].choice(ParticipantType),
        name=members["name"].text(default=None),
        status=members["status"].choice(ParticipantStatus, default=ParticipantStatus.ACTIVE),
        group=identifier(members["groupId"]) if members["groupId"].given else None,
        profile=identifier(members["behaviorProfileId"]) if members["behaviorProfileId"].given else None,
    )


def _open_object(at: Cursor) -> dict[str, Json]:
    """Any object with any members."""
    return at.map_of(lambda item: item.any(), default={})


def _line(at: Cursor, reading: Reading, known: set[str] | None) -> Trustline:
    optional = ("equivalent", "policy", *(("status",) if reading.lenient else ()))
    members = reading.members(at, ("from", "to", "limit"), optional)
    creditor, debtor = identifier(members["from"]), identifier(members["to"])
    for name, end in (("from", creditor), ("to", debtor)):
        if end and known is not None and end not in known:
            members[name].refuse(
                f"there is no participant {end!r}{_close(end, known)}", code=FaultCode.UNKNOWN_PARTICIPANT
            )
    if creditor and creditor == debtor:
        at.refuse(f"{creditor!r} cannot trust itself", code=FaultCode.SELF_LINE)
    equivalent = reading.code_or_base(members["equivalent"]) if at.is_object else ""
    limit = reading.money(members["limit"])
    policy = _policy(members["policy"]) if members["policy"].given else OPEN_POLICY
    status = members["status"].choice(LineStatus, default=LineStatus.ACTIVE) if reading.lenient else LineStatus.ACTIVE
    return Trustline(equivalent, creditor, debtor, limit, policy, status)


def _close(end: str, known: set[str]) -> str:
    return suggestion(end, tuple(sorted(known))) if len(known) <= 1000 else ""


def _policy(at: Cursor) -> Policy:
    names = ("auto_clearing", "can_be_intermediate", "max_hop_usage", "blocked_participants", "daily_limit", "status")
    members = at.object(optional=names, unknown="keep")
    usage = members["max_hop_usage"].unless_null().integer(min=0, default=None)
    blocked = members["blocked_participants"].unless_null().list_of(identifier, default=())
    policy = Policy(
        auto_clearing=_switch(members["auto_clearing"]),
        mediates=_switch(members["can_be_intermediate"]) and usage != 0,
        blocked=tuple(sorted(set(blocked))),
    )
    return OPEN_POLICY if policy == OPEN_POLICY else policy


def _switch(at: Cursor) -> bool:
    value = at.unless_null().any()
    if value is None:
        return True
    text = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(text, bool | int | str) or text not in (*FALSE, *TRUE):
        at.refuse(f"{shown(value)} is neither true nor false", allowed=("true", "false"))
        return True
    return text not in FALSE


def _group(at: Cursor, reading: Reading) -> str:
    members = reading.members(at, ("id", "label"))
    members["label"].text()
    return identifier(members["id"])


def _profiles(at: Cursor, reading: Reading) -> dict[str, Profile]:
    """Profiles by id, merged with the profiles they extend key by key; own values win."""
    profiles = at.list_of(lambda item: _profile(item, reading), default=())
    _unique(at, [profile.id for profile, _, _ in profiles], "profile", "id")
    by_id = {profile.id: (profile, extends, place) for profile, extends, place in profiles}
    merged: dict[str, Profile] = {}
    for name in by_id:
        chain: list[str] = []
        props: dict[str, Json] = {}
        step: str | None = name
        while step is not None:
            if step in chain:
                by_id[name][2].refuse(f"the profile {name!r} extends itself", code=FaultCode.PROFILE_LOOP)
                break
            if step not in by_id:
                place = by_id[chain[-1]][2]
                if chain[-1] == name:
                    place.refuse(
                        f"there is no profile {step!r} to extend{suggestion(step, tuple(by_id))}",
                        code="unknown_profile",
                    )
                break
            chain.append(step)
            props = {**by_id[step][0].props, **props}
            step = by_id[step][1]
        merged[name] = Profile(name, props)
    return merged


def _profile(at: Cursor, reading: Reading) -> tuple[Profile, str | None, Cursor]:
    members = reading.members(at, ("id",), ("extends", "props", "rules"))
    members["rules"].list_of(lambda rule: _rule(rule, reading), default=())
    extends = identifier(members["extends"]) or None if members["extends"].given else None
    return Profile(identifier(members["id"]), _open_object(members["props"])), extends, members["extends"]


def _rule(at: Cursor, reading: Reading) -> None:
    members = reading.members(at, ("trigger", "action"), ("params",))
    members["trigger"].text(min=1)
    members["action"].text(min=1)
    _open_object(members["params"])


def _refer(
    at: Cursor, participants: tuple[Participant, ...], groups: set[str], profiles: set[str], reading: Reading
) -> None:
    """Warn of undeclared groups and profiles; presets need no declaration."""
    elements = at.list_of(lambda element: element) if at.is_list else ()
    for participant, element in zip(participants, elements, strict=False):
        if participant.group is not None and participant.group not in groups:
            reading.warn("unknown_group", element, f"no group is called {participant.group!r}")
        if participant.profile is not None and participant.profile not in profiles | PRESETS.keys():
            reading.warn("unknown_profile", element, f"no profile is called {participant.profile!r}")


def _ratio(at: Cursor, default: Decimal, least: int = 0, most: int | None = 1) -> Decimal:
    return at.decimal(min=least, max=most, default=default)


def _warmup(at: Cursor, reading: Reading) -> Warmup:
    if not at.given:
        return Warmup()
    members = reading.members(at, optional=("ticks", "floor"))
    return Warmup(members["ticks"].integer(min=0, default=0), _ratio(members["floor"], Warmup().floor))


def _drift(at: Cursor, reading: Reading) -> Drift:
    if not at.given:
        return Drift()
    usual = Drift()
    names = ("enabled", "growth_rate", "decay_rate", "max_growth", "min_limit_ratio", "overload_threshold")
    members = reading.members(at, optional=names)
    return Drift(
        enabled=members["enabled"].boolean(default=False),
        growth_rate=_ratio(members["growth_rate"], usual.growth_rate),
        decay_rate=_ratio(members["decay_rate"], usual.decay_rate),
        max_growth=_ratio(members["max_growth"], usual.max_growth, least=1, most=None),
        min_limit_ratio=_ratio(members["min_limit_ratio"], usual.min_limit_ratio),
        overload_threshold=_ratio(members["overload_threshold"], usual.overload_threshold),
    )


def _flow(at: Cursor, reading: Reading) -> Flow:
    """The default of the bonus applies only if `flow` is given."""
    if not at.given:
        return Flow()
    members = reading.members(at, optional=("enabled", "default_affinity", "reciprocity_bonus"))
    return Flow(
        enabled=members["enabled"].boolean(default=False),
        default_affinity=_ratio(members["default_affinity"], Flow().default_affinity),
        reciprocity_bonus=_ratio(members["reciprocity_bonus"], Decimal("0.15")),
    )


def read_settings(document: Document) -> dict[str, str]:
    """The texts of the settings by name, as `changed` takes them; raises `DocumentRefused` with every fault.

    Numbers, true and false are accepted like texts, and null means "none".
    """
    return document.read(_settings)


def _settings(root: Cursor) -> dict[str, str]:
    values: dict[str, str] = {}

    def member(at: Cursor) -> None:
        key = str(at.path[-1])
        setting = BY_NAME.get(key) or BY_VARIABLE.get(key)
        if setting is None:
            near = suggestion(key, [*BY_NAME, *BY_VARIABLE])
            # A list of fifty names would hide the suggestion.
            names = () if near else tuple(sorted(BY_NAME))
            at.refuse(f"no setting is called {key!r}{near}", code="unknown_field", allowed=names)
            return
        if setting.name in values:
            at.refuse(f"{setting.name} is given twice, once by its name and once by its variable", code="not_unique")
            return
        values[setting.name] = _text(at)
        try:
            parse_setting(setting, values[setting.name])
        except InvalidSetting as refused:
            allowed = str(refused.details["allowed"])
            at.refuse(refused.message.removesuffix(f"; allowed is {allowed}"), code=refused.code, allowed=(allowed,))

    root.map_of(member)
    return values


def _text(at: Cursor) -> str:
    match at.any():
        case None:
            return "none"
        case bool() as switch:
            return "on" if switch else "off"
        case int() | Decimal() as number:
            return format(number, "f") if isinstance(number, Decimal) else str(number)
        case str() as text:
            return text.strip()
        case _:
            return "a list or an object"
