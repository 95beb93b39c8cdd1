"""Random credit networks by seed: small, dense, with every feature of the format."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

PUBLIC = Path(__file__).resolve().parents[3] / "shared" / "data" / "credit"

# Order is by code point: capitals before small letters, "10" before "9".
IDS = ("10", "9", "Zoe", "_x", "ann", "b.1", "b:1", "bea", "cid-2", "cid-10", "dan", "eva")
GROUPS = ("anchors", "households", "producers", "retail", "services", "Zunft")
PRESETS = ("agent", "anchor_hub", "household", "household_frugal", "producer_large", "retail", "service")
OWN_PROFILES = ("bold", "calm", "dull", "keen")
CODES = ("EUR", "HOUR", "UAH")
ADAPTIVE = "SIMULATOR_CLEARING_ADAPTIVE_"

MALFORMED: dict[str, tuple[Any, ...]] = {
    "tx_rate": ("0.5", None, True, [], {}),
    "equivalent_weights": ([], "UAH", {"UAH": -1}, {"UAH": "1", "EUR": 2}, {"HOUR": None}),
    "recipient_group_weights": ([], 3, {"retail": -0.5}, {"retail": True, "services": 1}, {"anchors": "1"}),
    "amount_model": ([], 7, "UAH", None),
    "flow_chains": ({}, "retail", [["retail"]], [["retail", "services", "anchors"]], [["retail", 3]], ["retail"]),
    "flow_affinity": ("1", None, False, -0.1, 1.5),
    "periodicity_factor": (0, -1, "2", None, True),
}


@dataclass(frozen=True)
class Case:
    """The inputs of one run, for the oracle and for the engine."""

    scenario: dict[str, Any]
    seed: int
    ticks: int
    intensity: int
    settings: dict[str, str] = field(default_factory=dict)


def case(seed: int, adaptive: bool | None = None) -> Case:
    """A random network with settings; the policy is drawn too unless it is given."""
    luck = Random(seed)
    scenario = scenario_of(luck, seed)
    settings = settings_of(luck, luck.random() < 0.5 if adaptive is None else adaptive)
    intensity = luck.choice((0, 30, 65, *[100] * 12))
    return Case(
        scenario, luck.choice((0, 1, 42, luck.getrandbits(32), 2**40 + 7)), luck.randint(4, 11), intensity, settings
    )


def scenario_of(luck: Random, seed: int) -> dict[str, Any]:
    people = luck.sample(IDS, luck.randint(3, 8))
    codes = sorted(luck.sample(CODES, luck.choice((1, 1, 2, 3))))
    scenario: dict[str, Any] = {
        "schema_version": "scenario/1",
        "scenario_id": f"random-{seed}",
        "participants": [participant(luck, who) for who in people],
        "behaviorProfiles": profiles(luck),
        "trustlines": trustlines(luck, people, codes),
        "settings": scenario_settings(luck),
    }
    scenario["events"] = [event(luck, people, codes) for _ in range(luck.randint(0, 5))]
    if luck.random() < 0.6:
        scenario["events"].append(first_debts(luck, scenario["trustlines"]))
    if luck.random() < 0.4:
        scenario["baseEquivalent"] = codes[0].lower()
        for line in scenario["trustlines"]:
            if line["equivalent"] == codes[0] and luck.random() < 0.5:
                del line["equivalent"]
    if "baseEquivalent" not in scenario or luck.random() < 0.5:
        scenario["equivalents"] = [f" {code.lower()} " if luck.random() < 0.2 else code for code in codes]
    if luck.random() < 0.7:
        scenario["groups"] = [{"id": group, "label": group.title()} for group in luck.sample(GROUPS, 4)]
    if luck.random() < 0.2:
        scenario["seed"] = luck.getrandbits(20)
    fix_demands(Random(seed), scenario)
    add_options(Random(seed + 1_000_000), scenario)
    add_actions(Random(seed + 2_000_000), scenario, people, codes)
    return scenario


def add_options(luck: Random, scenario: dict[str, Any]) -> None:
    """Let some profiles depend on the intensity, prefer their own group, or draw normal amounts."""
    for profile in scenario["behaviorProfiles"]:
        members = dict(profile.get("props", {}))
        if luck.random() < 0.2:
            members["base_p"] = luck.choice(
                (0.5, 2, [[0, 0.1], [100, 0.9]], [[30, 0.2], [65, 1]], [], [[5]], [[9, 1], [9, 0]], "1")
            )
        if luck.random() < 0.2:
            members["cluster_bias"] = luck.choice((0, 0.5, 0.9, 1, 1.2, "1"))
        for entry in members["amount_model"].values() if isinstance(members.get("amount_model"), dict) else ():
            if isinstance(entry, dict) and luck.random() < 0.4:
                entry["family"] = luck.choice(("normal", "normal", "normal", "triangular", "lognormal", "gauss"))
                entry |= {name: luck.choice((0.4, 3, 7.5)) for name in ("mean", "sd") if luck.random() < 0.5}
        if members:
            profile["props"] = members


def add_actions(luck: Random, scenario: dict[str, Any], people: list[str], codes: list[str]) -> None:
    """Give events of type payment and clearing an action."""
    for event in scenario["events"]:
        if event["type"] == "payment" and luck.random() < 0.8:
            entries = [dated_payment(luck, people, codes) for _ in range(luck.randint(1, 3))]
            if luck.random() < 0.6:
                event["params"] = entries.pop()
            if entries:
                event["effects"] = entries
        elif event["type"] == "clearing" and luck.random() < 0.6:
            event["params"] = {"equivalent": luck.choice(codes).lower()}


def dated_payment(luck: Random, people: list[str], codes: list[str]) -> dict[str, Any]:
    sender, receiver = luck.sample([*people, "fay"], 2)
    amount = luck.choice((1, "2.50", 0.01, 7, "400"))
    return {"from": sender, "to": receiver, "amount": amount, "equivalent": luck.choice(codes)}


def fix_demands(luck: Random, scenario: dict[str, Any]) -> None:
    """Give some profiles a demand that does not depend on the ledger."""
    for profile in scenario["behaviorProfiles"]:
        if luck.random() < 0.3:
            profile["props"] = {**profile.get("props", {}), "demand": luck.choice(("fixed", "fixed", "capped", 3))}


def participant(luck: Random, who: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": who, "type": luck.choice(("person", "business", "hub"))}
    if luck.random() < 0.7:
        entry["groupId"] = luck.choice(GROUPS)
    if luck.random() < 0.75:
        entry["behaviorProfileId"] = luck.choice((*OWN_PROFILES, *OWN_PROFILES, *PRESETS, "unknown"))
    if luck.random() < 0.12:
        entry["status"] = luck.choice(("active", "suspended", "left", "deleted", "frozen"))
    return entry


def profiles(luck: Random) -> list[dict[str, Any]]:
    declared = [*OWN_PROFILES, *luck.sample(PRESETS, luck.randint(0, 3))]
    entries = []
    for place, name in enumerate(declared):
        entry: dict[str, Any] = {"id": name}
        if luck.random() < 0.9:
            entry["props"] = props(luck)
        if place and luck.random() < 0.35:
            entry["extends"] = luck.choice(declared[:place])
        if luck.random() < 0.1:
            entry["rules"] = [{"trigger": "payday", "action": "spend", "params": {"share": 0.5}}]
        entries.append(entry)
    luck.shuffle(entries)
    return entries


def props(luck: Random) -> dict[str, Any]:
    well: dict[str, Callable[[], Any]] = {
        "tx_rate": lambda: luck.choice((0, 0.05, 0.3, 0.8, 1, 1.7, -0.2)),
        "equivalent_weights": lambda: {code: luck.choice((0, 0.5, 1, 3)) for code in luck.sample(CODES, 2)},
        "recipient_group_weights": lambda: {
            group: luck.choice((0, 0.1, 0.35, 1, 2)) for group in luck.sample(GROUPS, luck.randint(0, 4))
        },
        "amount_model": lambda: {code: model(luck) for code in luck.sample(CODES, luck.randint(0, 3))},
        "flow_chains": lambda: [[luck.choice(GROUPS), luck.choice(GROUPS)] for _ in range(luck.randint(0, 6))],
        "flow_affinity": lambda: luck.choice((0, 0.3, 0.9, 1)),
        "periodicity_factor": lambda: luck.choice((0.5, 1, 1.5, 3)),
    }
    shares = {"tx_rate": 0.7, "equivalent_weights": 0.3, "recipient_group_weights": 0.5, "amount_model": 0.7}
    members: dict[str, Any] = {"mood": "fine"} if luck.random() < 0.1 else {}
    for key, draw in well.items():
        if luck.random() < shares.get(key, 0.4):
            members[key] = luck.choice(MALFORMED[key]) if luck.random() < 0.08 else draw()
    return members


def model(luck: Random) -> Any:
    if luck.random() < 0.08:
        return luck.choice(({"min": 0}, {"p50": "9"}, {"max": -3}, [], None, {"p90": True}))
    members = {
        "min": luck.choice((0.005, 0.1, 1, 2.345, 8)),
        "max": luck.choice((0.5, 4, 9.999, 25, 400)),
        "p50": luck.choice((0.2, 2, 5.5, 12, 60)),
        "p90": luck.choice((0.3, 6, 14, 30.25, 200)),
    }
    return {name: value for name, value in members.items() if luck.random() < 0.6}


def trustlines(luck: Random, people: list[str], codes: list[str]) -> list[dict[str, Any]]:
    density = luck.choice((0.2, 0.35, 0.5, 0.8))
    entries = []
    for code in codes:
        # One-way debts make cycles likely: most lines follow a ring.
        ring = luck.sample(people, len(people))
        pairs = [(a, b) for a in people for b in people if a != b and luck.random() < density / 2]
        pairs += [pair for pair in zip(ring, ring[1:] + ring[:1], strict=True) if luck.random() < 0.95]
        for creditor, debtor in sorted(set(pairs)):
            line = {"from": creditor, "to": debtor, "limit": limit(luck), "equivalent": code}
            if luck.random() < 0.3:
                line["policy"] = policy(luck, people)
            entries.append(line)
    luck.shuffle(entries)
    return entries


def limit(luck: Random) -> Any:
    kind = luck.random()
    if kind < 0.08:
        return luck.choice((0, "0", "0.00", 0.0))
    if kind < 0.2:
        return luck.choice(("7.12345678", "0.00999999", "12.00000001", "3.33333333", "0.05", "999999999999.99999999"))
    if kind < 0.4:
        return luck.randint(1, 60)
    if kind < 0.6:
        return round(luck.uniform(0.5, 40), 2)
    return f"{luck.uniform(0.5, 40):.2f}"


def policy(luck: Random, people: list[str]) -> dict[str, Any]:
    members: dict[str, Any] = {
        "auto_clearing": luck.choice((True, True, False, 0, "0", "false", "no", "off", 1, "yes")),
        "can_be_intermediate": luck.choice((True, False)),
        "max_hop_usage": luck.choice((None, 0, 1, 3)),
        "blocked_participants": luck.sample(people, luck.randint(0, 2)),
        "daily_limit": 5,
        "status": "whatever",
    }
    return {name: value for name, value in members.items() if luck.random() < 0.35}


def event(luck: Random, people: list[str], codes: list[str]) -> dict[str, Any]:
    kind = luck.choice(("stress", "stress", "stress", "inject", "inject", "inject", "note", "payment", "clearing"))
    entry: dict[str, Any] = {"type": kind, "time": luck.choice((0, 700, 1000, 2500, 4000, 6000, "day_3"))}
    if kind == "stress":
        entry["effects"] = [stress(luck) for _ in range(luck.randint(0, 3))]
        for place in ("metadata", "params"):
            if luck.random() < 0.5:
                entry[place] = {"duration_ms": luck.choice((0, 1, 1500, 3000, 20000))}
    if kind == "inject":
        entry["effects"] = [injection(luck, people, codes) for _ in range(luck.randint(1, 4))]
        if luck.random() < 0.3:
            entry["metadata"] = {"max_total_amount": luck.choice((5, "12.5"))}
    if kind == "note":
        entry |= {"label": "seen", "description": "a note", "metadata": {"by": "author"}}
    return entry


def stress(luck: Random) -> dict[str, Any]:
    scopes = ("all", f"group:{luck.choice(GROUPS)}", f"profile:{luck.choice(OWN_PROFILES)}", "village", "group:")
    effect: dict[str, Any] = {
        "op": luck.choice(("mult", "mult", "mult", "mult", "add")),
        "field": luck.choice(("tx_rate", "tx_rate", "tx_rate", "tx_rate", "amount")),
        "scope": luck.choice(scopes),
        "value": luck.choice((0.1, 0.5, 0.7, 1.5, 3, 25, 0, -2, "2", None)),
    }
    return {name: value for name, value in effect.items() if name not in ("scope", "value") or luck.random() < 0.9}


def first_debts(luck: Random, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Debts along many lines at once, so that there is something to clear."""
    effects = [
        {"op": "inject_debt", **{name: line[name] for name in ("from", "to", "equivalent")}, "amount": amount}
        for line in lines
        for amount in [luck.choice((1, 1, 2.5, 4, "6.66", 9))]
        if luck.random() < 0.8
    ]
    note = {"type": "note", "time": 0, "description": "no debts"}
    return {"type": "inject", "time": luck.choice((0, 1000, 2000)), "effects": effects} if effects else note


