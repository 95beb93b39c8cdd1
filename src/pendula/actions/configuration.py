"""The configuration of a world: first epoch, definitions, skills, resources, options. Read once, never changed.

Unknown names are refused: an ignored name would be a rule without effect.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import chain
from re import compile as regex
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import (
    ActionDef,
    Code,
    EpochFrame,
    Fact,
    FollowUp,
    Instance,
    KnowledgeItem,
    LockRule,
    Modifier,
    Name,
    Need,
    Options,
)
from pendula.actions.rules.conditions import unknown_in
from pendula.actions.rules.duration import Durations, Matrix, SkillRule, Skills
from pendula.actions.rules.resources import AMOUNT_RULE, ResourceTable, is_amount, plain
from pendula.actions.rules.validation import Fault, Verb, read_verb
from pendula.actions.rules.visibility import Audience, sees
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal
from pendula.kernel.errors import InputRefused
from pendula.kernel.limits import Limit
from pendula.kernel.time import (
    MINUTE,
    Instant,
    MixedTimes,
    format_iso,
    minutes_between_ceil,
    parse_iso,
    plus_minutes,
)
from pendula.kernel.wording import explain_validation_error, found_fact, unknown_name

FIELDS = (
    "epoch",
    "action_defs",
    "skills",
    "skill_weights",
    "resources",
    "locks",
    "world_state",
    "options",
    "carry",
)
WORLD_STATE = ("modifiers", "knowledge", "places")
# Sections of a file that are commands to the world, not part of its configuration.
RUN_SECTIONS = ("actions_submitted", "interrupts", "commands", "epochs")

NamedObject = tuple[str, Mapping[str, Any], tuple[str, ...]]


@cache
def known_names(kind: type[Struct]) -> tuple[str, ...]:
    """The names of a struct's members in files."""
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def unknown_names(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The path of every unknown name, with an error message."""
    for path, given, known in _objects(config):
        for name in given:
            if name in known or (path == "$.world_state" and is_fact(given[name])):
                continue
            where = f"{path}.{name}"
            if path == "$" and name in RUN_SECTIONS:
                yield (
                    where,
                    f"{name!r} is not part of the configuration of a world: submit it, or run the whole file",
                )
            else:
                inside = "a section of the configuration" if path == "$" else f"a field of {path.removeprefix('$.')}"
                yield where, unknown_name(str(name), known, inside)


def is_fact(value: Any) -> bool:
    """Whether a value can be a fact: text, integer, boolean or null."""
    return value is None or isinstance(value, str | bool | int)


def idle_members(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Members of definitions without effect, because only preempting actions interrupt."""
    for name, raw in _members(config.get("action_defs")):
        for member in idle_of(raw):
            yield f"$.action_defs.{name}.{member}", idle_message(member)


def idle_of(definition: Any) -> Iterator[str]:
    if isinstance(definition, Mapping) and definition.get("preempts") is not True:
        yield from (member for member in ("interrupts", "hold_min") if definition.get(member))


def idle_message(member: str) -> str:
    return f"{member} has no effect without `preempts: true`; add it, or leave {member} out"


def _objects(config: Mapping[str, Any]) -> Iterator[NamedObject]:
    """Every object in a configuration: path, members, and known names."""
    yield "$", config, FIELDS
    yield from _if_object("$.epoch", config.get("epoch"), EpochFrame)
    yield from _if_object("$.options", config.get("options"), Options)
    for name, raw in _members(config.get("action_defs")):
        yield from _if_object(f"$.action_defs.{name}", raw, ActionDef)
        for number, need in enumerate(_elements(raw, "resources")):
            yield from _if_object(f"$.action_defs.{name}.resources[{number}]", need, Need)
        for number, follow in enumerate(_elements(raw, "followups")):
            yield from _if_object(f"$.action_defs.{name}.followups[{number}]", follow, FollowUp)
    for name, raw in _members(config.get("locks")):
        yield from _if_object(f"$.locks.{name}", raw, LockRule)
    for name, raw in _members(config.get("skill_weights")):
        yield from _if_object(f"$.skill_weights.{name}", raw, SkillRule)
    for name, raw in _members(config.get("skills")):
        if isinstance(raw, Mapping) and "matrix" in raw:
            yield from _if_object(f"$.skills.{name}", raw, Matrix)
    world_state = config.get("world_state")
    if isinstance(world_state, Mapping):
        yield "$.world_state", world_state, WORLD_STATE
    for section, kind in (("modifiers", Modifier), ("knowledge", KnowledgeItem)):
        for number, raw in enumerate(_elements(world_state, section)):
            yield from _if_object(f"$.world_state.{section}[{number}]", raw, kind)


def _if_object(path: str, raw: Any, kind: type[Struct]) -> Iterator[NamedObject]:
    """A value of another type is refused later, when it is read."""
    if isinstance(raw, Mapping):
        yield path, raw, known_names(kind)


def _members(raw: Any) -> Iterable[tuple[str, Any]]:
    return raw.items() if isinstance(raw, Mapping) else ()


def _elements(raw: Any, name: str) -> Iterable[Any]:
    value = raw.get(name) if isinstance(raw, Mapping) else None
    return value if isinstance(value, list | tuple) else ()


# The last day for a submission: the longest action from there still ends before the year 9999.
LAST_DAY = parse_iso("9000-01-01T00:00:00Z")
DAY = 1440 * MINUTE
TIME_OF_DAY = regex(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00")


class InvalidEpoch(InputRefused):
    """The epoch is not as long as its slots, or its times cannot be read."""

    code = "InvalidEpoch"


class InvalidCarryOver(InputRefused):
    """The carry is damaged, of another world or of another epoch; nothing was processed."""

    code = "InvalidCarryOver"


class InvalidSetting(InputRefused):
    """A part of the configuration is malformed. Facts: `path`."""

    code = "InvalidSetting"


class Setting:
    """The parsed configuration of a world. Minutes count from the start of its first epoch."""

    def __init__(self, config: Mapping[str, Any], *, check_names: bool = True) -> None:
        if check_names:
            for path, message in chain(unknown_names(config), idle_members(config)):
                raise InvalidSetting(message, path=path)
        self.options: Options = _read(config, "options", Options, {})
        self.audience = Audience.of(self.options)
        self.slot_minutes = self.options.slot_minutes
        self.last_slot = self.options.slots - 1
        self.horizon = self.options.slots * self.options.slot_minutes
        frame = self._frame(config)
        self.first_epoch = frame.index
        # Times within an hour differ in two digits: `display` formats the calendar part once an hour.
        shown = format_iso(self.start)
        self._civil_start = datetime.fromisoformat(shown).replace(tzinfo=None)
        self._offset = shown.removeprefix(self._civil_start.isoformat())
        self._minute_of_hour = self._civil_start.minute
        self._hour = (-(1 << 62), "", "")
        self.verbs: dict[str, Verb | Fault] = {
            name: read_verb(name, raw) for name, raw in _object(config, "action_defs").items()
        }
        preempting = [verb for verb in self.verbs.values() if isinstance(verb, Verb) and verb.definition.preempts]
        self.has_preempting = bool(preempting)
        self.has_lists_of_victims = any(verb.definition.interrupts for verb in preempting)
        self.facts = facts_of(_object(config, "world_state"))
        if check_names:
            for path, message in self._unknown_conditions(config):
                raise InvalidSetting(message, path=path)
        modifiers = tuple(self._in_minutes(modifier) for modifier in self._modifiers(config))
        skills = Skills(_object(config, "skills"), _object(config, "skill_weights"))
        day = self._civil_start.hour * 60 + self._civil_start.minute
        self.durations = Durations(skills, modifiers, self.options, facts=self.facts, first_minute_of_day=day)
        self.carry: Json = config.get("carry")
        rules: dict[str, LockRule] = _read(config, "locks", dict[Name, LockRule], {})
        self.capacities = {name: rule.capacity for name, rule in rules.items() if rule.capacity > 1}
        self.has_lines = any(isinstance(verb, Verb) and verb.waits_for_resources for verb in self.verbs.values())
        self._amounts: dict[str, Decimal] = _read(config, "resources", dict[str, Decimal], {})
        self._items: tuple[KnowledgeItem, ...] = _read(
            _object(config, "world_state"), "knowledge", tuple[KnowledgeItem, ...], ()
        )
        self._places: dict[str, str] = _read(_object(config, "world_state"), "places", dict[Name, Name], {})
        for name, amount in self._amounts.items():
            if not is_amount(amount):
                raise InvalidSetting(f"{name} is {AMOUNT_RULE}", path=f"$.resources.{name}")
        self._amounts = {name: plain(amount) for name, amount in self._amounts.items()}
        _check_share(self.options.confidence_threshold, "$.options.confidence_threshold")
        for number, item in enumerate(self._items):
            _check_share(item.confidence, f"$.world_state.knowledge[{number}].confidence")

    @classmethod
    def read(cls, config: Json, *, check_names: bool = True) -> "Setting":
        """Raise `InvalidEpoch` or `InvalidSetting`; a faulty definition only rejects its instances."""
        if not isinstance(config, Mapping):
            raise InvalidSetting(
                "The configuration of a world must be an object with at least `epoch` and `action_defs`", path="$"
            )
        return cls(config, check_names=check_names)

    def resources(self) -> ResourceTable:
        return ResourceTable.starting_with(self._amounts)

    def knowledge(self) -> dict[str, KnowledgeItem]:
        return {item.id: item for item in self._items}

    def places(self) -> dict[str, str]:
        """The places of actors at the start."""
        return dict(self._places)

    def display(self, minute: int) -> str:
        """The ISO time of a minute."""
        hour, rest = divmod(self._minute_of_hour + minute, 60)
        if hour != self._hour[0]:
            text = (self._civil_start + timedelta(minutes=minute)).isoformat()
            self._hour = (hour, text[:14], text[16:] + self._offset)
        return f"{self._hour[1]}{rest:02}{self._hour[2]}"

    def micros_of(self, minute: int) -> int:
        return self.start.micros + minute * MINUTE

    def submitted(self, instance: Instance) -> tuple[int, int] | Fault:
        """The first minute in which an instance may start (rounded up), and its exact time in microseconds."""
        if instance.t is None:
            return self.minute_of(instance.submitted_at)
        if abs(instance.t) > self.latest:
            return Fault(Code.INVALID_TIMESTAMP, "minute_out_of_range", {"t": instance.t, "latest": self.latest})
        return instance.t, self.micros_of(instance.t)

    def minute_of(self, text: object) -> tuple[int, int] | Fault:
        try:
            instant = parse_iso(text)
            minute = minutes_between_ceil(self.start, instant)
        except InputRefused:
            facts: dict[str, Json] = {"value": found_fact(text), "start": self.display(0)}
            return Fault(Code.INVALID_TIMESTAMP, "unreadable_time", facts)
        if minute > self.latest:
            facts = {"value": str(text), "latest": self.display(self.latest)}
            return Fault(Code.INVALID_TIMESTAMP, "time_too_far_away", facts)
        return minute, instant.micros

    def allowed(self, limit: Limit) -> int:
        """The bound of a limit: that of the options, or the default."""
        own: int | None = getattr(self.options.limits, limit.name.removeprefix("actions_"))
        return limit.default if own is None else own

    def is_seen_by_pc(self, instance: Instance) -> bool:
        """Whether the player character sees the events of an instance."""
        return self.audience.pc is not None and sees(instance, self.audience.pc, self.audience)

    def refuse_time(self, now: int, to: int) -> Refusal:
        if type(to) is not int:
            return Refusal("not_a_minute", {"now": now, "value": found_fact(to)})
        if to > now:
            return Refusal("too_far_away", {"to": to, "latest": self.latest})
        return Refusal("time_goes_forward", {"now": now, "to": to})

    def _frame(self, config: Mapping[str, Any]) -> EpochFrame:
        try:
            frame = msgspec.convert(config.get("epoch"), EpochFrame)
            self.start: Instant = parse_iso(frame.start_at)
            self.latest = (LAST_DAY.micros - self.start.micros) // MINUTE
            lasting = parse_iso(frame.end_at) - self.start
        except msgspec.ValidationError as fault:
            message = explain_validation_error(f"{fault}", config.get("epoch"), EpochFrame)
            raise InvalidEpoch(f"The epoch: {message}", path="$.epoch", complaint=f"The epoch: {fault}") from None
        except MixedTimes as fault:
            raise InvalidEpoch(f"The epoch: {fault}", path="$.epoch") from None
        except InputRefused as fault:
            raise InvalidEpoch(f"The epoch: {fault.message}", path="$.epoch") from None
        if lasting != self.horizon * MINUTE:
            raise InvalidEpoch(
                f"The epoch lasts {lasting // MINUTE} minutes; "
                f"{self.options.slots} slots of {self.slot_minutes} minutes are {self.horizon}",
                path="$.epoch.end_at",
            )
        return frame

    def _modifiers(self, config: Mapping[str, Any]) -> tuple[Modifier, ...]:
        modifiers: tuple[Modifier, ...] = _read(_object(config, "world_state"), "modifiers", tuple[Modifier, ...], ())
        return modifiers

    def _in_minutes(self, modifier: Modifier) -> Modifier:
        """The same modifier with minutes instead of ISO times."""
        if modifier.daily:
            return _daily(modifier)
        bounds: dict[str, int | None] = {}
        for name in ("since", "until"):
            value = getattr(modifier, name)
            if isinstance(value, str):
                minute = self.minute_of(value)
                if isinstance(minute, Fault):
                    hint = "; a time of day needs `daily: true`" if TIME_OF_DAY.fullmatch(value) else ""
                    raise InvalidSetting(
                        f"The modifier {modifier.name}: {minute.message}{hint}", path="$.world_state.modifiers"
                    )
                value = minute[0]
            bounds[name] = value
        return msgspec.structs.replace(modifier, **bounds)

    def _unknown_conditions(self, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Conditions on names that are not in `world_state`: they are never met."""
        for number, modifier in enumerate(self._modifiers(config)):
            for name, message in unknown_in(modifier.when or {}, self.facts):
                yield f"$.world_state.modifiers[{number}].when.{name}", message
        for verb in self.verbs.values():
            if not isinstance(verb, Verb):
                continue
            for number, follow in enumerate(verb.definition.followups):
                for name, message in unknown_in(follow.when or {}, self.facts):
                    yield f"$.action_defs.{verb.name}.followups[{number}].when.{name}", message


def facts_of(world_state: Mapping[str, Any]) -> dict[str, Fact]:
    """The members of `world_state` that are not sections, such as `weather`, for conditions."""
    given = {name: value for name, value in world_state.items() if name not in WORLD_STATE and is_fact(value)}
    facts: dict[str, Fact] = _read({"world_state": given}, "world_state", dict[Name, Fact], {})
    return facts


def _daily(modifier: Modifier) -> Modifier:
    """The same modifier with minutes of the day; open ends are midnight."""
    bounds: dict[str, int | None] = {}
    for name, written in (("since", "from"), ("until", "to")):
        value = getattr(modifier, name)
        if value is not None and (not isinstance(value, str) or TIME_OF_DAY.fullmatch(value) is None):
            message = (
                f"The modifier {modifier.name}: {written} is {value!r}; with `daily` it must be a time such as 22:00"
            )
            raise InvalidSetting(message, path="$.world_state.modifiers")
        bounds[name] = None if value is None else int(value[:2]) * 60 + int(value[3:])
    if bounds["since"] is not None and bounds["since"] == bounds["until"]:
        message = f"The modifier {modifier.name}: from and to are the same time of day; leave both out for all day"
        raise InvalidSetting(message, path="$.world_state.modifiers")
    return msgspec.structs.replace(modifier, **bounds)


def default_epoch(submissions: object, options: object) -> dict[str, Json]:
    """The epoch of a file without `epoch`: the day of its earliest submission, with index 0.

    Raises `InvalidEpoch` where no submission has a time.
    """
    given = submissions if isinstance(submissions, list | tuple) else ()
    times = [instant for raw in given if (instant := _instant_of(raw)) is not None]
    if not times:
        message = "`epoch` is missing, and no submission has a `submitted_at` to derive it from"
        raise InvalidEpoch(message, path="$.epoch")
    # Local times or times with an offset: the first submission decides; the others are rejected one by one.
    first = min((time for time in times if time.is_local == times[0].is_local), key=lambda time: time.micros)
    offset = (first.offset_minutes or 0) * MINUTE
    start = Instant((first.micros + offset) // DAY * DAY - offset, first.offset_minutes)
    try:
        read = msgspec.convert(options or {}, Options)
    except msgspec.ValidationError:
        read = Options()  # invalid options are refused on their own
    end = plus_minutes(start, read.slots * read.slot_minutes)
    return {"index": 0, "start_at": format_iso(start), "end_at": format_iso(end)}


def _instant_of(raw: object) -> Instant | None:
    text = raw.get("submitted_at") if isinstance(raw, Mapping) else getattr(raw, "submitted_at", None)
    try:
        return parse_iso(text)
    except InputRefused:
        return None


def _object(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = config.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidSetting(f"{name} is not an object", path=f"$.{name}")
    return value


def _read(config: Mapping[str, Any], name: str, kind: Any, absent: Any) -> Any:
    value = config.get(name)
    if value is None:
        value = absent
    path = f"$.world_state.{name}" if name in WORLD_STATE else f"$.{name}"
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as fault:
        message = explain_validation_error(f"{fault}", value, kind)
        raise InvalidSetting(f"{name}: {message}", path=path, complaint=f"{name}: {fault}") from None


def _check_share(value: Decimal, path: str) -> None:
    if not value.is_finite() or not 0 <= value <= 1:
        raise InvalidSetting(f"{value} is not a number from 0 to 1", path=path)
