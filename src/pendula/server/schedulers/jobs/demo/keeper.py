"""Who looks after the objects of the example: a round every few seconds, cheap enough to run for ever.

All that happens is drawn from one seed and the number of the job; where it stands is read from the store, so that a
restart goes on where it was. What it does goes through the same calls as the work of anybody else.
"""

import logging
from collections.abc import Mapping
from typing import Any

from pendula.jobs.background import CLOSE_SEC, BackgroundLoop
from pendula.jobs.calls import Calls, Reply
from pendula.jobs.governance import Governance
from pendula.jobs.model import SECOND, Actor
from pendula.jobs.objects.gates import VERDICTS
from pendula.jobs.objects.governed import Governed
from pendula.jobs.requests import Pull, read_pull
from pendula.jobs.transaction.replies import Caller
from pendula.kernel.rng import Pcg32, stream
from pendula.kernel.time import format_utc
from pendula.server.schedulers.jobs.demo.inhabitants import COUNT, SEED, is_poisoned, kind_of, made, name_of
from pendula.server.schedulers.jobs.demo.quick_time import LEASE_SEC
from pendula.server.schedulers.jobs.presence import Presence, PresenceWriter

log = logging.getLogger("pendula.server.demo")

ROUND_SEC = 3.0
# After hours of it the trail would only grow: from so many objects on, life is slower.
LIVELY, SLOW_SEC = 500, 30.0
FIRST_BORN, BORN_A_ROUND = 16, 2
JOBS_A_ROUND = 6
DIES_ONE_IN = 25
LOST_EVERY = 25  # objects: with each of these comes a job that nobody can do at first
GIVES_UP_ONE_IN = 40
ROLLBACK_SEC = 60
LIFE_SEC = (1200, 4800)
FIRST_LIFE_SEC = (180, 1200)  # of those who are there at once, so that somebody goes soon
REVIEW_SEC = 120
WORK = 0x574F
PLAIN = ("decay", "archive")
WORKERS = ("ada", "bruno", "clara")
KEEPER = Caller(Actor("user", "demo"), None)
GIVEN_UP = "source_gone: the archive that was asked does not answer"

# By type, place and action: what a worker may find, each as often as it stands here.
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
    "some_evidence": "somebody remembers it, but not surely",
    "inconclusive": "nothing was found either way",
    "conflict": "a newer note says otherwise",
}