def injection(luck: Random, people: list[str], codes: list[str]) -> dict[str, Any]:
    creditor, debtor = luck.sample(people, 2)
    code, draw = luck.choice(codes), luck.random()
    if draw < 0.5:
        amount = luck.choice((3, "4.567", 0.009, 12.5, 40))
        ends = ("from", "to") if luck.random() < 0.9 else ("creditor", "debtor")
        return {"op": "inject_debt", ends[0]: creditor, ends[1]: debtor, "equivalent": code, "amount": amount}
    if draw < 0.7:
        return {"op": "create_trustline", "from": creditor, "to": debtor, "equivalent": code, "limit": limit(luck)}
    if draw < 0.8:
        effect: dict[str, Any] = {
            "op": "freeze_participant",
            "participant_id": luck.choice((creditor, creditor, "stranger")),
        }
        return effect | ({"freeze_trustlines": luck.random() < 0.5} if luck.random() < 0.6 else {})
    newcomer = participant(luck, luck.choice(("fay", "gus", "A", creditor)))
    effect = {"op": "add_participant", "participant": newcomer}
    if newcomer["id"] != creditor:
        effect["initial_trustlines"] = [first_line(luck, people, codes) for _ in range(luck.randint(0, 3))]
    return effect


def first_line(luck: Random, people: list[str], codes: list[str]) -> dict[str, Any]:
    line = {"sponsor": luck.choice(people), "equivalent": luck.choice(codes), "limit": limit(luck)}
    if luck.random() < 0.6:
        line["direction"] = luck.choice(("sponsor_credits_new", "new_credits_sponsor"))
    return line


