"""Parses a scenario file into a `Scenario`, with every fault and its place; strict or lenient.

Strict is the default. Lenient accepts `id` for `scenario_id` and `status` on a line, ignores unknown members and
rounds down amounts with too many digits; each of these is a warning.
"""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from pendula.credit.model import (
    OPEN_POLICY,
    Drift,
    Flow,
    LineStatus,
    Participant,
    ParticipantStatus,
    ParticipantType,
    Policy,
    Profile,
    Scenario,
    Trustline,
    Warmup,
)
from pendula.credit.planning.profiles import PRESETS
from pendula.credit.reading.scope import Caution, FaultCode, Reading, identifier
from pendula.credit.reading.timeline import read_events
from pendula.documents import Cursor, Document, Members
from pendula.documents.faults import shown, suggestion
from pendula.kernel.canonical import Json

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
