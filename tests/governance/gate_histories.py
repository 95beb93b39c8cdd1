"""Random histories of high-risk objects whose gates change between any two steps, in the process and over HTTP.

A second table of the verdicts is kept here; each change is judged by that table alone.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, cast

from msgspec import Struct

from pendula.jobs import JobRefused
from pendula.jobs.messages import plain
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.scheduler_calls import SchedulerCalls
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, proof

WORDS = {
    "persona_conflict_gate": ("pass", "pass", "override", "block"),
    "risk_gate": ("pass", "pass", "limit", "block"),
    "cognition_gate": ("pass", "pass", "degrade", "block"),
    "social_gate": ("pass", "pass", "pass", "defer", "block"),
}
REQUIRED = ("persona_conflict_gate", "risk_gate", "cognition_gate")
SHUT, LOWERING = {"block", "defer"}, {"limit", "degrade"}
UP = {"verified", "active"}
# High-risk objects to create, and for each the actions and findings that would change its state.
BEGINNINGS: Sequence[tuple[str, dict[str, Any], Sequence[tuple[str, str]]]] = (
    ("memory", {"risk_tier": "high"}, [("verify", "passed"), ("verify", "suspicious")]),
    ("memory", {"impact_tier": "critical", "status": "stale"}, [("revalidate", "new_evidence")]),
    ("memory", {"risk_tier": "high", "status": "quarantine"}, [("verify", "forged"), ("verify", "passed")]),
    ("memory", {"risk_tier": "high", "status": "stale_uncertain"}, [("reinstate-check", "new_evidence")]),
    ("experience", {}, [("verify", "passed"), ("verify", "conflict")]),
    ("experience", {"status": "needs_review"}, [("revalidate", "new_evidence")]),
    ("cognition", {"risk_tier": "high", **WHOLE}, [("verify", "passed"), ("verify", "refuted")]),
    ("cognition", {"risk_tier": "high", **WHOLE, "status": "active"}, [("revalidate", "conflict")]),
    ("cognition", {"impact_tier": "critical", **WHOLE, "status": "stale"}, [("reinstate-check", "new_evidence")]),
)
REFUSALS = {"gate_closed", "illegal_transition", "state_conflict", "not_begun", "lease_expired", "job_not_running"}


class Moved(Struct, frozen=True):
    """A state change, and the verdicts of the gates at that time."""

    about: str
    before: str
    after: str
    words: dict[str, str | None]
    by_hand: bool


class Histories:
    """Many histories on one store; each call goes through a random one of `interfaces`."""

    def __init__(self, seed: int, interfaces: Sequence[SchedulerCalls]) -> None:
        self.random, self._interfaces = Random(seed), interfaces
        self._gates: dict[tuple[str, str], str] = {}
        self.moved: list[Moved] = []
        self._seed, self._made, self._keys = seed, 0, 0

    def play(self) -> None:
        """One object, from its creation until it has changed or a few rounds are over."""
        kind, members, findings = self.random.choice(BEGINNINGS)
        name, self._made = f"{self._seed}-{self._made}", self._made + 1
        place = self._call("create", kind, name, **{"evidence_refs": ["ev_1"], **members})["object"]["status"]
        for _ in range(self.random.randrange(1, 4)):
            self._turn_gates(kind, name)
            now = self._round(kind, name, place, *self.random.choice(findings))
            if now != place:
                return
        self._turn_gates(kind, name)

    # One round: a job or a decision of a person, with gate changes between all steps

    def _round(self, kind: str, name: str, place: str, action: str, finding: str) -> str:
        if self.random.random() < 0.2:
            return self._by_hand(kind, name, place, action, finding)
        self._keys += 1
        key = f"{name} {self._keys}"
        self._interface.enqueue(object_type=kind, object_id=name, action=action, idempotency_key=key)
        self._turn_gates(kind, name)
        job = self._pulled(name)
        if job is None:
            return place
        for step in self._steps():
            self._turn_gates(kind, name)
            ended = self._step(step, job, finding)
            if ended is None:
                return place
            place = self._judged(kind, name, place, ended["object"])
            if not ended.get("entered", False):
                break
        return place

    def _steps(self) -> Iterator[str]:
        yield "begin"
        if self.random.random() < 0.1:
            yield "begin"  # its reply was lost
        yield "finish"

    def _step(self, step: str, job: dict[str, Any], finding: str) -> dict[str, Any] | None:
        members = {"finding": finding, "reason": "looked into", "evidence_refs": ["ev_2"]} if step == "finish" else {}
        try:
            return dict(
                getattr(governed(cast(Scheduler, self._interface)), step)(job["job_id"], **members, **proof(job))
            )
        except JobRefused as refused:
            if refused.code not in REFUSALS:
                raise
            return None

    def _by_hand(self, kind: str, name: str, place: str, action: str, finding: str) -> str:
        members = {"reason": "seen", "evidence_refs": ["ev_3"]}
        try:
            decided = self._call("decide", kind, name, action, finding, **members)
        except JobRefused as refused:
            if refused.code not in REFUSALS:
                raise
            return place
        return self._judged(kind, name, place, decided["object"], by_hand=True)

    def _pulled(self, name: str) -> dict[str, Any] | None:
        """The job of this object; jobs of others are released."""
        for job in map(plain, self._interface.pull(worker_id="w", limit=10).jobs):
            if job["object_id"] == name:
                return job
            self._interface.release(job["job_id"], **proof(job))
        return None

    # Gates

    def _turn_gates(self, kind: str, name: str) -> None:
        """Sometimes change the verdict of a gate, for every object or for this one."""
        for _ in range(self.random.choice((0, 0, 1, 1, 2))):
            gate = self.random.choice(list(WORDS))
            scope = self.random.choice(("*", f"{kind}:{name}"))
            word = self.random.choice(WORDS[gate])
            self._call("set_gate", gate, word, "turned", scope=scope)
            self._gates[gate, scope] = word
        if self.random.random() < 0.5:  # so that some changes pass
            for gate in REQUIRED:
                self._call("set_gate", gate, "pass", "turned back", scope="*")
                self._gates[gate, "*"] = "pass"

    def _judged(self, kind: str, name: str, place: str, shown: dict[str, Any], *, by_hand: bool = False) -> str:
        if shown["status"] != place:
            scopes = ("*", f"{kind}:{name}")
            verdicts = {f"{gate} {scope}": self._gates.get((gate, scope)) for gate in WORDS for scope in scopes}
            self.moved.append(Moved(f"{kind}:{name}", place, shown["status"], verdicts, by_hand))
        return str(shown["status"])

    # Calls

    @property
    def _interface(self) -> SchedulerCalls:
        return self.random.choice(self._interfaces)

    def _call(self, call: str, *arguments: Any, **members: Any) -> dict[str, Any]:
        return dict(getattr(governed(cast(Scheduler, self._interface)).as_user("mia"), call)(*arguments, **members))


def wrong(moved: Moved) -> str | None:
    """The reason why this change must not have been made, if any."""
    words = {word for word in moved.words.values() if word is not None}
    if words & SHUT:
        return f"a gate was shut: {moved}"
    unset = [gate for gate in REQUIRED if all(w is None for name, w in moved.words.items() if name.startswith(gate))]
    if unset:
        return f"{unset[0]} was never set: {moved}"
    if moved.after in UP and words & LOWERING:
        return f"it rose though a gate allows only what lowers: {moved}"
    was_uncertain = moved.before == "stale_uncertain" or moved.about.startswith("cognition")
    if moved.after in UP and was_uncertain and not moved.by_hand:
        return f"a job promoted what is uncertain: {moved}"
    return None
