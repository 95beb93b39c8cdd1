"""Plans: definitions prepared for a world, with locks resolved, limits checked, durations cached."""

from pendula.actions.configuration import Setting
from pendula.actions.model import ActionDef, Code, Effort, Wait
from pendula.actions.rules.locks import Lock, LockTable
from pendula.actions.rules.timing import Timing
from pendula.actions.rules.validation import LOCKS, LOCKS_EACH, RESOURCES_EACH, Fault, Verb
from pendula.kernel.canonical import Json
from pendula.kernel.limits import Limit


class Plan:
    """What admission needs of a definition, looked up once."""

    __slots__ = (
        "definition",
        "fails",
        "fault",
        "follows",
        "limit",
        "locks",
        "minutes",
        "needs",
        "ordinary",
        "place",
        "preempts",
        "triggers",
        "unknown_lock",
        "verb",
        "waits",
    )

    def __init__(self, verb: Verb, locks: tuple[Lock, ...]) -> None:
        definition = verb.definition
        self.verb = verb
        self.definition = definition
        self.locks = locks
        self.needs = definition.resources
        self.preempts = definition.preempts
        self.fails = definition.wait is Wait.FAIL
        self.triggers = definition.may_trigger_event
        self.follows = definition.followups
        self.waits = verb.waits_for_resources and any(not need.produce for need in definition.resources)
        self.place = definition.place
        # If set, admission only checks resources, and actors without listed skills take this long.
        self.ordinary: Timing | None = None
        self.minutes: dict[str | None, Timing | Fault] = {}  # by actor, if nothing else matters
        # Faults in the order of the checks: definition, locks, limits.
        self.fault: Fault | None = None
        self.unknown_lock: Fault | None = None
        self.limit: Fault | None = None


class Plans:
    """The plans of a world, made when a verb is first used."""

    def __init__(self, setting: Setting, locks: LockTable) -> None:
        self._setting = setting
        self._locks = locks
        self._by_verb: dict[str, Plan] = {}
        self.get = self._by_verb.get

    def make(self, name: str) -> Plan:
        """The plan of a verb; its fault rejects every instance."""
        verb = self._setting.verbs.get(name)
        if verb is None:
            return _rejecting(name, Fault(Code.UNKNOWN_VERB, "unknown_verb", {"verb": name}))
        plan = self._by_verb[name] = _rejecting(name, verb) if isinstance(verb, Fault) else self._plan(verb)
        return plan

    def _plan(self, verb: Verb) -> Plan:
        allowed = self._setting.options.strict_locks
        unknown = [] if allowed is None else sorted(set(verb.locks).difference(allowed))
        limit = self._fault_above(LOCKS_EACH, len(verb.locks))
        limit = limit or self._fault_above(RESOURCES_EACH, len(verb.definition.resources))
        new = sum(name not in self._locks.by_name for name in verb.locks)
        limit = limit or self._fault_above(LOCKS, len(self._locks.by_name) + new)
        # A rejected verb creates no locks.
        plan = Plan(verb, () if unknown or limit else self._locks.of(verb.locks))
        if unknown:
            plan.unknown_lock = Fault(Code.UNKNOWN_LOCK, "unknown_locks", {"locks": [*unknown]})
        plan.limit = limit
        if self._setting.durations.is_plain and not (unknown or limit or plan.waits):
            timing = self._setting.durations.plain(verb, None)
            plan.ordinary = None if isinstance(timing, Fault) else timing
        return plan

    def too_many_locks(self, names: tuple[str, ...]) -> Fault | None:
        """The fault of too many locks of one instance (with the lock of its actor) or of the world; None if allowed."""
        new = sum(name not in self._locks.by_name for name in names)
        fault = self._fault_above(LOCKS, len(self._locks.by_name) + new) if new else None
        return self._fault_above(LOCKS_EACH, len(names)) or fault

    def _fault_above(self, limit: Limit, value: int) -> Fault | None:
        allowed = self._setting.allowed(limit)
        if value <= allowed:
            return None
        facts: dict[str, Json] = {"limit": limit.name, "count": value, "allowed": allowed}
        return Fault(Code.LIMIT_EXCEEDED, "too_many", facts)

    def of_definition(self, name: str, definition: ActionDef, locks: tuple[Lock, ...]) -> Plan:
        """The plan of a saved action, whose definition may differ from the current one."""
        present = self._by_verb.get(name) or self.make(name)
        if present.fault is None and present.definition == definition and present.locks == locks:
            return present
        return Plan(_verb(name, definition), locks)


def _verb(name: str, definition: ActionDef) -> Verb:
    return Verb(name, definition, tuple(sorted(set(definition.locks))), definition.skill or name)


def _rejecting(name: str, fault: Fault) -> Plan:
    nothing = ActionDef(base_duration_min=1, effort=Effort.MEDIUM, interruptible=False)
    plan = Plan(_verb(name, nothing), ())
    plan.fault = fault
    return plan