def scenario_settings(luck: Random) -> dict[str, Any]:
    sections: dict[str, dict[str, Any]] = {
        "warmup": {"ticks": luck.choice((0, 2, 5, 12)), "floor": luck.choice((0, 0.1, 0.37, 1))},
        "trust_drift": {
            "enabled": luck.random() < 0.85,
            "growth_rate": luck.choice((0, 0.05, 0.333, 1)),
            "decay_rate": luck.choice((0, 0.02, 0.02, 0.155, 1)),
            "max_growth": luck.choice((1, 1.05, 2.0, 3.7)),
            "min_limit_ratio": luck.choice((0, 0.3, 0.777, 1)),
            "overload_threshold": luck.choice((0, 0.5, 0.8, 0.8, 1)),
        },
        "flow": {
            "enabled": luck.random() < 0.7,
            "default_affinity": luck.choice((0, 0.5, 1)),
            "reciprocity_bonus": luck.choice((0, 0.15, 0.4, 1)),
        },
    }
    return {
        name: {key: value for key, value in section.items() if luck.random() < 0.8}
        for name, section in sections.items()
        if luck.random() < 0.6
    }


def settings_of(luck: Random, adaptive: bool) -> dict[str, str]:
    """Settings by the names of their variables; work limits stay far above the need of these networks."""
    choices: dict[str, tuple[str, ...]] = {
        "SIMULATOR_TICK_MS_BASE": ("1000", "1000", "250", "1700"),
        "SIMULATOR_ACTIONS_PER_TICK_MAX": ("3", "5", "8"),
        "SIMULATOR_ACTIONS_PER_TICK_MIN": ("0", "0", "2"),
        "SIMULATOR_PROFILE_PRESETS": ("on", "off"),
        "SIMULATOR_REAL_AMOUNT_CAP": ("3.00", "9.999", "50", "500", "none", "off"),
        "SIMULATOR_MAX_PAYMENTS_PER_SEC": ("0", "0", "0", "4"),
        "SIMULATOR_REAL_ENABLE_INJECT": ("1", "1", "0"),
        "SIMULATOR_CLEARING_EVERY_N_TICKS": ("1", "1", "2", "2", "3", "4", "0"),
        "SIMULATOR_CLEARING_MAX_DEPTH": ("6", "6", "4", "3", "8"),
        "SIMULATOR_CLEARING_MAX_CYCLES_PER_CALL": ("100", "100", "1", "2"),
        "CLEARING_ENABLED": (*["true"] * 12, "false"),
        "ROUTING_MAX_HOPS": ("6", "6", "2", "3", "1"),
        "ROUTING_MAX_PATHS": ("3", "3", "1", "2", "5"),
    }
    settings = {name: luck.choice(values) for name, values in choices.items() if luck.random() < 0.7}
    if "SIMULATOR_MAX_PAYMENTS_PER_SEC" in settings:
        rates = Random(repr(sorted(settings.items())))
        settings["SIMULATOR_MAX_PAYMENTS_PER_SEC"] = rates.choice(("0", "1", "2", "4"))
        settings["SIMULATOR_ON_LIMIT"] = rates.choice(("wait", "wait", "drop"))
        settings["SIMULATOR_QUEUE_MAX"] = rates.choice(("1000", "5", "0"))
    # Amounts that are large compared with the limits: payments split, lines fill up, cycles close.
    settings.setdefault("SIMULATOR_REAL_AMOUNT_CAP", "20")
    settings.setdefault("SIMULATOR_CLEARING_EVERY_N_TICKS", "3")
    return settings | (adaptive_settings(luck) if adaptive else {})


