"""The JSON Schema of a file of actions, for editors and other programs, generated from the models.

A valid file has no rejection for its form. `checks` finds what a schema cannot express: duplicate ids, verbs without
a definition, the length of an epoch.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.checks import REQUIRED, SECTIONS
from pendula.actions.messages import CommandForm, InterruptForm
from pendula.actions.model import ActionDef, EpochFrame, Instance, KnowledgeItem, LockRule, Modifier, Options
from pendula.actions.rules.duration import LEVELS, Matrix, SkillRule
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

# Exact numbers are numbers; the text form is for tools that would turn them into floats.
AMOUNT = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?$"}]}

# Unknown members are errors here; instances keep theirs in `meta.extra`.
CLOSED = ("ActionDef", "EpochFrame", "FollowUp", "KnowledgeItem", "Matrix", "Modifier", "Need", "Options", "SkillRule")

DESCRIPTIONS = {
    "epoch": "The first epoch of the run: number, start, end. Default: the day of the earliest submission.",
    "action_defs": "The definition of each verb.",
    "actions_submitted": "Submitted instances, for all epochs of the file.",
    "skills": "By actor: skill levels from 0 to 3, or a behaviour matrix that gives them.",
    "skill_weights": "By skill: base and weights of a level from behaviour.",
    "resources": "By name: the amount at the start.",
    "locks": "By name: how many actions may hold a lock at once, if more than one.",
    "world_state": "Modifiers of durations, knowledge items, places of actors, and facts such as the weather.",
    "interrupts": "Interrupts from outside.",
    "commands": "Cancellations and resumptions.",
    "carry": "The carry of an earlier output; the run continues it.",
    "options": "Constants of the run.",
    "epochs": "How many epochs to run, one after the other.",
}


def file_schema() -> dict[str, Any]:
    """A new copy, in a fixed order."""
    _, models = msgspec.json.schema_components(MODELS)
    defs = {name: _plain(models[name]) for name in sorted(models)}
    for name in CLOSED:
        defs[name]["additionalProperties"] = False
    # One of them is required; `t` wins over `submitted_at`.
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
    """Plain JSON: lists for tuples, and the schema of exact numbers."""
    match value:
        case {"type": "string", "format": "decimal", **rest}:
            return {**AMOUNT, **_plain({name: one for name, one in rest.items() if name != "default"})}
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value
