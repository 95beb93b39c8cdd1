"""Reads a scenario file into a `Scenario`, with every fault and its place; strict or lenient. Reads settings files.

The structs are the form of the file; `model` has what a run is made of. Strict is the default. Lenient accepts `id` for
`scenario_id` and `status` on a line, ignores unknown members and rounds down amounts with too many digits; each of
these is a warning.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import StrEnum
from re import compile as regex
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

from pendula.credit import model
from pendula.credit.model import (
    CODE_FORM,
    ID_FORM,
    NO_FLOW,
    OPEN_POLICY,
    Drift,
    EventType,
    Flow,
    LineStatus,
    Multiplier,
    ParticipantStatus,
    ParticipantType,
    Policy,
    Profile,
    Scenario,
    TimelineEvent,
    Trustline,
    Warmup,
)
from pendula.credit.money import ATOMS, CENT, MOST, InvalidAmount, atoms
from pendula.credit.planning.profiles import PRESETS
from pendula.credit.settings import BY_NAME, InvalidSetting, near_settings, parse_setting, setting_called
from pendula.documents import Cursor, Document, Members, path_text
from pendula.documents.schema import DRAFT, components
from pendula.documents.typed import NULL_IS_ABSENT, Read, Unique, read, written
from pendula.kernel.canonical import Json
from pendula.kernel.wording import shown, suggestion

T = TypeVar("T")

MULTIPLIER_MOST = 10.0
UNITS = MOST // ATOMS + 1  # every amount is below this; a float cannot tell the largest from it
FALSE = (False, 0, "0", "false", "no", "off")
TRUE = (True, 1, "1", "true", "yes", "on")

# Parts of the patterns of the schema. Non-ASCII letters whose uppercase is ASCII count as letters of a code.
_SPACE = r"[\s\u001c-\u001f\u0085]*"
_LETTER = f"({CODE_FORM.partition('{')[0]}|[a-z]|[\\u00df\\u0131\\u017f\\ufb00-\\ufb06])"
_DECIMAL = rf"^{_SPACE}[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?{_SPACE}$"
_WORDS = "|".join(
    "".join(f"[{letter.upper()}{letter}]" for letter in word) for word in (*FALSE, *TRUE) if isinstance(word, str)
)


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
    """The context of reading a scenario: strictness, warnings, the codes that are known so far, the base among them."""

    def __init__(self, lenient: bool) -> None:
        self.lenient = lenient
        self.warnings: list[Caution] = []
        self.base: str | None = None
        self.codes: set[str] = set()

    def warn(self, code: str, at: Cursor, message: str) -> None:
        self.warnings.append(Caution(code, path_text(at.path), message))

    def ignore(self, at: Cursor, name: str) -> None:
        self.warn("unknown_member", at, f"the member {name!r} is not known here and was ignored")


def _reading(at: Cursor) -> Reading:
    context = at.context
    assert isinstance(context, Reading)
    return context


def _code(at: Cursor) -> str:
    """An equivalent's code, trimmed and in capitals."""
    text = at.text(min=1)
    code = text.strip().upper()
    if text and not regex(CODE_FORM).fullmatch(code):
        at.refuse(f"{text[:50]!r} is not the code of an equivalent", allowed=("1 to 16 capital letters, digits and _",))
        return ""
    return code


def _declared_code(at: Cursor) -> str:
    """A code that events may use after it."""
    code = _code(at)
    if code:
        _reading(at).codes.add(code)
    return code


def _base_code(at: Cursor) -> str:
    code = _declared_code(at)
    _reading(at).base = code or None
    return code


def _known_code(at: Cursor) -> str:
    code, codes = _code(at), _reading(at).codes
    if code and code not in codes:
        allowed = tuple(sorted(codes))
        at.refuse(f"the scenario has no equivalent {code!r}", code="unknown_equivalent", allowed=allowed)
    return code


def _number(at: Cursor, round_down: bool) -> int | None:
    """An amount in atoms; None if it is refused."""
    value = at.any()
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        at.refuse(f"{shown(value)} is not an amount", allowed=("a number", "a decimal string"))
        return None
    try:
        return atoms(value, round_down=round_down)
    except InvalidAmount as refused:
        if _reading(at).lenient and refused.kind == "too_fine":
            _reading(at).warn("amount_rounded", at, f"{value} was rounded down to 8 digits after the point")
            return atoms(value, round_down=True)
        at.refuse(refused.message, code=refused.code, allowed=("a decimal of at most 12 and 8 digits",))
        return None