class Keeper:
    """Looks after the objects from `start` to `close`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._governance = Governance(calls)
        self._loop = BackgroundLoop(
            "pendula-jobs-demo", self.round, log=log, trouble="the example of jobs stands still", pause_sec=30.0
        )
        self._born: int | None = None
        self._presence = Presence()
        self._signs = PresenceWriter(self._presence, calls)

    def start(self) -> None:
        self._loop.start()
        self._signs.start()

    def close(self, seconds: float = CLOSE_SEC) -> None:
        self._loop.close(seconds)
        self._signs.close(seconds)

    def round(self) -> float:
        """Somebody is born, jobs that are due are done, rollbacks of a while ago are finished."""
        self._populate()
        self._work()
        self._roll_back()
        return ROUND_SEC if (self._born or 0) < LIVELY else SLOW_SEC

    # Objects come

    def _populate(self) -> None:
        if self._born is None:
            self._born = self._counted()
        if self._born == 0:
            self._begin()
        alive = self._alive()
        wanted = FIRST_BORN if self._born == 0 else BORN_A_ROUND
        for _ in range(min(wanted, COUNT - alive)):
            self._bear(self._born)
            self._born += 1

    def _begin(self) -> None:
        """What is there before anybody is: gates that let everything pass."""
        for gate in VERDICTS:
            self._governance.set_gate({"gate": gate, "verdict": "pass", "reason": "a calm day"}, KEEPER)

    def _bear(self, number: int) -> None:
        if number % LOST_EVERY == 0:
            lost = {"object_type": "memory", "object_id": f"letters-of-{number}", "action": "archive"}
            self._calls.enqueue({**lost, "max_attempts": 1}, KEEPER)
        body = made(number)
        least, most = LIFE_SEC if self._born else FIRST_LIFE_SEC
        life = least + stream(SEED, number, WORK).bounded(most - least)
        now = self._calls.clock()
        body["expires_at"] = format_utc(now + life * SECOND)
        if kind_of(number) != "memory":
            body["review_due_at"] = format_utc(now + REVIEW_SEC * SECOND)
        self._governance.create(body, KEEPER)

    def _counted(self) -> int:
        """How many were made in earlier lives of this store: each has the next number."""
        number = 0
        while self._governed(kind_of(number), name_of(number)) is not None:
            number += 1
        return number

    def _governed(self, kind: str, name: str) -> Governed | None:
        return self._calls.store.read(lambda look: look.governance.governed(kind, name))

    def _alive(self) -> int:
        places = self._calls.store.read(lambda look: look.governance.places())
        return sum(count for _, place, count in places if not place.startswith("archived"))

    # Work is done

    def _work(self) -> None:
        body = {"worker_id": self._worker(), "limit": JOBS_A_ROUND, "lease_sec": LEASE_SEC}
        pulled = self._calls.pull(body, KEEPER)
        if isinstance(pulled, Reply):
            jobs: Any = pulled.body["jobs"]
            self._show_worker(body, len(jobs))
            for job in jobs:
                self._do(job)

    def _show_worker(self, body: Mapping[str, Any], given: int) -> None:
        """Let the worker be seen among all others, as one that pulls over HTTP is."""
        policy, now = self._calls.policy, self._calls.clock()
        pull = read_pull(body, policy, now)
        assert isinstance(pull, Pull)
        self._presence.seen(pull, now, given, (policy.vocabulary.object_types, policy.vocabulary.actions))

    def _worker(self) -> str:
        return f"demo-{WORKERS[self._calls.clock() // (20 * SECOND) % len(WORKERS)]}"

    def _do(self, job: Mapping[str, Any]) -> None:
        draws = stream(SEED, int(job["job_id"].removeprefix("job_"), 36), WORK + job["delivery_count"])
        if job["delivery_count"] == 1 and draws.bounded(DIES_ONE_IN) == 0:
            return  # the worker is killed: its lease runs out, and somebody else gets the job
        proof = {"worker_id": job["worker_id"], "lease_token": job["lease_token"]}
        known = self._governed(job["object_type"], job["object_id"])
        if known is None:
            self._plain(job, proof)
        elif job["delivery_count"] == 1 and draws.bounded(GIVES_UP_ONE_IN) == 0:
            self._calls.fail(job["job_id"], {"error": GIVEN_UP, "retry_delay_sec": 5, **proof}, KEEPER)
        elif job["action"] in PLAIN:
            self._governance.settle(job["job_id"], proof, KEEPER)
        else:
            self._look_into(job, known.place, proof, draws)

    def _plain(self, job: Mapping[str, Any], proof: Mapping[str, Any]) -> None:
        """A job about nothing that is governed: it is given up at first, and done when it comes back."""
        if job["delivery_count"] == 1:
            self._calls.fail(job["job_id"], {"error": GIVEN_UP, **proof}, KEEPER)
        else:
            self._calls.ack(job["job_id"], {"result": "succeeded", **proof}, KEEPER)

    def _look_into(self, job: Mapping[str, Any], place: str, proof: Mapping[str, Any], draws: Pcg32) -> None:
        begun = self._governance.begin(job["job_id"], proof, KEEPER)
        if not isinstance(begun, Reply) or not begun.body["entered"]:
            return
        finding = _found(job, place, draws)
        verdict = {"finding": finding, "reason": REASONS[finding], "evidence_refs": [f"look:{job['job_id']}"]}
        self._governance.finish(job["job_id"], {**verdict, **proof}, KEEPER)

    # What was built on a forgery is taken back

    def _roll_back(self) -> None:
        waiting = self._calls.store.read(lambda look: look.governance.open_rollbacks(1))
        for one in waiting:
            if one.asked_at + ROLLBACK_SEC * SECOND <= self._calls.clock():
                body = {"reason": "all that was built on it is taken back"}
                self._governance.rollback_finished(one.object_type, one.object_id, body, KEEPER)


def _found(job: Mapping[str, Any], place: str, draws: Pcg32) -> str:
    if job["object_type"] == "memory" and is_poisoned(_number(job["object_id"])):
        return {"candidate": "suspicious", "quarantine": "forged"}.get(place, "inconclusive")
    findings = FINDINGS.get((place, job["action"]), ("inconclusive",))
    return findings[draws.bounded(len(findings))]


def _number(object_id: str) -> int:
    """The number in the name of an object of the example; a name of another kind has none."""
    part = object_id.split("-")[1:2]
    return int(part[0]) if part and part[0].isdecimal() else -1
