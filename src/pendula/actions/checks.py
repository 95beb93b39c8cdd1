"""A file of actions: loading, every fault with place and code, its JSON Schema.

An unusable file is refused: a missing section or one of the wrong type, an invalid epoch or carry, an invalid setting.
Faults of single definitions, instances and requests do not stop a run: they become rejections and diagnostics, and
`check` lists them before the run. The engine's readers check each piece alone, so that one fault does not hide the
next.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from copy import deepcopy
from decimal import Decimal
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pendula.actions.configuration import (
    FIELDS,
    GENERAL_CODES,
    WORLD_STATE,
    Configuration,
    Context,
    InvalidCarryOver,
    InvalidEpoch,
    Setting,
    coded,
    elements,
    itself,
)
from pendula.actions.engine import World
from pendula.actions.messages import CommandForm, InterruptForm, request_of
from pendula.actions.model import FACTOR_MOST, ActionDef, Code, Instance, Modifier
from pendula.actions.rules.duration import Matrix, SkillRule, Skills, is_factor
from pendula.actions.rules.validation import LOCKS_EACH, RESOURCES_EACH, Fault, Verb, read_instance
from pendula.actions.runs.batch import EPOCHS_MOST
from pendula.documents import Cursor, Document, DocumentRefused, Format, Members, Path, read_bytes, read_file
from pendula.documents import Fault as DocumentFault
from pendula.documents.schema import components, schema_of
from pendula.documents.typed import NULL_IS_ABSENT, Read, limits, read, read_at
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.limits import Limit
from pendula.kernel.wording import shown, suggestion


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


def _with_code(fault: DocumentFault) -> str:
    allowed = f"; allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
    return f"{fault.message}{allowed} ({fault.code})"


REQUIRED = ("action_defs", "actions_submitted")
LISTS = ("actions_submitted", "interrupts", "commands")
IGNORED = {
    "interrupt": Code.INTERRUPT_IGNORED,
    "cancel": Code.NOT_CANCELLABLE,
    "resume": Code.NOT_RESUMABLE,
}
CODES_OF_REQUESTS = (*GENERAL_CODES, "unknown_field")
# The members of a request that its meaning depends on; a stand-in for one of them would give further faults.
DECIDING = {("t",), ("at",), ("cancel",), ("resume",), ("force",)}
ANY_ACTOR = "?"
RULE = SkillRule.__struct_fields__
NO_WEIGHTS: Mapping[str, Any] = {}


def _any_list(at: Cursor) -> Any:
    """A list as it is: a run rejects its faulty elements one by one."""
    return at.any() if at.is_list else at.list_of(itself)


def _list_of(model: str, description: str) -> Meta:
    schema = {"type": "array", "items": {"$ref": f"#/$defs/{model}"}}
    return Meta(description=description, extra_json_schema={"written": schema})


AnyList = Annotated[list[Any], Read(_any_list, ()), NULL_IS_ABSENT]


class ActionsFile(Configuration, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of actions: the configuration of a world, and what is submitted to it."""

    actions_submitted: Annotated[AnyList, _list_of("Instance", "Submitted instances, for all epochs of the file.")] = []
    interrupts: Annotated[AnyList, _list_of("InterruptForm", "Interrupts from outside.")] = []
    commands: Annotated[AnyList, _list_of("CommandForm", "Cancellations and resumptions.")] = []
    epochs: Annotated[
        int,
        limits(minimum=1, maximum=EPOCHS_MOST),
        NULL_IS_ABSENT,
        Meta(description="How many epochs to run, one after the other."),
    ] = 1

    def check(self, at: Members) -> None:
        for name in REQUIRED:
            if name not in at:
                at[name].refuse(f"the member {name!r} is missing", code="missing_field")
        Configuration.check(self, at)
        context: Context = at.owner.context
        used_ids = self._read_carry(at, context)
        if context.thorough:
            _Check(self, at, context, used_ids).everything()

    def _read_carry(self, at: Members, context: Context) -> Collection[str]:
        """The ids that the carry uses; it is read if the epoch that it continues is valid."""
        if self.carry is None or not context.is_epoch_valid:
            return ()
        try:
            config = _sound_part(at, context)
            only: dict[str, Any] = {
                name: config[name] for name in ("epoch", "options", "resources", "locks") if name in config
            }
            return World.create({**only, "carry": self.carry}).current.used_ids
        except InputRefused as fault:
            at["carry"].refuse(fault.message, code=fault.code)
            return ()


SECTIONS = ActionsFile.__struct_fields__