def _amount(at: Cursor) -> int:
    return _number(at, round_down=False) or 0


def _limit(at: Cursor) -> int:
    amount = _amount(at)
    if amount < 0:
        at.refuse(f"{at.any()} is below 0", code="invalid_amount", allowed=("at least 0",))
        return 0
    return amount


def _rounded(at: Cursor) -> int:
    """An amount in whole cents, rounded down."""
    return (_number(at, round_down=True) or 0) // CENT * CENT


def _switch(at: Cursor) -> bool:
    value = at.any()
    text = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(text, bool | int | str) or text not in (*FALSE, *TRUE):
        at.refuse(f"{shown(value)} is neither true nor false", allowed=("true", "false"))
        return True
    return text not in FALSE


def _open(at: Cursor) -> Json:
    return at.map_of(lambda member: member.any())


def _all_open(at: Cursor) -> Json:
    return at.list_of(_open)


def _time(at: Cursor) -> int | UnsetType:
    if at.is_text:
        word = at.text(min=1, max=50)
        _reading(at).warn("time_not_in_ms", at, f"the time {word!r} never comes; times are milliseconds")
        return UNSET
    return at.integer(min=0)


def _written_amount(least: int) -> Meta:
    return written(
        anyOf=[{"type": "number", "minimum": least, "maximum": UNITS}, {"type": "string", "pattern": _DECIMAL}]
    )


def _described(text: str) -> Meta:
    return Meta(description=text)


Id = Annotated[
    str,
    Meta(min_length=1, max_length=200, pattern=f"^{ID_FORM}$", extra={"form": "1 to 200 of a-z, A-Z, 0-9 and _ . : -"}),
]
Name = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
_WRITTEN_CODE = written(
    type="string",
    pattern=f"^{_SPACE}{_LETTER}{{1,16}}{_SPACE}$",
    description="1 to 16 letters, digits and _; read in capitals, without spaces around.",
)
Code = Annotated[str, Read(_code, ""), _WRITTEN_CODE]
DeclaredCode = Annotated[str, Read(_declared_code, ""), _WRITTEN_CODE]
BaseCode = Annotated[str, Read(_base_code, ""), _WRITTEN_CODE]
KnownCode = Annotated[str, Read(_known_code, ""), _WRITTEN_CODE]
Limit = Annotated[int, Read(_limit, 0), _written_amount(0)]
Amount = Annotated[int, Read(_amount, 0), _written_amount(-UNITS)]
RoundedAmount = Annotated[int, Read(_rounded, 0), _written_amount(-UNITS)]
Switch = Annotated[
    bool,
    Read(_switch, True),
    NULL_IS_ABSENT,
    written(
        anyOf=[
            {"type": ["boolean", "null"]},
            {"enum": [0, 1]},
            {"type": "string", "pattern": f"^{_SPACE}({_WORDS}){_SPACE}$"},
        ],
        default=True,
    ),
]
Time = Annotated[
    int | UnsetType,
    Read(_time, 0),
    written(
        anyOf=[
            {"type": "integer", "minimum": 0},
            {"type": "string", "minLength": 1, "maxLength": 50, "description": "A time in words never comes."},
        ],
        description="Virtual milliseconds.",
    ),
]
Anything = dict[str, Any]


class NewParticipant(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"group": "groupId", "profile": "behaviorProfileId"}
):
    """A participant whom an event adds."""

    id: Id
    type: ParticipantType
    name: str | UnsetType = UNSET
    status: ParticipantStatus = ParticipantStatus.ACTIVE
    group: str | UnsetType = UNSET
    profile: str | UnsetType = UNSET


class Participant(NewParticipant, frozen=True):
    group: Id | UnsetType = UNSET
    profile: Id | UnsetType = UNSET
    metadata: Anything = {}


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    id: Id
    label: str


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    trigger: Name
    action: Name
    params: Anything = {}


class GivenProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """A profile as it is written, not yet merged with the one it extends.

    Any prop does: one that cannot be used is replaced by its default, and `check` says so.
    """

    id: Id
    extends: Id | UnsetType = UNSET
    props: Annotated[
        Anything,
        _described(
            "tx_rate, equivalent_weights, recipient_group_weights, amount_model, flow_chains, flow_affinity, "
            "periodicity_factor, demand, base_p, cluster_bias; what else is here is kept and ignored."
        ),
    ] = {}
    rules: tuple[Rule, ...] = ()


