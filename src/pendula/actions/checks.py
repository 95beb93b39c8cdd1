"""A file of actions: loading, every fault with place and code, its JSON Schema.

An unusable file is refused: a missing section or one of the wrong type, an invalid epoch or carry, an invalid setting.
Faults of single definitions, instances and requests do not stop a run: they become rejections and diagnostics, and
`check` lists them before the run. The engine's readers check each piece alone, so that one fault does not hide the
next.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.resources import files
from itertools import takewhile
from pathlib import Path as FilePath
from re import compile as regex
from types import EllipsisType
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from pendula.actions.configuration import (
    FIELDS,
    WORLD_STATE,
    InvalidCarryOver,
    InvalidEpoch,
    Setting,
    default_epoch,
    idle_message,
    idle_of,
    is_fact,
    known_names,
)
from pendula.actions.engine import World
from pendula.actions.messages import ActionRequest, read_requests
from pendula.actions.model import (
    FACTOR_MOST,
    ActionDef,
    Code,
    EpochFrame,
    FollowUp,
    Instance,
    KnowledgeItem,
    Modifier,
    Need,
    Options,
)
from pendula.actions.rules.conditions import unknown_in
from pendula.actions.rules.duration import Matrix, SkillRule, Skills, is_factor
from pendula.actions.rules.validation import LOCKS_EACH, RESOURCES_EACH, Fault, Verb, read_instance, read_verb
from pendula.actions.runs.batch import EPOCHS_MOST
from pendula.documents import Cursor, Document, DocumentRefused, Format, Path, read_bytes, read_file
from pendula.documents import Fault as DocumentFault
from pendula.documents.faults import Step
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.limits import Limit
from pendula.kernel.time import Instant, format_iso, parse_iso, plus_minutes
from pendula.kernel.wording import explain_validation_error, shown, split_place, suggestion


class FileRefused(DocumentRefused):
    """A file of actions with faults; each line on a terminal ends with its code."""

    def render(self) -> str:
        coded = [msgspec.structs.replace(fault, allowed=(), message=_with_code(fault)) for fault in self.faults]
        return DocumentRefused(coded, self.source_name, self.more).render()


class EpochRefused(FileRefused, InvalidEpoch):
    """Only the epoch is invalid."""

    code = "InvalidEpoch"


class CarryRefused(FileRefused, InvalidCarryOver):
    """Only the carry is invalid."""

    code = "InvalidCarryOver"


def refuse_if_faulty(document: Document) -> None:
    """Raise the noted faults; faults of the epoch alone, or of the carry alone, have their own error."""
    try:
        document.done()
    except DocumentRefused as refused:
        kind = FileRefused
        for special in (EpochRefused, CarryRefused):
            if all(fault.code == special.code for fault in refused.faults):
                kind = special
        raise kind(refused.faults, refused.source_name, refused.more) from None


def _with_code(fault: DocumentFault) -> str:
    allowed = f"; allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
    return f"{fault.message}{allowed} ({fault.code})"


# Replacements of faulty required values, so that the rest of the object is read, too.
STAND_INS: Mapping[str, Json] = {
    "actor": "?",
    "amount": 0,
    "base_duration_min": 1,
    "effort": "low",
    "factor": 1,
    "id": "?",
    "index": 0,
    "interruptible": True,
    "name": "?",
    "priority": 0,
    "target": "?",
    "verb": "?",
}

NO_CODES: Mapping[Step, str] = {}

_FIELD = regex(r"(?s)Object (?:missing required|contains unknown) field `(.+)`\Z")


class Complaint(Struct, frozen=True):
    """The complaint of a reader about a value."""

    code: str
    message: str
    sentence: str | None = None  # the explained message


Judge: TypeAlias = Callable[[Any], Complaint | None]


def judged_as(kind: type[Struct], code: str = "InvalidSetting") -> Judge:
    """A judge of whether a value can be read as a struct."""

    def judge(raw: Json) -> Complaint | None:
        try:
            msgspec.convert(raw, kind)
        except msgspec.ValidationError as fault:
            return Complaint(code, f"{fault}", explain_validation_error(f"{fault}", raw, kind))
        return None

    return judge


def note_all(at: Cursor, judge: Judge, skip: int = 0, codes: Mapping[Step, str] = NO_CODES) -> list[Path]:
    """Note every fault of a value at its place; returns the paths inside the value. `codes` overrides codes of fields.

    Readers stop at the first fault, so the faulty field is replaced or removed and the rest is read again.
    """
    raw: Any = at.any()
    paths: list[Path] = []
    replaced: set[object] = set()
    while (complaint := judge(raw)) is not None:
        message, inner = split_message(complaint.message, raw)
        inner = inner[skip:]
        named = _FIELD.search(message) if not inner and message.endswith("`") else None
        field = named[1] if named else inner[0] if inner else None
        if field in replaced:
            break
        code = codes.get(inner[0], complaint.code) if inner else complaint.code
        below(at, inner).refuse(complaint.sentence or message, code=code)
        paths.append(inner)
        if not isinstance(raw, dict) or field is None:
            break
        replaced.add(field)
        raw = {name: value for name, value in raw.items() if name != field}
        if isinstance(field, str) and field in STAND_INS:
            raw[field] = STAND_INS[field]
    return paths


def below(at: Cursor, steps: Path) -> Cursor:
    """The cursor of a value inside another."""
    for step in steps:
        if isinstance(step, int):
            at = at.list_of(itself)[step]
        else:
            at = at.object(optional=(step,), unknown="keep")[step]
    return at


def split_message(message: str, value: Json) -> tuple[str, Path]:
    """A message without its path, and the path, up to a member whose name msgspec does not give."""
    what, steps = split_place(message, value)
    return what, tuple(takewhile(lambda step: not isinstance(step, EllipsisType), steps))  # type: ignore[arg-type]


def known(at: Cursor, kind: type[Struct]) -> None:
    """Note unknown members of an object."""
    if at.is_object:
        at.object(optional=known_names(kind))


def elements(at: Cursor, field: str) -> tuple[Cursor, ...]:
    """The elements of a list in an object; none if either has another type."""
    inner = below(at, (field,)) if at.is_object else at
    return inner.list_of(itself) if inner is not at and inner.is_list else ()


def itself(at: Cursor) -> Cursor:
    return at


REQUIRED = ("action_defs", "actions_submitted")
LISTS = ("actions_submitted", "interrupts", "commands")
OPTIONAL = tuple(name for name in (*FIELDS, *LISTS, "epochs") if name not in REQUIRED)
SECTIONS = (*REQUIRED, *OPTIONAL)


class Sections:
    """The sections of a file. Faults are noted in the document; `good` has the valid parts."""

    def __init__(self, document: Document) -> None:
        self.root = document.root()
        self.at = self.root.object(required=REQUIRED, optional=OPTIONAL)
        self.good: dict[str, Any] = {}
        self.used_ids: Collection[str] = ()
        self._members: dict[str, dict[str, Cursor]] = {}
        if not self.root.is_object:
            return
        for name in LISTS:
            if not self.at[name].is_list:
                self.at[name].unless_null().list_of(Cursor.any, default=())
        self.at["epochs"].unless_null().integer(min=1, max=EPOCHS_MOST, default=1)
        self._options()
        self._epoch()
        self._world_state()
        for name in ("action_defs", "skills", "skill_weights"):
            self.good[name] = {key: at.any() for key, at in self.members(name).items()}
        amounts = self.members("resources")
        good = [name for name, at in amounts.items() if self._usable(at, "resources", name)]
        self.good["resources"] = {name: amounts[name].any() for name in good}
        rules = self.members("locks")
        self.good["locks"] = {name: at.any() for name, at in rules.items() if self._usable(at, "locks", name)}
        self._names()
        self._carry()

    def members(self, name: str) -> dict[str, Cursor]:
        """The members of an object section; null counts as empty, another type is noted once."""
        if name not in self._members:
            self._members[name] = self.at[name].unless_null().map_of(itself, default={})
        return self._members[name]

    def elements(self, name: str) -> tuple[Cursor, ...]:
        at = self.at[name]
        return at.list_of(itself) if at.is_list else ()

    def parts_of_the_world(self, name: str) -> tuple[Cursor, ...]:
        """The elements of a list in `world_state`."""
        at = self.members("world_state").get(name)
        return at.list_of(itself) if at is not None and at.is_list else ()

    def _options(self) -> None:
        members = self.members("options")
        bad = {inner[0] for inner in note_all(self.at["options"], judged_as(Options)) if inner} if members else set()
        self.good["options"] = {name: at.any() for name, at in members.items() if name not in bad}

    def _epoch(self) -> None:
        """Check the epoch; its length only if the options that define it are valid."""
        at, options = self.at["epoch"], self.good["options"]
        sized = all(name in options for name in ("slots", "slot_minutes") if name in self.members("options"))

        def judge(raw: Json) -> Complaint | None:
            try:
                Setting.read({"epoch": raw, "options": options}, check_names=False)
            except InputRefused as fault:
                if sized or fault.details.get("path") != "$.epoch.end_at":
                    return Complaint(fault.code, fault.details.get("complaint", fault.message), fault.message)
            return None

        if not at.given:
            self._usual_epoch()
            return
        faulty = bool(note_all(at, judge))
        self._is_epoch_valid = sized and not faulty
        self.good["epoch"] = at.any() if self._is_epoch_valid else self._some_epoch()

    def _usual_epoch(self) -> None:
        """Without `epoch`, the day of the earliest submission is the epoch."""
        try:
            self.good["epoch"] = default_epoch(
                [at.any() for at in self.elements("actions_submitted")], self.good["options"]
            )
            self._is_epoch_valid = True
        except InvalidEpoch as fault:
            self.at["epoch"].refuse(fault.message, code=fault.code)
            self.good["epoch"], self._is_epoch_valid = self._some_epoch(), False

    def _some_epoch(self) -> dict[str, Json]:
        """A placeholder of the right length and kind of time, to check the rest with."""
        given = self.at["epoch"].any()
        texts = [given.get("start_at"), given.get("end_at")] if isinstance(given, dict) else []
        texts += [
            raw.get("submitted_at")
            for raw in map(Cursor.any, self.elements("actions_submitted"))
            if isinstance(raw, dict)
        ]
        start = next((instant for instant in map(_instant, texts) if instant is not None), Instant(0))
        options = msgspec.convert(self.good["options"], Options)
        end = plus_minutes(start, options.slots * options.slot_minutes)
        return {"index": 0, "start_at": format_iso(start), "end_at": format_iso(end)}

    def _world_state(self) -> None:
        good: dict[str, Any] = {}
        for name in ("modifiers", "knowledge"):
            at = self.members("world_state").get(name)
            if at is not None and not at.is_list:
                at.unless_null().list_of(Cursor.any, default=())
            parts = self.parts_of_the_world(name)
            good[name] = [part.any() for part in parts if self._usable(part, "world_state", name)]
        facts = {name: at for name, at in self.members("world_state").items() if name not in WORLD_STATE}
        for name, at in facts.items():
            if is_fact(at.any()) and self._usable(at, "world_state", name, as_list=False):
                good[name] = at.any()
        self.good["world_state"] = good

    def _usable(self, at: Cursor, section: str, name: str, *, as_list: bool = True) -> bool:
        """Whether this piece of a section is valid on its own."""

        def judge(raw: Json) -> Complaint | None:
            alone = {name: [raw] if section == "world_state" and as_list else raw}
            try:
                config = {"epoch": self.good["epoch"], "options": self.good["options"], section: alone}
                Setting.read(config, check_names=False)
            except InputRefused as fault:
                # The path of a reader is inside the section; its first step leads to this piece.
                texts = (fault.details.get("complaint", fault.message), fault.message)
                inner = (text.removeprefix(f"{name}: ").removeprefix(f"{section}: ") for text in texts)
                return Complaint(fault.code, *inner)
            return None

        return not note_all(at, judge, skip=1)

    def _names(self) -> None:
        """Note unknown members: an ignored name would be a rule without effect."""
        known(self.at["epoch"], EpochFrame)
        known(self.at["options"], Options)
        if self.at["world_state"].is_object:
            members = self.members("world_state").items()
            self.at["world_state"].object(optional=(*WORLD_STATE, *(name for name, at in members if is_fact(at.any()))))
        for name, kind in (("modifiers", Modifier), ("knowledge", KnowledgeItem)):
            for at in self.parts_of_the_world(name):
                known(at, kind)
                self._condition(at)
        for at in self.members("action_defs").values():
            known(at, ActionDef)
            for need in elements(at, "resources"):
                known(need, Need)
            for follow in elements(at, "followups"):
                known(follow, FollowUp)
                self._condition(follow)
            for member in idle_of(at.any()):
                below(at, (member,)).refuse(idle_message(member), code="InvalidSetting")
        for at in self.members("skill_weights").values():
            known(at, SkillRule)
        for at in self.members("skills").values():
            if at.is_object and "matrix" in at.map_of(itself):
                known(at, Matrix)

    def _condition(self, at: Cursor) -> None:
        """Note conditions on names that are not in `world_state`."""
        when = below(at, ("when",)) if at.is_object else at
        if when is at or not when.given or not when.is_object:
            return
        facts = [name for name in self.members("world_state") if name not in WORLD_STATE]
        for name, message in unknown_in(when.map_of(itself), facts):
            below(when, (name,)).refuse(message, code="InvalidSetting")

    def _carry(self) -> None:
        """Check the carry, if the epoch that it continues is valid."""
        at = self.at["carry"].unless_null()
        if not at.given or not self._is_epoch_valid:
            return
        try:
            good = {**self.good, "world_state": {}, "skill_weights": {}, "skills": {}, "action_defs": {}}
            for name, kind in (("epoch", EpochFrame), ("options", Options)):
                good[name] = {key: value for key, value in good[name].items() if key in known_names(kind)}
            self.used_ids = World.create({**good, "carry": at.any()}).current.used_ids
        except InputRefused as fault:
            at.refuse(fault.message, code=fault.code)


def _instant(text: Any) -> Instant | None:
    try:
        return parse_iso(text)
    except InputRefused:
        return None


IGNORED = {
    "interrupt": Code.INTERRUPT_IGNORED,
    "cancel": Code.NOT_CANCELLABLE,
    "resume": Code.NOT_RESUMABLE,
}
CODES_OF_FIELDS: Mapping[Step, str] = {"base_duration_min": Code.INVALID_DURATION, "effort": Code.INVALID_EFFORT}
ANY_ACTOR = "?"


def check(document: Document) -> None:
    """Raise `FileRefused` with every fault of the file, if it has any."""
    sections = Sections(document)
    if sections.root.is_object:
        _Check(sections).everything()
    refuse_if_faulty(document)


class _Check:
    """Checks single definitions, instances and requests, with a setting made of the valid parts of the file."""

    def __init__(self, sections: Sections) -> None:
        self._sections = sections
        self._definitions = sections.members("action_defs")
        self._ids: dict[str, int] = {}
        good = dict(sections.good)
        good["skills"], good["skill_weights"] = self._skills()
        facts = {name: value for name, value in good["world_state"].items() if name not in WORLD_STATE}
        good["world_state"] = {**facts, "modifiers": list(self._modifiers(good["world_state"]["modifiers"]))}
        self._setting = Setting.read(good, check_names=False)

    def everything(self) -> None:
        for name, at in self._definitions.items():
            self._definition(name, at)
        for place, at in enumerate(self._sections.elements("actions_submitted")):
            self._instance(place, at)
        for at in self._sections.elements("interrupts"):
            self._request(at, lambda raw: read_requests((raw,), (), self._setting))
        for at in self._sections.elements("commands"):
            self._request(at, lambda raw: read_requests((), (raw,), self._setting))

    def _modifiers(self, good: list[Any]) -> Iterator[Json]:
        for at in self._sections.parts_of_the_world("modifiers"):
            if (raw := at.any()) not in good:
                continue
            modifier = msgspec.convert(raw, Modifier)
            for place, verb in enumerate(modifier.verbs or ()):
                self._verb(below(at, ("verbs", place)), verb)
            if is_factor(modifier.factor):
                yield raw
            else:
                message = f"{modifier.factor} is not a factor; it must be above 0 and at most {FACTOR_MOST}"
                below(at, ("factor",)).refuse(message, code=Code.INVALID_DURATION)

    def _skills(self) -> tuple[dict[str, Json], dict[str, Json]]:
        """The valid skills and weights; each level, dimension and weight is checked alone."""
        weights = {
            skill: at.any()
            for skill, at in self._sections.members("skill_weights").items()
            if _level(at, ANY_ACTOR, skill, {"matrix": {}}, {skill: at.any()})
        }
        actors = {actor: at.any() for actor, at in self._sections.members("skills").items() if _skills_of(at, actor)}
        return actors, weights

    def _definition(self, name: str, at: Cursor) -> None:
        def judge(raw: Json) -> Complaint | None:
            read = read_verb(name, raw)
            return _complaint(read) if isinstance(read, Fault) else None

        note_all(at, judge, codes=CODES_OF_FIELDS)
        self._locks(at)
        verb = self._setting.verbs[name]
        if isinstance(verb, Verb):
            _within(at, "locks", len(verb.locks), LOCKS_EACH)
            _within(at, "resources", len(verb.definition.resources), RESOURCES_EACH)
        for follow in elements(at, "followups"):
            if follow.is_object and (other := below(follow, ("verb",))).is_text:
                self._verb(other, str(other.any()))
        for other in _texts(at, "interrupts"):
            self._verb(other, str(other.any()))

    def _locks(self, at: Cursor) -> None:
        """Locks that are not in `strict_locks`, also of a definition with other faults."""
        allowed = self._setting.options.strict_locks
        if allowed is None:
            return
        for lock in _texts(at, "locks"):
            if (name := str(lock.any())) not in allowed:
                message = f"{shown(name)} is not in the list of locks{suggestion(name, allowed)}"
                lock.refuse(message, code=Code.UNKNOWN_LOCK)

    def _verb(self, at: Cursor, verb: str) -> None:
        if verb not in self._definitions:
            message = f"there is no definition of {shown(verb)}{suggestion(verb, tuple(self._definitions))}"
            at.refuse(message, code=Code.UNKNOWN_VERB)

    def _instance(self, place: int, at: Cursor) -> None:
        raw = at.any()
        faulty = note_all(at, _judge_instance)
        if isinstance(raw, dict):
            self._identity(place, at, raw)
        if faulty:
            return
        read = read_instance(raw)
        assert not isinstance(read, Fault)
        instance, extra = read
        for name in extra or ():
            if hint := suggestion(name, Instance.__struct_fields__):
                below(at, (name,)).refuse(f"{shown(name)} is not known{hint}", code=Code.UNKNOWN_FIELDS)
        when = self._setting.submitted(instance)
        if isinstance(when, Fault):
            below(at, ("submitted_at",)).refuse(when.message, code=when.code)
            when = (0, 0)
        self._verb(below(at, ("verb",)), instance.verb)
        self._duration(at, instance, when[0])

    def _identity(self, place: int, at: Cursor, raw: dict[str, Any]) -> None:
        action_id = raw.get("id")
        if not isinstance(action_id, str):
            return
        first = self._ids.setdefault(action_id, place)
        if first != place or action_id in self._sections.used_ids:
            before = f"by $.actions_submitted[{first}]" if first != place else "by an action of the carry"
            below(at, ("id",)).refuse(f"the id {shown(action_id)} is used {before}", code=Code.DUPLICATE_ACTION_ID)

    def _duration(self, at: Cursor, instance: Instance, minute: int) -> None:
        verb = self._setting.verbs.get(instance.verb)
        if not isinstance(verb, Verb):
            return
        epoch = self._setting.first_epoch + max(minute, 0) // self._setting.horizon
        timing = self._setting.durations.timing(verb, instance, minute, epoch, {})
        if isinstance(timing, Fault):
            below(at, ("verb",)).refuse(timing.message, code=timing.code)

    def _request(self, at: Cursor, read: Callable[[Json], Iterator[ActionRequest | Fault]]) -> None:
        def judge(raw: Json) -> Complaint | None:
            request = next(read(raw))
            return _complaint(request) if isinstance(request, Fault) else None

        if note_all(at, judge):
            return
        request = next(read(at.any()))
        assert isinstance(request, ActionRequest)
        if request.target not in self._ids and request.target not in self._sections.used_ids:
            field = "target" if request.kind == "interrupt" else request.kind
            message = f"no action {shown(request.target)} is submitted{suggestion(request.target, tuple(self._ids))}"
            below(at, (field,)).refuse(message, code=IGNORED[request.kind])


def _skills_of(at: Cursor, actor: str) -> bool:
    if not at.is_object:
        return _level(at, actor, ANY_ACTOR, at.any(), {})
    matrix = below(at, ("matrix",))
    if not matrix.is_object:
        levels = at.map_of(itself).items()
        good = [_level(one, actor, skill, {skill: one.any()}, {}) for skill, one in levels]
        return all(good)
    good = [
        _level(one, actor, ANY_ACTOR, {"matrix": {name: one.any()}}, {}) for name, one in matrix.map_of(itself).items()
    ]
    override = below(at, ("override",))
    given = {"matrix": {}, "override": override.any()}
    if not override.given:
        return all(good)
    if not override.is_object:
        return _level(override, actor, ANY_ACTOR, given, {})
    for skill, one in override.map_of(itself).items():
        good.append(_level(one, actor, skill, {"matrix": {}, "override": {skill: one.any()}}, {}))
    return all(good)


def _level(at: Cursor, actor: str, skill: str, given: Json, weights: dict[str, Any]) -> bool:
    """Whether this alone gives a valid level; a fault is noted."""
    level = Skills({actor: given}, weights).level(actor, skill)
    if isinstance(level, Fault):
        at.refuse(level.message, code=level.code)
    return not isinstance(level, Fault)


def _judge_instance(raw: Json) -> Complaint | None:
    read = read_instance(raw)
    return _complaint(read) if isinstance(read, Fault) else None


def _complaint(fault: Fault) -> Complaint:
    return Complaint(fault.code, fault.complaint or fault.message, fault.detail)


def _within(at: Cursor, field: str, count: int, limit: Limit) -> None:
    if count > limit.default:
        below(at, (field,)).refuse(f"{limit.sentence}: {count}; the limit is {limit.default}", code=limit.code)


def _texts(at: Cursor, field: str) -> list[Cursor]:
    return [element for element in elements(at, field) if element.is_text]


def load(path: FilePath | str) -> dict[str, Any]:
    """The document in a file, for `run_document`. Raises `DocumentRefused` for an unusable file."""
    return accept(read_file(path))


def town() -> Document:
    """The example of the package: a small town over three days."""
    name = "town.yaml"
    return read_bytes((files("pendula.actions") / "example" / name).read_bytes(), Format.YAML, name)


def accept(document: Document) -> dict[str, Any]:
    """The document of a run. Raises `FileRefused` with every fault that makes the file unusable."""
    Sections(document)
    refuse_if_faulty(document)
    assert isinstance(document.value, dict)
    return document.value
