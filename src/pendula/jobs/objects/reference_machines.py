"""The state machines that come with Pendula: memory, experience and cognition.

A row with a plus in its comment is an addition to the specification, so that every state can be reached and left.
"""

from collections.abc import Iterable
from types import MappingProxyType

from pendula.jobs.objects.governed import DAY_US
from pendula.jobs.objects.machine import Arrow, Finding, Follow, Machine, Never

VERIFY, REVALIDATE, DECAY, ARCHIVE, REINSTATE = "verify", "revalidate", "decay", "archive", "reinstate-check"
USE, INVALIDATE = "use", "invalidate"  # of the application that uses objects, not of a job
PERSONA_GATE = "persona_conflict_gate"


def _arrows(rows: Iterable[tuple[str, str, str, str]]) -> tuple[Arrow, ...]:
    """Rows with several sources or actions, separated by a bar, as single arrows."""
    return tuple(
        Arrow(source, action, finding, target)
        for sources, actions, finding, target in rows
        for source in sources.split("|")
        for action in actions.split("|")
    )


MEMORY = Machine(
    object_type="memory",
    first="candidate",
    trust={
        "active": 4,
        "verified": 3,
        "stale": 2,
        "candidate": 1,
        "stale_uncertain": 1,
        "quarantine": 0,
        "rejected_poisoned": 0,
        "archived": 0,
    },
    arrows=_arrows(
        (
            ("candidate", VERIFY, Finding.PASSED, "verified"),
            ("candidate", VERIFY, Finding.SUSPICIOUS, "quarantine"),
            ("quarantine", VERIFY, Finding.PASSED, "verified"),
            ("quarantine", VERIFY, Finding.FORGED, "rejected_poisoned"),
            ("verified", USE, Finding.USED, "active"),
            ("verified|active", DECAY, Finding.FADED, "stale"),  # + verified
            ("stale", REVALIDATE, Finding.INCONCLUSIVE, "stale_uncertain"),  # +
            ("stale|stale_uncertain", f"{REINSTATE}|{REVALIDATE}", Finding.NEW_EVIDENCE, "active"),
            ("stale|stale_uncertain", ARCHIVE, Finding.EXPIRED, "archived"),  # + stale_uncertain
            ("rejected_poisoned", ARCHIVE, Finding.ROLLED_BACK, "archived"),
        )
    ),
    follow={
        "candidate": Follow(VERIFY, DAY_US),
        "quarantine": Follow(VERIFY, DAY_US),
        "verified": Follow(DECAY, 14 * DAY_US),
        "active": Follow(DECAY, 7 * DAY_US),
        "stale": Follow(REVALIDATE, 3 * DAY_US),
        "stale_uncertain": Follow(REINSTATE, 7 * DAY_US),
        "rejected_poisoned": Follow(ARCHIVE, DAY_US),
    },
    never=(
        Never("rejected_poisoned", "active", "a memory found forged never comes back"),
        Never("rejected_poisoned", "verified", "a memory found forged never comes back"),
    ),
    seeks={REINSTATE: "active"},
    rolls_back=frozenset({"rejected_poisoned"}),
    awaits_rollback=frozenset({"rejected_poisoned"}),
    stale=frozenset({"stale", "stale_uncertain"}),
    uncertain=frozenset({"stale_uncertain"}),
)

