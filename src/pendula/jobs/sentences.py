"""Sentences of reasons, rendered where they are shown: no job, event, alert or decision trace contains one."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pendula.jobs.reasons import Reason

Facts = Mapping[str, Any]


def sentence_of(reason: Reason | Facts) -> str:
    """The sentence of a reason, or of its stored form `{"code", "facts"}`."""
    if isinstance(reason, Reason):
        return SENTENCES[reason.code](reason.facts)
    return SENTENCES[reason["code"]](reason.get("facts", {}))


def shown_reason(stored: Facts) -> dict[str, Any]:
    """The members that replies have for a stored reason: the sentence in `reason`, `code` and `facts`."""
    return {"reason": sentence_of(stored), "code": stored["code"], "facts": stored.get("facts", {})}


def error_sentence(error: str) -> str:
    """An error with the codes that the scheduler writes spelled out; the words of callers stay."""
    head, _, rest = error.partition(": ")
    if head in CODES_WITH_CAUSE and rest:
        return f"{head}: {error_sentence(rest)}"
    form = CAUSES.get(head)
    parts = rest.split(": ") if rest else []
    return error if form is None or form.count("{}") != len(parts) else form.format(*parts)


CODES_WITH_CAUSE = frozenset({"cancelled", "superseded", "state_conflict", "store_unusable"})
CAUSES: Mapping[str, str] = {
    "deferred": "put off by a gate",
    "no_reason": "no reason given",
    "no_machine": "there is no state machine for {} here; are the settings the same?",
    "nothing_left": "nothing is left to do",
    "object_unreadable": "a governed object cannot be read: the store is damaged; `pendula jobs check` says which",
    "ontic_limit_reached": "the verification limit of the object is reached",
    "plan_changed": "plan {} is another now",
    "plan_paused": "plan {} is paused",
    "plan_removed": "plan {} is removed",
    "released": "handed back unfinished",
    "time_set": "the time of the store was set right",
    "unknown_place": "the machine of {} here has no state {}; are the settings the same?",
    "version_changed": "the object changed meanwhile: version {}, not {}",
}


def members_in_words(needs: Iterable[str]) -> str:
    """Members that a state needs; of some joined by a bar, one is enough."""
    return ", ".join(need.replace("|", " or ") for need in needs)


def _because(facts: Facts) -> str:
    return sentence_of(facts["because"])


def _requeued(facts: Facts) -> str:
    return f"requeued by {facts['by']}" + (f": {facts['reason']}" if "reason" in facts else "")


def _gates_unset(facts: Facts) -> str:
    *first, last = facts["gates"]
    return f"{', '.join(first)} and {last} were never set" if first else f"{last} was never set"


def _too_little_evidence(facts: Facts) -> str:
    needed = facts["needed"]
    plural = "" if needed == 1 else "s"
    return f"{_because(facts)}; it needs {needed} reference{plural} as evidence and has fewer"


SENTENCES: Mapping[str, Callable[[Facts], str]] = {
    "stated": lambda facts: str(facts["text"]),
    # Jobs
    "enqueued": lambda _: "enqueued",
    "delivered": lambda facts: f"delivered to {facts['worker_id']}",
    "succeeded": lambda _: "succeeded",
    "failed": lambda facts: f"failed for good: {error_sentence(facts['error'])}",
    "dead_letter": lambda facts: f"no attempt is left: {error_sentence(facts['error'])}",
    "retry": lambda facts: f"to be tried again: {error_sentence(facts['error'])}",
    "given_up": lambda facts: f"while running, {error_sentence(facts['error'])}",
    "dropped": lambda facts: error_sentence(facts["error"]),
    "released": lambda _: "released",
    "deferred": lambda facts: f"put off: {_because(facts)}",
    "job_cancelled": lambda facts: f"cancelled: {_because(facts)}",
    "cancellation_requested": lambda facts: f"cancellation requested: {_because(facts)}",
    "no_reason": lambda _: CAUSES["no_reason"],
    "requeued": _requeued,
    "action_succeeded": lambda facts: f"{facts['action']} succeeded",
    # Time plans and the store
    "declared": lambda _: "declared in the settings file",
    "put": lambda _: "put",
    "paused": lambda _: "paused",
    "resumed": lambda _: "resumed",
    "removed": lambda _: "removed",
    "plan_changed": lambda facts: CAUSES["plan_changed"].format(facts["plan"]),
    "plan_paused": lambda facts: CAUSES["plan_paused"].format(facts["plan"]),
    "plan_removed": lambda facts: CAUSES["plan_removed"].format(facts["plan"]),
    "restored": lambda _: "restored from a copy",
    "time_set": lambda _: CAUSES["time_set"],
    # Governed objects: what a caller did without stating a reason
    "governed": lambda _: "put under governance",
    "evidence_attached": lambda _: "evidence attached",
    "rollback_reported": lambda _: "rollback reported finished",
    # Governed objects: what was found, and what stops an action
    "not_searched": lambda _: "nothing was looked for",
    "nothing_found": lambda _: "executed, nothing was found",
    "no_transition": lambda facts: f"nothing leads on from {facts['place']}",
    "unknown_finding": lambda facts: (
        f"{_because(facts)}; {facts['action']} of a {facts['object_type']} knows no finding {facts['finding']}"
    ),
    "unknown_place": lambda facts: CAUSES["unknown_place"].format(facts["object_type"], facts["place"]),
    "version_changed": lambda facts: CAUSES["version_changed"].format(facts["version"], facts["given"]),
    "rollback_unfinished": lambda _: "the rollback is not finished",
    "rollback_finished": lambda _: "the rollback is finished",
    "expired": lambda facts: f"it expired at {facts['at']}",
    "not_expired": lambda _: "it has not expired",
    "review_overdue": lambda _: "its review is overdue",
    "faded": lambda _: "it has lost its weight through time without use",
    "not_faded": lambda _: "it still has its weight",
    "too_little_evidence": _too_little_evidence,
    "evidence_unfit": lambda facts: f"{facts['ref']} is in {facts['place']} and cannot serve as evidence",
    "evidence_under_review": lambda facts: f"{facts['ref']} needs review and cannot carry a decision of high risk",
    "not_exhausted": lambda _: "its budget or its time of uncertainty is not used up",
    "needs_evidence_to_open": lambda _: "it is closed until evidence makes it knowable",
    "members_needed": lambda facts: f"{facts['place']} needs {members_in_words(facts['members'])}",
    "members_missing": lambda facts: f"an uncertain {facts['object_type']} has to carry {', '.join(facts['members'])}",
    "lowering_only": lambda _: "the gates allow only what lowers trust",
    "person_required": lambda _: "no job promotes an uncertain object of high risk by itself",
    "no_budget": lambda _: "no budget is left for verification",
    "no_budget_no_time": lambda _: "no budget is left for verification, and its time of uncertainty is over",
    "limit_reached": lambda facts: (
        f"verification limit reached ({facts['limit']}): it {facts['closed']}; add evidence to reopen it"
    ),
    "verification_closed": lambda facts: f"closed for verification: it {facts['closed']}",
    "gates_unset": _gates_unset,
    "gate_deferred": lambda facts: f"{facts['gate']} puts it off ({facts['deferral']} of {facts['limit']})",
    "gate_blocked": lambda facts: f"{facts['gate']} blocks it",
    "gate_blocked_job": lambda facts: f"{facts['gate']} blocked a job",
    "verification_begins": lambda facts: f"verification {facts['number']} begins",
    "job_ended": lambda facts: f"{facts['job_id']}, which stood for its date, is {facts['status']}",
}
