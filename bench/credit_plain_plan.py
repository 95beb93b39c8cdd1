"""The plan of a tick by the rules: networkx for the neighbourhood, decimals."""

from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from fractions import Fraction
from importlib import import_module
from itertools import accumulate, islice
from math import floor, log
from random import Random
from typing import Any

nx: Any = import_module("networkx")

Graph = Any  # of networkx: edges from debtor to creditor with `limit` and `debt`

MASK = 0xFFFFFFFF
FACTOR = 1_000_003
REACH_DEPTH, REACH_NODES = 3, 200
POSITIONS_PER_ACTION = 50
LOWEST = 0.1
Z_90 = 1.281551565545

ZERO = Decimal(0)
CENT = Decimal("0.01")
ATOM = Decimal("0.00000001")


@dataclass(frozen=True)
class Action:
    seq: int
    sender: str
    receiver: str
    equivalent: str
    amount: Decimal

    def line(self, tick: int) -> str:
        """The line in the digest of plans."""
        return f"{tick}|{self.seq}|{self.sender}|{self.receiver}|{self.equivalent}|{self.amount:.2f}\n"


class Planner:
    def __init__(self, scenario: dict[str, Any], seed: int, cap: Decimal, actions_max: int) -> None:
        profiles = {profile["id"]: profile.get("props", {}) for profile in scenario.get("behaviorProfiles", ())}
        self.participants = {entry["id"]: entry for entry in scenario["participants"]}
        self.props = {key: profiles.get(entry.get("behaviorProfileId"), {}) for key, entry in self.participants.items()}
        self.group = {key: entry.get("groupId") for key, entry in self.participants.items()}
        self.groups = sorted({group for group in self.group.values() if group is not None})
        self.stress = [event for event in scenario.get("events", ()) if event["type"] == "stress"]
        settings = scenario.get("settings", {})
        self.warmup = settings.get("warmup", {})
        self.flow = settings.get("flow")
        self.seed, self.cap, self.actions_max = seed, cap, actions_max
        self.examined = 0

    def plan(self, tick: int, intensity: int, graphs: dict[str, Graph], active: set[str]) -> list[Action]:
        """Plan a tick; `examined` is then the number of examined positions."""
        budget = self.budget(tick, intensity)
        live = {code: self._live(graph, active) for code, graph in graphs.items()}
        candidates = sorted((code, v, u) for code, graph in live.items() for u, v in graph.edges)
        tick_seed = (self.seed * FACTOR + tick) & MASK
        Random(tick_seed).shuffle(candidates)
        planned: list[Action] = []
        self.examined = 0
        while candidates and len(planned) < budget and self.examined < POSITIONS_PER_ACTION * budget:
            position = self.examined
            self.examined += 1
            code, _, sender = candidates[position % len(candidates)]
            chance = self._rate(sender, tick) * self._weight(sender, code)
            if chance == 0:
                continue
            draw = Random((tick_seed * FACTOR + position) & MASK)
            if draw.random() > chance:
                continue
            receiver = self._receiver(draw, live[code], sender)
            amount = receiver and self._amount(draw, graphs[code], live[code], code, sender, receiver)
            if receiver and amount:
                planned.append(Action(len(planned), sender, receiver, code, amount))
        return planned

    def budget(self, tick: int, intensity: int) -> int:
        ramp = Fraction(1)
        ticks = self.warmup.get("ticks", 0)
        if tick < ticks:
            lowest = Fraction(str(self.warmup.get("floor", 0.1)))
            ramp = lowest + (1 - lowest) * tick / ticks
        return floor(self.actions_max * intensity * ramp / 100)

    def _live(self, graph: Graph, active: set[str]) -> Graph:
        live = nx.DiGraph()
        live.add_nodes_from(graph)
        for u, v, line in graph.edges(data=True):
            if line["limit"] > 0 and u in active and v in active:
                live.add_edge(u, v, limit=line["limit"])
        return live

    def _rate(self, sender: str, tick: int) -> float:
        rate = float(self.props[sender].get("tx_rate", 1.0))
        now = tick * 1000
        scopes = {"all", f"group:{self.group[sender]}", f"profile:{self.participants[sender].get('behaviorProfileId')}"}
        for event in self.stress:
            duration = event.get("metadata", {}).get("duration_ms") or event.get("params", {}).get("duration_ms") or 0
            if not event["time"] <= now < event["time"] + max(duration, 1):
                continue
            for effect in event.get("effects", ()):
                if effect["op"] == "mult" and effect["field"] == "tx_rate" and effect.get("scope", "all") in scopes:
                    rate *= min(float(effect["value"]), 10.0)
        return min(max(rate, 0.0), 1.0)

    def _weight(self, sender: str, code: str) -> float:
        weights = self.props[sender].get("equivalent_weights")
        if not weights:
            return 1.0
        most = max(weights.values())
        return float(weights.get(code, 0)) / float(most) if most else 0.0

    def _receiver(self, draw: Random, live: Graph, sender: str) -> str | None:
        hops = nx.bfs_edges(live, sender, depth_limit=REACH_DEPTH, sort_neighbors=sorted)
        reachable: list[str] = sorted(v for _, v in islice(hops, REACH_NODES - 1))
        if not reachable:
            return None
        props = self.props[sender]
        receiver = self._by_flow(draw, props, sender, reachable) or self._by_weight(draw, props, reachable)
        if receiver:
            return receiver
        if not self.groups:
            return draw.choice(reachable)
        groups = list(self.groups)
        draw.shuffle(groups)
        members = next((known for group in groups if (known := self._members(reachable, group))), None)
        return draw.choice(members or reachable)

    def _by_flow(self, draw: Random, props: dict[str, Any], sender: str, reachable: list[str]) -> str | None:
        chains = props.get("flow_chains")
        if not chains or not self.flow or not self.flow.get("enabled") or self.group[sender] is None:
            return None
        if draw.random() >= float(props.get("flow_affinity", self.flow.get("default_affinity", 0.7))):
            return None
        targets = [target for origin, target in chains if origin == self.group[sender]]
        members = self._members(reachable, draw.choice(targets)) if targets else []
        return draw.choice(members) if members else None

    def _by_weight(self, draw: Random, props: dict[str, Any], reachable: list[str]) -> str | None:
        weights = [(group, float(w)) for group, w in sorted(props.get("recipient_group_weights", {}).items()) if w > 0]
        if not weights:
            return None
        mark = draw.random() * sum(weight for _, weight in weights)
        sums = accumulate(weight for _, weight in weights)
        # Rounding may leave the mark above the last sum.
        group = next((group for (group, _), upto in zip(weights, sums, strict=True) if upto >= mark), weights[-1][0])
        members = self._members(reachable, group)
        return draw.choice(members) if members else None

    def _members(self, reachable: list[str], group: str) -> list[str]:
        return [name for name in reachable if self.group[name] == group]

    def _amount(self, draw: Random, graph: Graph, live: Graph, code: str, sender: str, receiver: str) -> Decimal | None:
        props = self.props[sender]
        model = props.get("amount_model", {}).get(code)
        given = {key: Decimal(str(value)) for key, value in (model or {}).items()}
        ceiling = min(self._headroom(graph, live, sender, receiver), self.cap, given.get("max", self.cap))
        least = given.get("min", ZERO).quantize(CENT, ROUND_UP)
        if ceiling <= 0 or given.get("min", ZERO) > ceiling:
            return None
        raw = _drawn(draw, model, given, ceiling)
        amount = max(min(Decimal(repr(raw)), ceiling).quantize(CENT, ROUND_DOWN), least)
        if amount <= 0 or amount > ceiling:
            return None
        factor = float(props.get("periodicity_factor", 1.0))
        if factor != 1.0:
            d = 1 + factor * log(max(float(amount) / float(given.get("p50", 50)), 0.1))
            accepted = 0.0 if d <= 0 else min(1.0, max(0.0, 1 / d))
            if draw.random() > accepted:
                return None
        return amount

    def _headroom(self, graph: Graph, live: Graph, sender: str, receiver: str) -> Decimal:
        out = max(line["limit"] for _, _, line in live.out_edges(sender, data=True))
        into = max(line["limit"] for _, _, line in live.in_edges(receiver, data=True))
        owed_by = sum(line["debt"] for _, _, line in graph.out_edges(sender, data=True))
        owed_to = sum(line["debt"] for _, _, line in graph.in_edges(receiver, data=True))
        left, bound = min(out - owed_by, into - owed_to), min(out, into)
        if live.has_edge(sender, receiver):
            line = graph[sender][receiver]
            left, bound = min(left, line["limit"] - line["debt"]), min(bound, line["limit"])
        headroom: Decimal = max(left, ZERO)
        bonus = Decimal(str(self.flow.get("reciprocity_bonus", 0.15))) if self.flow else ZERO
        if bonus > 0 and graph.has_edge(receiver, sender) and graph[receiver][sender]["debt"] > 0:
            headroom = min((headroom * (1 + bonus)).quantize(ATOM, ROUND_DOWN), bound)
        return headroom


def _drawn(draw: Random, model: dict[str, Any] | None, given: dict[str, Decimal], ceiling: Decimal) -> float:
    top = float(ceiling)
    if model is None:
        return LOWEST + draw.random() * top
    low = float(given["min"]) if "min" in given else LOWEST
    p50 = min(max(float(given["p50"]), low), top) if "p50" in given else None
    p90 = min(max(float(given["p90"]), p50), top) if "p90" in given and p50 is not None else None
    if p50 is not None and p90 is not None and p90 > p50:
        return draw.lognormvariate(log(p50), log(p90 / p50) / Z_90)
    return draw.triangular(low, top, (low + top) / 2 if p50 is None else p50)