def _sound_part(at: Members, context: Context) -> dict[str, Any]:
    """The configuration without its faulty parts, to check the rest with."""
    given: Any = at.owner.any()
    config: dict[str, Any] = {
        name: deepcopy(given[name]) for name in FIELDS if name != "carry" and given.get(name) is not None
    }
    kept = at.owner.reading.findings.kept
    paths = {path for finding in kept if (path := _faulty_part(finding.spot.path, finding.code)) is not None}
    # From the end, so that the elements of a list keep their places.
    for path in sorted(paths, reverse=True):
        inner: Any = config
        with suppress(KeyError, IndexError, TypeError):
            for step in path[:-1]:
                inner = inner[step]
            if path[0] == "world_state" and len(path) == 2 and path[1] not in WORLD_STATE:
                inner[path[1]] = None  # a fact that conditions may name
            else:
                del inner[path[-1]]
    frame = context.frame
    assert frame is not None
    epoch = {"index": frame.first_epoch, "start_at": frame.display(0), "end_at": frame.display(frame.horizon)}
    return {**config, "epoch": epoch}


def _faulty_part(path: Path, code: str) -> Path | None:
    """The smallest part of a configuration that can be left out; a faulty definition stays, if a world takes it."""
    if path[0] == "action_defs" and len(path) > 1:
        return path if code in ("unknown_field", "InvalidSetting") else None
    return path[:3] if path[0] == "world_state" else path[:2]


class _Check:
    """Checks single definitions, instances and requests, with a setting made of the sound parts of the file."""

    def __init__(self, form: ActionsFile, at: Members, context: Context, used_ids: Collection[str]) -> None:
        self._form = form
        self._at = at
        self._used_ids = used_ids
        self._ids: dict[str, int] = {}
        for actor in form.skills:
            _check_skills(at["skills"].inside(actor), actor)
        for skill in form.skill_weights:
            one = at["skill_weights"].inside(skill)
            given = one.any()
            # Unknown names are noted already.
            rule = {name: given[name] for name in RULE if name in given} if isinstance(given, dict) else given
            _check_level(one, ANY_ACTOR, skill, {"matrix": {}}, {skill: rule})
        for place, modifier in enumerate(form.world_state.modifiers):
            self._modifier(at["world_state"].inside("modifiers", place), modifier)
        self._setting = Setting.read(_sound_part(at, context))

    def everything(self) -> None:
        for name in self._form.action_defs:
            self._definition(name, self._at["action_defs"].inside(name))
        for place, one in enumerate(self._at["actions_submitted"].unless_null().list_of(itself, default=())):
            self._instance(place, one)
        for one in self._elements("interrupts"):
            self._request(one, InterruptForm, Code.INVALID_INTERRUPT)
        for one in self._elements("commands"):
            self._request(one, CommandForm, Code.INVALID_COMMAND)

    def _elements(self, name: str) -> tuple[Cursor, ...]:
        at = self._at[name]
        return at.list_of(itself) if at.is_list else ()

    def _modifier(self, at: Cursor, modifier: Modifier) -> None:
        for place, verb in enumerate(modifier.verbs or ()):
            self._verb(at.inside("verbs", place), verb)
        factor = at.inside("factor")
        if _is_number(factor.any()) and not is_factor(modifier.factor):
            message = f"{modifier.factor} is not a factor; it must be above 0 and at most {FACTOR_MOST}"
            factor.refuse(message, code=Code.INVALID_DURATION)

    def _definition(self, name: str, at: Cursor) -> None:
        self._locks(at)
        verb = self._setting.verbs[name]
        if isinstance(verb, Verb):
            _within(at, "locks", len(verb.locks), LOCKS_EACH)
            _within(at, "resources", len(verb.definition.resources), RESOURCES_EACH)
        for follow in elements(at, "followups"):
            if follow.is_object and (other := follow.inside("verb")).is_text:
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
        if verb not in self._form.action_defs:
            message = f"there is no definition of {shown(verb)}{suggestion(verb, tuple(self._form.action_defs))}"
            at.refuse(message, code=Code.UNKNOWN_VERB)

    def _instance(self, place: int, at: Cursor) -> None:
        raw = at.any()
        before = at.count_of_faults
        with coded(at, Code.INVALID_ACTION, general=CODES_OF_REQUESTS, also_itself=True):
            read_at(at, Instance)
        faulty = at.count_of_faults > before
        if isinstance(raw, dict):
            self._identity(place, at, raw)
        if faulty:
            return
        read = read_instance(raw)
        if isinstance(read, Fault):
            at.refuse(read.message, code=read.code)
            return
        instance, extra = read
        for name in extra or ():
            if hint := suggestion(name, Instance.__struct_fields__):
                at.inside(name).refuse(f"{shown(name)} is not known{hint}", code=Code.UNKNOWN_FIELDS)
        when = self._setting.submitted(instance)
        if isinstance(when, Fault):
            at.inside("submitted_at").refuse(when.message, code=when.code)
            when = (0, 0)
        self._verb(at.inside("verb"), instance.verb)
        self._duration(at, instance, when[0])

    def _identity(self, place: int, at: Cursor, raw: dict[str, Any]) -> None:
        action_id = raw.get("id")
        if not isinstance(action_id, str):
            return
        first = self._ids.setdefault(action_id, place)
        if first != place or action_id in self._used_ids:
            before = f"by $.actions_submitted[{first}]" if first != place else "by an action of the carry"
            at.inside("id").refuse(f"the id {shown(action_id)} is used {before}", code=Code.DUPLICATE_ACTION_ID)

    def _duration(self, at: Cursor, instance: Instance, minute: int) -> None:
        verb = self._setting.verbs.get(instance.verb)
        if not isinstance(verb, Verb):
            return
        epoch = self._setting.first_epoch + max(minute, 0) // self._setting.horizon
        timing = self._setting.durations.timing(verb, instance, minute, epoch, {})
        if isinstance(timing, Fault):
            at.inside("verb").refuse(timing.message, code=timing.code)

    def _request(self, at: Cursor, form: type[InterruptForm | CommandForm], code: Code) -> None:
        kept = at.reading.findings.kept
        first, depth = len(kept), len(at.path)
        with coded(at, code, general=CODES_OF_REQUESTS, also_itself=True):
            read = read_at(at, form)
        faulty = {finding.spot.path[depth:][:1] for finding in kept[first:]}
        if not at.is_object or not faulty.isdisjoint(DECIDING):
            return
        request = request_of(read, self._setting)
        if isinstance(request, Fault):
            at.refuse(request.message, code=request.code)
        elif faulty:
            return
        elif request.target not in self._ids and request.target not in self._used_ids:
            field = "target" if request.kind == "interrupt" else request.kind
            message = f"no action {shown(request.target)} is submitted{suggestion(request.target, tuple(self._ids))}"
            at.inside(field).refuse(message, code=IGNORED[request.kind])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | Decimal | str) and not isinstance(value, bool)


