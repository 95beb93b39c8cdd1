"""Why a job has not run, is running, or how it ended: a sentence for people, a code and facts for programs.

Each question of `QUESTIONS` checks one possible reason; the first that applies is the answer. To add a reason, write
its question and put it in its place in the order.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from pendula.jobs.decide import OUTCOME_CANCELLED, OUTCOME_DEFERRED
from pendula.jobs.hooks import governance
from pendula.jobs.messages import Why, WhyReason, progress_of
from pendula.jobs.model import MILLION, SECOND, VERIFICATIONS, Job, Policy, PullOrder, Refused, Status
from pendula.jobs.sentences import error_sentence, sentence_of
from pendula.jobs.store.protocol import AuditListing, Reader, Store, Unhandled, WorkerRow
from pendula.jobs.transaction import not_found
from pendula.kernel.canonical import Json, decode
from pendula.kernel.time import format_utc

BEFORE_MOST = 10_000  # limit of the count of jobs ahead
ALIVE_US = 90 * SECOND  # a worker without a heartbeat for longer counts as gone
ERROR_SHOWN = 200
CANCELLED = "cancelled: "  # prefix of the last error of a cancelled job
EVENTS_MOST = 100_000


class Because(Struct, frozen=True):
    """A reason: its code, its sentence without the id of the job, and its facts."""

    reason: WhyReason
    sentence: str
    facts: dict[str, Json] = {}


class Case(Struct, frozen=True):
    """The job and its circumstances."""

    look: Reader
    job: Job
    policy: Policy
    now: int


Question = Callable[[Case], Because | None]


def why(store: Store, policy: Policy, now: int, job_id: str) -> Why | Refused:
    """The reason of a job's present state."""

    def look(reader: Reader) -> Because | None:
        job = reader.job(job_id)
        return None if job is None else because(Case(reader, job, policy, now))

    answer = store.read(look)
    if answer is None:
        return not_found(job_id)
    sentence = f"{job_id} {answer.sentence}."
    return Why(job_id, answer.reason, sentence, answer.facts)


def because(case: Case) -> Because:
    for question in QUESTIONS:
        if (answer := question(case)) is not None:
            return answer
    raise AssertionError("the last question always has an answer")


def ended(case: Case) -> Because | None:
    job = case.job
    at = format_utc(job.updated_at)
    match job.status:
        case Status.SUCCEEDED:
            outcome = f" with outcome {job.outcome}" if job.outcome is not None else ""
            sentence = f"succeeded at {at}{_after_tries(job)}{outcome}"
        case Status.FAILED if _is_cancelled(job):
            sentence = f"was cancelled at {at}: {_first_line(job.last_error).removeprefix(CANCELLED)}"
            sentence += _cancel_request(case)
        case Status.FAILED:
            sentence = f"failed at {at} and is not tried again: {_first_line(job.last_error)}"
        case Status.DEAD_LETTER:
            sentence = (
                f"has been a dead letter since {at}, after {job.attempt} of {job.max_attempts} attempts: "
                f"{_first_line(job.last_error)}"
            )
        case _:
            return None
    return Because("ended", sentence, {"status": job.status, "ended_at": at})


def _is_cancelled(job: Job) -> bool:
    return job.outcome == OUTCOME_CANCELLED or (job.last_error or "").startswith(CANCELLED)


def _cancel_request(case: Case) -> str:
    """Who requested the cancellation of a running job, and why; only the trail has that."""
    if case.job.cancel_requested_at is None:
        return ""
    at = format_utc(case.job.cancel_requested_at)
    for row in reversed(case.look.events(AuditListing(EVENTS_MOST, job_seq=case.job.seq))):
        event: Any = decode(row.body.encode())
        if event["after"].get("cancel_requested_at") == at:
            because = sentence_of(event["reason"]["facts"]["because"])
            return f"; {event['actor']['id']} asked for it at {at}: {because}"
    return ""


def running(case: Case) -> Because | None:
    job = case.job
    if job.status != Status.RUNNING:
        return None
    since, until = format_utc(job.updated_at), format_utc(job.lease_expires_at or 0)
    facts: dict[str, Json] = {"worker_id": job.worker_id, "since": since, "lease_expires_at": until}
    progress, more = _progress(job)
    facts |= more
    if (job.lease_expires_at or 0) <= case.now:
        ran_out = f"its lease ran out at {until}, the next pull takes it back"
        sentence = f"was given to {job.worker_id} at {since}; {ran_out}{progress}"
        return Because("lease_over", sentence, facts)
    sentence = f"has been running at {job.worker_id} since {since}; its lease holds until {until}{progress}"
    return Because("runs", sentence, facts)


def _progress(job: Job) -> tuple[str, dict[str, Json]]:
    """Progress of a running job and a requested cancellation: as part of the sentence, and as facts."""
    text, facts = "", dict[str, Json]()
    if job.progress is not None:
        note = f" ({job.progress_note})" if job.progress_note else ""
        text += f"; {job.progress * 100 // MILLION} % of it is done{note}"
        facts["progress"] = asdict(progress_of(job.progress, job.progress_note))
    if job.cancel_requested_at is not None:
        at = format_utc(job.cancel_requested_at)
        text += f"; it was asked to stop at {at}"
        facts["cancel_requested_at"] = at
    return text, facts


