"""Governed objects as a model in memory, written from the requirement document; no code is shared with the package.

Objects are plain dicts, times are microseconds, weights are compared by logarithms instead of powers. The effects of a
step are recorded in `log`: events, traces and alerts, without ids, so that the side under test can be compared.
"""

from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

from tests.governance.model_tables import (
    ABOUT_RISK,
    AT_REVIEW,
    DAY,
    LOST,
    NEXT,
    RANK,
    ROWS,
    SHAKY,
    STALE,
    VERIFYING,
    ObjectState,
    good,
    is_unsure,
    joined,
)


class Barred(Exception):
    """A rejected call: nothing changes."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Ending:
    """The end of a job: acked, failed, retried or deferred, with outcome and error."""

    how: str
    outcome: str
    error: str | None = None
    obj: ObjectState | None = None
    refs: tuple[str, ...] = ()
    trace: str | None = None
    escalates: bool = False
    rolls_back: bool = False
    closes: bool = False


@dataclass
class Model:
    """Objects, gates, rollbacks, and the log of the current step."""

    now: int = 0
    objects: dict[tuple[str, str], ObjectState] = field(default_factory=dict)
    gates: dict[tuple[str, str], str] = field(default_factory=dict)
    rollbacks: list[tuple[str, str, bool]] = field(default_factory=list)
    log: list[tuple[Any, ...]] = field(default_factory=list)

    # The object

    def risk(self, obj: ObjectState) -> tuple[str, str]:
        if obj["kind"] != "experience":
            return obj["risk_tier"], obj["impact_tier"]
        named = [("memory", ref[7:]) for ref in obj["source_refs"] if ref.startswith("memory:")]
        others = [self.objects[name] for name in named if name in self.objects]
        if not others:
            return "high", obj["impact_tier"]
        both = [obj, *others]
        risk = max((t["risk_tier"] for t in both), key=RANK.index)
        return risk, max((t["impact_tier"] for t in both), key=RANK.index)

    def is_risky(self, obj: ObjectState) -> bool:
        risk, impact = self.risk(obj)
        return risk == "high" or impact == "critical"

    def has_faded(self, obj: ObjectState) -> bool:
        """w < threshold, that is: more halvings than the binary logarithm of the threshold."""
        last = max(t for t in (obj["created_at"], obj["last_accessed_at"], obj["last_reinforced_at"]) if t)
        with localcontext() as exact:
            exact.prec = 60
            lasting = (1 + Decimal(1 + obj["reinforcement_count"]).ln()) * (1 + obj["impact_weight"])
            halvings = Decimal(max(0, self.now - last)) / (obj["half_life"] * lasting)
            odds = {"low": 4, "medium": 5, "high": 10}[self.risk(obj)[0]]
            return bool(halvings > Decimal(odds).ln() / Decimal(2).ln())

    def mode(self, obj: ObjectState) -> str:
        if obj["unknown_type"] == "ontic_unknowable":
            return "abstain"
        if self.is_risky(obj):
            return "escalate"
        if self.risk(obj)[0] == "medium":
            return "conservative"
        return "explore" if obj["unknown_type"] == "multipath" else "collect"

    def plan(self, obj: ObjectState) -> None:
        """SM-14, GATE-7, GATE-9: the next action and its time; one version on."""
        obj["version"] += 1
        obj["updated_at"] = self.now
        key = (obj["kind"], obj["place"])
        if key not in NEXT:
            obj["next_action"] = obj["next_action_at"] = None
            return
        action, days = NEXT[key]
        at = self.now + days * DAY
        if key in AT_REVIEW and obj["review_due_at"] is not None:
            at = max(obj["review_due_at"], self.now)
        end = None if obj["uncertain_since"] is None else obj["uncertain_since"] + obj["uncertainty_ttl"]
        if is_unsure(obj) and action in VERIFYING and end is not None and end > self.now:
            at = end if obj["verify_budget_left"] <= 0 else min(at, end)
        goes = (obj["place"], "archive", "expired") in ROWS[obj["kind"]]
        if goes and obj["expires_at"] is not None and obj["expires_at"] <= at:
            action, at = "archive", max(obj["expires_at"], self.now)
        obj["next_action"], obj["next_action_at"] = action, at

    # Gates

    def gates_say(self, obj: ObjectState, required: tuple[str, ...], *, only: bool = False) -> tuple[str, str | None]:
        """open, lower, later, block or missing, with the deciding gate; `only` evaluates no other gate."""
        about = f"{obj['kind']}:{obj['id']}"
        gate_decision = {
            (n, s): v for (n, s), v in self.gates.items() if s in ("*", about) and (not only or n in required)
        }
        blocks = sorted(n for (n, _), v in gate_decision.items() if v == "block")
        if blocks:
            return "block", blocks[0]
        missing = sorted(set(required) - {n for n, _ in gate_decision})
        if missing:
            return "missing", missing[0]
        for word, meaning in (("defer", "later"), ("limit", "lower"), ("degrade", "lower")):
            if any(v == word for v in gate_decision.values()):
                return meaning, next(n for (n, _), v in gate_decision.items() if v == word)
        return "open", None

    def stopped(self, obj: ObjectState, gate_decision: tuple[str, str | None], deferrals: int) -> Ending | None:
        meaning, gate = gate_decision
        if meaning == "missing":
            return Ending("again", "gate_unavailable", f"gate_unavailable: {gate}", trace="abstained")
        if meaning == "later" and deferrals < 10:
            return Ending("later", "deferred", trace="abstained")
        if meaning in ("later", "block"):
            return Ending("fail", "gate_blocked", f"gate_blocked: {gate}", trace="blocked", escalates=True)
        return None

    # Outcome of an action

    def barred(self, obj: ObjectState, action: str, deferrals: int) -> Ending | None:
        """The obstacle to the action apart from the budget."""
        if action == "reinstate-check" and obj["place"] in LOST:
            return Ending("fail", "illegal_transition", "illegal_transition")
        gate_decision = self.gates_say(obj, ABOUT_RISK) if self.is_risky(obj) else None
        if gate_decision is not None and (ending := self.stopped(obj, gate_decision, deferrals)) is not None:
            return ending
        if not self.leads_on(obj, action):
            after = dict(obj)
            self.plan(after)
            return Ending("ack", "noop", obj=after, trace=None if gate_decision is None else "abstained")
        return None

    def leads_on(self, obj: ObjectState, action: str) -> bool:
        return any((place, act) == (obj["place"], action) for place, act, _ in ROWS[obj["kind"]])

    def enter(self, obj: ObjectState, action: str, deferrals: int) -> Ending | None:
        """None if the verifier can be entered; the cost is then taken from the object."""
        if (ending := self.barred(obj, action, deferrals)) is not None:
            return ending
        trace = "abstained" if self.is_risky(obj) else None
        if action not in VERIFYING or not is_unsure(obj):
            return None
        if obj["unknown_type"] == "ontic_unknowable" and obj["closed"]:
            return Ending("fail", "ontic_limit_reached", "ontic_limit_reached")
        if obj["unknown_type"] == "ontic_unknowable" and obj["verifications"] >= 1:
            return self.closing(obj, action, (), trace, seen=False)
        if obj["verify_budget_left"] <= 0:
            return self.spent_out(obj, action, trace)
        obj["verify_budget_left"] -= 1
        obj["verifications"] += 1
        obj["version"] += 1
        obj["updated_at"] = self.now
        return None

    def spent_out(self, obj: ObjectState, action: str, trace: str | None) -> Ending:
        """GATE-7 and GATE-10."""
        after, asks = dict(obj), False
        row = (obj["place"], action, "exhausted")
        if row in ROWS[obj["kind"]] and self.now >= obj["uncertain_since"] + obj["uncertainty_ttl"]:
            self.move(after, ROWS[obj["kind"]][row], action, "exhausted", (), None)
            after["last_verified_at"] = obj["last_verified_at"]
            risk, impact = self.risk(obj)
            asks = risk == "high" or impact in ("high", "critical")
            asks = asks or obj["hard_persona_limit"] or obj["deception_signals"] > 1
        else:
            self.plan(after)
        if trace is not None and asks:
            trace = "escalated"
        return Ending("ack", "budget_exhausted", obj=after, trace=trace, escalates=asks)

    def closing(
        self, obj: ObjectState, action: str, refs: tuple[str, ...], trace: str | None, *, seen: bool = True
    ) -> Ending:
        """GATE-13."""
        after = dict(obj)
        target = ROWS[obj["kind"]].get((obj["place"], action, "exhausted"))
        if target is not None:
            self.move(after, target, action, "closed", refs, None)
            after["version"] = obj["version"]
        else:
            after["evidence_refs"] = joined(obj["evidence_refs"], refs)
            if action in VERIFYING:
                after["last_verified_at"] = self.now
        if not seen:
            after["last_verified_at"] = obj["last_verified_at"]
        after["closed"], after["decision_mode"] = "cannot be known", "abstain"
        self.plan(after)
        return Ending("ack", "ontic_closed", obj=after, refs=refs, trace=trace, closes=True)

    def conclude(
        self,
        obj: ObjectState,
        action: str,
        finding: str,
        refs: tuple[str, ...],
        unknown: str | None = None,
        *,
        deferrals: int = 0,
        automatic: bool = True,
    ) -> Ending:
        gate_decision = self.gates_say(obj, ABOUT_RISK) if self.is_risky(obj) else None
        if gate_decision is not None and (ending := self.stopped(obj, gate_decision, deferrals)) is not None:
            return ending
        trace = None if gate_decision is None else "abstained"
        finding = self.measured(obj, action, finding, refs)
        rows = ROWS[obj["kind"]]
        wanted = {target for (_, act, others), target in rows.items() if (act, others) == (action, finding)}
        wanted |= {"active"} if action == "reinstate-check" else set()
        if obj["place"] in LOST and any(good(target) for target in wanted):
            return Ending("fail", "illegal_transition", "illegal_transition")
        target = rows.get((obj["place"], action, finding))
        if target is None:
            if self.is_at_limit(obj, action):
                return self.closing(obj, action, refs, trace)
            return self.unchanged(obj, action, finding, refs, trace)
        rises = good(target)
        if rises and obj["closed"] and unknown in (None, "ontic_unknowable"):
            return self.unchanged(obj, action, finding, refs, trace)
        if rises and (obj["kind"], obj["place"]) == ("experience", "candidate"):
            own = self.gates_say(obj, ("persona_conflict_gate",), only=True)
            if (ending := self.stopped(obj, own, deferrals)) is not None:
                return ending
        if rises and gate_decision is not None and gate_decision[0] == "lower":
            return self.unchanged(obj, action, finding, refs, "limited")
        unsure = is_unsure(obj)
        if rises and gate_decision is not None and automatic and unsure:
            ending = self.unchanged(obj, action, finding, refs, "escalated")
            ending.escalates = True
            return ending
        if target.startswith("active/") and not self.may_be_active(obj):
            return Ending("fail", "illegal_transition", "illegal_transition")
        if rises and self.rests_on_sand(obj, refs):
            return Ending("fail", "illegal_transition", "illegal_transition")
        after = dict(obj)
        self.move(after, target, action, finding, refs, unknown)
        if gate_decision is not None:
            trace = "executed" if gate_decision[0] == "open" else "limited"
            trace = ("escalated" if rises else "limited") if unsure else trace
        backs = target in ("rejected_poisoned", "refuted/refuted")
        return Ending("ack", "transitioned", obj=after, refs=refs, trace=trace, rolls_back=backs)

    def measured(self, obj: ObjectState, action: str, finding: str, refs: tuple[str, ...]) -> str:
        """SM-5, SM-15: a finding that the object itself refutes is ignored."""
        over = obj["uncertain_since"] is None or self.now >= obj["uncertain_since"] + obj["uncertainty_ttl"]
        if finding == "rolled_back" and obj["rollback_pending"]:
            return "inconclusive"
        if finding == "exhausted" and (obj["verify_budget_left"] > 0 or not over):
            return "inconclusive"
        if finding in ("passed", "new_evidence", "some_evidence") and not (obj["evidence_refs"] or refs):
            finding = "insufficient"
        rows = ROWS[obj["kind"]]
        late = obj["review_due_at"] is not None and obj["review_due_at"] <= self.now
        known = (obj["place"], action, finding) in rows
        if not known and finding != "passed" and late and (obj["place"], action, "overdue") in rows:
            return "overdue"
        return finding

    def acknowledged(self, obj: ObjectState, action: str, deferrals: int) -> Ending:
        """ACK-1: executed, nothing found."""
        gate_decision = self.gates_say(obj, ABOUT_RISK) if self.is_risky(obj) else None
        if gate_decision is not None and (ending := self.stopped(obj, gate_decision, deferrals)) is not None:
            return ending
        trace = None if gate_decision is None else "abstained"
        if action in VERIFYING and self.is_at_limit(obj, action):
            return self.closing(obj, action, (), trace)
        ending = self.unchanged(obj, action, "inconclusive", (), trace)
        if not self.leads_on(obj, action):
            assert ending.obj is not None
            ending.obj["last_verified_at"] = obj["last_verified_at"]
        return ending

    def is_at_limit(self, obj: ObjectState, action: str) -> bool:
        ontic = obj["unknown_type"] == "ontic_unknowable" and obj["verifications"] >= 1
        aside = obj["place"] in STALE or (obj["place"], action, "exhausted") in ROWS[obj["kind"]]
        return bool(ontic and not obj["closed"] and is_unsure(obj) and aside)

    def by_itself(self, obj: ObjectState, action: str) -> str:
        late = obj["review_due_at"] is not None and obj["review_due_at"] <= self.now
        if action == "decay":
            if late and (obj["place"], "decay", "overdue") in ROWS[obj["kind"]]:
                return "overdue"
            return "faded" if self.has_faded(obj) else "inconclusive"
        if obj["place"] in LOST:
            return "inconclusive" if obj["rollback_pending"] else "rolled_back"
        return "expired" if obj["expires_at"] is not None and obj["expires_at"] <= self.now else "inconclusive"

    def unchanged(
        self, obj: ObjectState, action: str, finding: str, refs: tuple[str, ...], trace: str | None
    ) -> Ending:
        """SM-3: the same state, verified, with a new date."""
        after = dict(obj)
        after["evidence_refs"] = joined(obj["evidence_refs"], refs)
        if action in VERIFYING:
            after["last_verified_at"] = self.now
        if finding == "passed":
            self.redraw(after)
        self.plan(after)
        if after["next_action"] == action and after["next_action_at"] <= self.now:
            after["next_action_at"] = self.now + DAY
        return Ending("ack", "noop", obj=after, refs=refs, trace=trace)

    def move(
        self, obj: ObjectState, target: str, action: str, finding: str, refs: tuple[str, ...], unknown: str | None
    ) -> None:
        """SM-6 and the dates of uncertainty."""
        was_stale, was_unsure = obj["place"] in STALE, is_unsure(obj)
        obj["place"] = target
        obj["status"], _, axis = target.partition("/")
        obj["epistemic_state"] = axis or None
        obj["evidence_refs"] = joined(obj["evidence_refs"], refs)
        if action in VERIFYING:
            obj["last_verified_at"] = self.now
        if target not in STALE:
            obj["stale_since"] = None
        elif not was_stale or obj["stale_since"] is None:
            obj["stale_since"] = self.now
        back = finding in ("new_evidence", "some_evidence")
        if back:
            obj["last_reinforced_at"] = self.now
            obj["reinforcement_count"] += 1
            obj["closed"] = None
            obj["verify_budget_left"] = obj["auto_verify_budget"]
        if (obj["kind"], target) in NEXT:
            if not is_unsure(obj):
                obj["unknown_type"] = obj["uncertain_since"] = obj["decision_mode"] = obj["closed"] = None
            elif not was_unsure or back:
                obj["unknown_type"] = unknown or obj["unknown_type"] or "out_of_scope"
                obj["uncertain_since"] = self.now
                obj["uncertainty_ttl"] = obj["uncertainty_ttl"] or 7 * DAY
                obj["decision_mode"] = self.mode(obj)
            elif finding == "exhausted":
                obj["decision_mode"] = "escalate" if self.is_risky(obj) else "conservative"
        obj["rollback_pending"] = target in LOST
        self.redraw(obj)
        self.plan(obj)

    def redraw(self, obj: ObjectState) -> None:
        due = obj["review_due_at"]
        if (obj["kind"], obj["place"]) not in NEXT:
            obj["review_due_at"] = None
        elif obj["review_interval"] is not None:
            obj["review_due_at"] = self.now + obj["review_interval"]
        elif due is not None and due <= self.now:
            obj["review_due_at"] = None

    def may_be_active(self, obj: ObjectState) -> bool:
        dated = obj["expires_at"] is not None or obj["review_due_at"] is not None
        return obj["falsify_if"] is not None and obj["review_interval"] is not None and dated

    def rests_on_sand(self, obj: ObjectState, refs: tuple[str, ...]) -> bool:
        for ref in (*refs, *obj["evidence_refs"], *obj["source_refs"]):
            kind, _, name = ref.partition(":")
            other = self.objects.get((kind, name))
            if other is None:
                continue
            if (kind, other["place"]) in SHAKY:
                return True
            if (kind, other["place"]) == ("experience", "needs_review") and self.is_risky(obj):
                return True
        return False
