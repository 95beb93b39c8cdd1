"""Audiences of items, visibility of actions, reveals."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.actions.model import Channel, KnowledgeItem, Reveal, Scope
from pendula.actions.rules.visibility import Audience, knows, revealed
from tests.actions.knowing import DEFS, lived, read
from tests.actions.worlds import day, does, lasting

AUDIENCE = Audience("pia", ("ann",), Decimal(0))


def item(**given: Any) -> KnowledgeItem:
    return KnowledgeItem(id="k", **given)


@pytest.mark.req("ACT-VIS-1")
def test_a_knowledge_item_has_its_fields_and_choices() -> None:
    assert KnowledgeItem.__struct_fields__ == (
        "id", "about", "channel", "source", "scope", "confidence", "freshness", "ttl_min", "visibility_to",
        "derivation", "attachments",
    )  # fmt: skip
    assert [str(one) for one in Channel] == ["direct", "overhear", "rumor", "log", "reflex_link", "system"]
    assert [str(one) for one in Scope] == ["private", "allies_only", "pc", "public", "redacted"]


@pytest.mark.req("ACT-VIS-2")
@pytest.mark.parametrize(
    ("scope", "who"),
    [
        ("private", {"zoe", "lou"}),
        ("allies_only", {"zoe", "lou", "pia", "ann"}),
        ("pc", {"zoe", "lou", "pia"}),
        ("public", {"zoe", "lou", "pia", "ann", "bob"}),
        ("redacted", set()),
    ],
)
def test_a_scope_defines_the_audience(scope: str, who: set[str]) -> None:
    one = item(scope=Scope(scope), source="zoe", visibility_to=("lou",))

    assert {name for name in ("zoe", "lou", "pia", "ann", "bob") if knows(one, name, 0, AUDIENCE)} == who


@pytest.mark.req("ACT-VIS-2")
def test_the_instant_of_expiry_is_inclusive() -> None:
    one = item(scope=Scope.PUBLIC, freshness=180, ttl_min=120)

    assert knows(one, "bob", 300, AUDIENCE)
    assert not knows(one, "bob", 301, AUDIENCE)


@pytest.mark.req("ACT-VIS-1")
@pytest.mark.req("ACT-EVT-5")
def test_an_unknown_item_is_fresh_from_the_minute_of_its_reveal() -> None:
    world, _ = lived(does("A", 7, "tell", actor="zoe", knowledge=["k"]), until=40)

    assert world.current.knowledge["k"].freshness == 7 + DEFS["tell"]["base_duration_min"]
    assert world.current.knowledge["k"].source == "zoe"


@pytest.mark.req("ACT-VIS-1")
def test_a_known_item_keeps_its_freshness_when_its_audience_grows() -> None:
    known = item(source="zoe", freshness=3, ttl_min=10)

    after = revealed(known, Reveal("k", Scope.PUBLIC), "zoe", 9)

    assert (after.freshness, after.ttl_min, after.scope) == (3, 10, Scope.PUBLIC)


@pytest.mark.req("ACT-VIS-2")
def test_an_item_without_a_time_to_live_never_expires() -> None:
    assert knows(item(scope=Scope.PUBLIC, freshness=0, ttl_min=0), "bob", 10**9, AUDIENCE)


@pytest.mark.req("ACT-VIS-2")
def test_an_item_below_the_confidence_limit_is_unknown_even_to_its_source() -> None:
    strict = Audience("pia", (), Decimal("0.5"))

    assert knows(item(scope=Scope.PUBLIC, confidence=Decimal("0.5")), "bob", 0, strict)
    assert not knows(item(scope=Scope.PUBLIC, source="bob", confidence=Decimal("0.49")), "bob", 0, strict)


@pytest.mark.req("ACT-VIS-3")
@pytest.mark.parametrize(
    ("actor", "visibility", "seen"),
    [
        ("pia", None, True),
        ("pia", {"scope": "redacted"}, True),
        ("bob", None, False),
        ("bob", {"scope": "private"}, False),
        ("bob", {"scope": "private", "visibility_to": ["pia"]}, True),
        ("bob", {"scope": "pc"}, True),
        ("bob", {"scope": "allies_only"}, True),
        ("bob", {"scope": "public"}, True),
        ("bob", {"scope": "redacted", "visibility_to": ["pia"]}, False),
    ],
)
def test_an_action_is_shown_according_to_its_visibility(actor: str, visibility: Any, seen: bool) -> None:
    more = {} if visibility is None else {"visibility": visibility}

    _, logs = lived(does("A", 5, "tell", actor=actor, **more))

    assert len(logs.chunks[0]) == (3 if seen else 1)


@pytest.mark.req("ACT-EVT-5")
def test_items_are_revealed_in_order_with_their_scopes() -> None:
    result = day(
        DEFS,
        does("A", 0, "tell", knowledge=["a", {"id": "b", "to_scope": "public", "reveals": [0]}, "a"]),
        does("B", 20, "tell", knowledge=[{"id": "b", "to_scope": "redacted"}]),
        world_state={"knowledge": [{"id": "a", "scope": "allies_only"}]},
    )

    changes = [event.meta for event in result.events if "knowledge" in event.meta]
    assert [
        (change["knowledge"], change["from_scope"], change["to_scope"], change["reveals"]) for change in changes
    ] == [
        ("a", "allies_only", "pc", []),
        ("b", "private", "public", [0]),
        ("a", "pc", "pc", []),
        ("b", "public", "redacted", []),
    ]


@pytest.mark.req("ACT-EVT-5")
def test_a_verb_without_triggers_reveals_nothing() -> None:
    result = day({"tell": lasting(10)}, does("A", 0, "tell", knowledge=["a"]))

    assert len(result.events) == 2


@pytest.mark.req("ACT-LOG-2")
def test_two_changes_in_one_minute_are_two_events() -> None:
    _, logs = lived(
        does("A", 0, "tell", actor="bob", knowledge=[{"id": "k", "to_scope": "private"}, {"id": "k", "to_scope": "pc"}])
    )

    scopes = [read(line)["meta"]["to_scope"] for line in logs.chunks[0][1:]]
    assert scopes == ["pc"]