class LinePolicy(Struct, frozen=True):
    """Open: other members are the owner's own."""

    auto_clearing: Switch = True
    can_be_intermediate: Switch = True
    max_hop_usage: Annotated[Count | None, NULL_IS_ABSENT, _described("0 forbids mediation.")] = None
    blocked_participants: Annotated[tuple[Id, ...] | None, NULL_IS_ABSENT] = None
    daily_limit: Annotated[Any, _described("Kept, not enforced.")] = None
    status: Annotated[Any, _described("Kept, not interpreted.")] = None


class Line(Struct, frozen=True, forbid_unknown_fields=True, rename={"creditor": "from", "debtor": "to"}):
    creditor: Annotated[Id, _described("The creditor: who is paid.")]
    debtor: Annotated[Id, _described("The debtor: who pays.")]
    limit: Limit
    equivalent: Annotated[DeclaredCode | None, NULL_IS_ABSENT] = None
    policy: LinePolicy = LinePolicy()

    def check(self, at: Members) -> None:
        if self.creditor and self.creditor == self.debtor:
            at.owner.refuse(f"{self.creditor!r} cannot trust itself", code=FaultCode.SELF_LINE)
        if not at["equivalent"].unless_null().given and _reading(at.owner).base is None:
            at["equivalent"].refuse("there is neither an equivalent nor a baseEquivalent", code="missing_field")


class LenientLine(Line, frozen=True):
    status: LineStatus = LineStatus.ACTIVE


class InitialLine(Struct, frozen=True, forbid_unknown_fields=True):
    """A line between a new participant and a sponsor."""

    sponsor: Name
    equivalent: Code
    limit: Amount
    direction: Literal["sponsor_credits_new", "new_credits_sponsor"] = "sponsor_credits_new"


class Injection(Struct, frozen=True, tag_field="op"):
    """An effect that changes the network."""


class AddParticipant(Injection, frozen=True, forbid_unknown_fields=True, tag="add_participant"):
    participant: NewParticipant
    initial_trustlines: tuple[InitialLine, ...] = ()


class CreateTrustline(Injection, frozen=True, forbid_unknown_fields=True, tag="create_trustline"):
    creditor: Name = field(name="from")
    debtor: Name = field(name="to")
    equivalent: Code
    limit: Amount


class FreezeParticipant(Injection, frozen=True, forbid_unknown_fields=True, tag="freeze_participant"):
    participant_id: Name
    freeze_trustlines: bool = True


class InjectDebt(Injection, frozen=True, forbid_unknown_fields=True, tag="inject_debt"):
    """`creditor` and `debtor` are aliases of `from` and `to`."""

    equivalent: Code
    amount: RoundedAmount
    source: Name | UnsetType = field(name="from", default=UNSET)
    target: Name | UnsetType = field(name="to", default=UNSET)
    creditor: Name | UnsetType = UNSET
    debtor: Name | UnsetType = UNSET

    def check(self, at: Members) -> None:
        for name, alias in (("from", "creditor"), ("to", "debtor")):
            if not at[name].given and not at[alias].given:
                at[name].text()


class Paid(Struct, frozen=True, rename={"sender": "from", "receiver": "to"}):
    """A payment in the params or effects of an event. Open: other members are the owner's own."""

    sender: Annotated[Name | UnsetType, _described("Who pays.")] = UNSET
    receiver: Annotated[Name | UnsetType, _described("Who is paid.")] = UNSET
    amount: Amount | UnsetType = UNSET
    equivalent: Annotated[KnownCode | None, NULL_IS_ABSENT, _described("The base unless given.")] = None

    @property
    def is_payment(self) -> bool:
        return not self.sender is self.receiver is self.amount is UNSET

    def check(self, at: Members) -> None:
        names = ("from", "to", "amount")
        if not any(at[name].given for name in names):
            return
        for name in names:
            if not at[name].given:
                at[name].text()
        if isinstance(self.amount, int) and (self.amount <= 0 or self.amount % CENT):
            allowed = ("an amount above 0 with at most 2 digits after the point",)
            at["amount"].refuse("a payment is above 0 and in whole hundredths", code="invalid_amount", allowed=allowed)
        if self.sender and self.sender == self.receiver:
            at["to"].refuse(f"{self.sender!r} cannot pay itself", code=FaultCode.SELF_PAYMENT)
        if not at["equivalent"].unless_null().given and _reading(at.owner).base is None:
            message = "there is neither an equivalent nor a baseEquivalent"
            at["equivalent"].refuse(message, code="unknown_equivalent")


