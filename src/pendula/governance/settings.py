"""Reads the settings of governed objects from a document: limits, and custom state machines.

Every fault at once, each with its place. Names and shapes are checked here; whether states can be reached and left, and
whether the rules hold, is checked by `machines.faults`.
"""

from collections.abc import Collection, Mapping
from pathlib import Path

from pendula.documents import Cursor, DocumentRefused, Members, read_file
from pendula.governance.endings import Limits
from pendula.governance.gates import VERDICTS
from pendula.governance.inputs import DEFAULT, Rules
from pendula.governance.machines import INVALIDATE, REFERENCE, USE, Arrow, Follow, Machine, Never, faults
from pendula.governance.model import DAY_US
from pendula.jobs.durations import duration_us
from pendula.jobs.model import Vocabulary
from pendula.jobs.settings_file import among

CHAIN = (USE, INVALIDATE)  # actions of programs that use objects, not of jobs
SETS = ("rolls_back", "awaits_rollback", "stale", "uncertain")
NOTHING = Machine(object_type="", first="", trust={}, arrows=(), follow={}, never=())
ROWS_MOST, STATES_MOST, TRUST_MOST = 1000, 1000, 1000


def read_settings(it: Members, vocabulary: Vocabulary, folder: Path | None) -> Rules | None:
    """The settings among the members of a settings file, None for the defaults; `folder` is the base of named files."""
    rules = Rules(_machines(it["machines"], vocabulary, folder), _limits(it, DEFAULT.limits))
    return None if rules == DEFAULT else rules


def _limits(it: Members, plain: Limits) -> Limits:
    return Limits(
        min_evidence_count=it["min_evidence_count"].integer(min=1, max=100, default=plain.min_evidence_count),
        ontic_verify_limit=it["ontic_verify_limit"].integer(min=1, max=10, default=plain.ontic_verify_limit),
        auto_verify_budget=it["auto_verify_budget"].integer(min=0, max=1000, default=plain.auto_verify_budget),
        uncertainty_ttl=it["uncertainty_ttl"].parsed(
            duration_us, stand_in=plain.uncertainty_ttl, default=plain.uncertainty_ttl
        ),
        learning_period_days=it["learning_period_days"].integer(min=1, max=365, default=plain.learning_period_days),
    )


def _machines(at: Cursor, vocabulary: Vocabulary, folder: Path | None) -> Mapping[str, Machine]:
    """The reference machines and those of the file, which may replace a reference machine."""
    if not at.given:
        return REFERENCE

    def known(name: Cursor) -> None:
        among(name, vocabulary.object_types)

    own = at.map_of(lambda one: read_machine(one, str(one.path[-1]), vocabulary.actions, folder), key=known)
    return {**REFERENCE, **own}


def read_machine(at: Cursor, object_type: str, actions: Collection[str], folder: Path | None) -> Machine:
    """The machine at this place, or in the file named there, relative to the settings."""
    return _from_file(at, object_type, actions, folder) if at.is_text else _read(at, object_type, actions)


def _from_file(at: Cursor, object_type: str, actions: Collection[str], folder: Path | None) -> Machine:
    name = at.text(min=1)
    if folder is None:
        at.refuse("a file can be named only in a settings file")
        return NOTHING
    try:
        return read_file(folder / name).read(lambda root: _read(root, object_type, actions))
    except DocumentRefused as refused:
        for fault in refused.faults:
            at.refuse(fault.text(name))
        return NOTHING


def _read(at: Cursor, object_type: str, actions: Collection[str]) -> Machine:
    it = at.object(
        required=("first", "trust", "arrows", "follow", "never"), optional=("seeks", "needs", *SETS, "exhausted")
    )
    machine = Machine(
        object_type=object_type,
        first=it["first"].text(min=1),
        trust=it["trust"].map_of(lambda one: one.integer(min=0, max=TRUST_MOST)),
        arrows=it["arrows"].list_of(_arrow, min=1, max=ROWS_MOST),
        follow=it["follow"].map_of(_follow),
        never=it["never"].list_of(_never, max=ROWS_MOST),
        seeks=it["seeks"].map_of(lambda one: one.text(min=1), default={}),
        needs=it["needs"].map_of(lambda one: one.list_of(lambda name: name.text(min=1)), default={}),
        exhausted=it["exhausted"].text(min=1, default=None),
        **{name: frozenset(it[name].list_of(lambda one: one.text(min=1), default=())) for name in SETS},
    )
    if len(machine.trust) > STATES_MOST:
        it["trust"].refuse(f"{len(machine.trust)} states are too many", allowed=f"at most {STATES_MOST} states")
    elif at.is_object and all(it[name].given for name in ("first", "trust", "arrows", "follow", "never")):
        for sentence in faults(machine, (*actions, *CHAIN)):
            at.refuse(sentence)
    return machine


def _arrow(at: Cursor) -> Arrow:
    it = at.object(required=("from", "action", "finding", "to"), optional=("gates",))
    return Arrow(
        it["from"].text(min=1),
        it["action"].text(min=1),
        it["finding"].text(min=1),
        it["to"].text(min=1),
        it["gates"].list_of(_gate, default=()),
    )


def _gate(at: Cursor) -> str:
    name = at.text(min=1)
    if name and name not in VERDICTS:
        at.refuse(f"there is no gate {name!r}", code="invalid_enum", allowed=tuple(VERDICTS))
    return name


def _follow(at: Cursor) -> Follow:
    it = at.object(required=("action", "after"), optional=("at",))
    after = it["after"].parsed(duration_us, stand_in=DAY_US)
    return Follow(it["action"].text(min=1), after, it["at"].text(min=1, default=None))


def _never(at: Cursor) -> Never:
    it = at.object(required=("from", "to", "because"))
    return Never(it["from"].text(min=1), it["to"].text(min=1), it["because"].text(min=1))
