"""A state machine as data: which finding of which action leads where, and which transitions are forbidden.

A place is a state, for a cognition both axes joined by a slash (`active/supported`). `decisions` interprets a machine.
"""

from msgspec import Struct

from pendula.jobs.objects.governed import VERIFICATIONS


class Finding:
    """Standard findings of an action. A machine may add its own."""

    # From a verifier or a person.
    PASSED = "passed"
    SUSPICIOUS = "suspicious"
    FORGED = "forged"
    INSUFFICIENT = "insufficient"
    CONFLICT = "conflict"
    REFUTED = "refuted"
    NEW_EVIDENCE = "new_evidence"
    SOME_EVIDENCE = "some_evidence"
    INCONCLUSIVE = "inconclusive"
    # From the application that uses objects, never from a job.
    USED = "used"
    SOURCE_FORGED = "source_forged"
    # Computed from the object itself.
    FADED = "faded"
    OVERDUE = "overdue"
    EXPIRED = "expired"
    ROLLED_BACK = "rolled_back"
    EXHAUSTED = "exhausted"


# Members that a place may require, with their names in the model.
NEEDABLE = {
    **{name: name for name in ("review_interval", "review_due_at", "expires_at", "falsify_if", "last_accessed_at")},
    **{name: name for name in ("unknown_type", "uncertainty_ttl", "decision_mode")},
    "evidence_refs": "evidence",
    "source_refs": "sources",
}
DATES = ("review_due_at", "expires_at")  # dates that a next action may wait for
FINDINGS = frozenset(word for name, word in vars(Finding).items() if name.isupper())
COMPUTED = frozenset({Finding.FADED, Finding.OVERDUE, Finding.EXPIRED, Finding.ROLLED_BACK, Finding.EXHAUSTED})


class Arrow(Struct, frozen=True):
    """From `source`, when `action` finds `finding`, to `target`; `gates` must pass at any risk."""

    source: str
    action: str
    finding: str
    target: str
    gates: tuple[str, ...] = ()


class Never(Struct, frozen=True):
    """An invariant: no finding leads from `source` to `target`."""

    source: str
    target: str
    because: str


class Follow(Struct, frozen=True):
    """The next action of a place, at the object's date `at` if it has one, else `after` microseconds later."""

    action: str
    after: int
    at: str | None = None


class Machine(Struct, frozen=True, kw_only=True):
    """The states of one object type. `trust` has them all with their level of trust; an arrow to a higher one promotes.

    `seeks` is the target that an action aims at whatever it finds; `needs` the members required to enter a place.
    Entering a place of `rolls_back` requests a rollback of everything built on the object; in `awaits_rollback` the
    object stays until that is finished. `stale` places set `stale_since`. An object in `uncertain` is verified on a
    budget, and moves to `exhausted` when that is used up.
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
        for arrow in self.arrows:
            if (arrow.source, arrow.action, arrow.finding) == (place, action, finding):
                return arrow
        return None

    def has_row(self, place: str, action: str) -> bool:
        return any(arrow.source == place and arrow.action == action for arrow in self.arrows)

    def findings(self, action: str) -> list[str]:
        """The findings of this action that have a transition, from any place."""
        return sorted({arrow.finding for arrow in self.arrows if arrow.action == action})

    def has_finding(self, finding: str) -> bool:
        """Whether this is a standard finding or one of this machine; otherwise it may be a typo."""
        return finding in FINDINGS or any(arrow.finding == finding for arrow in self.arrows)

    def can_be_closed(self, place: str, action: str) -> bool:
        """Whether an uncertain object there can be closed for verification and still has a next action."""
        follow = self.follow.get(place)
        is_set_aside = self.arrow(place, action, Finding.EXHAUSTED) is not None
        return is_set_aside or (follow is not None and follow.action not in VERIFICATIONS)

    def promotes(self, arrow: Arrow) -> bool:
        return self.trust[arrow.target] > self.trust[arrow.source]

    def forbidden(self, place: str, targets: frozenset[str]) -> Never | None:
        """The invariant that forbids a transition from a place to one of these."""
        return next((rule for rule in self.never if rule.source == place and rule.target in targets), None)

    def sought_targets(self, action: str, finding: str | None) -> frozenset[str]:
        """The places that this action and finding aim at from any state, reachable or not."""
        targets = {arrow.target for arrow in self.arrows if (arrow.action, arrow.finding) == (action, finding)}
        return frozenset(targets | ({self.seeks[action]} if action in self.seeks else set()))
