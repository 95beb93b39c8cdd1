"""The names in a configuration. Unknown ones are refused: an ignored name would be a rule without effect."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from pendula.actions.model import ActionDef, EpochFrame, FollowUp, KnowledgeItem, LockRule, Modifier, Need, Options
from pendula.actions.rules.skills import Matrix, SkillRule
from pendula.kernel.wording import unknown_name

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
