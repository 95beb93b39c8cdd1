"""What a designer should look at in a scenario before it runs: who is cut off, what is silenced, what nobody reads.

Nothing here is a fault: the scenario runs all the same. Each finding has a code, a place and a sentence that says what
to do. Participants and lines are named together, the first few of them; a place with a condition, such as
`$.behaviorProfiles[?@.id=='retail']`, is JSONPath. The network is taken as it is at the start and, where injections
are on, with the lines they bring.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pendula.credit.authoring.reachability import has_circle, marks_within, parts, reach, ways_of
from pendula.credit.model import (
    AddParticipant,
    CreateTrustline,
    Effect,
    EventType,
    FreezeParticipant,
    InjectDebt,
    LineStatus,
    Participant,
    ParticipantStatus,
    Scenario,
    TimelineEvent,
    Trustline,
)
from pendula.credit.money import CENT, text
from pendula.credit.planning.planner import REACH_HOPS, REACH_MOST
from pendula.credit.planning.profiles import Behaviour, behaviour, number
from pendula.credit.reading.scope import Caution
from pendula.credit.reading.timeline import EFFECTS_MOST
from pendula.credit.settings import ClearingMode, ClearingPolicy, Settings
from pendula.documents.faults import suggestion

NAMED = 5  # how many of many are named in a sentence

PROPS: Mapping[str, str] = {
    "tx_rate": "a number; every candidate is accepted instead",
    "equivalent_weights": "a map from codes to numbers not below 0; all equivalents weigh the same instead",
    "recipient_group_weights": "a map from groups to numbers not below 0; no group is preferred instead",
    "amount_model": "a map from codes to objects of min, max, p50 and p90 above 0; those amounts are drawn plainly",
    "flow_chains": "a list of pairs of groups; no direction is preferred instead",
    "flow_affinity": "a number from 0 to 1; settings.flow.default_affinity holds instead",
    "periodicity_factor": "a number above 0; large amounts come as often as small ones instead",
}


class Code(StrEnum):
    """Findings that are named in one place and told in another."""

    EVENT_NOT_INTERPRETED = "event_not_interpreted"
    INJECTION_IMPOSSIBLE = "injection_impossible"
    INJECTION_SWITCHED_OFF = "injection_switched_off"
    INJECTION_TOO_LONG = "injection_too_long"
    PARTICIPANT_CANNOT_BE_PAID = "participant_cannot_be_paid"
    PARTICIPANT_CANNOT_PAY = "participant_cannot_pay"
    PARTICIPANT_WITHOUT_LINE = "participant_without_line"
    STRESS_BETWEEN_TICKS = "stress_between_ticks"
    STRESS_ON_NOBODY = "stress_on_nobody"
    STRESS_WITHOUT_EFFECT = "stress_without_effect"


def lint(scenario: Scenario, settings: Settings) -> tuple[Caution, ...]:
    """Everything worth a look, in a fixed order; a second or two for ten thousand participants."""
    found = _Lint(scenario, settings)
    return (
        *found.cut_off(),
        *found.lines(),
        *found.equivalents(),
        *found.groups(),
        *found.props(),
        *found.profiles(),
        *found.events(),
    )


class _Lint:
    """One look at a scenario; what several questions need is worked out once."""

    def __init__(self, scenario: Scenario, settings: Settings) -> None:
        self.scenario = scenario
        self.settings = settings
        effects = [effect for event in scenario.events for effect in event.effects] if settings.enable_inject else []
        self.present = {one.id for one in scenario.participants}
        self.people = {one.id: one for one in (*_added(effects), *scenario.participants)}
        self.all_lines = sorted((*scenario.lines, *_lines(effects)), key=lambda one: (one.creditor, one.debtor))
        self.live = [line for line in self.all_lines if self._live(line)]
        self.members = {one.group for one in self.people.values() if one.group is not None}
        self.by_profile: dict[str | None, list[Participant]] = {}
        for one in self.people.values():
            if one.status is ParticipantStatus.ACTIVE:
                self.by_profile.setdefault(one.profile, []).append(one)
        self.largest: dict[tuple[str, str], int] = {}
        self.lines_in: dict[str, list[Trustline]] = {code: [] for code in scenario.equivalents}
        for line in self.live:
            self.lines_in[line.equivalent].append(line)
            key = line.equivalent, line.debtor
            self.largest[key] = max(line.limit, self.largest.get(key, 0))
        self.out = {code: ways_of(map(_hop, lines)) for code, lines in self.lines_in.items()}
        self.bits = {group: 1 << place for place, group in enumerate(sorted(self.members))}
        marks = {one.id: self.bits[one.group] for one in self.people.values() if one.group is not None}
        self.near = {code: marks_within(ways, marks, REACH_HOPS) for code, ways in self.out.items()}

    def _live(self, line: Trustline) -> bool:
        ends = self.people.get(line.creditor), self.people.get(line.debtor)
        active = all(end is not None and end.status is ParticipantStatus.ACTIVE for end in ends)
        known = line.equivalent in self.scenario.equivalents
        return active and known and line.status is LineStatus.ACTIVE and line.limit > 0

    def cut_off(self) -> Iterator[Caution]:
        lined = {end for line in self.all_lines for end in (line.creditor, line.debtor)}
        payers, payees = {line.debtor for line in self.live}, {line.creditor for line in self.live}
        active = [name for name, one in sorted(self.people.items()) if one.status is ParticipantStatus.ACTIVE]
        for code, names, advice in (
            (
                Code.PARTICIPANT_WITHOUT_LINE,
                [name for name in active if name not in lined],
                "no line; add one to and one from each, or leave them out",
            ),
            (
                Code.PARTICIPANT_CANNOT_PAY,
                [name for name in active if name in lined and name not in payers],
                "nobody to pay; somebody active must trust them, by a line to them with a limit above 0",
            ),
            (
                Code.PARTICIPANT_CANNOT_BE_PAID,
                [name for name in active if name in lined and name not in payees],
                "nobody who could pay them; they must trust somebody active, by a line from them with a limit above 0",
            ),
        ):
            if names:
                path = f"$.participants[?@.id=='{names[0]}']" if len(names) == 1 else "$.participants"
                yield Caution(code, path, f"{_listed(names, 'participant')} {_have(names)} {advice}")

    def lines(self) -> Iterator[Caution]:
        zero = [_name(line) for line in self.scenario.lines if line.limit == 0]
        if zero:
            message = f"{_listed(zero, 'line')} {_have(zero)} a limit of 0; such a line only lets debts be paid back"
            yield Caution("limit_of_zero", "$.trustlines", f"{message}: raise the limit, or leave it out")
        blocked = {who: line for line in self.scenario.lines for who in line.policy.blocked if who not in self.people}
        if blocked:
            message = f"blocked_participants name nobody with {_listed(sorted(blocked), 'id')}"
            yield Caution("blocked_nobody", "$.trustlines", f"{message}; correct the spelling, or take them out")

    def equivalents(self) -> Iterator[Caution]:
        depth = self._depth()
        for code, lines in self.lines_in.items():
            if not lines:
                message = f"{code} has no line that could carry a payment; add lines, or take the equivalent out"
                yield Caution("equivalent_without_line", "$.equivalents", message)
                continue
            found = parts(map(_hop, lines))
            if len(found) > 1:
                named = ", ".join(f"{len(part)} with {part[0]}" for part in found[:NAMED])
                message = f"{code} falls into {len(found)} parts that no payment crosses ({named})"
                yield Caution("separate_parts", "$.trustlines", f"{message}; join them by lines")
            if depth and has_circle((_hop(line) for line in lines if line.policy.auto_clearing), depth) is False:
                message = f"no circle of up to {depth} lines that may be cleared, so that clearing can never help"
                advice = "close circles (buyer, shop, maker, buyer), or raise the depth of clearing"
                yield Caution("no_cycle", "$.trustlines", f"{code} has {message}: {advice}")

    def _depth(self) -> int:
        """How long a circle may be to be cleared; 0 where nothing is cleared at all."""
        settings, adaptive = self.settings, self.settings.clearing_policy is ClearingPolicy.ADAPTIVE
        if not settings.clearing_enabled or (not adaptive and settings.clearing_every_n_ticks <= 0):
            return 0
        if settings.clearing_mode is ClearingMode.OPTIMAL:
            return len(self.people)
        deepest = settings.clearing_max_depth
        return min(deepest, settings.adaptive_max_depth_max) if adaptive else deepest

    def groups(self) -> Iterator[Caution]:
        unused = [group for group in dict.fromkeys(self.scenario.groups) if group not in self.members]
        if unused:
            message = f"nobody belongs to {_listed(unused, 'group')}; give participants their groupId, or take it out"
            yield Caution("group_unused", "$.groups", message)

    def props(self) -> Iterator[Caution]:
        """Values that nobody can use, and names that nobody knows but somebody might have meant."""
        for key, form in PROPS.items():
            bad = [one.id for one in self.scenario.profiles.values() if key in one.props and _bad(key, one.props[key])]
            if bad:
                message = f"{key} of {_listed(bad, 'profile')} is not {form}"
                yield Caution("prop_ignored", _props(bad[0], key), message)
        for one in self.scenario.profiles.values():
            for key in one.props:
                hint = suggestion(key, tuple(PROPS)) if key not in PROPS else ""
                if hint:
                    yield Caution("prop_misspelt", _props(one.id, key), f"nobody reads {key!r}{hint}")
        clamped = [one.id for one in self.scenario.profiles.values() if _clamped(one.props.get("tx_rate"))]
        if clamped:
            message = f"tx_rate of {_listed(clamped, 'profile')} is outside 0 to 1 and counts as the nearer of the two"
            yield Caution("rate_clamped", _props(clamped[0], "tx_rate"), f"{message}; say which is meant")
        chained = [one.id for one in self.scenario.profiles.values() if one.props.get("flow_chains")]
        if chained and not self.scenario.flow.enabled:
            message = f"flow_chains of {_listed(chained, 'profile')} {_have(chained)} no effect"
            yield Caution("flow_switched_off", "$.settings.flow", f"{message} until settings.flow.enabled is true")

    def profiles(self) -> Iterator[Caution]:
        if self.settings.amount_cap == 0:
            message = "the amount cap is 0, so that nothing is ever paid; raise amount_cap, or set it to none"
            yield Caution("cap_of_zero", "$", message)
        for name in sorted(self.scenario.profiles.keys() | {one for one in self.by_profile if one is not None}):
            one = behaviour(name, self.scenario.profiles, self.settings.profile_presets)
            yield from self._codes(name, one)
            senders = self.by_profile.get(name, [])
            if senders:
                yield from self._amounts(name, one, senders)
                yield from self._direction(name, one, senders)

    def _codes(self, name: str, one: Behaviour) -> Iterator[Caution]:
        known, weights = self.scenario.equivalents, one.weights
        for key, codes in (("equivalent_weights", weights or {}), ("amount_model", one.models)):
            strange = [code for code in codes if code not in known]
            if strange:
                message = (
                    f"{key} of the profile {name!r} names {_listed(strange, 'equivalent')} that the scenario lacks"
                )
                yield Caution("unknown_equivalent", _props(name, key), f"{message}; it has {', '.join(known)}")
        if weights is not None and not any(one.weight(code) > 0 for code in known):
            message = f"the profile {name!r} gives no weight to any equivalent of the scenario and never pays"
            yield Caution("profile_without_equivalent", _props(name, "equivalent_weights"), f"{message}; name one")

    def _amounts(self, name: str, one: Behaviour, senders: Sequence[Participant]) -> Iterator[Caution]:
        cap = self.settings.amount_cap
        for code, model in sorted(one.models.items()):
            if code not in self.scenario.equivalents:
                continue
            path, least = _props(name, f"amount_model.{code}"), model.min or 0
            if model.max is not None and (least > model.max or model.max < CENT):
                message = (
                    f"no amount in {code} fits the model of the profile {name!r}: {text(least)} to {text(model.max)}"
                )
                yield Caution("no_amount_possible", path, f"{message}; put min below max, and max at 0.01 or above")
                continue
            if cap is not None and least > cap:
                message = f"the profile {name!r} pays at least {text(least)} {code}, above the cap of {text(cap)}"
                advice = f"raise SIMULATOR_REAL_AMOUNT_CAP (amount_cap) to {text(least)} or more"
                yield Caution("profile_silenced", path, f"{message}, and is silent: {advice}")
            largest = max((self.largest.get((code, sender.id), 0) for sender in senders), default=0)
            if least > largest > 0:
                message = f"the profile {name!r} pays at least {text(least)} {code}, but no line lets it owe more than"
                advice = "raise limits, or lower min"
                yield Caution("profile_above_limits", path, f"{message} {text(largest)}, and is silent: {advice}")

    def _direction(self, name: str, one: Behaviour, senders: Sequence[Participant]) -> Iterator[Caution]:
        """Groups that a profile wants to pay and none of its participants can; by the group of the payer for chains."""
        given = name in self.scenario.profiles and "recipient_group_weights" in self.scenario.profiles[name].props
        # The groups of a preset are a guess; those that nobody is in were not meant.
        groups = {group for group, _ in one.groups if given or group in self.members}
        wanted: dict[str | None, set[str]] = {None: groups} if groups else {}
        if self.scenario.flow.enabled:
            for start, target in one.chains:
                wanted.setdefault(start, set()).add(target)
        missing = {start: set(targets) for start, targets in wanted.items()}
        able = False
        for sender in senders:
            if not any(sender.id in ways for ways in self.out.values()):
                continue
            able = True
            wishes = missing.get(None, set()) | missing.get(sender.group, set())
            if any(self.bits.get(group, 0) & near.get(sender.id, 0) for near in self.near.values() for group in wishes):
                reached = self._reached(sender.id, one)
                for place in (None, sender.group):
                    missing.get(place, set()).difference_update(reached)
        starts = {None, *(sender.group for sender in senders)}
        for origin, targets in missing.items():
            if not able or not targets or origin not in starts:
                continue
            key = "flow_chains" if origin is not None else "recipient_group_weights"
            who = f"the profile {name!r}" + (f" in the group {origin!r}" if origin is not None else "")
            message = f"nobody with {who} can reach {_listed(sorted(targets), 'group')} within {REACH_HOPS} hops"
            advice = "a line goes from the one who is paid to the one who pays; turn it round, or add lines"
            yield Caution("group_out_of_reach", _props(name, key), f"{message}: {advice}")

    def _reached(self, sender: str, one: Behaviour) -> set[str | None]:
        """The groups of everybody the planner could choose as receiver."""
        found: set[str | None] = set()
        for code, ways in self.out.items():
            if one.weight(code) > 0:
                found.update(self.people[who].group for who in reach(ways, sender, REACH_HOPS, REACH_MOST))
        return found

    def events(self) -> Iterator[Caution]:
        for event in self.scenario.events:
            for code, message in self._about(event):
                yield Caution(code, f"$.events[{event.index}]", message)

    def _about(self, event: TimelineEvent) -> Iterator[tuple[str, str]]:
        match event.type:
            case EventType.PAYMENT | EventType.CLEARING:
                yield (
                    Code.EVENT_NOT_INTERPRETED,
                    f"an event of type {event.type} does nothing; use stress, inject or note",
                )
            case EventType.STRESS:
                yield from self._about_stress(event)
            case EventType.INJECT if not self.settings.enable_inject:
                message = "this event changes nothing while injections are off; set enable_inject to on"
                yield Code.INJECTION_SWITCHED_OFF, f"{message} (SIMULATOR_REAL_ENABLE_INJECT)"
            case EventType.INJECT:
                lost = [str(place) for place, effect in enumerate(event.effects) if not self._possible(effect)]
                if lost:
                    message = (
                        f"{_listed(lost, 'effect')} cannot apply: a participant, a line, an equivalent or an amount"
                    )
                    yield Code.INJECTION_IMPOSSIBLE, f"{message} is not there; correct the ids and amounts"
                if len(event.effects) > EFFECTS_MOST:
                    message = f"only the first {EFFECTS_MOST} of {len(event.effects)} effects apply"
                    yield Code.INJECTION_TOO_LONG, f"{message}; spread them over several events"
            case EventType.NOTE:
                pass

    def _about_stress(self, event: TimelineEvent) -> Iterator[tuple[str, str]]:
        groups = {f"group:{group}" for group in self.members}
        scopes = groups | {f"profile:{name}" for name in self.by_profile if name is not None} | {"all"}
        lost = sorted({one.scope for one in event.multipliers} - scopes)
        if lost:
            yield Code.STRESS_ON_NOBODY, f"nobody is in {_listed(lost, 'scope')}; correct the spelling, or take it out"
        if not event.multipliers:
            message = "this stress multiplies nothing; it needs effects of op mult, field tx_rate and a value above 0"
            yield Code.STRESS_WITHOUT_EFFECT, message
        length = self.settings.tick_ms_base
        if event.time is not None and -(-event.time // length) * length >= event.time + max(event.duration, 1):
            message = f"no tick falls into the {event.duration} ms from {event.time} on; ticks are {length} ms apart"
            yield Code.STRESS_BETWEEN_TICKS, f"{message}: begin on a tick, or give duration_ms"

    def _possible(self, effect: Effect) -> bool:
        known, people = self.scenario.equivalents, self.people
        match effect:
            case AddParticipant(participant):
                return participant.id not in self.present
            case CreateTrustline(line):
                ends = line.creditor in people and line.debtor in people and line.creditor != line.debtor
                return ends and line.equivalent in known and line.limit > 0
            case FreezeParticipant(participant):
                return participant in people
            case InjectDebt():
                return effect.amount > 0 and effect.creditor in self.out.get(effect.equivalent, {}).get(
                    effect.debtor, ()
                )


def _added(effects: Iterable[Effect]) -> Iterator[Participant]:
    return (effect.participant for effect in effects if isinstance(effect, AddParticipant))


def _lines(effects: Iterable[Effect]) -> Iterator[Trustline]:
    for effect in effects:
        match effect:
            case AddParticipant(_, lines):
                yield from lines
            case CreateTrustline(line):
                yield line
            case _:
                pass


def _hop(line: Trustline) -> tuple[str, str]:
    return line.debtor, line.creditor


def _name(line: Trustline) -> str:
    return f"{line.creditor} to {line.debtor} ({line.equivalent})"


def _props(profile: str, key: str) -> str:
    return f"$.behaviorProfiles[?@.id=='{profile}'].props.{key}"


def _listed(names: Sequence[str], noun: str) -> str:
    """`the group a`, `3 groups: a, b, c`, `9 groups: a, b, c, d, e and 4 more`."""
    if len(names) == 1:
        return f"the {noun} {names[0]}"
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} {noun}s ({', '.join(names[:NAMED])}{rest})"


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _clamped(rate: Any) -> bool:
    found = number(rate)
    return found is not None and not 0 <= found <= 1


def _bad(key: str, value: Any) -> bool:
    """Whether the planner takes the default of the key, or of a part of it, instead of this value."""
    match key, value:
        case "tx_rate", _:
            return number(value) is None
        case "flow_affinity", _:
            found = number(value)
            return found is None or not 0 <= found <= 1
        case "periodicity_factor", _:
            return not (number(value) or 0) > 0
        case "flow_chains", list() | tuple():
            pairs = (isinstance(one, list | tuple) and len(one) == 2 for one in value)
            return not all(pairs) or not all(isinstance(end, str) for one in value for end in one)
        case "amount_model", dict():
            return not all(_amounts_fit(model) for model in value.values())
        case "equivalent_weights" | "recipient_group_weights", dict():
            weights = (number(weight) for weight in value.values())
            return any(weight is None or weight < 0 for weight in weights)
        case _:
            return True


def _amounts_fit(model: Any) -> bool:
    numbers = (
        [model[name] for name in ("min", "max", "p50", "p90") if name in model] if isinstance(model, dict) else None
    )
    return numbers is not None and all((number(one) or 0) > 0 for one in numbers)
