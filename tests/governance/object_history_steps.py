"""Choice of the next step of a random history: few objects and short times, so that calls collide."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.governance.model_calls import Calls
from tests.governance.model_tables import ABOUT_RISK, ROWS, ObjectState

Step = tuple[str, tuple[Any, ...]]
NAMES = {"memory": ("m1", "m2"), "experience": ("e1", "m1"), "cognition": ("c1", "c2")}
PLACES = {kind: sorted({row[0] for row in rows} - {"archived"}) for kind, rows in ROWS.items()}
ACTIONS = ("verify", "revalidate", "decay", "archive", "reinstate-check")
FINDINGS = (
    *("passed", "passed", "new_evidence", "inconclusive", "inconclusive", "suspicious", "forged", "insufficient"),
    *("conflict", "refuted", "some_evidence", "faded", "overdue", "expired", "rolled_back", "exhausted", "nonsense"),
)
REFS_OFTEN = (6, 6, 6, 1, 1, 1, 1, 1)
REFS = ("ev_1", "ev_2", "ev_3", "memory:m1", "memory:m2", "cognition:c1", "experience:e1", "memory:gone")
UNKNOWN = (None, None, "multipath", "out_of_scope", "ontic_unknowable")
WORDS = {
    "persona_conflict_gate": ("pass", "pass", "pass", "block", "override"),
    "risk_gate": ("pass", "pass", "pass", "limit", "block"),
    "cognition_gate": ("pass", "pass", "pass", "degrade", "block"),
    "social_gate": ("pass", "defer", "defer", "block"),
}
MOVES = (1, 30, 61, 3600, 86_400, 86_400, 3 * 86_400, 7 * 86_400, 15 * 86_400, 45 * 86_400)


@dataclass
class Choices:
    """Chooses the next step at random, often one that makes progress according to the model."""

    random: Random
    model: Calls
    tokens: list[tuple[int, int]] = field(default_factory=list)

    def steps(self, count: int) -> Iterator[Step]:
        delivery_steps = self.random.random() < 0.8
        yield from (("set_gate", (gate, "pass", "*")) for gate in ABOUT_RISK if delivery_steps)
        for _ in range(3):
            yield self._created(*self._random_object())
        for _ in range(count):
            yield self._progress_step() if self.random.random() < 0.65 else self._random_step()

    def _random_object(self) -> tuple[str, str]:
        kind = self.random.choice(sorted(NAMES))
        return kind, self.random.choice(NAMES[kind])

    def _refs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.random.choices(REFS, REFS_OFTEN, k=self.random.choice((0, 1, 1, 2)))))

    def _progress_step(self) -> Step:
        """The next step of a worker: end its job, pull the next one, or wait for it."""
        now, jobs, r = self.model.now, self.model.jobs, self.random
        for token in reversed(self.tokens[-3:]):
            job = jobs[token[0]]
            if job.status == "running" and job.deliveries == token[1] and job.lease_end > now + 1:
                if (job.kind, job.id) in self.model.objects and r.random() < 0.2:
                    return "ack", (token, r.choice((None, None, 1, 86_400)))
                if job.action in ("decay", "archive") and r.random() < 0.9:
                    return "settle", (token,)
                if job.begun != job.deliveries and r.random() < 0.95:
                    return "begin", (token,)
                obj = self.model.objects.get((job.kind, job.id))
                return "finish", (token, self._finding(obj, job.action), self._refs(), r.choice(UNKNOWN))
        waits = [job.run_at - now for job in jobs if job.status == "queued"]
        if waits and min(waits) > 0:
            return "move", (min(waits) // 1_000_000 + 1,)
        return "pull", (r.choice(("w1", "w2")), r.choice((1, 1, 2)))

    def _finding(self, obj: ObjectState | None, action: str) -> str:
        ways = [] if obj is None else [f for p, a, f in ROWS[obj["kind"]] if (p, a) == (obj["place"], action)]
        return self.random.choice(sorted(ways) if ways and self.random.random() < 0.7 else FINDINGS)

    def _created(self, kind: str, name: str) -> Step:
        place, members = self._place(kind), self._members()
        if not place.endswith("uncertain") and self.random.random() < 0.95:
            members.pop("unknown_type", None)  # rejected for an object that is not uncertain
        return "create", (kind, name, place, tuple(sorted(members.items())))

    def _random_step(self) -> Step:
        (kind, name), refs, r = self._random_object(), self._refs(), self.random
        what = r.choices(
            (
                "create",
                "enqueue",
                "pull",
                "work",
                "move",
                "attach",
                "refill",
                "gate",
                "decide",
                "rolled",
                "job",
                "amend",
            ),
            (4, 4, 4, 6, 4, 3, 1, 4, 6, 2, 2, 3),
        )[0]
        match what:
            case "create":
                return self._created(kind, name)
            case "enqueue":
                return "enqueue", (kind, name, r.choice(ACTIONS), r.choice((0, 1, 86_400)))
            case "pull":
                return "pull", (r.choice(("w1", "w2")), r.choice((1, 2, 5)))
            case "work" if self.tokens:
                return self._work(refs)
            case "attach":
                return "attach", (kind, name, refs or ("ev_9",), r.choice(UNKNOWN))
            case "refill":
                return "refill", (kind, name, r.choice((None, 0, 1, 3)))
            case "amend":
                return "amend", (kind, name, self._amendment())
            case "gate":
                gate = r.choice(sorted(WORDS))
                return "set_gate", (gate, r.choice(WORDS[gate]), r.choice(("*", f"{kind}:{name}", f"{kind}:{name}")))
            case "decide":
                action = r.choice((*ACTIONS, "use", "invalidate"))
                return "decide", (kind, name, action, self._finding(self.model.objects.get((kind, name)), action), refs)
            case "rolled":
                return "rolled_back", (kind, name)
            case "job" if self.model.jobs:
                return r.choice(("cancel", "requeue", "requeue")), (r.randrange(len(self.model.jobs)),)
            case _:
                return "move", (r.choice(MOVES),)

    def _work(self, refs: tuple[str, ...]) -> Step:
        token = self.random.choice(self.tokens[-4:])
        what = self.random.choices(("begin", "finish", "settle", "fail", "release"), (8, 9, 4, 1, 1))[0]
        if what == "finish":
            return "finish", (token, self.random.choice(FINDINGS), refs, self.random.choice(UNKNOWN))
        return what, (token,)

    def _place(self, kind: str) -> str:
        return self.random.choice((PLACES[kind][0], *PLACES[kind]))

    def _amendment(self) -> tuple[tuple[str, Any], ...]:
        options = (
            ("expires_at", 20),
            ("expires_at", 2),
            ("review_due_at", 3),
            ("review_interval", 2),
            ("half_life", 1),
            ("falsify_if", "another case"),
            ("risk_tier", self.random.choice(("low", "medium", "high"))),
            ("impact_tier", self.random.choice(("low", "critical"))),
        )
        return tuple(sorted(dict(self.random.sample(options, k=self.random.choice((1, 2)))).items()))

    def _members(self) -> dict[str, Any]:
        r = self.random
        options = {
            "risk_tier": r.choice(("low", "low", "medium", "high")),
            "impact_tier": r.choice(("low", "low", "high", "critical")),
            "evidence_refs": tuple(dict.fromkeys(r.choices(REFS, REFS_OFTEN, k=r.choice((0, 1, 2))))),
            "source_refs": r.choice(((), ("memory:m1",), ("memory:m1", "memory:m2"), ("memory:gone",))),
            "review_interval": r.choice((None, 2, 7, 7)),
            "expires_at": r.choice((None, 20, 4000, 4000)),
            "review_due_at": r.choice((None, None, -1, 3)),
            "half_life": r.choice((1, 10, 30)),
            "reinforcement_count": r.choice((0, 0, 3)),
            "falsify_if": r.choice((None, "a case", "a case", "a case")),
            "unknown_type": r.choice(UNKNOWN),
            "uncertainty_ttl": r.choice((None, 1, 7, 30)),
            "auto_verify_budget": r.choice((0, 1, 2, 2)),
            "hard_persona_limit": r.random() < 0.1,
            "deception_signals": r.choice((0, 0, 1, 2)),
        }
        return {name: value for name, value in options.items() if value is not None and r.random() < 0.8}
