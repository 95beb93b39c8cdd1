"""The demo of the scheduler `jobs`: a hundred memories, experiences and cognitions that age quickly.

A round every few seconds creates objects, runs their jobs, verified by workers that sometimes die, and finishes
rollbacks. Everything is drawn from one seed and the number of the job. The position is read from the store, so that a
restart continues. The driver uses the Python API, like any program.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from pendula.governance import Machine, Rules, governed
from pendula.governance.gates import VERDICTS
from pendula.governance.inputs import rules_of
from pendula.governance.model import DAY_US
from pendula.governance.objects import ProofMembers
from pendula.jobs import JobRefused, Policy, Scheduler
from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Caller, Calls
from pendula.jobs.messages import Job, Pull
from pendula.jobs.model import SECOND, Actor
from pendula.jobs.presence import Presence, PresenceWriter
from pendula.jobs.request_reading import read
from pendula.jobs.scheduler_calls import PullMembers
from pendula.kernel.rng import Pcg32, stream
from pendula.kernel.time import format_utc, parse_utc

log = logging.getLogger("pendula.server.demo")

# Fast time: objects age in minutes instead of weeks, and other jobs keep their times. The clock itself is real.
DAY_IS_US = 30 * SECOND
LEASE_SEC = 8
RETENTION_DAYS = 1  # a day of the demo is years for its objects

# The objects, generated from their numbers.
SEED = 16
COUNT = 100
KINDS = ("memory", "memory", "experience", "cognition")
POISONED_EVERY = 60  # objects; the first one comes early
FIRST_POISONED = 4
SUBJECTS = (
    *("harbour", "lighthouse", "ferry", "bakery", "library", "orchard", "mill", "bridge"),
    *("market", "station", "school", "garden", "tower", "well", "chapel", "square"),
)
HALF_LIVES = ("PT45S", "PT1M30S", "PT3M")
BIRTH = 0x4249

ROUND_SEC = 3.0
# Slow down after this many objects, so that the trail does not grow without limit.
FAST_OBJECTS, SLOW_SEC = 500, 30.0
FIRST_OBJECTS, OBJECTS_A_ROUND = 16, 2
JOBS_A_ROUND = 6
DIES_ONE_IN = 25
FAILING_EVERY = 25  # objects; each of these adds a job that fails at first
GIVES_UP_ONE_IN = 40
ROLLBACK_SEC = 60
LIFE_SEC = (1200, 4800)
FIRST_LIFE_SEC = (180, 1200)  # of the initial objects, so that some expire soon
REVIEW_SEC = 120
WORK = 0x574F
PLAIN = ("decay", "archive")
WORKERS = ("ada", "bruno", "clara")
DEMO_USER = Caller(Actor("user", "demo"), None)
GIVEN_UP = "source_gone: the archive did not answer"

# Possible findings by place and action; repeated entries are more likely.
FINDINGS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("candidate", "verify"): ("passed", "passed", "passed", "suspicious"),
    ("quarantine", "verify"): ("passed", "inconclusive"),
    ("stale", "revalidate"): ("new_evidence", "inconclusive"),
    ("stale_uncertain", "reinstate-check"): ("new_evidence", "new_evidence", "inconclusive"),
    ("needs_review", "revalidate"): ("new_evidence", "inconclusive"),
    ("candidate/uncertain", "verify"): ("passed", "passed", "inconclusive"),
    ("active/supported", "revalidate"): ("inconclusive", "inconclusive", "conflict"),
    ("needs_revalidate/uncertain", "revalidate"): ("passed", "inconclusive", "inconclusive"),
    ("active/uncertain", "revalidate"): ("passed", "inconclusive"),
    ("stale/uncertain", "reinstate-check"): ("new_evidence", "some_evidence", "inconclusive"),
}
REASONS = {
    "passed": "two sources say the same",
    "suspicious": "the handwriting does not fit the date",
    "forged": "the paper is younger than the date on it",
    "new_evidence": "a photograph turned up that shows it",
    "some_evidence": "a witness remembers it, but is not sure",
    "inconclusive": "nothing was found either way",
    "conflict": "a newer note says otherwise",
}


def with_fast_clock(policy: Policy) -> Policy:
    """The policy with a day of half a minute, and a short retention of finished jobs."""
    rules = rules_of(policy)
    machines = {kind: _scaled_machine(machine) for kind, machine in rules.machines.items()}
    limits = replace(rules.limits, uncertainty_ttl=scaled(rules.limits.uncertainty_ttl))
    return replace(
        policy, governance=Rules(machines, limits), retention_days=min(policy.retention_days, RETENTION_DAYS)
    )


def scaled(length: int) -> int:
    return max(SECOND, length * DAY_IS_US // DAY_US)


def _scaled_machine(machine: Machine) -> Machine:
    follow = {place: replace(follow, after=scaled(follow.after)) for place, follow in machine.follow.items()}
    return replace(machine, follow=follow)


def is_poisoned(number: int) -> bool:
    return number % POISONED_EVERY == FIRST_POISONED


def name_of(number: int) -> str:
    subject = SUBJECTS[number % len(SUBJECTS)]
    return f"{subject}-{number:03d}{'-poisoned' if is_poisoned(number) else ''}"


def kind_of(number: int) -> str:
    return "memory" if is_poisoned(number) else KINDS[number % len(KINDS)]


def new_object(number: int) -> dict[str, Any]:
    """The members of a new object."""
    draws = stream(SEED, number, BIRTH)
    kind = kind_of(number)
    members: dict[str, Any] = {
        "reason": "reported by a visitor" if kind == "memory" else "derived from memories",
        "evidence_refs": [f"note:{number}"],
        "impact_tier": ("low", "low", "medium", "high")[draws.bounded(4)],
    }
    if kind == "memory":
        members["risk_tier"] = ("low", "medium", "medium", "high")[draws.bounded(4)]
        members["half_life"] = HALF_LIVES[draws.bounded(len(HALF_LIVES))]
    elif kind == "experience":
        members["source_refs"] = [_source_memory(number)]
    else:
        members |= {
            "falsify_if": f"the {SUBJECTS[number % len(SUBJECTS)]} is not where it should be",
            "review_interval": "PT3M",
            "unknown_type": ("multipath", "out_of_scope", "ontic_unknowable")[draws.bounded(3)],
            "auto_verify_budget": 2 + draws.bounded(2),
        }
    return members


def _source_memory(number: int) -> str:
    """The source memory of an experience; some use the poisoned one."""
    if number < POISONED_EVERY and number % 5 == 1:
        return f"memory:{name_of(FIRST_POISONED)}"
    return f"memory:{name_of(max(number - 1 - number % 2, 0))}"


class DemoDriver:
    """Runs the demo in the background from `start` to `close`."""

    def __init__(self, calls: Calls) -> None:
        self._jobs = Scheduler(calls, DEMO_USER)
        self._objects = governed(self._jobs)
        self._loop = BackgroundLoop(
            "pendula-jobs-demo", self.round, log=log, trouble="the demo of jobs has stopped", pause_sec=30.0
        )
        self._created: int | None = None
        self._presence = Presence()
        self._presence_writer = PresenceWriter(self._presence, calls)

    def start(self) -> None:
        self._loop.start()
        self._presence_writer.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)
        self._presence_writer.close(seconds)

    def round(self) -> float:
        """Create objects, run due jobs, finish older rollbacks."""
        self._create_objects()
        self._run_jobs()
        self._finish_rollbacks()
        return ROUND_SEC if (self._created or 0) < FAST_OBJECTS else SLOW_SEC

    # Objects

    def _create_objects(self) -> None:
        if self._created is None:
            self._created = self._counted()
        if self._created == 0:
            self._begin()
        live = self._live()
        missing = FIRST_OBJECTS if self._created == 0 else OBJECTS_A_ROUND
        for _ in range(min(missing, COUNT - live)):
            self._create(self._created)
            self._created += 1

    def _begin(self) -> None:
        """Set all gates to pass."""
        for gate in VERDICTS:
            self._objects.set_gate(gate, "pass", "a calm day")

    def _create(self, number: int) -> None:
        if number % FAILING_EVERY == 0:
            self._jobs.enqueue(object_type="memory", object_id=f"letters-of-{number}", action="archive", max_attempts=1)
        members = new_object(number)
        least, most = LIFE_SEC if self._created else FIRST_LIFE_SEC
        life = least + stream(SEED, number, WORK).bounded(most - least)
        now = self._jobs.now()
        members["expires_at"] = format_utc(now + life * SECOND)
        if kind_of(number) != "memory":
            members["review_due_at"] = format_utc(now + REVIEW_SEC * SECOND)
        with suppress(JobRefused):
            self._objects.create(kind_of(number), name_of(number), **members)

    def _counted(self) -> int:
        """The number of objects created in earlier runs on this store."""
        number = 0
        while self._place(kind_of(number), name_of(number)) is not None:
            number += 1
        return number

    def _place(self, kind: str, name: str) -> str | None:
        """The state of an object in its machine; None for one without governance."""
        try:
            found = self._objects.show(kind, name).object
        except JobRefused:
            return None
        axes = (found.status, found.epistemic_state)
        return "/".join(axis for axis in axes if axis is not None)

    def _live(self) -> int:
        places = self._objects.figures().places
        return sum(row.objects for row in places if not row.place.startswith("archived"))

    # Jobs

    def _run_jobs(self) -> None:
        body: PullMembers = {"worker_id": self._worker(), "limit": JOBS_A_ROUND, "lease_sec": LEASE_SEC}
        pulled = self._jobs.pull(**body)
        self._show_worker(body, pulled.count)
        for job in pulled.jobs:
            # A job may have ended otherwise meanwhile, for instance with its object.
            with suppress(JobRefused):
                self._run_job(job)

    def _show_worker(self, body: PullMembers, given: int) -> None:
        """Record the pull, so that the demo worker is listed like one that pulls over HTTP."""
        policy, now = self._jobs.calls.policy, self._jobs.now()
        pull = read(Pull, body, policy, now)
        assert isinstance(pull, Pull)
        self._presence.seen(pull, now, given, (policy.vocabulary.object_types, policy.vocabulary.actions))

    def _worker(self) -> str:
        return f"demo-{WORKERS[self._jobs.now() // (20 * SECOND) % len(WORKERS)]}"

    def _run_job(self, job: Job) -> None:
        draws = stream(SEED, int(job.job_id.removeprefix("job_"), 36), WORK + job.delivery_count)
        if job.delivery_count == 1 and draws.bounded(DIES_ONE_IN) == 0:
            return  # simulates a killed worker: the lease runs out, and another worker gets the job
        proof: ProofMembers = {"worker_id": job.worker_id, "lease_token": job.lease_token}
        place = self._place(job.object_type, job.object_id)
        if place is None:
            self._run_ungoverned(job, proof)
        elif job.delivery_count == 1 and draws.bounded(GIVES_UP_ONE_IN) == 0:
            self._jobs.fail(job.job_id, error=GIVEN_UP, retry_delay_sec=5, **proof)
        elif job.action in PLAIN:
            self._objects.settle(job.job_id, **proof)
        elif self._objects.begin(job.job_id, **proof).entered:
            finding = _choose_finding(job, place, draws)
            seen = [f"look:{job.job_id}"]
            self._objects.finish(job.job_id, finding=finding, reason=REASONS[finding], evidence_refs=seen, **proof)

    def _run_ungoverned(self, job: Job, proof: ProofMembers) -> None:
        """A job of an object without governance: fails at first, succeeds after a requeue."""
        if job.delivery_count == 1:
            self._jobs.fail(job.job_id, error=GIVEN_UP, **proof)
        else:
            self._jobs.ack(job.job_id, result="succeeded", **proof)

    # Rollbacks

    def _finish_rollbacks(self) -> None:
        for rollback in self._objects.rollbacks(limit=1).rollbacks:
            if parse_utc(rollback.asked_at) + ROLLBACK_SEC * SECOND <= self._jobs.now():
                about = rollback.object_type, rollback.object_id
                with suppress(JobRefused):
                    self._objects.rollback_finished(*about, reason="everything built on it is rolled back")


def _choose_finding(job: Job, place: str, draws: Pcg32) -> str:
    if job.object_type == "memory" and is_poisoned(_number(job.object_id)):
        return {"candidate": "suspicious", "quarantine": "forged"}.get(place, "inconclusive")
    findings = FINDINGS.get((place, job.action), ("inconclusive",))
    return findings[draws.bounded(len(findings))]


def _number(object_id: str) -> int:
    """The number in the name of a demo object; -1 for other names."""
    part = object_id.split("-")[1:2]
    return int(part[0]) if part and part[0].isdecimal() else -1
