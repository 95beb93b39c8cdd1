"""Who knows what, when: the scopes of knowledge items and of the events of actions."""

from collections.abc import Collection
from decimal import Decimal

import msgspec
from msgspec import Struct

from pendula.actions.model import Instance, KnowledgeItem, Options, Reveal, Scope, Visibility

ACTION = "action:"  # opens the id of what there is to know of an action


class Circle(Struct, frozen=True):
    """The player character, its party, and how sure a thing must be to be known."""

    pc: str | None
    allies: tuple[str, ...]
    threshold: Decimal

    @classmethod
    def of(cls, options: Options) -> "Circle":
        return cls(options.pc, options.allies, options.confidence_threshold)


def knows(item: KnowledgeItem, actor: str, minute: int, circle: Circle) -> bool:
    """Whether the actor can know of the item at a minute; the last minute of its life still counts."""
    if item.scope is Scope.REDACTED or item.confidence < circle.threshold:
        return False
    if item.ttl_min and minute > item.freshness + item.ttl_min:
        return False
    return actor == item.source or _admits(item.scope, item.visibility_to, actor, circle)


def is_known(item: KnowledgeItem, circle: Circle) -> bool:
    """Whether any actor can know of the item while its time lasts."""
    if item.confidence < circle.threshold or item.scope is Scope.REDACTED:
        return False
    if item.source is not None or item.visibility_to or item.scope is Scope.PUBLIC:
        return True
    if item.scope is Scope.ALLIES_ONLY and circle.allies:
        return True
    return item.scope is not Scope.PRIVATE and circle.pc is not None


def sees(instance: Instance, actor: str, circle: Circle) -> bool:
    """Whether the actor sees the events of an instance: its own always, those of others as far as they are shown."""
    if actor == instance.actor:
        return True
    shown = instance.visibility
    if shown is None or shown.scope is Scope.REDACTED:
        return False
    return _admits(shown.scope, shown.visibility_to, actor, circle)


def revealed(item: KnowledgeItem | None, reveal: Reveal, actor: str, minute: int) -> KnowledgeItem:
    """The item after it was brought to light; an unknown one begins its life here."""
    if item is None:
        item = KnowledgeItem(id=reveal.id, source=actor, freshness=minute)
    seen_by = item.visibility_to + reveal.visibility_to
    if len(seen_by) > 1:
        seen_by = tuple(sorted(set(seen_by)))
    return msgspec.structs.replace(item, scope=reveal.to_scope, visibility_to=seen_by)


def item_of(instance: Instance, minute: int) -> KnowledgeItem:
    """What there is to know of an action: `action:<id>`, from its actor, as widely known as its own events."""
    shown = instance.visibility or Visibility()
    return KnowledgeItem(
        id=f"{ACTION}{instance.id}",
        about={"action": instance.id},
        source=instance.actor,
        scope=shown.scope,
        freshness=minute,
        visibility_to=shown.visibility_to,
    )


def _admits(scope: Scope, listed: Collection[str], actor: str, circle: Circle) -> bool:
    match scope:
        case Scope.PUBLIC:
            return True
        case Scope.PC if actor == circle.pc:
            return True
        case Scope.ALLIES_ONLY if actor == circle.pc or actor in circle.allies:
            return True
    return actor in listed
