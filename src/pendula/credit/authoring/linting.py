"""Linter of scenarios: isolated participants, silent profiles, values without effect.

Warnings are not faults: the scenario runs nevertheless. Each has a code, a place and a sentence with advice. The first
few participants or lines are named together; a place with a condition, such as `$.behaviorProfiles[?@.id=='retail']`,
is JSONPath. The network is that of the start and, if injections are enabled, includes the lines they add. Questions
about its graph are answered from the lines alone, independent of debts; its edges go from sender to receiver.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any

from pendula.credit.model import (
    EFFECTS_MOST,
    AddParticipant,
    CreateTrustline,
    DatedPayment,
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
from pendula.credit.planning.planner import REACH_HOPS, REACH_MOST, Planned
from pendula.credit.planning.profiles import PROPS_READ, Behaviour, amount_model, behaviour, number
from pendula.credit.reading import Caution
from pendula.credit.settings import ClearingMode, ClearingPolicy, Settings
from pendula.credit.state.network import Network
from pendula.kernel.wording import suggestion


class Code(StrEnum):
    """Codes of warnings that several lines choose from."""

    INJECTION_IMPOSSIBLE = "injection_impossible"
    INJECTION_SWITCHED_OFF = "injection_switched_off"
    INJECTION_TOO_LONG = "injection_too_long"
    PARTICIPANT_CANNOT_BE_PAID = "participant_cannot_be_paid"
    PARTICIPANT_CANNOT_PAY = "participant_cannot_pay"
    PARTICIPANT_WITHOUT_LINE = "participant_without_line"
    PAYMENT_IMPOSSIBLE = "payment_impossible"
    STRESS_BETWEEN_TICKS = "stress_between_ticks"
    STRESS_WITHOUT_EFFECT = "stress_without_effect"
    STRESS_WITHOUT_TARGET = "stress_without_target"


NAMED = 5  # names listed in a sentence


def line_name(line: Trustline) -> str:
    return f"{line.creditor} to {line.debtor} ({line.equivalent})"


def props_path(profile: str, key: str) -> str:
    return f"$.behaviorProfiles[?@.id=='{profile}'].props.{key}"


def list_names(names: Sequence[str], noun: str) -> str:
    """`the group a`, `3 groups: a, b, c`, `9 groups: a, b, c, d, e and 4 more`."""
    if len(names) == 1:
        return f"the {noun} {names[0]}"
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} {noun}s ({', '.join(names[:NAMED])}{rest})"


def have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


class Survey:
    """Analysis of a scenario, shared by all warnings."""

    def __init__(self, scenario: Scenario, settings: Settings) -> None:
        self.scenario = scenario
        self.settings = settings
        effects = [effect for event in scenario.events for effect in event.effects] if settings.enable_inject else []
        self.present = {participant.id for participant in scenario.participants}
        self.people = {participant.id: participant for participant in (*_added(effects), *scenario.participants)}
        self.all_lines = sorted((*scenario.lines, *_lines(effects)), key=lambda line: (line.creditor, line.debtor))
        self.live = [line for line in self.all_lines if self._live(line)]
        self.members = {participant.group for participant in self.people.values() if participant.group is not None}
        self.by_profile: dict[str | None, list[Participant]] = {}
        for participant in self.people.values():
            if participant.status is ParticipantStatus.ACTIVE:
                self.by_profile.setdefault(participant.profile, []).append(participant)
        self.largest: dict[tuple[str, str], int] = {}
        self.lines_in: dict[str, list[Trustline]] = {code: [] for code in scenario.equivalents}
        for line in self.live:
            self.lines_in[line.equivalent].append(line)
            key = line.equivalent, line.debtor
            self.largest[key] = max(line.limit, self.largest.get(key, 0))
        self.out = {code: ways_of(map(hop, lines)) for code, lines in self.lines_in.items()}
        self.bits = {group: 1 << place for place, group in enumerate(sorted(self.members))}
        marks = {
            participant.id: self.bits[participant.group]
            for participant in self.people.values()
            if participant.group is not None
        }
        self.near = {code: marks_within(ways, marks, REACH_HOPS) for code, ways in self.out.items()}

    def _live(self, line: Trustline) -> bool:
        ends = self.people.get(line.creditor), self.people.get(line.debtor)
        active = all(end is not None and end.status is ParticipantStatus.ACTIVE for end in ends)
        known = line.equivalent in self.scenario.equivalents
        return active and known and line.status is LineStatus.ACTIVE and line.limit > 0


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


def hop(line: Trustline) -> tuple[str, str]:
    return line.debtor, line.creditor


def cut_off(survey: Survey) -> Iterator[Caution]:
    lined = {end for line in survey.all_lines for end in (line.creditor, line.debtor)}
    payers, payees = {line.debtor for line in survey.live}, {line.creditor for line in survey.live}
    active = [name for name, person in sorted(survey.people.items()) if person.status is ParticipantStatus.ACTIVE]
    for code, names, advice in (
        (
            Code.PARTICIPANT_WITHOUT_LINE,
            [name for name in active if name not in lined],
            "no line; add one to and one from each, or leave them out",
        ),
        (
            Code.PARTICIPANT_CANNOT_PAY,
            [name for name in active if name in lined and name not in payers],
            "no receiver to pay; an active participant must trust them, by a line to them with a limit above 0",
        ),
        (
            Code.PARTICIPANT_CANNOT_BE_PAID,
            [name for name in active if name in lined and name not in payees],
            "no sender to pay them; they must trust an active participant, by a line from them with a limit above 0",
        ),
    ):
        if names:
            path = f"$.participants[?@.id=='{names[0]}']" if len(names) == 1 else "$.participants"
            yield Caution(code, path, f"{list_names(names, 'participant')} {have(names)} {advice}")


def lines(survey: Survey) -> Iterator[Caution]:
    zero = [line_name(line) for line in survey.scenario.lines if line.limit == 0]
    if zero:
        message = f"{list_names(zero, 'line')} {have(zero)} a limit of 0; such a line only allows repayment of debts"
        yield Caution("limit_of_zero", "$.trustlines", f"{message}: raise the limit, or leave it out")
    blocked = {who: line for line in survey.scenario.lines for who in line.policy.blocked if who not in survey.people}
    if blocked:
        message = f"blocked_participants name {list_names(sorted(blocked), 'id')} that no participant has"
        yield Caution("blocked_unknown", "$.trustlines", f"{message}; correct the spelling, or take them out")


def equivalents(survey: Survey) -> Iterator[Caution]:
    depth = _depth(survey)
    for code, lines in survey.lines_in.items():
        if not lines:
            message = f"{code} has no line that could carry a payment; add lines, or take the equivalent out"
            yield Caution("equivalent_without_line", "$.equivalents", message)
            continue
        separate = parts(map(hop, lines))
        if len(separate) > 1:
            named = ", ".join(f"{len(part)} with {part[0]}" for part in separate[:NAMED])
            message = f"{code} falls into {len(separate)} parts that no payment crosses ({named})"
            yield Caution("separate_parts", "$.trustlines", f"{message}; join them by lines")
        if depth and has_circle((hop(line) for line in lines if line.policy.auto_clearing), depth) is False:
            message = f"no cycle of up to {depth} lines that may be cleared, so clearing can never help"
            advice = "close cycles (buyer, shop, maker, buyer), or raise the depth of clearing"
            yield Caution("no_cycle", "$.trustlines", f"{code} has {message}: {advice}")


def _depth(survey: Survey) -> int:
    """The maximum length of a cleared cycle; 0 if clearing is off."""
    settings, adaptive = survey.settings, survey.settings.clearing_policy is ClearingPolicy.ADAPTIVE
    if not settings.clearing_enabled or (not adaptive and settings.clearing_every_n_ticks <= 0):
        return 0
    if settings.clearing_mode is ClearingMode.OPTIMAL:
        return len(survey.people)
    deepest = settings.clearing_max_depth
    return min(deepest, settings.adaptive_max_depth_max) if adaptive else deepest


def groups(survey: Survey) -> Iterator[Caution]:
    unused = [group for group in dict.fromkeys(survey.scenario.groups) if group not in survey.members]
    if unused:
        message = (
            f"no participant belongs to {list_names(unused, 'group')}; give participants their groupId, or take it out"
        )
        yield Caution("group_unused", "$.groups", message)


PROPS: Mapping[str, str] = {
    "tx_rate": "a number; every candidate is accepted instead",
    "equivalent_weights": "a map from codes to numbers not below 0; all equivalents weigh the same instead",
    "recipient_group_weights": "a map from groups to numbers not below 0; no group is preferred instead",
    "amount_model": "a map from codes to objects of min, max, p50, p90, mean, sd above 0 and a known family; "
    "those amounts are drawn with the defaults",
    "flow_chains": "a list of pairs of groups; no direction is preferred instead",
    "flow_affinity": "a number from 0 to 1; settings.flow.default_affinity holds instead",
    "periodicity_factor": "a number above 0; large amounts come as often as small ones instead",
    "demand": "capped or fixed; the ledger caps the demand instead",
    "base_p": "a number, or pairs [per cent, number] in ascending order; tx_rate holds instead",
    "cluster_bias": "a number from 0 to 1; recipient_group_weights hold instead",
}


def props(survey: Survey) -> Iterator[Caution]:
    """Invalid values, and probable misspellings of names."""
    for key, form in PROPS.items():
        bad = [
            profile.id
            for profile in survey.scenario.profiles.values()
            if key in profile.props and _bad(key, profile.props[key])
        ]
        if bad:
            message = f"{key} of {list_names(bad, 'profile')} is not {form}"
            yield Caution("prop_ignored", props_path(bad[0], key), message)
    for profile in survey.scenario.profiles.values():
        for key in profile.props:
            hint = suggestion(key, tuple(PROPS)) if key not in PROPS else ""
            if hint:
                yield Caution(
                    "prop_misspelt", props_path(profile.id, key), f"{key!r} is not known and has no effect{hint}"
                )
    clamped = [profile.id for profile in survey.scenario.profiles.values() if _clamped(profile.props.get("tx_rate"))]
    if clamped:
        message = f"tx_rate of {list_names(clamped, 'profile')} is outside 0 to 1 and counts as the nearer of the two"
        yield Caution("rate_clamped", props_path(clamped[0], "tx_rate"), f"{message}; say which is meant")
    chained = [profile.id for profile in survey.scenario.profiles.values() if profile.props.get("flow_chains")]
    if chained and not survey.scenario.flow.enabled:
        message = f"flow_chains of {list_names(chained, 'profile')} {have(chained)} no effect"
        yield Caution("flow_switched_off", "$.settings.flow", f"{message} until settings.flow.enabled is true")


def profiles(survey: Survey) -> Iterator[Caution]:
    if survey.settings.amount_cap == 0:
        message = "the amount cap is 0, so nothing is ever paid; raise amount_cap, or set it to none"
        yield Caution("cap_of_zero", "$", message)
    for name in sorted(
        survey.scenario.profiles.keys() | {profile for profile in survey.by_profile if profile is not None}
    ):
        pattern = behaviour(name, survey.scenario.profiles, survey.settings.profile_presets)
        yield from _codes(survey, name, pattern)
        senders = survey.by_profile.get(name, [])
        if senders:
            yield from _amounts(survey, name, pattern, senders)
            yield from _direction(survey, name, pattern, senders)


def _codes(survey: Survey, name: str, pattern: Behaviour) -> Iterator[Caution]:
    known, weights = survey.scenario.equivalents, pattern.weights
    for key, codes in (("equivalent_weights", weights or {}), ("amount_model", pattern.models)):
        strange = [code for code in codes if code not in known]
        if strange:
            message = f"{key} of the profile {name!r} names {list_names(strange, 'equivalent')} that the scenario lacks"
            yield Caution("unknown_equivalent", props_path(name, key), f"{message}; it has {', '.join(known)}")
    if weights is not None and not any(pattern.weight(code) > 0 for code in known):
        message = f"the profile {name!r} gives no weight to any equivalent of the scenario and never pays"
        yield Caution("profile_without_equivalent", props_path(name, "equivalent_weights"), f"{message}; name one")


def _amounts(survey: Survey, name: str, pattern: Behaviour, senders: Sequence[Participant]) -> Iterator[Caution]:
    cap = survey.settings.amount_cap
    for code, model in sorted(pattern.models.items()):
        if code not in survey.scenario.equivalents:
            continue
        path, least = props_path(name, f"amount_model.{code}"), model.min or 0
        if model.max is not None and (least > model.max or model.max < CENT):
            message = f"no amount in {code} fits the model of the profile {name!r}: {text(least)} to {text(model.max)}"
            yield Caution("no_amount_possible", path, f"{message}; put min below max, and max at 0.01 or above")
            continue
        if cap is not None and least > cap:
            message = f"the profile {name!r} pays at least {text(least)} {code}, above the cap of {text(cap)}"
            advice = f"raise SIMULATOR_REAL_AMOUNT_CAP (amount_cap) to {text(least)} or more"
            yield Caution("profile_silenced", path, f"{message}, and is silent: {advice}")
        largest = max((survey.largest.get((code, sender.id), 0) for sender in senders), default=0)
        if least > largest > 0:
            message = f"the profile {name!r} pays at least {text(least)} {code}, but no line lets it owe more than"
            advice = "raise limits, or lower min"
            yield Caution("profile_above_limits", path, f"{message} {text(largest)}, and is silent: {advice}")


def _direction(survey: Survey, name: str, pattern: Behaviour, senders: Sequence[Participant]) -> Iterator[Caution]:
    """Groups that a profile should pay but none of its participants can; by group of the sender for chains."""
    given = name in survey.scenario.profiles and "recipient_group_weights" in survey.scenario.profiles[name].props
    # The groups of a preset are a guess; ignore those without members.
    groups = {group for group, _ in pattern.groups if given or group in survey.members}
    groups_by_origin: dict[str | None, set[str]] = {None: groups} if groups else {}
    if survey.scenario.flow.enabled:
        for start, target in pattern.chains:
            groups_by_origin.setdefault(start, set()).add(target)
    missing = {start: set(targets) for start, targets in groups_by_origin.items()}
    able = False
    for sender in senders:
        if not any(sender.id in ways for ways in survey.out.values()):
            continue
        able = True
        goals = missing.get(None, set()) | missing.get(sender.group, set())
        if any(survey.bits.get(group, 0) & near.get(sender.id, 0) for near in survey.near.values() for group in goals):
            reached = _reached(survey, sender.id, pattern)
            for place in (None, sender.group):
                missing.get(place, set()).difference_update(reached)
    starts = {None, *(sender.group for sender in senders)}
    for origin, targets in missing.items():
        if not able or not targets or origin not in starts:
            continue
        key = "flow_chains" if origin is not None else "recipient_group_weights"
        who = f"the profile {name!r}" + (f" in the group {origin!r}" if origin is not None else "")
        message = f"no participant with {who} can reach {list_names(sorted(targets), 'group')} within {REACH_HOPS} hops"
        advice = "a line goes from the receiver to the sender of payments; turn it round, or add lines"
        yield Caution("group_out_of_reach", props_path(name, key), f"{message}: {advice}")


def _reached(survey: Survey, sender: str, pattern: Behaviour) -> set[str | None]:
    """The groups of all receivers the planner could choose."""
    groups: set[str | None] = set()
    for code, ways in survey.out.items():
        if pattern.weight(code) > 0:
            groups.update(survey.people[who].group for who in reach(ways, sender, REACH_HOPS, REACH_MOST))
    return groups


def _clamped(rate: Any) -> bool:
    value = number(rate)
    return value is not None and not 0 <= value <= 1


def _bad(key: str, value: Any) -> bool:
    """Whether the planner uses the default of the key, or of a part of it, instead of this value."""
    if key == "amount_model" and isinstance(value, dict):
        return any(amount_model(entry) is None for entry in value.values())
    return PROPS_READ[key](value) is None


# A deterministic sample: the plans of so many ticks on an empty ledger, with one seed.
SEED = 0
TICKS = 50
BUDGET = 20
WARN_FROM = 33  # per cent; every network has lines that do not mediate, and a few such payments
EXAMPLES = 3


def routes(survey: Survey) -> Iterator[Caution]:
    """Warn if too many planned payments have no allowed route even without debts."""
    network = Network(survey.scenario, survey.settings)
    planned = [payment for tick in range(TICKS) for payment in network.planner.plan(SEED, tick, BUDGET)]
    hopeless = [
        payment
        for payment in planned
        if network.ledgers[payment.book.code].processor.never(payment.sender, payment.receiver)
    ]
    if not planned or len(hopeless) * 100 < WARN_FROM * len(planned):
        return
    share = (200 * len(hopeless) + len(planned)) // (2 * len(planned))
    names = dict.fromkeys(_named(network, payment) for payment in hopeless)
    examples = ", ".join(list(names)[:EXAMPLES])
    message = f"{share} % of what these profiles may plan has no allowed route, whatever is cleared: {examples}"
    advice = "allow lines to mediate (policy.can_be_intermediate), or raise routing_max_hops"
    yield Caution("no_allowed_route", "$.trustlines", f"{message}; {advice}")


def _named(network: Network, planned: Planned) -> str:
    people = network.people.names
    return f"{people[planned.sender]} to {people[planned.receiver]} ({planned.book.code})"


def events(survey: Survey) -> Iterator[Caution]:
    for event in survey.scenario.events:
        for code, message in _about(survey, event):
            yield Caution(code, f"$.events[{event.index}]", message)


def _about(survey: Survey, event: TimelineEvent) -> Iterator[tuple[str, str]]:
    match event.type:
        case EventType.PAYMENT | EventType.CLEARING:
            ends = [(action.sender, action.receiver) for action in event.actions if isinstance(action, DatedPayment)]
            lost = sorted({end for pair in ends for end in pair if end not in survey.people})
            if lost:
                message = f"{list_names(lost, 'participant')} does not exist, so this payment fails; correct the ids"
                yield Code.PAYMENT_IMPOSSIBLE, message
        case EventType.STRESS:
            yield from _about_stress(survey, event)
        case EventType.INJECT if not survey.settings.enable_inject:
            message = "this event changes nothing while injections are off; set enable_inject to on"
            yield Code.INJECTION_SWITCHED_OFF, f"{message} (SIMULATOR_REAL_ENABLE_INJECT)"
        case EventType.INJECT:
            lost = [str(place) for place, effect in enumerate(event.effects) if not _possible(survey, effect)]
            if lost:
                message = (
                    f"{list_names(lost, 'effect')} cannot apply: a participant, a line, an equivalent or an amount"
                )
                yield Code.INJECTION_IMPOSSIBLE, f"{message} is missing or invalid; correct the ids and amounts"
            if len(event.effects) > EFFECTS_MOST:
                message = f"only the first {EFFECTS_MOST} of {len(event.effects)} effects apply"
                yield Code.INJECTION_TOO_LONG, f"{message}; spread them over several events"
        case EventType.NOTE:
            pass


def _about_stress(survey: Survey, event: TimelineEvent) -> Iterator[tuple[str, str]]:
    groups = {f"group:{group}" for group in survey.members}
    scopes = groups | {f"profile:{name}" for name in survey.by_profile if name is not None} | {"all"}
    lost = sorted({multiplier.scope for multiplier in event.multipliers} - scopes)
    if lost:
        yield (
            Code.STRESS_WITHOUT_TARGET,
            f"no participant is in {list_names(lost, 'scope')}; correct the spelling, or take it out",
        )
    if not event.multipliers:
        message = "this stress multiplies nothing; it needs effects of op mult, field tx_rate and a value above 0"
        yield Code.STRESS_WITHOUT_EFFECT, message
    length = survey.settings.tick_ms_base
    if event.time is not None and -(-event.time // length) * length >= event.time + max(event.duration, 1):
        message = f"no tick falls into the {event.duration} ms from {event.time} on; ticks are {length} ms apart"
        yield Code.STRESS_BETWEEN_TICKS, f"{message}: begin on a tick, or give duration_ms"


def _possible(survey: Survey, effect: Effect) -> bool:
    known, people = survey.scenario.equivalents, survey.people
    match effect:
        case AddParticipant(participant):
            return participant.id not in survey.present
        case CreateTrustline(line):
            ends = line.creditor in people and line.debtor in people and line.creditor != line.debtor
            return ends and line.equivalent in known and line.limit > 0
        case FreezeParticipant(participant):
            return participant in people
        case InjectDebt():
            return effect.amount > 0 and effect.creditor in survey.out.get(effect.equivalent, {}).get(effect.debtor, ())


def lint(scenario: Scenario, settings: Settings) -> tuple[Caution, ...]:
    """All warnings in a fixed order; takes a second or two for ten thousand participants."""
    survey = Survey(scenario, settings)
    return (
        *cut_off(survey),
        *lines(survey),
        *equivalents(survey),
        *groups(survey),
        *props(survey),
        *profiles(survey),
        *routes(survey),
        *events(survey),
    )


Ways = dict[str, dict[str, None]]

# Step limit of the search for cycles; ordinary networks need a hundredth of it.
STEPS_MOST = 3_000_000


def ways_of(pairs: Iterable[tuple[str, str]]) -> Ways:
    """The receivers of each sender, in the order of the pairs."""
    ways: Ways = {}
    for payer, payee in pairs:
        ways.setdefault(payer, {})[payee] = None
    return ways


def reach(ways: Ways, sender: str, hops: int, most: int) -> Iterator[str]:
    """Participants within so many hops, layer by layer, until `most` are found, including the sender."""
    seen, layer = {sender}, [sender]
    for _ in range(hops):
        fresh: list[str] = []
        for payer in layer:
            for payee in ways.get(payer, ()):
                if payee in seen:
                    continue
                if len(seen) >= most:
                    return
                seen.add(payee)
                fresh.append(payee)
                yield payee
        layer = fresh


def marks_within(ways: Ways, marks: Mapping[str, int], hops: int) -> dict[str, int]:
    """The union of the marks (bits) of all participants within so many hops of each sender."""
    reached: dict[str, int] = {}
    for _ in range(hops):
        reached = {
            payer: reduce(or_, (marks.get(payee, 0) | reached.get(payee, 0) for payee in payees))
            for payer, payees in ways.items()
        }
    return reached


def parts(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Connected components, ignoring directions; the largest first, then by id."""
    beside: Ways = {}
    for payer, payee in pairs:
        beside.setdefault(payer, {})[payee] = None
        beside.setdefault(payee, {})[payer] = None
    components: list[list[str]] = []
    seen: set[str] = set()
    for start in sorted(beside):
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for payer in part:
            fresh = [payee for payee in beside[payer] if payee not in seen]
            seen.update(fresh)
            part += fresh
        components.append(part)
    return sorted(components, key=lambda part: (-len(part), part[0]))