EXPERIENCE = Machine(
    object_type="experience",
    first="candidate",
    trust={"active": 3, "candidate": 2, "needs_review": 1, "invalidated": 0, "archived": 0},
    arrows=(
        Arrow("candidate", VERIFY, Finding.PASSED, "active", gates=(PERSONA_GATE,)),
        *_arrows(
            (
                ("candidate", VERIFY, Finding.INSUFFICIENT, "needs_review"),
                ("candidate", VERIFY, Finding.CONFLICT, "needs_review"),
                ("active", DECAY, Finding.OVERDUE, "needs_review"),  # +
                ("needs_review", f"{REVALIDATE}|{REINSTATE}", Finding.NEW_EVIDENCE, "active"),
                ("active", INVALIDATE, Finding.SOURCE_FORGED, "invalidated"),
                ("active|needs_review", ARCHIVE, Finding.EXPIRED, "archived"),
                ("invalidated", ARCHIVE, Finding.ROLLED_BACK, "archived"),
            )
        ),
    ),
    follow={
        "candidate": Follow(VERIFY, DAY_US),
        "active": Follow(DECAY, 14 * DAY_US, at="review_due_at"),
        "needs_review": Follow(REVALIDATE, 7 * DAY_US),
        "invalidated": Follow(ARCHIVE, DAY_US),
    },
    never=(Never("invalidated", "active", "an experience built on a forged source must be created again"),),
    seeks={REINSTATE: "active"},
    stale=frozenset({"needs_review"}),
    awaits_rollback=frozenset({"invalidated"}),  # asked for when its source was found forged
)

_SURE, _UNSURE, _DOUBT, _STALE = "active/supported", "active/uncertain", "needs_revalidate/uncertain", "stale/uncertain"
_NEW, _REFUTED = "candidate/uncertain", "refuted/refuted"

COGNITION = Machine(
    object_type="cognition",
    first=_NEW,
    trust={
        _SURE: 5,
        _UNSURE: 4,
        _NEW: 2,
        _DOUBT: 2,
        _STALE: 1,
        _REFUTED: 0,
        "archived/uncertain": 0,
        "archived/refuted": 0,
    },
    arrows=_arrows(
        (
            (_NEW, VERIFY, Finding.PASSED, _SURE),
            (_SURE, f"{REVALIDATE}|{DECAY}", Finding.OVERDUE, _DOUBT),
            (_SURE, f"{REVALIDATE}|{DECAY}", Finding.CONFLICT, _DOUBT),
            (f"{_UNSURE}|{_DOUBT}", f"{VERIFY}|{REVALIDATE}", Finding.PASSED, _SURE),  # + active/uncertain
            (f"{_NEW}|{_UNSURE}|{_DOUBT}", f"{VERIFY}|{REVALIDATE}", Finding.EXHAUSTED, _STALE),  # + the first two
            (
                f"{_SURE}|{_UNSURE}|{_DOUBT}|{_STALE}",
                f"{VERIFY}|{REVALIDATE}",
                Finding.REFUTED,
                _REFUTED,
            ),
            (_STALE, REINSTATE, Finding.NEW_EVIDENCE, _SURE),
            (_STALE, REINSTATE, Finding.SOME_EVIDENCE, _UNSURE),
            (_STALE, ARCHIVE, Finding.EXPIRED, "archived/uncertain"),  # +
            (_REFUTED, ARCHIVE, Finding.ROLLED_BACK, "archived/refuted"),
        )
    ),
    follow={
        _NEW: Follow(VERIFY, DAY_US),
        _SURE: Follow(REVALIDATE, 7 * DAY_US, at="review_due_at"),
        _UNSURE: Follow(REVALIDATE, DAY_US),
        _DOUBT: Follow(REVALIDATE, DAY_US),
        _STALE: Follow(REINSTATE, 7 * DAY_US),
        _REFUTED: Follow(ARCHIVE, DAY_US),
    },
    never=tuple(Never(_REFUTED, active, "what was refuted never comes back") for active in (_SURE, _UNSURE)),
    seeks={REINSTATE: _SURE},
    needs=dict.fromkeys((_SURE, _UNSURE), ("falsify_if", "review_interval", "expires_at|review_due_at")),
    rolls_back=frozenset({_REFUTED}),
    awaits_rollback=frozenset({_REFUTED}),
    stale=frozenset({_STALE}),
    uncertain=frozenset({_NEW, _UNSURE, _DOUBT, _STALE}),
    exhausted=_STALE,
)

REFERENCE = MappingProxyType({machine.object_type: machine for machine in (MEMORY, EXPERIENCE, COGNITION)})
