"""A custom machine is checked when it is loaded, and all faults are reported at once."""

import pytest
from msgspec.structs import replace

from pendula.governance.machines import Arrow, Follow, Machine, Never, faults
from pendula.governance.model import DAY_US

ACTIONS = ("verify", "archive")
DOCUMENT = Machine(
    object_type="document",
    first="draft",
    trust={"draft": 1, "published": 2, "withdrawn": 0},
    arrows=(
        Arrow("draft", "verify", "passed", "published"),
        Arrow("published", "archive", "expired", "withdrawn"),
    ),
    follow={"draft": Follow("verify", DAY_US), "published": Follow("archive", DAY_US, at="expires_at")},
    never=(Never("withdrawn", "published", "withdrawn documents stay withdrawn"),),
)


def _called(name: str) -> Machine:
    """The same machine with another public name for a state."""
    return Machine(
        object_type="document",
        first="draft",
        trust={"draft": 1, name: 2, "withdrawn": 0},
        arrows=(Arrow("draft", "verify", "passed", name), Arrow(name, "archive", "expired", "withdrawn")),
        follow={"draft": Follow("verify", DAY_US), name: Follow("archive", DAY_US)},
        never=(Never("withdrawn", name, "withdrawn documents stay withdrawn"),),
    )


def _waiting_for(member: str) -> Machine:
    return replace(DOCUMENT, follow={**DOCUMENT.follow, "published": Follow("archive", DAY_US, at=member)})


def test_a_name_of_two_axes_is_valid() -> None:
    assert faults(_called("published/seen"), ACTIONS) == []


def test_a_valid_machine_has_no_faults() -> None:
    assert faults(DOCUMENT, ACTIONS) == []


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        (replace(DOCUMENT, first="drafft"), "the first state: there is no state drafft"),
        (replace(DOCUMENT, trust={**DOCUMENT.trust, "lost": 0}), "lost cannot be reached from draft"),
        (replace(DOCUMENT, never=()), "never is empty"),
        (replace(DOCUMENT, follow={"draft": Follow("verify", DAY_US)}), "published has no follow"),
        (
            replace(DOCUMENT, arrows=(*DOCUMENT.arrows, Arrow("draft", "verify", "passed", "withdrawn"))),
            "draft, verify, passed leads to both published and withdrawn",
        ),
        (
            replace(DOCUMENT, arrows=(*DOCUMENT.arrows, Arrow("withdrawn", "verify", "passed", "published"))),
            "a row leads from withdrawn to published, which never forbids",
        ),
        (
            replace(DOCUMENT, arrows=(*DOCUMENT.arrows, Arrow("draft", "publish", "passed", "published"))),
            "there is no action publish; the actions are archive, verify",
        ),
        (replace(DOCUMENT, needs={"published": ("falsify",)}), "falsify cannot be required"),
        (replace(DOCUMENT, needs={"published": ("version",)}), "version cannot be required"),
        (replace(DOCUMENT, seeks={"fly": "published"}), "seeks: there is no action fly"),
        (_waiting_for("object_id"), "object_id is not a date to wait for"),
        (_waiting_for("created_at"), "created_at is not a date to wait for"),
        (_called("published/"), "'published/' is not a state"),
        (_called("a/b/c"), "'a/b/c' is not a state"),
        (_called("a\nb"), "'a\\nb' is not a state"),
        (_called("x" * 65), "is not a state"),
        (
            replace(DOCUMENT, arrows=(replace(DOCUMENT.arrows[0], finding=" "), DOCUMENT.arrows[1])),
            "' ' is not a finding",
        ),
        (replace(DOCUMENT, uncertain=frozenset({"draft"})), "exhausted is missing"),
        (
            replace(DOCUMENT, uncertain=frozenset({"draft"}), exhausted="withdrawn"),
            "draft has no row for verify, exhausted: objects there would stay uncertain",
        ),
        (
            replace(DOCUMENT, uncertain=frozenset({"draft"}), stale=frozenset({"draft"})),
            "draft has no row for verify, exhausted: objects there would stay uncertain",
        ),
        (
            replace(
                DOCUMENT,
                arrows=(*DOCUMENT.arrows, Arrow("draft", "verify", "exhausted", "published")),
                follow={**DOCUMENT.follow, "published": Follow("verify", DAY_US)},
            ),
            "published is the target of exhausted, but its follow",
        ),
        (
            replace(DOCUMENT, uncertain=frozenset({"withdrawn"})),
            "withdrawn is uncertain and has no follow: objects there would never be checked",
        ),
    ],
)
def test_each_fault_is_reported(machine: Machine, sentence: str) -> None:
    assert any(sentence in fault for fault in faults(machine, ACTIONS))


def test_all_faults_are_reported_at_once() -> None:
    broken = replace(DOCUMENT, first="drafft", never=(), needs={"published": ("falsify",)})

    assert len(faults(broken, ACTIONS)) >= 4
