"""Warnings about profiles: invalid values, amounts that are never paid, unreachable groups."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pendula.credit.authoring.linting.survey import Survey
from pendula.credit.authoring.linting.wording import have, list_names, props_path
from pendula.credit.authoring.reachability import reach
from pendula.credit.model import Participant
from pendula.credit.money import CENT, text
from pendula.credit.planning.planner import REACH_HOPS, REACH_MOST
from pendula.credit.planning.profiles import AMOUNTS, DEMANDS, Behaviour, Family, behaviour, number, points
from pendula.credit.reading.scope import Caution
from pendula.documents.faults import suggestion

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
    match key, value:
        case "tx_rate", _:
            return number(value) is None
        case "base_p", _:
            return points(value) is None
        case "flow_affinity" | "cluster_bias", _:
            share = number(value)
            return share is None or not 0 <= share <= 1
        case "demand", _:
            return value not in DEMANDS
        case "periodicity_factor", _:
            return not (number(value) or 0) > 0
        case "flow_chains", list() | tuple():
            pairs = (isinstance(item, list | tuple) and len(item) == 2 for item in value)
            return not all(pairs) or not all(isinstance(end, str) for item in value for end in item)
        case "amount_model", dict():
            return not all(_amounts_fit(model) for model in value.values())
        case "equivalent_weights" | "recipient_group_weights", dict():
            weights = (number(weight) for weight in value.values())
            return any(weight is None or weight < 0 for weight in weights)
        case _:
            return True


def _amounts_fit(model: Any) -> bool:
    numbers = [model[name] for name in AMOUNTS if name in model] if isinstance(model, dict) else None
    sound = numbers is not None and all((number(value) or 0) > 0 for value in numbers)
    return sound and model.get("family") in (None, *Family)