def has_circle(pairs: Iterable[tuple[str, str]], most: int, steps: int = STEPS_MOST) -> bool | None:
    """Whether three to `most` participants can pay in a cycle; None if the search reached its limit.

    A walk that never turns straight back and meets a participant again has gone round a circle of at least three. Such
    walks are sought from both sides of each participant, half of the length each.
    """
    ahead = ways_of(sorted(pairs))
    behind = ways_of((payee, payer) for payer, payees in ahead.items() for payee in payees)
    if most < 3:
        return False
    everybody = sorted(ahead.keys() | behind.keys())
    _peel(ahead, behind, list(everybody))
    for start in everybody:
        if start not in ahead:
            continue
        forth, spent = _walked(ahead, start, (most + 1) // 2)
        back, more = _walked(behind, start, most // 2)
        if start in forth or any(_turns(before, back.get(at)) for at, before in forth.items()):
            return True
        steps -= spent + more
        if steps < 0:
            return None
        # Remove participants that are on no cycle.
        _peel(ahead, behind, _taken(ahead, behind, start))
    return False


def _turns(before: list[str], after: list[str] | None) -> bool:
    """Whether a walk can come from one of these and continue to a different one of those."""
    return after is not None and (len(before) > 1 or len(after) > 1 or before != after)


def _peel(ahead: Ways, behind: Ways, suspects: list[str]) -> None:
    """Remove participants that cannot be on a cycle: without predecessor, without successor, or with the same one."""
    while suspects:
        suspect = suspects.pop()
        after, before = ahead.get(suspect, {}), behind.get(suspect, {})
        if not after or not before or (len(after) == 1 and after.keys() == before.keys()):
            suspects += _taken(ahead, behind, suspect)


def _taken(ahead: Ways, behind: Ways, start: str) -> list[str]:
    """Remove a participant; returns its neighbours."""
    after, before = ahead.pop(start, {}), behind.pop(start, {})
    for other in after:
        del behind[other][start]
    for other in before:
        del ahead[other][start]
    return [*after, *before]


def _walked(ways: Ways, start: str, length: int) -> tuple[dict[str, list[str]], int]:
    """Participants met on walks without immediate reversal, each with up to two predecessors, and the number of steps.

    Two are enough: coming from the first, the walk continues to all but the first; from the second, only to the first.
    """
    met: dict[str, list[str]] = {other: [start] for other in ways[start]}
    layer, steps = [(other, start) for other in met], len(met)
    for _ in range(length - 1):
        fresh: list[tuple[str, str]] = []
        for at, came_from in layer:
            first = met[at][0]
            onward: Iterable[str] = ways[at] if came_from == first else ((first,) if first in ways[at] else ())
            for target in onward:
                steps += 1
                known = met.get(target)
                if target == came_from or (known is not None and (len(known) > 1 or known[0] == at)):
                    continue
                if known is None:
                    met[target] = [at]
                else:
                    known.append(at)
                fresh.append((target, at))
        layer = fresh
    return met, steps
