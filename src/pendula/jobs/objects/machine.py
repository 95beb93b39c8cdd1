"""A state machine as data: which finding of which action leads from where to where, and what must never happen.

A place is a state, for a cognition both axes in one word (`active/supported`). A machine decides nothing by itself:
`decide` reads it.
"""

from msgspec import Struct

from pendula.jobs.objects.governed import VERIFICATIONS


class Finding:
    """The words for what an action found. A machine may use words of its own beside them."""

    # Said by a verifier or a person.
    PASSED = "passed"
    SUSPICIOUS = "suspicious"
    FORGED = "forged"
    INSUFFICIENT = "insufficient"
    CONFLICT = "conflict"
    REFUTED = "refuted"
    NEW_EVIDENCE = "new_evidence"
    SOME_EVIDENCE = "some_evidence"
    INCONCLUSIVE = "inconclusive"
    # Said by the chain that uses objects, never by a job.
    USED = "used"
    SOURCE_FORGED = "source_forged"
    # Computed from the object itself.
    FADED = "faded"
    OVERDUE = "overdue"
    EXPIRED = "expired"
    ROLLED_BACK = "rolled_back"
    EXHAUSTED = "exhausted"


# What a place may need of an object, and the member of the model that it is: what can be missing from one at all.
NEEDABLE = {
    **{name: name for name in ("review_interval", "review_due_at", "expires_at", "falsify_if", "last_accessed_at")},
    **{name: name for name in ("unknown_type", "uncertainty_ttl", "decision_mode")},
    "evidence_refs": "evidence",
    "source_refs": "sources",
}
DATES = ("review_due_at", "expires_at")  # what may be waited for: the dates that lie ahead of an object
FINDINGS = frozenset(word for name, word in vars(Finding).items() if name.isupper())
COMPUTED = frozenset({Finding.FADED, Finding.OVERDUE, Finding.EXPIRED, Finding.ROLLED_BACK, Finding.EXHAUSTED})


class Arrow(Struct, frozen=True):
    """From `source`, when `action` finds `finding`, to `target`; `gates` have to pass whatever the risk."""

    source: str
    action: str
    finding: str
    target: str
    gates: tuple[str, ...] = ()


class Never(Struct, frozen=True):
    """An invariant: no way leads from `source` to `target`, whatever anybody finds."""

    source: str
    target: str
    because: str


class Follow(Struct, frozen=True):
    """What comes next in a place: `action`, at the object's date `at` where it has one, else so long after."""

    action: str
    after: int
    at: str | None = None


class Machine(Struct, frozen=True, kw_only=True):
    """The states of one object type. `trust` names them all, with how far each is trusted: an arrow upwards promotes.

    `seeks` says what an action asks for whatever it finds; `needs` the members an object has to carry to enter a place.
    Entering a place of `rolls_back` asks for a rollback of what was built on the object, and in `awaits_rollback` it
    stays until that is finished. In `stale` its `stale_since` is set. An object in `uncertain` is verified on a budget,
    and `exhausted` is where it goes when that is used up.
    """

    object_type: str
    first: str
    trust: dict[str, int]
    arrows: tuple[Arrow, ...]
    follow: dict[str, Follow]
    never: tuple[Never, ...]
    seeks: dict[str, str] = {}
    needs: dict[str, tuple[str, ...]] = {}
    rolls_back: frozenset[str] = frozenset()
    awaits_rollback: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()
    uncertain: frozenset[str] = frozenset()
    exhausted: str | None = None

    def arrow(self, place: str, action: str, finding: str) -> Arrow | None:
        """The way out of a place that this finding opens."""
        for arrow in self.arrows:
            if (arrow.source, arrow.action, arrow.finding) == (place, action, finding):
                return arrow
        return None

    def has_row(self, place: str, action: str) -> bool:
        return any(arrow.source == place and arrow.action == action for arrow in self.arrows)

    def findings(self, action: str) -> list[str]:
        """What this action can find that leads somewhere, from any place."""
        return sorted({arrow.finding for arrow in self.arrows if arrow.action == action})

    def knows(self, finding: str) -> bool:
        """Whether the finding is a word at all, here or anywhere; a misspelt one is not."""
        return finding in FINDINGS or any(arrow.finding == finding for arrow in self.arrows)

    def can_be_closed(self, place: str, action: str) -> bool:
        """Whether what is uncertain there can be closed for verification and still has something that comes next."""
        follow = self.follow.get(place)
        is_set_aside = self.arrow(place, action, Finding.EXHAUSTED) is not None
        return is_set_aside or (follow is not None and follow.action not in VERIFICATIONS)

    def promotes(self, arrow: Arrow) -> bool:
        return self.trust[arrow.target] > self.trust[arrow.source]

    def forbidden(self, place: str, targets: frozenset[str]) -> Never | None:
        """The invariant in the way of going from a place to one of these."""
        return next((rule for rule in self.never if rule.source == place and rule.target in targets), None)

    def sought(self, action: str, finding: str | None) -> frozenset[str]:
        """Where this would lead in any state: what is asked for, whether there is a way or not."""
        found = {arrow.target for arrow in self.arrows if (arrow.action, arrow.finding) == (action, finding)}
        return frozenset(found | ({self.seeks[action]} if action in self.seeks else set()))
