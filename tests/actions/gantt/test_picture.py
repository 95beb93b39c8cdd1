"""The picture of a run: well-formed, the same bytes every time, and complete and correct."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from pendula.actions import run_document
from pendula.actions.checks import accept, town
from pendula.actions.gantt import gantt_svg
from tests.actions.worlds import NEXT_EPOCH, document, does, lasting, outcome

SVG = "{http://www.w3.org/2000/svg}"


def drawn(given: dict[str, Any], **more: Any) -> ElementTree.Element:
    return ElementTree.fromstring(gantt_svg(run_document(given), given["action_defs"], **more))


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def tooltips(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}title")]


def shapes(picture: ElementTree.Element, classes: str) -> list[tuple[str, ElementTree.Element]]:
    """Shapes with these classes and their tooltips; the legend has no tooltip."""
    return list(_shapes(picture, set(classes.split())))


def _shapes(picture: ElementTree.Element, classes: set[str]) -> Iterator[tuple[str, ElementTree.Element]]:
    for group in picture.iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        for shape in group:
            if title is not None and classes <= set(shape.get("class", "").split()):
                yield title.text or "", shape


DAY = {
    **document(
        {
            "clean": lasting(60, "hall", interruptible=True),
            "ring": lasting(10, "hall", preempts=True, priority=5, may_trigger_event=True),
        },
        does("A", 480, "clean", actor="ann"),
        does("B", 500, "ring", actor="bob", knowledge=["the hour"]),
        does("C", 490, "clean", actor="cid"),
        does("D", 495, "juggle", actor="dan"),
    ),
    "options": {"pc": "bob"},
}


def test_actors_and_locks_have_lanes() -> None:
    drawn_texts = texts(drawn(DAY))

    assert {"ann", "bob", "cid", "hall"} <= set(drawn_texts)
    assert "dan" not in drawn_texts


def test_every_segment_is_a_bar_for_its_actor_and_for_its_lock() -> None:
    bars = [tooltip for tooltip, _ in shapes(drawn(DAY), "bar")]

    assert sorted(bars) == sorted(
        2
        * [
            "A · ann: clean\n08:00 to 08:20\n60 min, interrupted by B, 40 min left",
            "A · ann: clean\n08:30 to 09:10\n40 min, part 2, done",
            "B · bob: ring\n08:20 to 08:30\n10 min, done",
            "C · cid: clean\n09:10 to 10:10\n60 min, done",
        ]
    )


def test_waits_are_hatched_and_drawn_below_their_lock() -> None:
    picture = drawn(DAY)

    assert [tooltip for tooltip, _ in shapes(picture, "wait")] == [
        "C · cid: waits to clean\n08:10 to 09:10\n60 min",
    ]
    assert [tooltip for tooltip, _ in shapes(picture, "queue")] == [
        "1 waiting: C\n08:10 to 09:10",
    ]


def test_interrupts_name_their_cause() -> None:
    picture = drawn(DAY)

    assert [tooltip for tooltip, _ in shapes(picture, "bolt")] == [
        "08:20 A: interrupted by B: 40 min left, resumes by itself"
    ]
    assert [text.text for text in picture.iter(f"{SVG}text") if "by" in text.get("class", "").split()] == ["B"]


def test_reveals_are_filled_marks_for_the_player_and_hollow_otherwise() -> None:
    seen = drawn(DAY)
    unseen = drawn({**DAY, "options": {"pc": "nobody"}})

    note = "08:30 B: the hour revealed: private → pc"
    assert [tooltip for tooltip, _ in shapes(seen, "light")] == [note]
    assert "the hour" in texts(seen)
    # The item is revealed to the player character; a world without one reveals it to no actor.
    assert [tooltip for tooltip, _ in shapes(unseen, "light")] == [note]
    assert [tooltip for tooltip, _ in shapes(drawn({**DAY, "options": {}}), "dim")] == [
        f"{note} (not for the player character)"
    ]


def test_actions_without_effect_have_their_own_lane() -> None:
    picture = drawn(DAY)

    assert [tooltip for tooltip, _ in shapes(picture, "cross")] == [
        "08:15 D: UnknownVerb\nThere is no definition of juggle"
    ]
    assert {"no effect", "D: UnknownVerb"} <= set(texts(picture))


@pytest.mark.req("ACT-CARRY-1")
def test_a_carried_action_is_one_bar_in_each_epoch_open_at_the_edge() -> None:
    given = document({"V": lasting(120, "gate")}, does("V", 1400), epochs=2)

    bars = shapes(drawn(given), "bar")

    assert {tooltip for tooltip, _ in bars} == {"V · ann: V\n23:20 to 01:20\n120 min, done"}
    # Actor and lock in two panels, none of them a plain box: pointed in the first, notched in the second.
    assert [shape.tag for _, shape in bars] == [f"{SVG}path"] * 4


def test_an_action_carried_in_by_the_file_starts_before_the_picture() -> None:
    defs = {"V": lasting(120, "gate")}
    carry = outcome(defs, does("V", 1400)).carry
    given = {**document(defs, carry=carry), "epoch": NEXT_EPOCH}

    (bar, *_) = shapes(drawn(given), "bar")

    assert bar[0] == "V · ann: V\nbefore to 01:20\ndone"


def test_an_action_unfinished_after_the_last_epoch_is_open() -> None:
    defs = {"V": lasting(120, "gate"), "W": lasting(10, "gate"), "X": lasting(60, interruptible=True, resume="manual")}
    stop = {"t": 1410, "target": "X", "priority": 1}

    picture = drawn(document(defs, does("V", 1400), does("W", 1420), does("X", 1400), interrupts=[stop]))

    assert "V · ann: V\n23:20 to after\n80 min left for the next epoch" in tooltips(picture)
    assert [tooltip for tooltip, _ in shapes(picture, "wait")] == ["W · ann: waits to W\n23:40 to after\n20 min"]
    assert [tooltip for tooltip, _ in shapes(picture, "aside")] == ["X · ann: X is on hold\n23:30 to after\non hold"]


def test_days_have_names_and_hours_their_slots() -> None:
    drawn_texts = texts(drawn({**document({"V": lasting(120)}, does("V", 0), does("W", 1300, "V")), "epochs": 2}))

    assert "Epoch 0 · Tuesday, 2025-07-01" in drawn_texts
    assert "Epoch 1 · Wednesday, 2025-07-02" in drawn_texts
    assert {"00:00", "02:00", "22:00"} <= set(drawn_texts)


def test_the_title_summarizes_the_run() -> None:
    picture = drawn(DAY, title="A day <in> town")

    assert texts(picture)[:2] == [
        "A day <in> town",
        "1 epoch, 2025-07-01 · 3 actions started, 3 ended, 1 interrupt, 1 revealed, 1 rejected, 0 carried over",
    ]


def test_the_legend_names_what_occurs() -> None:
    quiet = texts(drawn(document({"V": lasting(120)}, does("V", 0))))
    lively = texts(drawn(DAY))

    assert "V" in quiet
    assert "waits for a lock" not in quiet
    assert {"waits for a lock", "interrupted, by", "revealed", "queue of a lock", "clean"} <= set(lively)


HOSTILE = '<script>alert("x")</script>&\x00\x1b\u202e]]>'


def test_names_from_a_file_are_never_markup() -> None:
    given = document(
        {HOSTILE: lasting(30, HOSTILE, may_trigger_event=True, interruptible=True)},
        does(HOSTILE, 0, HOSTILE, actor=HOSTILE, knowledge=[HOSTILE]),
        does("x", 5, "nothing" + HOSTILE),
        interrupts=[{"t": 5, "target": HOSTILE, "priority": 3, "source": HOSTILE}],
    )
    svg = gantt_svg(run_document(given), given["action_defs"], title=HOSTILE)

    picture = ElementTree.fromstring(svg)

    assert not list(picture.iter(f"{SVG}script"))
    assert "\u202e" not in svg
    assert any("<script>" in tooltip for tooltip in tooltips(picture))


def test_an_empty_run_has_a_picture_too() -> None:
    assert texts(drawn(document({})))[0] == "Actions"


def test_more_epochs_than_fit_are_counted() -> None:
    drawn_texts = texts(drawn({**document({"V": lasting(5)}, does("V", 0)), "epochs": 5}, most_epochs=2))

    assert "Not drawn: 3 more epochs." in drawn_texts
    assert sum(text.startswith("Epoch ") for text in drawn_texts) == 2


def test_more_lanes_than_fit_are_counted() -> None:
    actions = [does(f"A{number}", 0, "V", actor=f"actor {number}") for number in range(70)]

    assert "and 10 more actors" in texts(drawn(document({"V": lasting(5)}, *actions)))


def test_of_many_waits_the_rest_is_counted_and_running_actions_are_drawn() -> None:
    given = document({"V": lasting(5, "gate")}, *(does(f"A{number}", 480, "V") for number in range(2000)))

    svg = gantt_svg(run_document(given), given["action_defs"])

    picture = ElementTree.fromstring(svg)
    assert len(shapes(picture, "bar")) == 2 * 192
    assert "and 1808 more waiting" in texts(picture)
    assert any(tooltip.startswith("1999 waiting: A1, A2,") and len(tooltip) < 100 for tooltip in tooltips(picture))
    assert len(svg) < 200_000


def test_many_rejections_are_counted() -> None:
    picture = drawn(document({}, *(does(f"A{number}", 480, "V") for number in range(2000))))

    crosses = len(shapes(picture, "cross"))
    assert 0 < crosses < 100
    assert f"and {2000 - crosses} more" in texts(picture)


def test_the_picture_is_self_contained_and_follows_the_colour_scheme() -> None:
    svg = gantt_svg(run_document(DAY), DAY["action_defs"])

    assert "prefers-color-scheme:dark" in svg
    assert [part for part in ("href", "@import", "<image", "<script") if part in svg] == []
    assert svg.count("http") == 1  # the namespace


def test_the_same_run_gives_the_same_bytes_whatever_the_hash_seed() -> None:
    code = (
        "from hashlib import sha256\n"
        "from pendula.actions import run_document\n"
        "from pendula.actions.gantt import gantt_svg\n"
        "from pendula.actions.checks import accept, town\n"
        "given = accept(town())\n"
        "print(sha256(gantt_svg(run_document(given), given['action_defs']).encode()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }

    assert len(digests) == 1


def test_the_picture_of_the_town_has_every_entry_of_the_legend() -> None:
    given = accept(town())

    picture = drawn(given)

    for classes in ("bar", "wait", "aside", "bolt", "light", "dim", "queue", "cross"):
        assert shapes(picture, classes), classes


def test_holders_of_a_shared_lock_have_separate_rows() -> None:
    given = document(
        {"meet": lasting(30, "hall")}, *(does(f"A{n}", n, "meet", actor=f"a{n}") for n in range(4)),
        locks={"hall": {"capacity": 3}},
    )  # fmt: skip
    bars = shapes(drawn(given), "bar")
    of_lock = bars[4:]  # one for each actor, then those of the lock

    assert len(of_lock) == 4
    assert len({bar.get("y") for _, bar in of_lock}) == 3
