"""Finds every fault of a file of actions, each with its place and code.

Most of them do not stop a run: it rejects the instance or ignores the request. `pendula actions check` reports them
before the run.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from pendula.actions.configuration import Setting
from pendula.actions.model import FACTOR_MOST, Code, Instance, Modifier
from pendula.actions.reading.complaints import Complaint, below, elements, itself, note_all
from pendula.actions.reading.refusals import refuse_if_faulty
from pendula.actions.reading.sections import Sections
from pendula.actions.requests import ActionRequest, read_requests
from pendula.actions.rules.duration import is_factor
from pendula.actions.rules.names import WORLD_STATE
from pendula.actions.rules.skills import Skills
from pendula.actions.rules.validation import LOCKS_EACH, RESOURCES_EACH, Fault, Verb, read_instance, read_verb
from pendula.documents import Cursor, Document
from pendula.documents.faults import shown, suggestion
from pendula.documents.places import Step
from pendula.kernel.canonical import Json
from pendula.kernel.limits import Limit

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
