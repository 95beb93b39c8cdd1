"""Visibility: the scopes of knowledge items and of the events of actions."""

from collections.abc import Collection
from decimal import Decimal

import msgspec
from msgspec import Struct

from pendula.actions.model import Instance, KnowledgeItem, Options, Reveal, Scope, Visibility

ACTION = "action:"  # prefix of the item about an action


class Audience(Struct, frozen=True):
    """The player character, its allies, and the confidence threshold of knowledge."""

    pc: str | None
    allies: tuple[str, ...]
    threshold: Decimal

    @classmethod
    def of(cls, options: Options) -> "Audience":
        return cls(options.pc, options.allies, options.confidence_threshold)


def knows(item: KnowledgeItem, actor: str, minute: int, audience: Audience) -> bool:
    """Whether the actor can know of the item at a minute; the last minute of its lifetime is included."""
    if item.scope is Scope.REDACTED or item.confidence < audience.threshold:
        return False
    if item.ttl_min and minute > item.freshness + item.ttl_min:
        return False
    return actor == item.source or _admits(item.scope, item.visibility_to, actor, audience)


def is_known(item: KnowledgeItem, audience: Audience) -> bool:
    """Whether any actor can know of the item during its lifetime."""
    if item.confidence < audience.threshold or item.scope is Scope.REDACTED:
        return False
    if item.source is not None or item.visibility_to or item.scope is Scope.PUBLIC:
        return True
    if item.scope is Scope.ALLIES_ONLY and audience.allies:
        return True
    return item.scope is not Scope.PRIVATE and audience.pc is not None


def sees(instance: Instance, actor: str, audience: Audience) -> bool:
    """Whether the actor sees the events of an instance: its own always, those of others by their visibility."""
    if actor == instance.actor:
        return True
    shown = instance.visibility
    if shown is None or shown.scope is Scope.REDACTED:
        return False
    return _admits(shown.scope, shown.visibility_to, actor, audience)


def revealed(item: KnowledgeItem | None, reveal: Reveal, actor: str, minute: int) -> KnowledgeItem:
    """The item after a reveal; an unknown item is created."""
    if item is None:
        item = KnowledgeItem(id=reveal.id, source=actor, freshness=minute)
    seen_by = item.visibility_to + reveal.visibility_to
    if len(seen_by) > 1:
        seen_by = tuple(sorted(set(seen_by)))
    return msgspec.structs.replace(item, scope=reveal.to_scope, visibility_to=seen_by)


def action_item(instance: Instance, minute: int) -> KnowledgeItem:
    """The item `action:<id>` about an action, with the visibility of its events."""
    shown = instance.visibility or Visibility()
    return KnowledgeItem(
        id=f"{ACTION}{instance.id}",
        about={"action": instance.id},
        source=instance.actor,
        scope=shown.scope,
        freshness=minute,
        visibility_to=shown.visibility_to,
    )


def _admits(scope: Scope, listed: Collection[str], actor: str, audience: Audience) -> bool:
    match scope:
        case Scope.PUBLIC:
            return True
        case Scope.PC if actor == audience.pc:
            return True
        case Scope.ALLIES_ONLY if actor == audience.pc or actor in audience.allies:
            return True
    return actor in listed
