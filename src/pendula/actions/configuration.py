"""The configuration of a world: first epoch, definitions, skills, resources, options. Read once, never changed.

Unknown names are refused: an ignored name would be a rule without effect.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from re import compile as regex
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pendula.actions.model import (
    ActionDef,
    Amount,
    Code,
    EpochFrame,
    Fact,
    Instance,
    KnowledgeItem,
    LockRule,
    Modifier,
    Name,
    Options,
)
from pendula.actions.rules.conditions import unknown_in
from pendula.actions.rules.duration import LEVELS, Durations, Matrix, SkillRule, Skills
from pendula.actions.rules.resources import ResourceTable, plain
from pendula.actions.rules.validation import Fault, Verb, read_verb
from pendula.actions.rules.visibility import Audience, sees
from pendula.documents import Cursor, DocumentRefused, Members, from_value
from pendula.documents.cursor import NO_DEFAULT
from pendula.documents.faults import Step
from pendula.documents.typed import NULL_IS_ABSENT, Read, note_unknown_members, read, read_at, reader_of, written
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
from pendula.kernel.wording import found_fact

# The last day for a submission: the longest action from there still ends before the year 9999.
LAST_DAY = parse_iso("9000-01-01T00:00:00Z")
DAY = 1440 * MINUTE
TIME_OF_DAY = regex(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]|24:00")


# Sections of a file that are commands to the world, not part of its configuration.
RUN_SECTIONS = ("actions_submitted", "interrupts", "commands", "epochs")

NO_CODES: Mapping[Step, str] = {}
CODES_OF_DEFINITIONS: Mapping[Step, str] = {
    "base_duration_min": Code.INVALID_DURATION,
    "effort": Code.INVALID_EFFORT,
}
# Codes of faults that say nothing of the section.
GENERAL_CODES = ("invalid_field", "missing_field", "invalid_enum", "not_unique", InputRefused.code)


class InvalidEpoch(InputRefused):
    """The epoch is not as long as its slots, or its times cannot be read."""

    code = "InvalidEpoch"


class InvalidCarryOver(InputRefused):
    """The carry is damaged, of another world or of another epoch; nothing was processed."""

    code = "InvalidCarryOver"


class InvalidSetting(InputRefused):
    """A part of the configuration is malformed. Facts: `path`."""

    code = "InvalidSetting"


@contextmanager
def coded(
    at: Cursor,
    code: str,
    by_member: Mapping[Step, str] = NO_CODES,
    general: Collection[str] = GENERAL_CODES,
    *,
    also_itself: bool = False,
) -> Iterator[None]:
    """Faults noted inside a value get the code of its section instead of a general one."""
    kept, depth = at.reading.findings.kept, len(at.path)
    first = len(kept)
    yield
    for place, finding in enumerate(kept[first:], first):
        inside = finding.spot.path[depth:]
        if finding.code in general and (inside or also_itself):
            kept[place] = msgspec.structs.replace(finding, code=by_member.get(inside[0], code) if inside else code)


def elements(at: Cursor, field: str) -> tuple[Cursor, ...]:
    """The elements of a list in an object; none if either has another type."""
    inner = at.inside(field) if at.is_object else at
    return inner.list_of(itself) if inner is not at and inner.is_list else ()


def itself(at: Cursor) -> Cursor:
    return at


def is_fact(value: Any) -> bool:
    """Whether a value can be a fact: text, integer, boolean or null."""
    return value is None or isinstance(value, str | bool | int)


class WorldForm(Struct, frozen=True):
    """The sections of `world_state`. Its other members are facts, such as the weather, for conditions."""

    modifiers: Annotated[tuple[Modifier, ...], NULL_IS_ABSENT] = ()
    knowledge: Annotated[tuple[KnowledgeItem, ...], NULL_IS_ABSENT] = ()
    places: Annotated[dict[Name, Name], NULL_IS_ABSENT] = {}


WORLD_STATE = WorldForm.__struct_fields__


def _facts_in(world_state: Any) -> dict[str, Any]:
    given = world_state.items() if isinstance(world_state, dict) else ()
    return {name: value for name, value in given if name not in WORLD_STATE and is_fact(value)}


def _read_world_state(at: Cursor) -> WorldForm:
    facts = _facts_in(at.any())
    members = at.object(optional=(*WORLD_STATE, *facts))
    with coded(at, "InvalidSetting"):
        for name in facts:
            reader_of(Fact)(members[name], None)
        return read_at(at, WorldForm) if at.is_object else WorldForm()


def _section(form: Any, code: str, stand_in: Any = None, *, also_itself: bool = False) -> Read:
    """The reader of a section whose faults have a code of their own."""

    def read_section(at: Cursor) -> Any:
        with coded(at, code, also_itself=also_itself):
            return reader_of(form)(at, NO_DEFAULT)

    return Read(read_section, stand_in)


def _read_definition(at: Cursor) -> Any:
    """A definition with faults rejects its instances; unknown names, and members without effect, refuse the whole."""
    if at.context.thorough:
        with coded(at, Code.INVALID_ACTION, CODES_OF_DEFINITIONS, also_itself=True):
            read_at(at, ActionDef)
    else:
        note_unknown_members(at, ActionDef)
    raw: Any = at.any()
    if isinstance(raw, dict) and raw.get("preempts") is not True:
        # Only preempting actions interrupt.
        for member in ("interrupts", "hold_min"):
            if raw.get(member):
                message = f"{member} has no effect without `preempts: true`; add it, or leave {member} out"
                at.inside(member).refuse(message, code="InvalidSetting")
    return raw


def _read_skills(at: Cursor) -> Json:
    raw = at.any()
    if isinstance(raw, dict) and not {"matrix", "override"}.isdisjoint(raw):
        note_unknown_members(at, Matrix)
    return raw


def _read_weights(at: Cursor) -> Json:
    note_unknown_members(at, SkillRule)
    return at.any()


def _described(description: str) -> Meta:
    return Meta(description=description)


_LEVELS: Json = {"type": "object", "additionalProperties": {"enum": list(LEVELS)}}
Definition = Annotated[Any, Read(_read_definition), written(**{"$ref": "#/$defs/ActionDef"})]
ActorSkills = Annotated[
    Any, Read(_read_skills), written(anyOf=[{"$ref": "#/$defs/Matrix", "required": ["matrix"]}, _LEVELS])
]
Weights = Annotated[Any, Read(_read_weights), written(**{"$ref": "#/$defs/SkillRule"})]


class Context(Struct):
    """What the reader of a configuration knows beside it, and what it found."""

    submissions: list[Any] | None = None  # of a file; they give the default epoch
    frame: "Setting | None" = None  # a setting of the epoch and options alone
    is_epoch_valid: bool = False
    thorough: bool = False  # whether to note the faults of definitions, too


class Configuration(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of a world. Definitions, skills and weights are read one by one, when the world is made."""

    epoch: (
        Annotated[
            EpochFrame,
            _section(EpochFrame, "InvalidEpoch", also_itself=True),
            _described("The first epoch of the run: number, start, end. Default: the day of the earliest submission."),
        ]
        | UnsetType
    ) = UNSET
    action_defs: Annotated[dict[str, Definition], NULL_IS_ABSENT, _described("The definition of each verb.")] = {}
    skills: Annotated[
        dict[str, ActorSkills],
        NULL_IS_ABSENT,
        _described("By actor: skill levels from 0 to 3, or a behaviour matrix that gives them."),
    ] = {}
    skill_weights: Annotated[
        dict[str, Weights], NULL_IS_ABSENT, _described("By skill: base and weights of a level from behaviour.")
    ] = {}
    resources: Annotated[
        dict[str, Amount],
        _section(dict[str, Amount], "InvalidSetting", {}),
        NULL_IS_ABSENT,
        _described("By name: the amount at the start."),
    ] = {}
    locks: Annotated[
        dict[Name, LockRule],
        _section(dict[Name, LockRule], "InvalidSetting", {}),
        NULL_IS_ABSENT,
        _described("By name: how many actions may hold a lock at once, if more than one."),
    ] = {}
    world_state: Annotated[
        WorldForm,
        Read(_read_world_state),
        NULL_IS_ABSENT,
        _described("Modifiers of durations, knowledge items, places of actors, and facts such as the weather."),
    ] = WorldForm()
    options: Annotated[
        Options, _section(Options, "InvalidSetting"), NULL_IS_ABSENT, _described("Constants of the run.")
    ] = Options()
    carry: Annotated[
        Any,
        NULL_IS_ABSENT,
        written(type=["object", "null"]),
        _described("The carry of an earlier output; the run continues it."),
    ] = None

    def check(self, at: Members) -> None:
        """Note what concerns several members: the length of the epoch, times of modifiers, names in conditions."""
        context: Context = at.owner.context
        context.frame = self._checked_frame(at, context)
        world_state: Any = at["world_state"].any() if at["world_state"].is_object else {}
        facts = [name for name in world_state if name not in WORLD_STATE]
        for place, modifier in enumerate(self.world_state.modifiers):
            one = at["world_state"].inside("modifiers", place)
            try:
                context.frame.in_minutes(modifier)
            except InvalidSetting as refused:
                one.refuse(refused.message, code=refused.code)
            _note_unknown_conditions(one, facts)
        for name in self.action_defs:
            for follow in elements(at["action_defs"].inside(name), "followups"):
                _note_unknown_conditions(follow, facts)

    def _checked_frame(self, at: Members, context: Context) -> "Setting":
        faulty = {finding.spot.path[:2] for finding in at.owner.reading.findings.kept}
        sized = faulty.isdisjoint({("options", "slots"), ("options", "slot_minutes")})
        epoch = self.epoch
        if epoch is UNSET:
            try:
                epoch = default_epoch(context.submissions, self.options)
            except InvalidEpoch as refused:
                at["epoch"].refuse(refused.message, code=refused.code)
        if epoch is not UNSET and not any(path[0] == "epoch" for path in faulty if path):
            try:
                frame = Setting(Configuration(epoch=epoch, options=self.options))
                context.is_epoch_valid = sized
                return frame
            except InvalidEpoch as refused:
                if sized or refused.details["path"] != "$.epoch.end_at":
                    at["epoch"].refuse(refused.message, code=refused.code)
        return Setting(Configuration(epoch=self._some_epoch(at["epoch"], context), options=self.options))

    def _some_epoch(self, at: Cursor, context: Context) -> EpochFrame:
        """A placeholder of the right length and kind of time, to check the rest with."""
        given = at.any()
        texts = [given.get("start_at"), given.get("end_at")] if isinstance(given, dict) else []
        times = map(_instant, (*texts, *map(_submitted_at, context.submissions or ())))
        start = next((instant for instant in times if instant is not None), Instant(0))
        return _frame_from(start, self.options)