def later(case: Case) -> Because | None:
    """Not due yet: its first time, or that of a retry."""
    job = case.job
    if job.run_at <= case.now:
        return None
    at, wait = format_utc(job.run_at), _shown_seconds(job.run_at - case.now)
    facts: dict[str, Json] = {"run_at": at}
    if job.outcome == OUTCOME_DEFERRED:
        return Because("waits_for_gate", f"was put off by a gate and waits until {at} (in {wait})", facts)
    if job.attempt:
        sentence = (
            f"waits for its next try at {at} (in {wait}), after {job.attempt} of {job.max_attempts} attempts: "
            f"{_first_line(job.last_error)}"
        )
        return Because("waits_for_retry", sentence, facts)
    return Because("waits_for_time", f"waits for its time, {at} (in {wait})", facts)


def withheld(case: Case) -> Because | None:
    """Withheld by its object, a gate or the budget; the next pull would find the same."""
    job = case.job
    if not case.look.is_governed(job.object_type, job.object_id):
        return None
    found = governance().why_withheld(case.look, job, case.policy, case.now)
    if found is None:
        return None
    outcome, because = found
    sentence = f"has been due since {format_utc(job.run_at)} and is not handed out: {because}"
    return Because("waits_for_gate", sentence, {"outcome": outcome})


def object_is_busy(case: Case) -> Because | None:
    job, actions = case.job, frozenset[str]()
    if not case.policy.one_running_per_object:
        if job.action not in VERIFICATIONS or not case.look.is_governed(job.object_type, job.object_id):
            return None
        actions = VERIFICATIONS
    other = case.look.running_on(job.object_type, job.object_id, actions)
    if other is None:
        return None
    sentence = f"waits for its object: {other.job_id} runs on {job.object_type} {job.object_id} at {other.worker_id}"
    return Because("waits_for_object", sentence, {"running_job_id": other.job_id, "worker_id": other.worker_id})


def no_worker_handles(case: Case) -> Because | None:
    """No known worker handles it. Only workers with heartbeats are known; another one may still pull."""
    alive = [
        worker for worker in case.look.workers() if worker.ended_at is None and case.now - worker.seen_at < ALIVE_US
    ]
    if any(handles(worker, case.job) for worker in alive):
        return None
    job = case.job
    work = f"{job.action} of {job.object_type}" + (f" in the queue {job.queue}" if job.queue != "default" else "")
    known = _unfit(len(alive), work)
    due = format_utc(job.run_at)
    facts: dict[str, Json] = {"workers_alive": len(alive), "run_at": due}
    if (kind := _unhandled(case)) is None:
        return Because("waits_for_worker", f"has been due since {due} and waits for a worker: {known}", facts)
    facts |= {"unhandled": kind.count, "unhandled_since": format_utc(kind.since)}
    sentence = (
        f"has been due since {due} and waits for a worker that handles it: {known}, "
        f"and no worker has taken {work} since {format_utc(kind.since)}"
    )
    return Because("waits_for_worker", sentence, facts)


def _unfit(alive: int, work: str) -> str:
    """Why no known worker takes the job."""
    match alive:
        case 0:
            return "no worker sent a heartbeat lately"
        case 1:
            return f"the only worker with a recent heartbeat does not handle {work}"
        case _:
            return f"none of the {alive} workers with a recent heartbeat handles {work}"


def _unhandled(case: Case) -> Unhandled | None:
    """The unhandled kind of the job, as `stats` and the alert report it."""
    kinds = case.look.unhandled(case.now - case.policy.unhandled_alert_sec * SECOND)
    wanted = (case.job.object_type, case.job.action)
    return next((kind for kind in kinds if (kind.object_type, kind.action) == wanted), None)


def handles(worker: WorkerRow, job: Job) -> bool:
    """Whether a worker takes such a job; one that does not list what it handles takes all."""
    fits = not worker.works or (job.object_type, job.action) in worker.works
    return fits and (not worker.queues or job.queue in worker.queues)


def turn(case: Case) -> Because:
    weighted = case.policy.pull_order is PullOrder.WEIGHTED
    starts = case.policy.head_start_sec if weighted else (0, 0, 0)
    before = case.look.before(case.job, case.now, starts, BEFORE_MOST)
    at = format_utc(case.job.run_at)
    many = f"more than {BEFORE_MOST - 1}" if before == BEFORE_MOST else str(before)
    place = "it is the next" if not before else f"{many} {'goes' if before == 1 else 'go'} before it"
    return Because("waits_for_turn", f"has been due since {at} and waits for its turn: {place}", {"before": before})


QUESTIONS: tuple[Question, ...] = (ended, running, later, object_is_busy, withheld, no_worker_handles, turn)


def _after_tries(job: Job) -> str:
    return f" after {job.attempt} failed attempt{'s' if job.attempt > 1 else ''}" if job.attempt else ""


def _first_line(error: str | None) -> str:
    line = error_sentence((error or "no error was given").split("\n", 1)[0])
    return line if len(line) <= ERROR_SHOWN else line[: ERROR_SHOWN - 1] + "…"


def _shown_seconds(microseconds: int) -> str:
    seconds = -(-microseconds // SECOND)
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            return f"{whole} {word}" if not rest else f"over {whole} {word}"
    return f"{seconds} s"