def _check_skills(at: Cursor, actor: str) -> None:
    """Check each level and dimension alone, so that one fault does not hide the next."""
    if not at.is_object:
        _check_level(at, actor, ANY_ACTOR, at.any())
        return
    matrix, override = at.inside("matrix"), at.inside("override")
    if not matrix.is_object:
        for skill, one in at.map_of(itself).items():
            _check_level(one, actor, skill, {skill: one.any()})
        return
    for dimension, one in matrix.map_of(itself).items():
        _check_level(one, actor, ANY_ACTOR, {"matrix": {dimension: one.any()}})
    for skill, one in override.map_of(itself).items() if override.is_object else ():
        _check_level(one, actor, skill, {"matrix": {}, "override": {skill: one.any()}})
    if override.given and not override.is_object:
        _check_level(override, actor, ANY_ACTOR, {"matrix": {}, "override": override.any()})


def _check_level(at: Cursor, actor: str, skill: str, given: Json, weights: Mapping[str, Any] = NO_WEIGHTS) -> None:
    """Note the fault of skills that have only this part."""
    level = Skills({actor: given}, dict(weights)).level(actor, skill)
    if isinstance(level, Fault):
        at.refuse(level.message, code=level.code)


def _within(at: Cursor, field: str, count: int, limit: Limit) -> None:
    if count > limit.default:
        at.inside(field).refuse(f"{limit.sentence}: {count}; the limit is {limit.default}", code=limit.code)


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
    return _read(document, Context())


def check(document: Document) -> None:
    """Raise `FileRefused` with every fault of the file, if it has any."""
    _read(document, Context(thorough=True))


def _read(document: Document, context: Context) -> dict[str, Any]:
    if isinstance(document.value, dict) and isinstance(given := document.value.get("actions_submitted"), list):
        context.submissions = given
    try:
        read(document, ActionsFile, context=context)
    except DocumentRefused as refused:
        # Faults of the epoch alone, or of the carry alone, have their own error.
        kind = FileRefused
        for special in (EpochRefused, CarryRefused):
            if all(fault.code == special.code for fault in refused.faults):
                kind = special
        raise kind(refused.faults, refused.source_name, refused.more) from None
    assert isinstance(document.value, dict)
    return document.value


def file_schema() -> dict[str, Any]:
    """The JSON Schema of a file, for editors and other programs; a new copy, in a fixed order.

    A valid file has no rejection for its form. `check` finds what a schema cannot express: duplicate ids, verbs
    without a definition, the length of an epoch.
    """
    schema = schema_of(
        ActionsFile, title="A file of actions", description="What `pendula actions run` reads, as YAML or JSON."
    )
    _, others = components((ActionDef, CommandForm, Instance, InterruptForm, Matrix, SkillRule))
    defs = {**schema["$defs"], **others}
    defs["ActionsFile"]["required"] = list(REQUIRED)
    defs["WorldForm"]["additionalProperties"] = {"type": ["string", "integer", "boolean", "null"]}
    # One of them is required; `t` wins over `submitted_at`.
    defs["Instance"]["anyOf"] = [{"required": ["submitted_at"]}, {"required": ["t"]}]
    defs["CommandForm"]["oneOf"] = [{"required": ["cancel"]}, {"required": ["resume"]}]
    for form in ("InterruptForm", "CommandForm"):
        defs[form]["allOf"] = [{"oneOf": [{"required": ["at"]}, {"required": ["t"]}]}]
    return {**schema, "$defs": {name: defs[name] for name in sorted(defs)}}