def _note_unknown_conditions(at: Cursor, facts: Collection[str]) -> None:
    """Conditions on names that are not in `world_state` are never met."""
    when = at.inside("when") if at.is_object else at
    if when is not at and when.is_object:
        for name, message in unknown_in(when.map_of(itself), facts):
            when.inside(name).refuse(message, code="InvalidSetting")


FIELDS = Configuration.__struct_fields__


class Setting:
    """The parsed configuration of a world. Minutes count from the start of its first epoch."""

    def __init__(self, config: Configuration, facts: Mapping[str, Fact] | None = None) -> None:
        """Raise `InvalidEpoch` or `InvalidSetting`; a faulty definition only rejects its instances."""
        self.options = config.options
        self.audience = Audience.of(self.options)
        self.slot_minutes = self.options.slot_minutes
        self.last_slot = self.options.slots - 1
        self.horizon = self.options.slots * self.options.slot_minutes
        self.first_epoch = self._read_frame(config.epoch)
        # Times within an hour differ in two digits: `display` formats the calendar part once an hour.
        shown = format_iso(self.start)
        self._civil_start = datetime.fromisoformat(shown).replace(tzinfo=None)
        self._offset = shown.removeprefix(self._civil_start.isoformat())
        self._minute_of_hour = self._civil_start.minute
        self._hour = (-(1 << 62), "", "")
        self.verbs: dict[str, Verb | Fault] = {name: read_verb(name, raw) for name, raw in config.action_defs.items()}
        preempting = [verb for verb in self.verbs.values() if isinstance(verb, Verb) and verb.definition.preempts]
        self.has_preempting = bool(preempting)
        self.has_lists_of_victims = any(verb.definition.interrupts for verb in preempting)
        self.facts = facts or {}
        modifiers = tuple(map(self.in_minutes, config.world_state.modifiers))
        day = self._civil_start.hour * 60 + self._civil_start.minute
        skills = Skills(config.skills, config.skill_weights)
        self.durations = Durations(skills, modifiers, self.options, facts=self.facts, first_minute_of_day=day)
        self.carry = config.carry
        self.capacities = {name: rule.capacity for name, rule in config.locks.items() if rule.capacity > 1}
        self.has_lines = any(isinstance(verb, Verb) and verb.waits_for_resources for verb in self.verbs.values())
        self._amounts = {name: plain(amount) for name, amount in config.resources.items()}
        self._items = config.world_state.knowledge
        self._places = config.world_state.places

    @classmethod
    def read(cls, config: Json) -> "Setting":
        """Raise `InvalidEpoch` or `InvalidSetting`; a faulty definition only rejects its instances."""
        if not isinstance(config, Mapping):
            raise InvalidSetting(
                "The configuration of a world must be an object with at least `epoch` and `action_defs`", path="$"
            )
        for name in RUN_SECTIONS:
            if name in config:
                message = f"{name!r} is not part of the configuration of a world: submit it, or run the whole file"
                raise InvalidSetting(message, path=f"$.{name}")
        try:
            form = read(from_value(dict(config)), Configuration, context=Context())
        except DocumentRefused as refused:
            fault = refused.faults[0]
            kind = InvalidEpoch if fault.code == InvalidEpoch.code else InvalidSetting
            allowed = f"; allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
            where = fault.path.removeprefix("$.")
            raise kind(f"{where}: {fault.message}{allowed}", path=fault.path) from None
        return cls(form, _facts_in(config.get("world_state")))

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

    def _read_frame(self, frame: EpochFrame | UnsetType) -> int:
        """The index of the first epoch; its start and its last minute are set."""
        if frame is UNSET:
            raise InvalidEpoch("The epoch is missing", path="$.epoch")
        try:
            self.start: Instant = parse_iso(frame.start_at)
            self.latest = (LAST_DAY.micros - self.start.micros) // MINUTE
            lasting = parse_iso(frame.end_at) - self.start
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
        return frame.index

    def in_minutes(self, modifier: Modifier) -> Modifier:
        """The same modifier with minutes instead of ISO times; raises `InvalidSetting`."""
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


