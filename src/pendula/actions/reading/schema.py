"""The form of a file of actions as JSON Schema, for editors and other programs; made of the models themselves.

It describes what a run takes without a rejection for its form. What no schema can say (ids used twice, verbs without a
definition, how long an epoch lasts) `checking` finds.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import ActionDef, EpochFrame, Instance, KnowledgeItem, LockRule, Modifier, Options
from pendula.actions.reading.sections import REQUIRED, SECTIONS
from pendula.actions.requests import CommandForm, InterruptForm
from pendula.actions.rules.skills import LEVELS, Matrix, SkillRule
from pendula.actions.runs.batch import EPOCHS_MOST

DRAFT = "https://json-schema.org/draft/2020-12/schema"

MODELS: tuple[type[Struct], ...] = (
    ActionDef,
    CommandForm,
    EpochFrame,
    Instance,
    InterruptForm,
    KnowledgeItem,
    LockRule,
    Matrix,
    Modifier,
    Options,
    SkillRule,
)

# Files write exact numbers as numbers; a text is for those whose tools would make floats of them.
AMOUNT = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?$"}]}

# A member that nobody knows is a mistake here; instances keep theirs for whoever wrote them.
CLOSED = ("ActionDef", "EpochFrame", "FollowUp", "KnowledgeItem", "Matrix", "Modifier", "Need", "Options", "SkillRule")

DESCRIPTIONS = {
    "epoch": "The first day of the run: its number, when it begins, when it ends; that of the earliest submission.",
    "action_defs": "What each verb means.",
    "actions_submitted": "Who wants to do what, from when on, for all epochs of the file.",
    "skills": "By actor: levels of skills from 0 to 3, or how the actor behaves, from which levels follow.",
    "skill_weights": "By skill: how a level follows from behaviour.",
    "resources": "By name: how much there is at the start.",
    "locks": "By name: how many may hold a lock at once, where it is more than one.",
    "world_state": "Factors on durations, what can be known, who is where, and other facts such as the weather.",
    "interrupts": "What breaks in from outside.",
    "commands": "Cancellations and resumptions.",
    "carry": "The carry of an earlier output; the run continues it.",
    "options": "Constants of the run.",
    "epochs": "How many epochs to run, one after the other.",
}


def file_schema() -> dict[str, Any]:
    """A new copy each time, of plain JSON values in a fixed order."""
    _, models = msgspec.json.schema_components(MODELS)
    defs = {name: _plain(models[name]) for name in sorted(models)}
    for name in CLOSED:
        defs[name]["additionalProperties"] = False
    # Either says when; a file that gives both gets the minute.
    defs["Instance"]["anyOf"] = [{"required": ["submitted_at"]}, {"required": ["t"]}]
    defs["CommandForm"]["oneOf"] = [{"required": ["cancel"]}, {"required": ["resume"]}]
    defs["ActionDef"]["properties"]["base_duration_min"]["minimum"] = 1
    for form in ("InterruptForm", "CommandForm"):
        defs[form]["allOf"] = [{"oneOf": [{"required": ["at"]}, {"required": ["t"]}]}]
    sections = _sections()
    return {
        "$schema": DRAFT,
        "title": "A file of actions",
        "description": "What `pendula actions run` reads, as YAML or JSON.",
        "type": "object",
        "required": list(REQUIRED),
        "properties": {name: {"description": DESCRIPTIONS[name], **sections[name]} for name in SECTIONS},
        "additionalProperties": False,
        "$defs": defs,
    }


def _sections() -> Mapping[str, dict[str, Any]]:
    levels = {"type": "object", "additionalProperties": {"enum": list(LEVELS)}}
    return {
        "epoch": _ref(EpochFrame),
        "action_defs": _map_of(_ref(ActionDef)),
        "actions_submitted": _list_of(_ref(Instance)),
        "skills": _map_of({"anyOf": [{**_ref(Matrix), "required": ["matrix"]}, levels]}),
        "skill_weights": _map_of(_ref(SkillRule)),
        "resources": _map_of(AMOUNT),
        "locks": _map_of(_ref(LockRule)),
        "world_state": {
            "type": "object",
            "properties": {
                "modifiers": _list_of(_ref(Modifier)),
                "knowledge": _list_of(_ref(KnowledgeItem)),
                "places": _map_of({"type": "string", "minLength": 1, "maxLength": 256}),
            },
            "additionalProperties": {"type": ["string", "integer", "boolean", "null"]},
        },
        "interrupts": _list_of(_ref(InterruptForm)),
        "commands": _list_of(_ref(CommandForm)),
        "carry": {"type": ["object", "null"]},
        "options": _ref(Options),
        "epochs": {"type": "integer", "minimum": 1, "maximum": EPOCHS_MOST, "default": 1},
    }


def _ref(model: type[Struct]) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{model.__name__}"}


def _map_of(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": dict(values)}


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def _plain(value: Any) -> Any:
    """Plain JSON: lists for tuples, and exact numbers as files write them."""
    match value:
        case {"type": "string", "format": "decimal", **rest}:
            return {**AMOUNT, **_plain({name: one for name, one in rest.items() if name != "default"})}
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value
