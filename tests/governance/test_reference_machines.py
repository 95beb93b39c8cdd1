"""The tables of the requirements, row by row, and every pair outside of them."""

from itertools import product

import pytest

from pendula.governance.decisions import Ending, How, Outcome, conclude, enter
from pendula.governance.machines import REFERENCE, faults
from pendula.governance.model import DAY_US, Governed
from pendula.jobs.reasons import Verdict
from tests.governance.governed_objects import NOW, context, gates, governed

ACTIONS = ("verify", "revalidate", "decay", "archive", "reinstate-check")
ALL_ACTIONS = (*ACTIONS, "use", "invalidate")
FINDINGS = (
    *("passed", "suspicious", "forged", "insufficient", "conflict", "refuted", "new_evidence", "some_evidence"),
    *("inconclusive", "used", "source_forged", "faded", "overdue", "expired", "rolled_back", "exhausted"),
)

# From the requirements, copied by hand: from, action, finding, to.
TABLE = """
memory candidate verify passed verified
memory candidate verify suspicious quarantine
memory quarantine verify passed verified
memory quarantine verify forged rejected_poisoned
memory verified use used active
memory verified decay faded stale
memory active decay faded stale
memory stale revalidate inconclusive stale_uncertain
memory stale revalidate new_evidence active
memory stale reinstate-check new_evidence active
memory stale_uncertain revalidate new_evidence active
memory stale_uncertain reinstate-check new_evidence active
memory stale archive expired archived
memory stale_uncertain archive expired archived
memory rejected_poisoned archive rolled_back archived
experience candidate verify passed active
experience candidate verify insufficient needs_review
experience candidate verify conflict needs_review
experience active decay overdue needs_review
experience needs_review revalidate new_evidence active
experience needs_review reinstate-check new_evidence active
experience active invalidate source_forged invalidated
experience active archive expired archived
experience needs_review archive expired archived
experience invalidated archive rolled_back archived
cognition candidate/uncertain verify passed active/supported
cognition active/supported revalidate conflict needs_revalidate/uncertain
cognition active/supported revalidate overdue needs_revalidate/uncertain
cognition active/supported decay conflict needs_revalidate/uncertain
cognition active/supported decay overdue needs_revalidate/uncertain
cognition needs_revalidate/uncertain verify passed active/supported
cognition needs_revalidate/uncertain revalidate passed active/supported
cognition needs_revalidate/uncertain verify exhausted stale/uncertain
cognition needs_revalidate/uncertain revalidate exhausted stale/uncertain
cognition active/supported verify refuted refuted/refuted
cognition active/supported revalidate refuted refuted/refuted
cognition active/uncertain verify refuted refuted/refuted
cognition active/uncertain revalidate refuted refuted/refuted
cognition needs_revalidate/uncertain verify refuted refuted/refuted
cognition needs_revalidate/uncertain revalidate refuted refuted/refuted
cognition stale/uncertain verify refuted refuted/refuted
cognition stale/uncertain revalidate refuted refuted/refuted
cognition stale/uncertain reinstate-check new_evidence active/supported
cognition stale/uncertain reinstate-check some_evidence active/uncertain
cognition stale/uncertain archive expired archived/uncertain
cognition refuted/refuted archive rolled_back archived/refuted
"""
# Additions: without them active/uncertain would have no exit and a new cognition would be verified endlessly.
ADDED = """
cognition active/uncertain verify passed active/supported
cognition active/uncertain revalidate passed active/supported
cognition active/uncertain verify exhausted stale/uncertain
cognition active/uncertain revalidate exhausted stale/uncertain
cognition candidate/uncertain verify exhausted stale/uncertain
cognition candidate/uncertain revalidate exhausted stale/uncertain
"""
ROWS = {tuple(line.split()[:4]): line.split()[4] for line in (TABLE + ADDED).strip().splitlines() if line}
# These are errors, not no-ops: a forged or refuted object is never reinstated.
NEVER = {
    ("memory", "rejected_poisoned"): {"active", "verified"},
    ("experience", "invalidated"): {"active"},
    ("cognition", "refuted/refuted"): {"active/supported", "active/uncertain"},
}
PAIRS = [
    (kind, place, action, finding)
    for kind, machine in REFERENCE.items()
    for place, action, finding in product(sorted(machine.trust), ALL_ACTIONS, FINDINGS)
]


def _concluded(kind: str, place: str, action: str, finding: str) -> Ending:
    question = context(action, gates=gates())
    return conclude(_spent(kind, place), REFERENCE[kind], question, Verdict(finding, "said so", ("ev_2",)))


def _spent(kind: str, place: str) -> Governed:
    """An object without budget and time left, so that every finding is possible."""
    return governed(kind, place, uncertain_since=NOW - 8 * DAY_US, verify_budget_left=0)


@pytest.mark.req("JOB-SM-7", "JOB-SM-9", "JOB-SM-11")
@pytest.mark.parametrize("row", sorted(ROWS), ids=" ".join)
def test_every_row_of_the_tables_is_followed(row: tuple[str, str, str, str]) -> None:
    ending = _concluded(*row)

    assert (ending.outcome, ending.subject.place) == (Outcome.TRANSITIONED, ROWS[row])
    assert ending.subject.version == 2


@pytest.mark.req("JOB-SM-3", "JOB-SM-8", "JOB-SM-10", "JOB-SM-12")
def test_every_other_pair_changes_no_state_and_forbidden_pairs_are_errors() -> None:
    wrong = [pair for pair in PAIRS if pair not in ROWS and not _stays(*pair)]

    assert wrong == []
    assert len(PAIRS) - len(ROWS) > 2000


def _stays(kind: str, place: str, action: str, finding: str) -> bool:
    ending = _concluded(kind, place, action, finding)
    wanted = {target for (k, _, a, f), target in ROWS.items() if (k, a, f) == (kind, action, finding)}
    if action == "reinstate-check":
        wanted |= {"active", "active/supported"}
    if NEVER.get((kind, place), set()) & wanted:
        return (ending.how, ending.outcome, ending.subject) == (How.FAIL, Outcome.ILLEGAL, _spent(kind, place))
    return ending.outcome is Outcome.NOOP and ending.subject.place == place and ending.how is How.ACK


@pytest.mark.req("JOB-SM-8", "JOB-SM-10", "JOB-SM-12")
@pytest.mark.parametrize(("kind", "place"), sorted(NEVER))
def test_a_job_for_a_forbidden_return_is_rejected_before_its_verifier(kind: str, place: str) -> None:
    ending = enter(governed(kind, place), REFERENCE[kind], context("reinstate-check"))

    assert isinstance(ending, Ending)
    assert ending.error is not None
    assert ending.error.startswith("illegal_transition: reinstate-check: ")


@pytest.mark.req("JOB-SM-2")
@pytest.mark.parametrize("kind", sorted(REFERENCE))
def test_every_state_is_reachable_and_has_an_exit(kind: str) -> None:
    assert faults(REFERENCE[kind], ALL_ACTIONS) == []


@pytest.mark.req("JOB-SM-12")
@pytest.mark.parametrize("missing", ["falsify_if", "review_interval", "expires_at"])
def test_a_cognition_becomes_active_only_with_its_required_fields(missing: str) -> None:
    bare: Governed = governed("cognition", "candidate/uncertain", **{missing: None})
    ending = conclude(bare, REFERENCE["cognition"], context("verify"), Verdict("passed", "said so", ("ev_2",)))

    assert ending.outcome is Outcome.ILLEGAL
    assert missing in str(ending.error)