def adaptive_settings(luck: Random) -> dict[str, str]:
    interval, depth = luck.randint(1, 3), luck.randint(3, 5)
    settings = {
        "WINDOW_TICKS": str(luck.randint(1, 5)),
        "NO_CAPACITY_HIGH": luck.choice(("0.2", "0.35", "0.60")),
        "NO_CAPACITY_LOW": luck.choice(("0", "0.05", "0.15")),
        "MIN_INTERVAL_TICKS": str(interval),
        "BACKOFF_MAX_INTERVAL_TICKS": str(interval + luck.randint(0, 5)),
        "MAX_DEPTH_MIN": str(depth),
        "MAX_DEPTH_MAX": str(luck.randint(depth, 6)),
        "TIME_BUDGET_MS_MIN": luck.choice(("50", "77")),
        "TIME_BUDGET_MS_MAX": luck.choice(("201", "250")),
        "WARMUP_FALLBACK_CADENCE": luck.choice(("0", "1", "2", "3")),
        "MAX_EQ_PER_TICK": luck.choice(("0", "0", "1", "2")),
    }
    chosen = {
        ADAPTIVE + name: value
        for name, value in settings.items()
        if luck.random() < 0.9 or name.startswith(("MAX_D", "NO_"))
    }
    return {"SIMULATOR_CLEARING_POLICY": "adaptive", **chosen}


