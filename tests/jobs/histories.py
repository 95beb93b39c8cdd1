"""Random histories of the scheduler: the next call and its body; every choice goes through one function.

Few objects, few keys and short times make calls collide: duplicates, conflicts, lost and expired leases, dead letters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.jobs.oracle_bodies import ACTIONS, PRIORITIES, SECOND, TYPES, Settings, text

T = TypeVar("T")
Members = dict[str, Any]
QUEUES = ("default", "urgent")
WORKERS = ("w1", "w2")
FAULTS: Mapping[str, Sequence[tuple[str, Any]]] = {
    "enqueue": [
        ("object_type", "Memory"), ("object_type", None), ("object_id", ""), ("object_id", " m"), ("object_id", "a\nb"),
        ("object_id", "x" * 513), ("object_id", 7), ("action", "reinstate_check"), ("run_at", "2026-02-21T00:00:00"),
        ("run_at", "tomorrow"), ("run_at", 1771632000), ("run_at", "1969-12-31T23:59:59Z"), ("priority", "urgent"),
        ("max_attempts", 0), ("max_attempts", 101), ("max_attempts", True), ("max_attempts", 3.0), ("priorty", "high"),
        ("idempotency_key", ""), ("idempotency_key", "k" * 513), ("queue", "No"), ("run_at", "1970-01-02T00:00:00Z"),
        ("payload", "x" * 65_535), ("unique", "always"), ("unique", True),
    ],
    "pull": [
        ("worker_id", ""), ("worker_id", "a b"), ("worker_id", "w" * 129), ("limit", 0), ("limit", -1), ("limit", 1.5),
        ("limit", "10"), ("limit", True), ("limit", 1001), ("lease_sec", 0), ("lease_sec", 43_201), ("now", "now"),
        ("object_types", []), ("object_types", ["dream"]), ("actions", ["verify", "nap"]), ("lease", 1),
        ("pairs", []), ("pairs", [["memory"]]),
    ],
    "ack": [
        ("result", "failed"), ("result", None), ("next_action_at", "1970-01-02T00:00:00Z"), ("next_action", "nap"),
        ("next_action_at", "2026-02-30T00:00:00Z"), ("outcome", "o" * 65), ("audit_event_id", ""), ("error", "x"),
        ("outcome_result", ["x" * 65_533]),
    ],
    "fail": [
        ("error", ""), ("error", " \n"), ("error", 5), ("retry_delay_sec", -1), ("retry_delay_sec", "5"),
        ("retry_delay_sec", 2_592_001), ("retry_delay_sec", float("nan")), ("retryable", "no"), ("result", "succeeded"),
        ("cancelled", 1),
    ],
    "renew": [
        ("lease_sec", 0), ("lease_sec", 43_201), ("lease_sec", "60"), ("now", "x"), ("progress", 1.1),
        ("progress", "1"),
    ],
    "release": [("reason", "x")],
    "cancel": [("reason", ""), ("run_at", "x")],
    "requeue": [("run_at", "1970-01-02T00:00:00Z"), ("run_at", "2026-02-21"), ("attempt", 0)],
}  # fmt: skip
WEIGHTS = {
    "pass_by": 5, "enqueue": 6, "enqueue_batch": 2, "pull": 7, "ack": 4, "ack_batch": 1, "fail": 5, "renew": 2,
    "release": 2, "cancel": 2, "requeue": 3, "metrics": 2, "list": 2, "count": 1, "cancel_batch": 1, "requeue_batch": 1,
}  # fmt: skip
FILTERS: Mapping[str, Sequence[str]] = {
    "status": ["queued", "running", "succeeded", "failed", "dead_letter"],
    "object_type": TYPES[:2],
    "object_id": ["a", "b"],
    "action": ACTIONS[:2],
    "queue": QUEUES,
    "correlation_id": ["c1", "nobody"],
    "error_code": ["x", "cancelled", "lease_expired", "timeout while verifying evidence"],
}
CALLS = [name for name, weight in WEIGHTS.items() for _ in range(weight)]


@dataclass
class Delivery:
    """One delivered job, under the ids of both sides."""

    job: int
    worker: str
    tokens: tuple[str, str]


@dataclass
class Storyteller:
    """Chooses the next call. `below(n)` returns a number from 0 to n - 1."""

    below: Callable[[int], int]
    now: int
    jobs: list[tuple[str, str]] = field(default_factory=list)  # (real id, id of the model), oldest first
    deliveries: list[Delivery] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def chance(self, of: int) -> bool:
        return self.below(of) == of - 1

    def call(self) -> str:
        return self.one_of(CALLS)

    def passing(self) -> int:
        """The pause before the next call: none, an instant, about a lease, days."""
        return self.one_of([0, 1, SECOND, 3 * SECOND, 10 * SECOND, 60 * SECOND, 400 * SECOND, 3 * 86_400 * SECOND])

    def time(self) -> int:
        """A time for a request: one used before, now, or one soon."""
        if self.times and self.chance(3):
            return self.one_of(self.times)
        at = self.now + self.one_of([0, 0, 1, SECOND, 5 * SECOND, 200 * SECOND, 3600 * SECOND, -1])
        self.times = [*self.times[-5:], at]
        return at

    def written(self, at: int) -> str:
        """A time in one of its textual forms."""
        match self.below(4):
            case 0:
                return text(at + 8 * 3600 * SECOND).removesuffix("Z") + "+08:00"
            case 1:
                whole, _, fraction = text(at).removesuffix("Z").partition(".")
                return f"{whole}.{fraction or '000000'}9Z"
            case _:
                return text(at)

    def enqueue(self) -> Members:
        body: Members = {
            "object_type": self.one_of(TYPES[:2]),
            "object_id": self.one_of(["a", "b", "c"]),
            "action": self.one_of(ACTIONS[:2]),
        }
        if not self.chance(4):
            body["run_at"] = None if self.chance(8) else self.written(self.time())
        if self.chance(2):
            body["priority"] = None if self.chance(8) else self.one_of(PRIORITIES)
        if self.chance(3):
            body["max_attempts"] = None if self.chance(8) else self.one_of([1, 2, 100])
        if self.chance(4):
            body["idempotency_key"] = self.one_of(["k1", "k2", "k3"])
        if self.chance(4):
            body["correlation_id"] = "c1"
        if self.chance(3):
            body["queue"] = self.one_of(QUEUES)
        if self.chance(4):
            body["payload"] = self.one_of([None, {"b": 2, "a": [1, "é"]}, {"a": [1, "é"], "b": 2}, False, "x" * 65_534])
        if self.chance(5):
            body["unique"] = "waiting"
        return self.spoiled("enqueue", body)

    def enqueue_batch(self) -> Members:
        body: Members = {"jobs": [self.enqueue() for _ in range(1 + self.below(4))]}
        if self.chance(20):
            body["jobs"] = self.one_of([[], "jobs", None])
        if self.chance(2):
            body["atomic"] = self.chance(2)
        return body

    def pull(self) -> Members:
        body: Members = {"worker_id": self.one_of(WORKERS)}
        if self.chance(2):
            body["limit"] = self.one_of([1, 2, 3, 1000])
        if self.chance(4):
            body["now"] = None if self.chance(4) else self.written(max(0, self.time()))
        if self.chance(3):
            body["lease_sec"] = self.one_of([1, 10, 43_200])
        if self.chance(6):
            body["object_types"] = [self.one_of(TYPES)]
        if self.chance(6):
            body["actions"] = list(ACTIONS[: 1 + self.below(2)])
        if self.chance(5):
            body["queues"] = self.one_of([["urgent"], ["urgent", "default"], ["default", "urgent"], ["nobody"]])
        if self.chance(5):
            body["pairs"] = self.one_of([[["memory", "verify"]], [["memory", "verify"], ["experience", "revalidate"]]])
        return self.spoiled("pull", body)

    def list(self) -> Members:
        """Filters: mostly one or two."""
        query: Members = {}
        for _ in range(1 + self.below(2)):
            name, values = self.one_of(list(FILTERS.items()))
            query[name] = self.one_of(values)
        if self.chance(4):
            query[self.one_of(["created_before", "created_after"])] = text(max(0, self.time()))
        return query

    count = list

    def cancel_batch(self) -> Members:
        body: Members = {"filter": self.list(), "limit": self.one_of([1, 2, 1000])}
        if self.chance(2):
            body["reason"] = "all of them"
        if "status" in body["filter"]:
            body["filter"]["status"] = self.one_of(["queued", "running"])
        return body

    def requeue_batch(self) -> Members:
        body = self.cancel_batch()
        if "status" in body["filter"]:
            body["filter"]["status"] = self.one_of(["dead_letter", "failed"])
        return body

    def finishing(self) -> tuple[int | None, Members, Members]:
        """A job and its proof for both sides: mostly of a delivery, sometimes of none."""
        if not self.deliveries or self.chance(12):
            return (self.below(len(self.jobs)) if self.jobs and not self.chance(4) else None), {}, {}
        newest = list({held.job: held for held in self.deliveries[-6:]}.values())
        held = self.one_of(self.deliveries if self.chance(4) else newest)
        proof: tuple[Members, Members] = ({}, {})
        if not self.chance(4):
            proof[0]["lease_token"], proof[1]["lease_token"] = held.tokens
        if not self.chance(3):
            proof[0]["worker_id"] = proof[1]["worker_id"] = self.one_of(WORKERS) if self.chance(8) else held.worker
        return held.job, *proof

    def ack(self) -> Members:
        body: Members = {"result": "succeeded"}
        if self.chance(2):
            body["next_action_at"] = None if self.chance(4) else self.written(self.time())
        if self.chance(4):
            body["next_action"] = self.one_of(ACTIONS)
        if self.chance(4):
            body["outcome"] = self.one_of(["transitioned", "noop", "something else"])
        if self.chance(5):
            body["outcome_result"] = self.one_of([None, {"found": [1, 2]}, [], ["x" * 65_532]])
        if self.chance(5):
            body["audit_event_id"] = "aud_elsewhere"
        return self.spoiled("ack", body)

    def fail(self) -> Members:
        body: Members = {"error": self.one_of(["x", "timeout while verifying evidence", "é" * 5000])}
        if not self.chance(3):
            body["retry_delay_sec"] = self.one_of([0, 0, 1, 300, 0.25, 2_592_000])
        if self.chance(6):
            body["retryable"] = self.chance(2)
        if self.chance(8):
            body["cancelled"] = self.chance(2)
        return self.spoiled("fail", body)

    def renew(self) -> Members:
        body: Members = {"lease_sec": self.one_of([1, 100, 43_200])} if self.chance(2) else {}
        if self.chance(3):
            body["progress"] = self.one_of([0, 1, 0.25])
            if self.chance(2):
                body["progress_note"] = "half of it"
        return self.spoiled("renew", body)

    def release(self) -> Members:
        return self.spoiled("release", {})

    def cancel(self) -> Members:
        return self.spoiled("cancel", {"reason": self.one_of(["no longer wanted", "x"])})

    def requeue(self) -> Members:
        body: Members = {"run_at": self.written(self.time())} if self.chance(2) else {}
        if self.chance(2):
            body["reason"] = "mended"
        return self.spoiled("requeue", body)

    def spoiled(self, call: str, body: Members) -> Members:
        """Sometimes one or two faults."""
        if self.chance(8):
            for _ in range(1 + self.below(3)):
                name, value = self.one_of(FAULTS[call])
                body[name] = value
            if self.chance(4):
                body.pop(self.one_of(sorted(body)))
        return body


def settings(below: Callable[[int], int]) -> Settings:
    """Settings with each default in half of the cases, as defaults matter most."""

    def one_of(*choices: T) -> T:
        return choices[below(len(choices))] if below(2) else choices[0]

    return Settings(
        default_priority=one_of("medium", "low"),
        default_max_attempts=one_of(3, 2),
        pull_default_limit=one_of(100, 2),
        lease_sec=one_of(60, 5),
        lease_expiry_retry_delay_sec=one_of(0, 7),
        min_retry_gap_sec=one_of(5, 0),
        retry_jitter=one_of(True, False),
        retry_base=one_of("run_at", "now"),
        pull_clock=one_of("request", "server"),
        max_clock_step_sec=one_of(10**9, 300),
        pull_order=one_of("run_at", "weighted"),
        audit_event_check=one_of("link", "strict"),
        auto_followup=one_of(True, False),
        one_running_per_object=one_of(False, True),
    )
