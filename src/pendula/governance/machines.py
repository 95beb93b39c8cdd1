"""A state machine as data: which finding of which action leads where, and which transitions are forbidden.

A place is a state, for a cognition both axes joined by a slash (`active/supported`). `decisions` interprets a machine.
Below are the machines of memory, experience and cognition, and the check that finds all faults of a machine at once.
"""

from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta, Struct, field

from pendula.documents.typed import NO_NULL, Parse, Read
from pendula.governance.gates import VERDICTS
from pendula.governance.model import DAY_US, duration_us
from pendula.jobs.model import VERIFICATIONS


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


Text = Annotated[str, Meta(min_length=1)]
GateName = Annotated[str, Read(lambda at: at.one_of(tuple(VERDICTS), noun="a gate"))]
ROWS_MOST, STATES_MOST, TRUST_MOST = 1000, 1000, 1000


class Arrow(Struct, frozen=True, forbid_unknown_fields=True):
    """From `source`, when `action` finds `finding`, to `target`; `gates` must pass at any risk."""

    source: Text = field(name="from")
    action: Text
    finding: Text
    target: Text = field(name="to")
    gates: tuple[GateName, ...] = ()


class Never(Struct, frozen=True, forbid_unknown_fields=True):
    """An invariant: no finding leads from `source` to `target`."""

    source: Text = field(name="from")
    target: Text = field(name="to")
    because: Text


class Follow(Struct, frozen=True, forbid_unknown_fields=True):
    """The next action of a place, at the object's date `at` if it has one, else `after` microseconds later."""

    action: Text
    after: Annotated[int, Parse(duration_us, DAY_US)]
    at: Annotated[Text | None, NO_NULL] = None


class MachineForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The states of one object type. `trust` has them all with their level of trust; an arrow to a higher one promotes.

    `seeks` is the target that an action aims at whatever it finds; `needs` the members required to enter a place.
    Entering a place of `rolls_back` requests a rollback of everything built on the object; in `awaits_rollback` the
    object stays until that is finished. `stale` places set `stale_since`. An object in `uncertain` is verified on a
    budget, and moves to `exhausted` when that is used up.
    """

    first: Text
    trust: dict[str, Annotated[int, Meta(ge=0, le=TRUST_MOST)]]
    arrows: Annotated[tuple[Arrow, ...], Meta(min_length=1, max_length=ROWS_MOST)]
    follow: dict[str, Follow]
    never: Annotated[tuple[Never, ...], Meta(max_length=ROWS_MOST)]
    seeks: dict[str, Text] = {}
    needs: dict[str, tuple[Text, ...]] = {}
    rolls_back: frozenset[Text] = frozenset()
    awaits_rollback: frozenset[Text] = frozenset()
    stale: frozenset[Text] = frozenset()
    uncertain: frozenset[Text] = frozenset()
    exhausted: Annotated[Text | None, NO_NULL] = None


class Machine(MachineForm, frozen=True, kw_only=True):
    """The state machine of an object type."""

    object_type: str

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


WORD_MOST = 64


def faults(machine: Machine, actions: Iterable[str]) -> list[str]:
    """All faults as sentences. `actions` are the known actions, of jobs and of the application."""
    known = frozenset(actions)
    return [
        *_unfit_names(machine),
        *_unknown_names(machine, known),
        *_doubles(machine),
        *_broken_rules(machine),
        *_ways(machine),
    ]


def _unfit_names(machine: Machine) -> Iterator[str]:
    """States must survive joining and splitting by a slash; findings must be printable words."""
    allowed = f"1 to {WORD_MOST} printable characters"
    for state in sorted(machine.trust):
        if state.count("/") > 1 or not all(map(_is_word, state.split("/"))):
            yield f"{state!r} is not a state: write {allowed}, or two such words joined by a slash"
    for finding in sorted({arrow.finding for arrow in machine.arrows}):
        if not _is_word(finding):
            yield f"{finding!r} is not a finding: write {allowed}"


def _is_word(text: str) -> bool:
    return 1 <= len(text) <= WORD_MOST and text.isprintable() and text == text.strip()


def _unknown_names(machine: Machine, actions: frozenset[str]) -> Iterator[str]:
    states = set(machine.trust)
    named: list[tuple[str, str]] = [("the first state", machine.first)]
    for arrow in machine.arrows:
        row = f"the row {arrow.source}, {arrow.action}, {arrow.finding}"
        named += [(row, arrow.source), (row, arrow.target)]
        if arrow.action not in actions:
            yield f"{row}: there is no action {arrow.action}; the actions are {', '.join(sorted(actions))}"
    named += [("a rule of never", name) for rule in machine.never for name in (rule.source, rule.target)]
    for member in ("follow", "needs", "rolls_back", "awaits_rollback", "stale", "uncertain"):
        named += [(member, name) for name in sorted(getattr(machine, member))]
    named += [("seeks", name) for name in machine.seeks.values()]
    named += [("exhausted", machine.exhausted)] if machine.exhausted is not None else []
    for where, name in named:
        if name not in states:
            yield f"{where}: there is no state {name}; the states are {', '.join(sorted(states))}"
    yield from _unknown_members(machine, actions)


def _unknown_members(machine: Machine, actions: frozenset[str]) -> Iterator[str]:
    for action in sorted(machine.seeks.keys() - actions):
        yield f"seeks: there is no action {action}; the actions are {', '.join(sorted(actions))}"
    for place, needed in machine.needs.items():
        for name in (name for need in needed for name in need.split("|")):
            if name not in NEEDABLE:
                yield f"needs of {place}: {name} cannot be required; allowed are {', '.join(sorted(NEEDABLE))}"
    for place, follow in machine.follow.items():
        if follow.action not in actions:
            yield f"follow of {place}: there is no action {follow.action}; the actions are {', '.join(sorted(actions))}"
        if follow.at is not None and follow.at not in DATES:
            yield f"follow of {place}: {follow.at} is not a date to wait for; the dates are {' and '.join(DATES)}"
        if follow.after <= 0:
            yield f"follow of {place}: the next action must come later than now"


def _doubles(machine: Machine) -> Iterator[str]:
    seen: dict[tuple[str, str, str], str] = {}
    for arrow in machine.arrows:
        key = (arrow.source, arrow.action, arrow.finding)
        if key in seen and seen[key] != arrow.target:
            yield f"{', '.join(key)} leads to both {seen[key]} and {arrow.target}"
        seen[key] = arrow.target


def _broken_rules(machine: Machine) -> Iterator[str]:
    if not machine.never:
        yield "never is empty: name at least one forbidden transition"
    for rule in machine.never:
        if any((arrow.source, arrow.target) == (rule.source, rule.target) for arrow in machine.arrows):
            yield f"a row leads from {rule.source} to {rule.target}, which never forbids: {rule.because}"


def _ways(machine: Machine) -> Iterator[str]:
    """Every state is reachable, and every state but a final one has a follow."""
    reached, known = [machine.first], {machine.first}
    for place in reached:
        for arrow in machine.arrows:
            if arrow.source == place and arrow.target not in known:
                known.add(arrow.target)
                reached.append(arrow.target)
    sources = {arrow.source for arrow in machine.arrows}
    for state in sorted(machine.trust):
        if state not in known:
            yield f"{state} cannot be reached from {machine.first}"
        if state in sources and state not in machine.follow:
            yield f"{state} has no follow: objects there would never be checked again"
        if state not in sources and state in machine.follow:
            yield f"{state} has a follow, but no row leads out of it"
    if all(state in sources for state in machine.trust):
        yield "there is no final state: every state has a row that leaves it"
    if machine.uncertain and machine.exhausted is None and any(p not in machine.stale for p in machine.uncertain):
        yield "exhausted is missing: an uncertain object would have nowhere to go when its budget is used up"
    yield from _dead_ends(machine)


def _dead_ends(machine: Machine) -> Iterator[str]:
    """Uncertain places without a next action, or without a way out when the budget is used up."""
    for place in sorted(machine.uncertain):
        if place not in machine.follow:
            yield f"{place} is uncertain and has no follow: objects there would never be checked again"
        for action in sorted(VERIFICATIONS):
            is_next = place in machine.follow and machine.follow[place].action == action
            if (is_next or machine.has_row(place, action)) and not machine.can_be_closed(place, action):
                yield f"{place} has no row for {action}, {Finding.EXHAUSTED}: objects there would stay uncertain"
    for place in sorted({arrow.target for arrow in machine.arrows if arrow.finding == Finding.EXHAUSTED}):
        if place in machine.follow and machine.follow[place].action in VERIFICATIONS:
            yield f"{place} is the target of {Finding.EXHAUSTED}, but its follow would verify objects again"