class Cleared(Struct, frozen=True):
    """A clearing in the params or effects of an event. Open, as a payment is."""

    equivalent: Annotated[KnownCode | None, NULL_IS_ABSENT] = None


class Event(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What every event has. Some types of events say more of their params and effects."""

    time: Time
    op: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    metadata: Anything = {}
    params: Annotated[Any, Read(_open), written(type="object")] = {}
    effects: Annotated[Any, Read(_all_open), written(type="array", items={"type": "object"})] = ()

    def check(self, at: Members) -> None:
        value = self.metadata.get("max_total_amount")
        if value is not None and _bound(self.metadata) is None:
            message = f"max_total_amount {shown(value)} is not an amount and bounds nothing"
            _reading(at.owner).warn("bound_ignored", at["metadata"], message)


class Payments(Event, frozen=True, kw_only=True, tag="payment"):
    """One payment in `params`, or one for each of `effects`."""

    params: Paid | UnsetType = UNSET
    effects: tuple[Paid, ...] = ()

    def check(self, at: Members) -> None:
        Event.check(self, at)
        for paid in _actions(self.params, self.effects, Paid()):
            if not paid.is_payment:
                message = "this event pays nothing; params takes from, to, amount and equivalent"
                _reading(at.owner).warn("event_without_action", at.owner, message)


class Clearings(Event, frozen=True, kw_only=True, tag="clearing"):
    params: Cleared | UnsetType = UNSET
    effects: tuple[Cleared, ...] = ()


class Note(Event, frozen=True, kw_only=True, tag="note"):
    """A remark."""


class Stress(Event, frozen=True, kw_only=True, tag="stress"):
    """Effects of a form other than that of a multiplier are ignored."""


class Injections(Event, frozen=True, kw_only=True, tag="inject"):
    effects: Annotated[
        tuple[AddParticipant | CreateTrustline | FreezeParticipant | InjectDebt, ...], Meta(min_length=1)
    ]


class ScenarioSettings(Struct, frozen=True, forbid_unknown_fields=True):
    warmup: Warmup = Warmup()
    trust_drift: Drift = Drift()
    flow: Flow = NO_FLOW


class ScenarioFile(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"base": "baseEquivalent", "profiles": "behaviorProfiles", "lines": "trustlines"},
):
    """A scenario file. Equivalents and lines come before events, which may only use their codes."""

    schema_version: Annotated[str, Meta(description="The version of the format, scenario/1.", examples=["scenario/1"])]
    scenario_id: Annotated[Name, _described("The id of the scenario.")]
    name: Annotated[str | UnsetType, _described("The display name of the scenario.")] = UNSET
    description: Annotated[str | UnsetType, _described("A description.")] = UNSET
    seed: Annotated[Count | UnsetType, _described("Random seed, unless a run has its own.")] = UNSET
    base: Annotated[BaseCode | UnsetType, _described("The equivalent of lines that name none.")] = UNSET
    equivalents: Annotated[
        tuple[DeclaredCode, ...],
        Meta(min_length=1, extra_json_schema={"uniqueItems": True}),
        _described("The units of account; those of the lines need not be listed."),
    ] = ()
    participants: Annotated[
        tuple[Participant, ...],
        Unique("id", noun="participant"),
        Meta(min_length=1, description="The participants."),
    ]
    groups: Annotated[tuple[Group, ...], _described("Groups of participants, to which profiles may refer.")] = ()
    profiles: Annotated[
        tuple[GivenProfile, ...],
        Unique("id", noun="profile"),
        _described("Behaviour of participants: frequency, receivers and amounts of payments."),
    ] = ()
    lines: Annotated[tuple[Line, ...], _described("Trustlines with their limits.")]
    settings: Annotated[ScenarioSettings, _described("Warm-up, trust drift, and preferred directions of payments.")] = (
        ScenarioSettings()
    )
    events: Annotated[
        tuple[Payments | Clearings | Stress | Injections | Note, ...], _described("Events at virtual times.")
    ] = ()

    def check(self, at: Members) -> None:
        if "equivalents" not in at and "baseEquivalent" not in at:
            at.owner.refuse("one of equivalents and baseEquivalent is needed", code="missing_field")
        base = _reading(at.owner).base or ""
        _refuse_repeated(at["equivalents"], [(code,) for code in self.equivalents], "equivalent")
        ends = [(line.equivalent or base, line.creditor, line.debtor) for line in self.lines]
        _refuse_repeated(at["trustlines"], ends, "line")
        _refuse_unknown_ends(at["trustlines"], ends, {participant.id for participant in self.participants})
        _refuse_wrong_extensions(at["behaviorProfiles"], self.profiles)
        self._warn_of_unknown_references(at["participants"])

    def _warn_of_unknown_references(self, at: Cursor) -> None:
        """Undeclared groups and profiles; presets need no declaration."""
        groups = {group.id for group in self.groups}
        profiles = {profile.id for profile in self.profiles} | PRESETS.keys()
        for participant, element in zip(self.participants, _elements(at), strict=False):
            if participant.group is not UNSET and participant.group not in groups:
                _reading(at).warn("unknown_group", element, f"no group is called {participant.group!r}")
            if participant.profile is not UNSET and participant.profile not in profiles:
                _reading(at).warn("unknown_profile", element, f"no profile is called {participant.profile!r}")


class LenientScenarioFile(ScenarioFile, frozen=True, kw_only=True):
    schema_version: str = ""
    scenario_id: Name | UnsetType = UNSET  # type: ignore[assignment]
    lines: tuple[LenientLine, ...]
    id: Any = None

    def check(self, at: Members) -> None:
        reading = _reading(at.owner)
        warnings, reading.warnings = reading.warnings, []
        if "scenario_id" in at or "id" not in at:
            at["scenario_id"].text()
        else:
            at["id"].text(min=1)
            reading.warn("id_for_scenario_id", at["id"], "id stands for scenario_id")
        if "schema_version" not in at:
            reading.warn("no_schema_version", at.owner, "schema_version is missing")
        if "scenario_id" in at and "id" in at:
            reading.ignore(at.owner, "id")
        # What concerns the whole file comes first.
        reading.warnings += warnings
        ScenarioFile.check(self, at)


def _elements(at: Cursor) -> tuple[Cursor, ...]:
    return at.list_of(lambda element: element) if at.is_list else ()


def _refuse_repeated(at: Cursor, entries: Iterable[tuple[str, ...]], noun: str) -> None:
    """Note every entry, as it was read, that repeats an earlier one, at its own place."""
    seen: dict[tuple[str, ...], int] = {}
    elements: Sequence[Cursor] = ()
    for index, entry in enumerate(entries):
        if "" not in entry and seen.setdefault(entry, index) != index:
            elements = elements or _elements(at)
            message = f"the {noun} {' '.join(entry)!r} appears twice, first at [{seen[entry]}]"
            elements[index].refuse(message, code="not_unique")


def _refuse_unknown_ends(at: Cursor, lines: Iterable[tuple[str, str, str]], known: set[str]) -> None:
    # Without participants, every end of every line would be reported.
    elements: Sequence[Cursor] = ()
    for index, (_, *ends) in enumerate(lines if known else ()):
        for name, end in zip(("from", "to"), ends, strict=True):
            if end and end not in known:
                elements = elements or _elements(at)
                hint = suggestion(end, tuple(sorted(known))) if len(known) <= 1000 else ""
                place = elements[index].object(optional=(name,), unknown="keep")[name]
                place.refuse(f"there is no participant {end!r}{hint}", code=FaultCode.UNKNOWN_PARTICIPANT)


def _refuse_wrong_extensions(at: Cursor, profiles: Sequence[GivenProfile]) -> None:
    by_id = {profile.id: profile for profile in profiles}
    places = {profile.id: element for profile, element in zip(profiles, _elements(at), strict=False)}
    for name, profile in by_id.items():
        place = places[name].object(optional=("extends",), unknown="keep")["extends"] if profile.extends else None
        if place is None:
            continue
        if profile.extends not in by_id:
            hint = suggestion(str(profile.extends), tuple(by_id))
            place.refuse(f"there is no profile {profile.extends!r} to extend{hint}", code="unknown_profile")
        elif len(chain := list(_chain(name, by_id))) > len(set(chain)):
            place.refuse(f"the profile {name!r} extends itself", code=FaultCode.PROFILE_LOOP)


def _chain(name: str, by_id: Mapping[str, GivenProfile]) -> Iterable[str]:
    """A profile and what it extends, one after the other; the first that comes again is the last."""
    seen: set[str] = set()
    step: str | UnsetType = name
    while step and step in by_id:
        yield step
        if step in seen:
            return
        seen.add(step)
        step = by_id[step].extends


def read_scenario(document: Document, *, lenient: bool = False) -> Scenario:
    """The scenario of a document; raises `DocumentRefused` with every fault."""
    return read_with_warnings(document, lenient=lenient)[0]


def read_with_warnings(document: Document, *, lenient: bool = False) -> tuple[Scenario, tuple[Caution, ...]]:
    """The scenario, and warnings of lenient reading and of unknown references."""
    reading = Reading(lenient)
    if lenient:
        file: ScenarioFile = read(document, LenientScenarioFile, context=reading, ignore=reading.ignore)
    else:
        file = read(document, ScenarioFile, context=reading)
    return _scenario(file, reading), tuple(reading.warnings)


def _scenario(file: ScenarioFile, reading: Reading) -> Scenario:
    given = {profile.id: profile for profile in file.profiles}
    base = reading.base or ""
    return Scenario(
        id=file.scenario_id or str(getattr(file, "id", "")),
        equivalents=tuple(sorted(reading.codes)),
        participants=tuple(sorted(map(_participant, file.participants), key=lambda participant: participant.id)),
        lines=tuple(
            sorted(
                (_trustline(line, base) for line in file.lines),
                key=lambda line: (line.equivalent, line.creditor, line.debtor),
            )
        ),
        groups=tuple(group.id for group in file.groups),
        profiles={name: _profile(name, given) for name in given},
        events=tuple(_event(event, index, reading.base) for index, event in enumerate(file.events)),
        warmup=file.settings.warmup,
        drift=file.settings.trust_drift,
        flow=file.settings.flow,
        name=_or_none(file.name),
        seed=_or_none(file.seed),
    )


def _participant(given: NewParticipant) -> model.Participant:
    name, group, profile = map(_or_none, (given.name, given.group, given.profile))
    return model.Participant(given.id, given.type, name, given.status, group, profile)


def _or_none(value: T | UnsetType) -> T | None:
    return None if value is UNSET else value


def _trustline(line: Line, base: str) -> Trustline:
    given = line.policy
    policy = Policy(
        auto_clearing=given.auto_clearing,
        mediates=given.can_be_intermediate and given.max_hop_usage != 0,
        blocked=tuple(sorted(set(given.blocked_participants or ()))),
    )
    status = line.status if isinstance(line, LenientLine) else LineStatus.ACTIVE
    # Most lines have the same policy; they share it.
    policy = OPEN_POLICY if policy == OPEN_POLICY else policy
    return Trustline(line.equivalent or base, line.creditor, line.debtor, line.limit, policy, status)


def _profile(name: str, given: Mapping[str, GivenProfile]) -> Profile:
    """A profile merged with the profiles it extends key by key; own values win."""
    props: dict[str, Json] = {}
    for step in _chain(name, given):
        props = {**given[step].props, **props}
    return Profile(name, props)


def _event(event: Payments | Clearings | Stress | Injections | Note, index: int, base: str | None) -> TimelineEvent:
    params = event.params if isinstance(event.params, dict) else {}
    multipliers: tuple[Multiplier, ...] = ()
    effects: tuple[model.Effect, ...] = ()
    actions: tuple[model.DatedPayment | model.DatedClearing, ...] = ()
    match event:
        case Payments():
            given = _actions(event.params, event.effects, Paid())
            actions = tuple(_payment(paid, base) for paid in given if paid.is_payment)
        case Clearings():
            cleared = _actions(event.params, event.effects, Cleared())
            actions = tuple(model.DatedClearing(clearing.equivalent or base) for clearing in cleared)
        case Injections():
            effects = tuple(map(_effect, event.effects))
        case Stress():
            multipliers = _multipliers(event.effects)
        case Note():
            pass
    return TimelineEvent(
        index=index,
        type=EventType(str(event.__struct_config__.tag)),
        time=_or_none(event.time),
        description=_or_none(event.description),
        metadata=event.metadata,
        duration=_duration(event.metadata, params),
        multipliers=multipliers,
        effects=effects,
        most=_bound(event.metadata),
        actions=actions,
    )


def _actions(params: T | UnsetType, effects: tuple[T, ...], empty: T) -> tuple[T, ...]:
    """The actions of an event: that of `params`, which may be empty if there are no effects, and those of `effects`."""
    if params is UNSET:
        return effects or (empty,)
    return (params, *effects)


def _payment(paid: Paid, base: str | None) -> model.DatedPayment:
    assert paid.amount
    return model.DatedPayment(str(paid.sender), str(paid.receiver), paid.equivalent or base or "", paid.amount)


def _duration(*sources: Mapping[str, Json]) -> int:
    for source in sources:
        value = source.get("duration_ms")
        # 3000.0 counts as a whole number: a journal writes it as 3000.
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            continue
        if Decimal(value).is_finite() and Decimal(value).to_integral_value() == value:
            return max(0, int(value))
    return 0


def _bound(metadata: Mapping[str, Json]) -> int | None:
    """The most that an event may inject; None for what is not an amount."""
    value = metadata.get("max_total_amount")
    if isinstance(value, str | int | Decimal) and not isinstance(value, bool):
        try:
            return atoms(value, round_down=True)
        except InvalidAmount:
            pass
    return None


def _multipliers(effects: Iterable[Anything]) -> tuple[Multiplier, ...]:
    """The multipliers of a rate; effects of another form are ignored."""
    multipliers = []
    for effect in effects:
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


def _effect(effect: AddParticipant | CreateTrustline | FreezeParticipant | InjectDebt) -> model.Effect:
    match effect:
        case AddParticipant(given, lines):
            participant = _participant(given)
            return model.AddParticipant(participant, tuple(_initial(line, participant.id) for line in lines))
        case CreateTrustline(creditor, debtor, equivalent, limit):
            return model.CreateTrustline(Trustline(equivalent, creditor, debtor, limit))
        case FreezeParticipant(participant_id, freeze_trustlines):
            return model.FreezeParticipant(participant_id, freeze_trustlines)
        case InjectDebt():
            ends = str(effect.source or effect.creditor), str(effect.target or effect.debtor)
            return model.InjectDebt(*ends, effect.equivalent, effect.amount)


def _initial(line: InitialLine, new: str) -> Trustline:
    creditor, debtor = (line.sponsor, new) if line.direction == "sponsor_credits_new" else (new, line.sponsor)
    return Trustline(line.equivalent, creditor, debtor, line.limit)


def file_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file that is read strictly; a new copy each time.

    What no schema can express (duplicate ids, lines with unknown ends, profiles that extend themselves, digits after
    the point) only the reader finds.
    """
    definitions = components([ScenarioFile])[1]
    root = definitions.pop("ScenarioFile")
    line = {"required": ["equivalent"], "properties": {"equivalent": {"type": "string"}}}
    each_line = {"properties": {"trustlines": {"items": line}}}
    ends = ("from", "to", "amount")
    definitions["Paid"]["dependentRequired"] = {end: [other for other in ends if other != end] for end in ends}
    definitions["InjectDebt"]["allOf"] = [
        {"anyOf": [{"required": [end]}, {"required": [alias]}]}
        for end, alias in (("from", "creditor"), ("to", "debtor"))
    ]
    return {
        "$schema": DRAFT,
        **root,
        "title": "A scenario of a credit network",
        "description": "What `pendula credit run` reads, as YAML or JSON.",
        "anyOf": [{"required": ["baseEquivalent"]}, {"required": ["equivalents"], **each_line}],
        "$defs": definitions,
    }


def read_settings(document: Document) -> dict[str, str]:
    """The texts of the settings by name, as `change_settings` takes them; raises `DocumentRefused` with every fault.

    Numbers, true and false are accepted like texts, and null means "none".
    """
    return document.read(_settings)


def _settings(root: Cursor) -> dict[str, str]:
    values: dict[str, str] = {}

    def member(at: Cursor) -> None:
        key = str(at.path[-1])
        setting = setting_called(key)
        if setting is None:
            near = near_settings(key)
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
