"""A second, slow scheduler of actions, written from the requirements alone: it examines every minute and every action.

It shares nothing with the engine it checks. Linear scans, plain dictionaries, `Fraction` for everything that is not a
whole minute. It understands well-formed documents; refusals of malformed ones are tested by example.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from tests.actions.arithmetic import ceiling, level_from, minutes_taken

RANK = {"end": 0, "interrupt": 1, "visibility_change": 2, "start": 3}
LATE, GIVEN, FOLLOWING = 0, 1, 2


@dataclass
class AdmittedAction:
    """An admitted instance. `state`: waiting, running, held, suspended or over."""

    instance: dict[str, Any]
    verb: dict[str, Any]
    seq: int
    duration: int
    locks: list[str]
    priority: int
    late: bool = False
    state: str = "waiting"
    segment: int = 0
    rest: int = 0
    joined: int = 0
    ends: int = -1
    reserved: bool = True
    began: int = -1
    cause: "AdmittedAction | None" = None
    after_cause: int = 0

    @property
    def id(self) -> str:
        return str(self.instance["id"])

    @property
    def key(self) -> tuple[int, int]:
        return (-self.priority if self.verb.get("preempts") else 0, self.seq)


@dataclass
class Item:
    """A knowledge item; `lasts` minutes from `fresh` on, 0 is unlimited."""

    scope: str = "private"
    source: str | None = None
    fresh: int = 0
    lasts: int = 0
    sure: Fraction = Fraction(1)
    seen_by: set[str] = field(default_factory=set)


@dataclass
class Day:
    """The result of one epoch."""

    index: int
    carried_in: list[tuple[str, int]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    rejections: list[tuple[str, str]] = field(default_factory=list)
    diagnostics: list[tuple[int, str, str]] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    locks: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    available: dict[str, Fraction] = field(default_factory=dict)
    reserved: dict[str, Fraction] = field(default_factory=dict)


class Oracle:
    """Run a document; `days` has the result. `follow` is the answer of a hook at the end of an action."""

    def __init__(
        self,
        document: Mapping[str, Any],
        follow: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        live: Mapping[int, Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        self.document = document
        self.live = live or {}
        self.trying: list[tuple[AdmittedAction, int]] = []
        self.follow = follow or {}
        self.options: Mapping[str, Any] = document.get("options") or {}
        self.horizon: int = self.options.get("slots", 24) * self.options.get("slot_minutes", 60)
        self.start = datetime.fromisoformat(document["epoch"]["start_at"])
        self.defs: Mapping[str, Any] = document["action_defs"]
        self.pending: list[tuple[int, int, Fraction, int, dict[str, Any]]] = []
        self.used: set[str] = set()
        self.admitted: list[AdmittedAction] = []
        self.known_locks: set[str] = set()
        self.available = {name: Fraction(str(amount)) for name, amount in (document.get("resources") or {}).items()}
        self.reserved: dict[str, Fraction] = {}
        self.state: Mapping[str, Any] = document.get("world_state") or {}
        self.items: dict[str, Item] = {one["id"]: item_from(one) for one in self.state.get("knowledge", ())}
        self.emitted = 0
        self.next_seq = 0
        self.index = 0
        self.told_deferred = 0
        self.minute: list[tuple[int, int, int, dict[str, Any]]] = []
        self.days = [Day(document["epoch"]["index"])]
        self.epoch_start = 0
        self._read_everything()
        self._run(document.get("epochs") or 1)

    # Input

    def minutes(self, text: str) -> Fraction:
        passed = datetime.fromisoformat(text) - self.start
        return Fraction(passed.days * 86_400_000_000 + passed.seconds * 1_000_000 + passed.microseconds, 60_000_000)

    def _read_everything(self) -> None:
        for instance in self.document["actions_submitted"]:
            self._read(instance, GIVEN, 0)
        self.requests: list[tuple[int, int, str, dict[str, Any]]] = []
        for kind, forms in (("interrupt", self.document.get("interrupts")), ("command", self.document.get("commands"))):
            for form in forms or ():
                when = form["t"] if "t" in form else ceiling(self.minutes(form["at"]))
                self.requests.append((when, len(self.requests), kind, dict(form)))

    def _read(self, instance: Mapping[str, Any], kind: int, now: int) -> None:
        if instance["id"] in self.used:
            self.days[-1].rejections.append((instance["id"], "DuplicateActionId"))
            return
        self.used.add(instance["id"])
        true = Fraction(instance["t"]) if "t" in instance else self.minutes(instance["submitted_at"])
        minute = ceiling(true)
        if true < now:
            kind, minute = LATE, now
        self.index += 1
        self.pending.append((minute, kind, true if kind == LATE else Fraction(0), self.index, dict(instance)))

    # Time

    def _run(self, epochs: int) -> None:
        for number in range(epochs):
            first = number * self.horizon
            if number:
                self.days.append(Day(self.days[0].index + number))
            self.epoch_start = first
            self.days[-1].carried_in = [
                (action.id, action.ends - first) for action in self.admitted if action.state == "running"
            ]
            for minute in range(first, first + self.horizon + 1):
                if minute > first or number == 0:
                    self._ends(minute)
                if minute < first + self.horizon:
                    self._interrupts(minute)
                    self._expiries(minute)
                    self._admissions(minute)
                    self._starts(minute)
                self._emit_events(minute)
                if minute in self.live and minute < first + self.horizon:
                    self._apply_live_requests(minute)
            self._close(first + self.horizon)

    def _apply_live_requests(self, minute: int) -> None:
        """Apply live requests after the minute has run."""
        for form in self.live[minute]:
            if "actor" in form:
                self._read(form, GIVEN, minute)
            else:
                kind = "interrupt" if "target" in form else "command"
                self.requests.append((minute, len(self.requests), kind, {**form, "again": True}))
        self._interrupts(minute, True)
        self._admissions(minute)
        self._starts(minute)
        self._emit_events(minute)

    def _close(self, boundary: int) -> None:
        day = self.days[-1]
        new = [entry for entry in self.pending if entry[3] > self.told_deferred]
        self.told_deferred = self.index
        day.deferred = [one["id"] for minute, _, _, _, one in sorted(new, key=order) if minute >= boundary]
        for name in sorted(self.known_locks):
            held = [action.id for action in self.admitted if action.state == "running" and name in action.locks]
            assert len(held) <= self._capacity(name), f"{name} is held by {held}"
            day.locks[name] = (held, [one.id for one in self._queue(name)])
        day.available, day.reserved = dict(self.available), dict(self.reserved)

    def _capacity(self, lock: str) -> int:
        return int(((self.document.get("locks") or {}).get(lock) or {}).get("capacity", 1))

    def _line(self, resource: str) -> list[AdmittedAction]:
        """Actions waiting for a resource, in the order of all queues."""
        waiting = [action for action in self.admitted if action.state == "waiting" and not action.reserved]
        return sorted((one for one in waiting if resource in needs(one.verb)), key=lambda one: one.key)

    def _queue(self, lock: str) -> list[AdmittedAction]:
        waiting = [action for action in self.admitted if action.state == "waiting" and lock in action.locks]
        return sorted(waiting, key=lambda one: one.key)

    def _ends(self, minute: int) -> None:
        for one in self.admitted:
            if one.state == "running" and one.ends == minute:
                one.state = "over"
                self._finish(one)
                self._release_held(one, minute)
                self._note("end", one, minute, {"segment": one.segment})
                self._follow_up(one, minute)
                if one.verb.get("may_trigger_event"):
                    for item in one.instance.get("knowledge", ()):
                        self._reveal(one, {"id": item} if isinstance(item, str) else item, minute)
                    says_more = self.options.get("follow_ups") or one.verb.get("followups")
                    if "knowledge" not in one.instance and not says_more:
                        self._announce(one, minute)
                    for step in self.follow.get(one.id, ()):
                        self._read({"t": minute, **step} if "submitted_at" not in step else step, FOLLOWING, minute)

    def _interrupts(self, minute: int, again: bool = False) -> None:
        for one in self.admitted:
            if one.state == "held" and one.cause is None and one.joined == minute:
                one.state = "waiting"
        now = [request for request in self.requests if request[0] == minute and bool(request[3].get("again")) is again]
        targets = {action.id: action for action in self.admitted}

        def place(request: tuple[int, int, str, dict[str, Any]]) -> tuple[int, int]:
            target = targets.get(str(request[3].get("target") or request[3].get("cancel") or request[3].get("resume")))
            # A finished target has no admission order any more: it is sorted with the unknown ones, at the end.
            there = target is not None and target.state != "over"
            return (target.seq if there and target else self.next_seq, request[1])

        for _, _, kind, form in sorted(now, key=place):
            if kind == "interrupt":
                self._external(targets.get(form["target"]), form, minute)
            elif "cancel" in form:
                self._cancel(targets.get(form["cancel"]), form, minute)
            else:
                self._resume(targets.get(form["resume"]), form["resume"], minute)
        trying = [] if again else [one for one, when in self.trying if when == minute and one.state == "waiting"]
        for one in sorted(trying, key=lambda one: one.seq):
            self._preempt(one, minute)

    def _external(self, one: AdmittedAction | None, form: dict[str, Any], minute: int) -> None:
        if one is not None and one.state == "running" and yields(one, form["priority"]):
            if too_early(one, minute):
                self.requests.append((minute + 1, len(self.requests), "interrupt", {**form, "again": False}))
                return
            cause = form.get("cause")
            if cause is not None and not (cause.segment == 0 and cause.state in ("waiting", "running")):
                self._diagnose(minute, "interrupt_ignored", form["target"])
                return
            source, hold = form.get("source", "outside"), form.get("hold_min", 0)
            self._interrupt(one, minute, source, hold, resume_of(one), cause)
        else:
            self._diagnose(minute, "interrupt_ignored", form["target"])

    def _cancel(self, one: AdmittedAction | None, form: dict[str, Any], minute: int) -> None:
        target = form["cancel"]
        to_come = [entry for entry in self.pending if entry[4]["id"] == target]
        if one is None and to_come:
            self.pending = [entry for entry in self.pending if entry not in to_come]
            self._reject(to_come[0][4], "Cancelled")
        elif one is None or one.state == "over":
            self._diagnose(minute, "NotCancellable", target)
        elif one.state == "running" and not one.verb["interruptible"]:
            if not form.get("force"):
                self._diagnose(minute, "NotInterruptible", target)
                return
            one.rest, one.state = one.ends - minute, "over"
            self._note("end", one, minute, {"segment": one.segment, "forced": True, "d_rem": one.rest})
            self._return(one)
            self._release_held(one, minute)
        elif one.state == "running":
            self._interrupt(one, minute, "cancel", 0, "drop")
        else:
            one.state = "over"
            self._return(one)
            self._release_held(one, minute)

    def _release_held(self, cause: AdmittedAction, minute: int) -> None:
        """The actions interrupted by this one can wait again: it is over, or interrupted itself."""
        for one in self.admitted:
            if one.state == "held" and one.cause is cause:
                one.cause, one.joined = None, minute + one.after_cause
                one.state = "held" if one.after_cause else "waiting"

    def _resume(self, one: AdmittedAction | None, target: str, minute: int) -> None:
        if one is None or one.state != "suspended":
            self._diagnose(minute, "NotResumable", target)
        else:
            one.state, one.joined = "waiting", minute

    def _interrupt(
        self, one: AdmittedAction, minute: int, by: str, hold: int, resume: str, cause: AdmittedAction | None = None
    ) -> None:
        one.rest = one.ends - minute
        self._note("interrupt", one, minute, {"segment": one.segment, "d_rem": one.rest, "by": by, "resume": resume})
        one.segment += 1
        one.state = {"auto": "held" if hold else "waiting", "manual": "suspended", "drop": "over"}[resume]
        one.joined = minute + hold
        if resume == "auto" and cause is not None:
            one.state, one.cause, one.after_cause = "held", cause, hold
        if resume == "drop":
            self._return(one)
        self._release_held(one, minute)

    def _admissions(self, minute: int) -> None:
        now = sorted((entry for entry in self.pending if entry[0] == minute), key=order)
        self.pending = [entry for entry in self.pending if entry[0] != minute]
        for _, kind, _, _, instance in now:
            self._admit(instance, minute, kind == LATE)

    def _admit(self, instance: dict[str, Any], minute: int, late: bool) -> None:
        verb = self.defs.get(instance["verb"])
        if verb is None:
            return self._reject(instance, "UnknownVerb")
        factors = [Fraction(str(one["factor"])) for one in self._modifiers(instance, minute)]
        if any(not 0 < factor <= 10 for factor in factors):
            return self._reject(instance, "InvalidDuration")
        level = self._level(instance["actor"], verb.get("skill") or instance["verb"])
        duration = minutes_taken(verb["base_duration_min"], verb["effort"], level, factors)
        if duration > 525_600:
            return self._reject(instance, "InvalidDuration")
        locks = set(verb.get("locks", ()))
        strict = self.options.get("strict_locks")
        if strict is not None and locks - set(strict):
            return self._reject(instance, "UnknownLock")
        waits = verb.get("on_shortage") == "wait" and verb.get("wait", "queue") == "queue" and bool(needs(verb))
        if not waits and not self._reserve(verb):
            return self._reject(instance, "InsufficientResources")
        if self.options.get("actor_exclusive"):
            locks.add(f"actor:{instance['actor']}")
        priority = instance.get("priority", verb.get("priority", 0))
        one = AdmittedAction(instance, verb, self.next_seq, duration, sorted(locks), priority, late)
        one.rest, one.joined = duration, minute
        self.next_seq += 1
        if waits:
            is_next = all(one.key < other.key for name in needs(verb) for other in self._line(name))
            one.reserved = is_next and self._reserve(verb)
        self.admitted.append(one)
        self.known_locks |= locks
        if verb.get("preempts"):
            self._preempt(one, minute)
        return None

    def _preempt(self, one: AdmittedAction, minute: int) -> None:
        running = [other for other in self.admitted if other.state == "running"]
        holders = self._holders_to_interrupt(one, minute)
        first = all(self._queue(lock)[0] is one for lock in one.locks)
        if not first or not one.reserved or not all(yields(holder, one.priority) for holder in holders):
            if holders:
                self._diagnose(minute, "preempt_refused", one.id)
            return
        if any(too_early(holder, minute) for holder in holders):
            self.trying.append((one, minute + 1))
            return
        named = one.verb.get("interrupts", ())
        listed = [other for other in running if named == "*" or other.instance["verb"] in named]
        for other in running:
            if other in holders or (other in listed and yields(other, one.priority) and not too_early(other, minute)):
                self._interrupt(other, minute, one.id, one.verb.get("hold_min", 0), resume_of(other), one)
            elif other in listed and yields(other, one.priority):
                request = {"target": other.id, "priority": one.priority, "source": one.id, "cause": one}
                request["hold_min"] = one.verb.get("hold_min", 0)
                self.requests.append((minute + 1, len(self.requests), "interrupt", request))
            elif other in listed:
                self._diagnose(minute, "interrupt_ignored", other.id)

    def _holders_to_interrupt(self, one: AdmittedAction, minute: int) -> list[AdmittedAction]:
        """The holders to interrupt: all of an exclusive lock, the weakest of a full one unless another one yields."""
        found: list[AdmittedAction] = []
        full = []
        for lock in one.locks:
            holders = [other for other in self.admitted if other.state == "running" and lock in other.locks]
            if len(holders) < self._capacity(lock):
                continue
            if self._capacity(lock) == 1:
                found += [holders[0]] if holders[0] not in found else []
            else:
                full.append(holders)
        for holders in full:
            if not any(other in holders for other in found):
                stays = [(not yields(other, one.priority), too_early(other, minute), other) for other in holders]
                found.append(min(stays, key=lambda entry: (entry[0], entry[1], entry[2].priority, -entry[2].seq))[2])
        return found

    def _starts(self, minute: int) -> None:
        """One pass in queue order; repeated while resources that others wait for were returned."""
        before = None
        while before != self.available:
            before = dict(self.available)
            self._pass(minute)

    def _pass(self, minute: int) -> None:
        for one in sorted((action for action in self.admitted if action.state == "waiting"), key=lambda one: one.key):
            taken = [lock for other in self.admitted if other.state == "running" for lock in other.locks]
            free = all(taken.count(lock) < self._capacity(lock) for lock in one.locks)
            if one.state != "waiting":
                continue
            if free and all(self._queue(lock)[0] is one for lock in one.locks) and self._supplied(one):
                one.state, one.ends, one.began = "running", minute + one.rest, minute
                meta = {"segment": one.segment, "d": one.rest, "t_end": one.ends - self.epoch_start}
                late = {"late": True} if one.late and one.segment == 0 else {}
                self._note("start", one, minute, {**meta, "waited": minute - one.joined, **late})
            elif one.verb.get("wait") == "fail" and one.segment == 0:
                one.state = "over"
                self._return(one)
                self._release_held(one, minute)
                self._reject(one.instance, "CannotAcquireLock")

    def _supplied(self, one: AdmittedAction) -> bool:
        """Its resources are available, and it is first in their queues."""
        if not one.reserved and all(self._line(name)[0] is one for name in needs(one.verb)):
            one.reserved = self._reserve(one.verb)
        return one.reserved

    # Locks and resources of an action

    def _modifiers(self, instance: dict[str, Any], minute: int) -> list[Mapping[str, Any]]:
        found = []
        for one in self.state.get("modifiers", ()):
            if one.get("daily"):
                in_time = self._is_time_of_day(one.get("from"), one.get("to"), minute)
            else:
                since, until = (self._bound(one.get(name)) for name in ("from", "to"))
                in_time = (since is None or since <= minute) and (until is None or minute < until)
            in_time = in_time and self._condition_holds(one.get("when"), instance)
            verb = "verbs" not in one or instance["verb"] in one["verbs"]
            if in_time and verb and ("actors" not in one or instance["actor"] in one["actors"]):
                found.append(one)
        return found

    def _is_time_of_day(self, since: str | None, until: str | None, minute: int) -> bool:
        """Minute for minute from `since` on, over midnight if necessary, up to `until`."""
        clock = self.start + timedelta(minutes=minute)
        now = clock.hour * 60 + clock.minute
        at = since_midnight(since or "00:00")
        end = since_midnight(until or "24:00")
        covered = set()
        while at != end:
            covered.add(at % 1440)
            at += 1
            if at == 1440 and end != 1440:
                at = 0
        return now in covered

    def _condition_holds(self, condition: Mapping[str, Any] | None, instance: Mapping[str, Any]) -> bool:
        for name, wanted in (condition or {}).items():
            params = instance.get("params") or {}
            value = self.state.get(name) if name in self.state else params.get(name.partition(".")[2])
            if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in listed(wanted)):
                return False
        return True

    def _follow_up(self, one: AdmittedAction, minute: int) -> None:
        for place, step in enumerate(one.verb.get("followups", ())):
            if not self._condition_holds(step.get("when"), one.instance):
                continue
            further = {
                "id": f"{step['verb']}/{one.seq}" + (f".{place}" if place else ""),
                "actor": step.get("actor", one.instance["actor"]),
                "verb": step["verb"],
                "params": step.get("params", one.instance.get("params")),
                "t": minute + step.get("after_min", 0),
            }
            if "visibility" in one.instance:
                further["visibility"] = one.instance["visibility"]
            self._read(further, FOLLOWING, minute)

    def _bound(self, given: int | str | None) -> Fraction | None:
        return None if given is None else self.minutes(given) if isinstance(given, str) else Fraction(given)

    def _level(self, actor: str, skill: str) -> int:
        given = (self.document.get("skills") or {}).get(actor)
        if given is None:
            return 1
        if "matrix" not in given:
            return int(given.get(skill, 1))
        if skill in given.get("override", {}):
            return int(given["override"][skill])
        rule = (self.document.get("skill_weights") or {}).get(skill)
        return 1 if rule is None else level_from(rule, given["matrix"])

    def _reserve(self, verb: dict[str, Any]) -> bool:
        needed: dict[str, Fraction] = {}
        for need in verb.get("resources", ()):
            if not need.get("produce"):
                needed[need["name"]] = needed.get(need["name"], Fraction(0)) + Fraction(str(need["amount"]))
        if any(amount > self.available.get(name, 0) for name, amount in needed.items()):
            return False
        for name, amount in needed.items():
            self.available[name] = self.available.get(name, Fraction(0)) - amount
            self.reserved[name] = self.reserved.get(name, Fraction(0)) + amount
        return True

    def _finish(self, one: AdmittedAction) -> None:
        for need in one.verb.get("resources", ()):
            name, amount = need["name"], Fraction(str(need["amount"]))
            if not need.get("produce"):
                self.reserved[name] -= amount
            if need.get("produce") or need.get("refund"):
                self.available[name] = self.available.get(name, Fraction(0)) + amount

    def _return(self, one: AdmittedAction) -> None:
        if not one.reserved:
            return
        for need in one.verb.get("resources", ()):
            if not need.get("produce"):
                self.reserved[need["name"]] -= Fraction(str(need["amount"]))
                self.available[need["name"]] += Fraction(str(need["amount"]))

    # Output

    def _reveal(self, one: AdmittedAction, reveal: Mapping[str, Any], minute: int) -> None:
        item = self.items.get(reveal["id"])
        before = "private" if item is None else item.scope
        if item is None:
            item = self.items[reveal["id"]] = Item(source=one.instance["actor"], fresh=minute)
        item.scope = reveal.get("to_scope", "pc")
        item.seen_by |= set(reveal.get("visibility_to", ()))
        meta = {"knowledge": reveal["id"], "from_scope": before, "to_scope": item.scope}
        pc = self.options.get("pc")
        known = pc is not None and (one.instance["actor"] == pc or self._knows(item, pc, minute))
        self._note("visibility_change", one, minute, {**meta, "reveals": list(reveal.get("reveals", ()))}, known)

    def _announce(self, one: AdmittedAction, minute: int) -> None:
        """An action that triggers an event and names no item is revealed to the player."""
        shown = one.instance.get("visibility") or {}
        scope = shown.get("scope", "private")
        if scope != "redacted":
            item = Item(scope=scope, source=one.instance["actor"], fresh=minute)
            item.seen_by |= set(shown.get("visibility_to", ()))
            self.items[f"action:{one.id}"] = item
            self._reveal(one, {"id": f"action:{one.id}", "to_scope": "public" if scope == "public" else "pc"}, minute)

    def _knows(self, item: "Item", actor: str, minute: int) -> bool:
        if item.scope == "redacted" or item.sure < Fraction(str(self.options.get("confidence_threshold", 0))):
            return False
        if item.lasts and minute > item.fresh + item.lasts:
            return False
        party = [self.options.get("pc"), *self.options.get("allies", ())]
        by_scope = {"public": True, "pc": actor == self.options.get("pc"), "allies_only": actor in party}
        return by_scope.get(item.scope, False) or actor == item.source or actor in item.seen_by

    def _expiries(self, minute: int) -> None:
        """Items that could be known a minute ago and have expired now."""
        actors = {*self._actors(), "a stranger"}
        for name in sorted(self.items):
            item = self.items[name]
            if not item.lasts or item.fresh + item.lasts + 1 != minute or item.scope == "redacted":
                continue
            was_known = any(self._knows(item, actor, minute - 1) for actor in actors)
            pc = self.options.get("pc")
            seen = pc is not None and self._knows(item, pc, minute - 1)
            meta = {"knowledge": name, "from_scope": item.scope, "to_scope": "redacted", "reveals": []}
            event = {"type": "visibility_change", "action_id": "", "t": minute - self.epoch_start}
            event |= {"meta": {**meta, "reason": "expired"}, "pc": seen}
            item.scope = "redacted"
            if was_known:
                self.minute.append((RANK["visibility_change"], 1 << 62, len(self.minute), event))

    def _actors(self) -> set[str]:
        named = {self.options.get("pc"), *self.options.get("allies", ())}
        for item in self.items.values():
            named |= {item.source, *item.seen_by}
        return {one for one in named if one is not None}

    def _note(self, kind: str, one: AdmittedAction, minute: int, meta: dict[str, Any], pc: bool | None = None) -> None:
        event = {
            "type": kind,
            "action_id": one.id,
            "t": minute - self.epoch_start,
            "meta": {**meta, "admission": one.seq},
            "pc": self._seen(one.instance) if pc is None else pc,
        }
        self.minute.append((RANK[kind], one.seq, len(self.minute), event))

    def _seen(self, instance: Mapping[str, Any]) -> bool:
        pc = self.options.get("pc")
        shown = instance.get("visibility") or {}
        scope = shown.get("scope", "private")
        if pc is None or instance["actor"] == pc:
            return pc is not None
        return scope != "redacted" and (
            scope in ("public", "pc", "allies_only") or pc in shown.get("visibility_to", ())
        )

    def _emit_events(self, minute: int) -> None:
        for _, _, _, event in sorted(self.minute, key=lambda entry: entry[:3]):
            self.days[-1].events.append({"seq": self.emitted, **event})
            self.emitted += 1
        self.minute = []

    def _reject(self, instance: Mapping[str, Any], code: str) -> None:
        self.days[-1].rejections.append((instance["id"], code))

    def _diagnose(self, minute: int, code: str, target: str) -> None:
        self.days[-1].diagnostics.append((minute - self.epoch_start, code, target))


def item_from(given: Mapping[str, Any]) -> Item:
    return Item(
        scope=given.get("scope", "private"),
        source=given.get("source"),
        fresh=given.get("freshness", 0),
        lasts=given.get("ttl_min", 0),
        sure=Fraction(str(given.get("confidence", 1))),
        seen_by=set(given.get("visibility_to", ())),
    )


def since_midnight(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def listed(wanted: Any) -> list[Any]:
    return list(wanted) if isinstance(wanted, list | tuple) else [wanted]


def order(entry: tuple[int, int, Fraction, int, dict[str, Any]]) -> tuple[int, int, Fraction, int]:
    return entry[:4]


def yields(one: AdmittedAction, priority: int) -> bool:
    return bool(one.verb["interruptible"]) and priority > one.priority


def too_early(one: AdmittedAction, minute: int) -> bool:
    """It started in this minute, and not for the first time."""
    return one.began == minute and one.segment > 0


def needs(verb: Mapping[str, Any]) -> list[str]:
    return sorted({need["name"] for need in verb.get("resources", ()) if not need.get("produce")})


def resume_of(one: AdmittedAction) -> str:
    return str(one.verb.get("resume", "auto"))