def _daily(modifier: Modifier) -> Modifier:
    """The same modifier with minutes of the day; open ends are midnight."""
    bounds: dict[str, int | None] = {}
    for name, member in (("since", "from"), ("until", "to")):
        value = getattr(modifier, name)
        if value is not None and (not isinstance(value, str) or TIME_OF_DAY.fullmatch(value) is None):
            message = (
                f"The modifier {modifier.name}: {member} is {value!r}; with `daily` it must be a time such as 22:00"
            )
            raise InvalidSetting(message, path="$.world_state.modifiers")
        bounds[name] = None if value is None else int(value[:2]) * 60 + int(value[3:])
    if bounds["since"] is not None and bounds["since"] == bounds["until"]:
        message = f"The modifier {modifier.name}: from and to are the same time of day; leave both out for all day"
        raise InvalidSetting(message, path="$.world_state.modifiers")
    return msgspec.structs.replace(modifier, **bounds)


def default_epoch(submissions: object, options: Options) -> EpochFrame:
    """The epoch of a file without `epoch`: the day of its earliest submission, with index 0.

    Raises `InvalidEpoch` where no submission has a time.
    """
    given = submissions if isinstance(submissions, list | tuple) else ()
    times = [instant for instant in map(_instant, map(_submitted_at, given)) if instant is not None]
    if not times:
        message = "`epoch` is missing, and no submission has a `submitted_at` to derive it from"
        raise InvalidEpoch(message, path="$.epoch")
    # Local times or times with an offset: the first submission decides; the others are rejected one by one.
    first = min((time for time in times if time.is_local == times[0].is_local), key=lambda time: time.micros)
    offset = (first.offset_minutes or 0) * MINUTE
    return _frame_from(Instant((first.micros + offset) // DAY * DAY - offset, first.offset_minutes), options)


def _frame_from(start: Instant, options: Options) -> EpochFrame:
    end = plus_minutes(start, options.slots * options.slot_minutes)
    return EpochFrame(0, format_iso(start), format_iso(end))


def _submitted_at(raw: object) -> object:
    return raw.get("submitted_at") if isinstance(raw, Mapping) else getattr(raw, "submitted_at", None)


def _instant(text: object) -> Instant | None:
    try:
        return parse_iso(text)
    except InputRefused:
        return None
