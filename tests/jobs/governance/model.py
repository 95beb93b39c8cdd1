"""Governed objects as a model in memory, written from the requirement document; no code is shared with the package.

Objects are plain dicts, times are microseconds, weights are compared by logarithms instead of powers. The effects of a
step are recorded in `log`: events, traces and alerts, without ids, so that the side under test can be compared.
"""

from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

from tests.jobs.governance.model_tables import (
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
    Thing,
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
    thing: Thing | None = None
    refs: tuple[str, ...] = ()
    trace: str | None = None
    escalates: bool = False
    rolls_back: bool = False
    closes: bool = False


@dataclass
class Model:
    """Objects, gates, rollbacks, and the log of the current step."""

    now: int = 0
    things: dict[tuple[str, str], Thing] = field(default_factory=dict)
    gates: dict[tuple[str, str], str] = field(default_factory=dict)
    rollbacks: list[tuple[str, str, bool]] = field(default_factory=list)
    told: list[tuple[Any, ...]] = field(default_factory=list)

    # The object

    def risk(self, thing: Thing) -> tuple[str, str]:
        if thing["kind"] != "experience":
            return thing["risk_tier"], thing["impact_tier"]
        named = [("memory", ref[7:]) for ref in thing["source_refs"] if ref.startswith("memory:")]
        found = [self.things[one] for one in named if one in self.things]
        if not found:
            return "high", thing["impact_tier"]
        both = [thing, *found]
        risk = max((t["risk_tier"] for t in both), key=RANK.index)
        return risk, max((t["impact_tier"] for t in both), key=RANK.index)

    def is_risky(self, thing: Thing) -> bool:
        risk, impact = self.risk(thing)
        return risk == "high" or impact == "critical"

    def has_faded(self, thing: Thing) -> bool:
        """w < threshold, that is: more halvings than the binary logarithm of the threshold."""
        last = max(t for t in (thing["created_at"], thing["last_accessed_at"], thing["last_reinforced_at"]) if t)
        with localcontext() as exact:
            exact.prec = 60
            lasting = (1 + Decimal(1 + thing["reinforcement_count"]).ln()) * (1 + thing["impact_weight"])
            halvings = Decimal(max(0, self.now - last)) / (thing["half_life"] * lasting)
            odds = {"low": 4, "medium": 5, "high": 10}[self.risk(thing)[0]]
            return bool(halvings > Decimal(odds).ln() / Decimal(2).ln())

    def mode(self, thing: Thing) -> str:
        if thing["unknown_type"] == "ontic_unknowable":
            return "abstain"
        if self.is_risky(thing):
            return "escalate"
        if self.risk(thing)[0] == "medium":
            return "conservative"
        return "explore" if thing["unknown_type"] == "multipath" else "collect"

    def plan(self, thing: Thing) -> None:
        """SM-14, GATE-7, GATE-9: the next action and its time; one version on."""
        thing["version"] += 1
        thing["updated_at"] = self.now
        key = (thing["kind"], thing["place"])
        if key not in NEXT:
            thing["next_action"] = thing["next_action_at"] = None
            return
        action, days = NEXT[key]
        at = self.now + days * DAY
        if key in AT_REVIEW and thing["review_due_at"] is not None:
            at = max(thing["review_due_at"], self.now)
        end = None if thing["uncertain_since"] is None else thing["uncertain_since"] + thing["uncertainty_ttl"]
        if is_unsure(thing) and action in VERIFYING and end is not None and end > self.now:
            at = end if thing["verify_budget_left"] <= 0 else min(at, end)
        goes = (thing["place"], "archive", "expired") in ROWS[thing["kind"]]
        if goes and thing["expires_at"] is not None and thing["expires_at"] <= at:
            action, at = "archive", max(thing["expires_at"], self.now)
        thing["next_action"], thing["next_action_at"] = action, at

    # Gates

    def gates_say(self, thing: Thing, required: tuple[str, ...], *, only: bool = False) -> tuple[str, str | None]:
        """open, lower, later, block or missing, with the deciding gate; `only` evaluates no other gate."""
        about = f"{thing['kind']}:{thing['id']}"
        said = {(n, s): v for (n, s), v in self.gates.items() if s in ("*", about) and (not only or n in required)}
        blocks = sorted(n for (n, _), v in said.items() if v == "block")
        if blocks:
            return "block", blocks[0]
        missing = sorted(set(required) - {n for n, _ in said})
        if missing:
            return "missing", missing[0]
        for word, meaning in (("defer", "later"), ("limit", "lower"), ("degrade", "lower")):
            if any(v == word for v in said.values()):
                return meaning, next(n for (n, _), v in said.items() if v == word)
        return "open", None

    def stopped(self, thing: Thing, said: tuple[str, str | None], deferrals: int) -> Ending | None:
        meaning, gate = said
        if meaning == "missing":
            return Ending("again", "gate_unavailable", f"gate_unavailable: {gate}", trace="abstained")
        if meaning == "later" and deferrals < 10:
            return Ending("later", "deferred", trace="abstained")
        if meaning in ("later", "block"):
            return Ending("fail", "gate_blocked", f"gate_blocked: {gate}", trace="blocked", escalates=True)
        return None

    # Outcome of an action

    def barred(self, thing: Thing, action: str, deferrals: int) -> Ending | None:
        """The obstacle to the action apart from the budget."""
        if action == "reinstate-check" and thing["place"] in LOST:
            return Ending("fail", "illegal_transition", "illegal_transition")
        said = self.gates_say(thing, ABOUT_RISK) if self.is_risky(thing) else None
        if said is not None and (ending := self.stopped(thing, said, deferrals)) is not None:
            return ending
        if not self.leads_on(thing, action):
            after = dict(thing)
            self.plan(after)
            return Ending("ack", "noop", thing=after, trace=None if said is None else "abstained")
        return None

    def leads_on(self, thing: Thing, action: str) -> bool:
        return any((place, act) == (thing["place"], action) for place, act, _ in ROWS[thing["kind"]])

    def enter(self, thing: Thing, action: str, deferrals: int) -> Ending | None:
        """None if the verifier can be entered; the cost is then taken from the object."""
        if (ending := self.barred(thing, action, deferrals)) is not None:
            return ending
        trace = "abstained" if self.is_risky(thing) else None
        if action not in VERIFYING or not is_unsure(thing):
            return None
        if thing["unknown_type"] == "ontic_unknowable" and thing["closed"]:
            return Ending("fail", "ontic_limit_reached", "ontic_limit_reached")
        if thing["unknown_type"] == "ontic_unknowable" and thing["verifications"] >= 1:
            return self.closing(thing, action, (), trace, seen=False)
        if thing["verify_budget_left"] <= 0:
            return self.spent_out(thing, action, trace)
        thing["verify_budget_left"] -= 1
        thing["verifications"] += 1
        thing["version"] += 1
        thing["updated_at"] = self.now
        return None

    def spent_out(self, thing: Thing, action: str, trace: str | None) -> Ending:
        """GATE-7 and GATE-10."""
        after, asks = dict(thing), False
        row = (thing["place"], action, "exhausted")
        if row in ROWS[thing["kind"]] and self.now >= thing["uncertain_since"] + thing["uncertainty_ttl"]:
            self.move(after, ROWS[thing["kind"]][row], action, "exhausted", (), None)
            after["last_verified_at"] = thing["last_verified_at"]
            risk, impact = self.risk(thing)
            asks = risk == "high" or impact in ("high", "critical")
            asks = asks or thing["hard_persona_limit"] or thing["deception_signals"] > 1
        else:
            self.plan(after)
        if trace is not None and asks:
            trace = "escalated"
        return Ending("ack", "budget_exhausted", thing=after, trace=trace, escalates=asks)

    def closing(
        self, thing: Thing, action: str, refs: tuple[str, ...], trace: str | None, *, seen: bool = True
    ) -> Ending:
        """GATE-13."""
        after = dict(thing)
        target = ROWS[thing["kind"]].get((thing["place"], action, "exhausted"))
        if target is not None:
            self.move(after, target, action, "closed", refs, None)
            after["version"] = thing["version"]
        else:
            after["evidence_refs"] = joined(thing["evidence_refs"], refs)
            if action in VERIFYING:
                after["last_verified_at"] = self.now
        if not seen:
            after["last_verified_at"] = thing["last_verified_at"]
        after["closed"], after["decision_mode"] = "cannot be known", "abstain"
        self.plan(after)
        return Ending("ack", "ontic_closed", thing=after, refs=refs, trace=trace, closes=True)

    def conclude(
        self,
        thing: Thing,
        action: str,
        finding: str,
        refs: tuple[str, ...],
        unknown: str | None = None,
        *,
        deferrals: int = 0,
        automatic: bool = True,
    ) -> Ending:
        said = self.gates_say(thing, ABOUT_RISK) if self.is_risky(thing) else None
        if said is not None and (ending := self.stopped(thing, said, deferrals)) is not None:
            return ending
        trace = None if said is None else "abstained"
        finding = self.measured(thing, action, finding, refs)
        rows = ROWS[thing["kind"]]
        wanted = {target for (_, act, found), target in rows.items() if (act, found) == (action, finding)}
        wanted |= {"active"} if action == "reinstate-check" else set()
        if thing["place"] in LOST and any(good(target) for target in wanted):
            return Ending("fail", "illegal_transition", "illegal_transition")
        target = rows.get((thing["place"], action, finding))
        if target is None:
            if self.is_at_limit(thing, action):
                return self.closing(thing, action, refs, trace)
            return self.left(thing, action, finding, refs, trace)
        rises = good(target)
        if rises and thing["closed"] and unknown in (None, "ontic_unknowable"):
            return self.left(thing, action, finding, refs, trace)
        if rises and (thing["kind"], thing["place"]) == ("experience", "candidate"):
            own = self.gates_say(thing, ("persona_conflict_gate",), only=True)
            if (ending := self.stopped(thing, own, deferrals)) is not None:
                return ending
        if rises and said is not None and said[0] == "lower":
            return self.left(thing, action, finding, refs, "limited")
        unsure = is_unsure(thing)
        if rises and said is not None and automatic and unsure:
            ending = self.left(thing, action, finding, refs, "escalated")
            ending.escalates = True
            return ending
        if target.startswith("active/") and not self.may_be_active(thing):
            return Ending("fail", "illegal_transition", "illegal_transition")
        if rises and self.rests_on_sand(thing, refs):
            return Ending("fail", "illegal_transition", "illegal_transition")
        after = dict(thing)
        self.move(after, target, action, finding, refs, unknown)
        if said is not None:
            trace = "executed" if said[0] == "open" else "limited"
            trace = ("escalated" if rises else "limited") if unsure else trace
        backs = target in ("rejected_poisoned", "refuted/refuted")
        return Ending("ack", "transitioned", thing=after, refs=refs, trace=trace, rolls_back=backs)

    def measured(self, thing: Thing, action: str, finding: str, refs: tuple[str, ...]) -> str:
        """SM-5, SM-15: a finding that the object itself refutes is ignored."""
        over = thing["uncertain_since"] is None or self.now >= thing["uncertain_since"] + thing["uncertainty_ttl"]
        if finding == "rolled_back" and thing["rollback_pending"]:
            return "inconclusive"
        if finding == "exhausted" and (thing["verify_budget_left"] > 0 or not over):
            return "inconclusive"
        if finding in ("passed", "new_evidence", "some_evidence") and not (thing["evidence_refs"] or refs):
            finding = "insufficient"
        rows = ROWS[thing["kind"]]
        late = thing["review_due_at"] is not None and thing["review_due_at"] <= self.now
        known = (thing["place"], action, finding) in rows
        if not known and finding != "passed" and late and (thing["place"], action, "overdue") in rows:
            return "overdue"
        return finding

    def acknowledged(self, thing: Thing, action: str, deferrals: int) -> Ending:
        """ACK-1: executed, nothing found."""
        said = self.gates_say(thing, ABOUT_RISK) if self.is_risky(thing) else None
        if said is not None and (ending := self.stopped(thing, said, deferrals)) is not None:
            return ending
        trace = None if said is None else "abstained"
        if action in VERIFYING and self.is_at_limit(thing, action):
            return self.closing(thing, action, (), trace)
        ending = self.left(thing, action, "inconclusive", (), trace)
        if not self.leads_on(thing, action):
            assert ending.thing is not None
            ending.thing["last_verified_at"] = thing["last_verified_at"]
        return ending

    def is_at_limit(self, thing: Thing, action: str) -> bool:
        ontic = thing["unknown_type"] == "ontic_unknowable" and thing["verifications"] >= 1
        aside = thing["place"] in STALE or (thing["place"], action, "exhausted") in ROWS[thing["kind"]]
        return bool(ontic and not thing["closed"] and is_unsure(thing) and aside)

    def by_itself(self, thing: Thing, action: str) -> str:
        late = thing["review_due_at"] is not None and thing["review_due_at"] <= self.now
        if action == "decay":
            if late and (thing["place"], "decay", "overdue") in ROWS[thing["kind"]]:
                return "overdue"
            return "faded" if self.has_faded(thing) else "inconclusive"
        if thing["place"] in LOST:
            return "inconclusive" if thing["rollback_pending"] else "rolled_back"
        return "expired" if thing["expires_at"] is not None and thing["expires_at"] <= self.now else "inconclusive"

    def left(self, thing: Thing, action: str, finding: str, refs: tuple[str, ...], trace: str | None) -> Ending:
        """SM-3: the same state, verified, with a new date."""
        after = dict(thing)
        after["evidence_refs"] = joined(thing["evidence_refs"], refs)
        if action in VERIFYING:
            after["last_verified_at"] = self.now
        if finding == "passed":
            self.redraw(after)
        self.plan(after)
        if after["next_action"] == action and after["next_action_at"] <= self.now:
            after["next_action_at"] = self.now + DAY
        return Ending("ack", "noop", thing=after, refs=refs, trace=trace)

    def move(
        self, thing: Thing, target: str, action: str, finding: str, refs: tuple[str, ...], unknown: str | None
    ) -> None:
        """SM-6 and the dates of uncertainty."""
        was_stale, was_unsure = thing["place"] in STALE, is_unsure(thing)
        thing["place"] = target
        thing["status"], _, axis = target.partition("/")
        thing["epistemic_state"] = axis or None
        thing["evidence_refs"] = joined(thing["evidence_refs"], refs)
        if action in VERIFYING:
            thing["last_verified_at"] = self.now
        if target not in STALE:
            thing["stale_since"] = None
        elif not was_stale or thing["stale_since"] is None:
            thing["stale_since"] = self.now
        back = finding in ("new_evidence", "some_evidence")
        if back:
            thing["last_reinforced_at"] = self.now
            thing["reinforcement_count"] += 1
            thing["closed"] = None
            thing["verify_budget_left"] = thing["auto_verify_budget"]
        if (thing["kind"], target) in NEXT:
            if not is_unsure(thing):
                thing["unknown_type"] = thing["uncertain_since"] = thing["decision_mode"] = thing["closed"] = None
            elif not was_unsure or back:
                thing["unknown_type"] = unknown or thing["unknown_type"] or "out_of_scope"
                thing["uncertain_since"] = self.now
                thing["uncertainty_ttl"] = thing["uncertainty_ttl"] or 7 * DAY
                thing["decision_mode"] = self.mode(thing)
            elif finding == "exhausted":
                thing["decision_mode"] = "escalate" if self.is_risky(thing) else "conservative"
        thing["rollback_pending"] = target in LOST
        self.redraw(thing)
        self.plan(thing)

    def redraw(self, thing: Thing) -> None:
        due = thing["review_due_at"]
        if (thing["kind"], thing["place"]) not in NEXT:
            thing["review_due_at"] = None
        elif thing["review_interval"] is not None:
            thing["review_due_at"] = self.now + thing["review_interval"]
        elif due is not None and due <= self.now:
            thing["review_due_at"] = None

    def may_be_active(self, thing: Thing) -> bool:
        dated = thing["expires_at"] is not None or thing["review_due_at"] is not None
        return thing["falsify_if"] is not None and thing["review_interval"] is not None and dated

    def rests_on_sand(self, thing: Thing, refs: tuple[str, ...]) -> bool:
        for ref in (*refs, *thing["evidence_refs"], *thing["source_refs"]):
            kind, _, name = ref.partition(":")
            other = self.things.get((kind, name))
            if other is None:
                continue
            if (kind, other["place"]) in SHAKY:
                return True
            if (kind, other["place"]) == ("experience", "needs_review") and self.is_risky(thing):
                return True
        return False