def debt_graph(seed: int) -> dict[tuple[str, str], str]:
    """Debts (debtor, creditor) of one equivalent, dense enough for many cycles, with some equal amounts."""
    luck = Random(seed)
    people = luck.sample(IDS, luck.randint(3, 8))
    share = luck.choice((0.3, 0.5, 0.8))
    debts = {}
    for place, first in enumerate(people):
        for second in people[place + 1 :]:
            if luck.random() < share:
                debtor, creditor = luck.sample((first, second), 2)
                debts[debtor, creditor] = luck.choice(("1.00", "2.00", "2.00", "3.50", f"{luck.uniform(0.01, 9):.8f}"))
    return debts


def clearing_case(seed: int) -> Case:
    """No payments; a graph of debts is injected and cleared tick by tick, a few cycles per call."""
    luck, debts = Random(seed), debt_graph(seed)
    people = sorted({who for pair in debts for who in pair}) or ["ann"]
    effects = [
        {"op": "inject_debt", "from": creditor, "to": debtor, "equivalent": "UAH", "amount": amount}
        for (debtor, creditor), amount in debts.items()
    ]
    scenario: dict[str, Any] = {
        "schema_version": "scenario/1",
        "scenario_id": f"debts-{seed}",
        "equivalents": ["UAH"],
        "participants": [{"id": who, "type": "person"} for who in people],
        "trustlines": [
            {"from": creditor, "to": debtor, "limit": "9.87654321", "equivalent": "UAH"} for debtor, creditor in debts
        ],
        "events": [{"type": "inject", "time": 0, "effects": effects}] if effects else [],
        "settings": {"trust_drift": {"enabled": luck.random() < 0.5, "growth_rate": 0.333}},
    }
    settings = {
        "SIMULATOR_REAL_ENABLE_INJECT": "1",
        "SIMULATOR_CLEARING_EVERY_N_TICKS": "1",
        "SIMULATOR_CLEARING_MAX_DEPTH": luck.choice(("3", "4", "5", "6", "8")),
        "SIMULATOR_CLEARING_MAX_CYCLES_PER_CALL": luck.choice(("1", "3", "100")),
    }
    return Case(scenario, seed, 4, 0, settings)


def public_scenario(name: str) -> dict[str, Any]:
    """A scenario of the public collection; the test is skipped without the collection."""
    file = PUBLIC / name / "scenario.json"
    if not file.is_file():
        pytest.skip(f"the public scenario {name} is not beside this checkout")
    scenario: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return scenario
