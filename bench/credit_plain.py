"""A straightforward implementation of the rules of `credit`: a networkx graph, decimals, no optimisation.

One graph per equivalent, with an edge from debtor to creditor for every trustline. A tick does the same work as ours:
plan, pay, clear, drift of limits, invariants, digest. Features that the village does not use (blocked participants,
injections, presets, the adaptive policy) are missing; `assert_supported` rejects them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from hashlib import sha256
from importlib import import_module
from itertools import pairwise
from typing import Any

from bench.credit_plain_clearing import Cleared, greedy
from bench.credit_plain_plan import Action, Planner

nx: Any = import_module("networkx")

Graph = Any  # of networkx, which has no types
Route = tuple[list[str], Decimal]

ZERO = Decimal(0)
CENT = Decimal("0.01")
ATOM = Decimal("0.00000001")


@dataclass(frozen=True)
class Settings:
    """The settings of a run that the bench varies; the names are those of the requirements, in lower case."""

    seed: int
    cap: Decimal
    actions_per_tick_max: int
    intensity: int = 100
    max_hops: int = 6
    max_paths: int = 3
    clearing_every: int = 25
    clearing_max_depth: int = 6
    clearing_max_cycles: int = 100


@dataclass
class Counters:
    attempts: int = 0
    committed: int = 0
    no_route: int = 0
    no_capacity: int = 0
    cleared: list[Cleared] = field(default_factory=list)


class Run:
    """A run of one scenario; `tick` runs the next tick."""

    def __init__(self, scenario: dict[str, Any], settings: Settings) -> None:
        assert_supported(scenario)
        self.settings = settings
        self.counters = Counters()
        self.drift = _drift(scenario)
        self.active = {entry["id"] for entry in scenario["participants"] if entry.get("status", "active") == "active"}
        self.graphs = _graphs(scenario)
        self.planner = Planner(scenario, settings.seed, settings.cap, settings.actions_per_tick_max)
        self.plan_digest = sha256()
        self.ledger_digest = sha256()
        self.tick_index = 0

    def tick(self) -> list[Action]:
        tick = self.tick_index
        plan = self.planner.plan(tick, self.settings.intensity, self.graphs, self.active)
        for action in plan:
            self.plan_digest.update(action.line(tick).encode())
            self.pay(action)
        cleared = self._clear() if self._clearing_is_due() else {}
        if self.drift:
            self._decay(cleared)
        self.assert_invariants()
        self._digest_ledger()
        self.tick_index += 1
        return plan

    def pay(self, action: Action) -> bool:
        self.counters.attempts += 1
        graph = self.graphs[action.equivalent]
        routes = self._routes(graph, action)
        if routes is None:
            self._refuse(graph, action)
            return False
        before = {name: net_position(graph, name) for path, _ in routes for name in path}
        self._prepare(graph, routes)
        for path, amount in routes:
            for debtor, creditor in pairwise(path):
                apply_hop(graph, debtor, creditor, amount)
        for name, position in before.items():
            moved = action.amount * ((name == action.receiver) - (name == action.sender))
            assert net_position(graph, name) == position + moved, "a payment moved more than its amount"
        self.counters.committed += 1
        return True

    def _routes(self, graph: Graph, action: Action) -> list[Route] | None:
        residual = self._residual(graph, action.sender, action.receiver)
        routes: list[Route] = []
        remaining = action.amount
        while remaining > 0 and len(routes) < self.settings.max_paths:
            path = self._shortest(residual, action.sender, action.receiver)
            if path is None:
                return None
            hops = list(pairwise(path))
            amount = min(remaining, *(residual[u][v]["capacity"] for u, v in hops))
            for u, v in hops:
                residual[u][v]["capacity"] -= amount
                if residual[u][v]["capacity"] == 0:
                    residual.remove_edge(u, v)
            routes.append((path, amount))
            remaining -= amount
        return routes if remaining == 0 else None

    def _residual(self, graph: Graph, sender: str, receiver: str) -> Graph:
        residual = nx.DiGraph()
        residual.add_nodes_from((sender, receiver))
        for u, v, line in graph.edges(data=True):
            if u not in self.active or v not in self.active or v == sender or u == receiver:
                continue
            if not line["mediates"] and v != receiver:
                continue
            free = capacity(graph, u, v)
            if free > 0:
                residual.add_edge(u, v, capacity=free)
        return residual

    def _shortest(self, residual: Graph, sender: str, receiver: str) -> list[str] | None:
        try:
            path: list[str] = min(nx.all_shortest_paths(residual, sender, receiver))
        except nx.NetworkXNoPath:
            return None
        return path if len(path) - 1 <= self.settings.max_hops else None

    def _prepare(self, graph: Graph, routes: Sequence[Route]) -> None:
        reserved: dict[tuple[str, str], Decimal] = {}
        for path, amount in routes:
            for hop in pairwise(path):
                reserved[hop] = reserved.get(hop, ZERO) + amount
        assert all(capacity(graph, u, v) >= amount for (u, v), amount in reserved.items()), "a hop is overused"

    def _refuse(self, graph: Graph, action: Action) -> None:
        lines = graph.subgraph(self.active)
        try:
            hops = nx.shortest_path_length(lines, action.sender, action.receiver)
        except nx.NetworkXNoPath:
            hops = self.settings.max_hops + 1
        if hops > self.settings.max_hops:
            self.counters.no_route += 1
        else:
            self.counters.no_capacity += 1

    def _clearing_is_due(self) -> bool:
        every = self.settings.clearing_every
        return every > 0 and self.tick_index > 0 and self.tick_index % every == 0

    def _clear(self) -> dict[str, set[tuple[str, str]]]:
        """The debts on cleared cycles, by equivalent."""
        return {code: self._clear_equivalent(code) for code in sorted(self.graphs)}

    def _clear_equivalent(self, code: str) -> set[tuple[str, str]]:
        graph = self.graphs[code]
        debts = eligible_debts(graph, self.active)
        before = {name: net_position(graph, name) for name in debts}
        cleared = greedy(debts, self.settings.clearing_max_depth, self.settings.clearing_max_cycles)
        edges: set[tuple[str, str]] = set()
        for cycle, amount in cleared.cycles:
            for hop in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
                graph.edges[hop]["debt"] -= amount
                edges.add(hop)
        assert all(net_position(graph, name) == position for name, position in before.items()), "clearing moved money"
        self.counters.cleared.append(cleared)
        if self.drift:
            for hop in sorted(edges):
                self._grow(graph.edges[hop])
        return edges

    def _grow(self, line: dict[str, Any]) -> None:
        grown = min(line["limit"] * (1 + self.drift["growth_rate"]), line["original"] * self.drift["max_growth"])
        line["limit"] = max(line["limit"], grown.quantize(CENT, ROUND_DOWN))

    def _decay(self, cleared: dict[str, set[tuple[str, str]]]) -> None:
        for code, graph in self.graphs.items():
            for debtor, creditor, line in graph.edges(data=True):
                overloaded = line["limit"] > 0 and line["debt"] >= self.drift["overload_threshold"] * line["limit"]
                if not overloaded or (debtor, creditor) in cleared.get(code, ()):
                    continue
                least = line["original"] * self.drift["min_limit_ratio"]
                lower = max(
                    line["limit"] * (1 - self.drift["decay_rate"]), least, line["debt"].quantize(CENT, ROUND_UP)
                )
                line["limit"] = min(line["limit"], lower.quantize(CENT, ROUND_DOWN))

    def assert_invariants(self) -> None:
        for graph in self.graphs.values():
            assert sum(net_position(graph, name) for name in graph) == 0, "money appeared or vanished"
            for u, v, line in graph.edges(data=True):
                assert 0 <= line["debt"] <= line["limit"], "a debt is above its limit"
                assert line["debt"] == 0 or debt(graph, v, u) == 0, "two participants owe each other"

    def _digest_ledger(self) -> None:
        self.ledger_digest.update(f"tick|{self.tick_index}\n".encode())
        for code in sorted(self.graphs):
            for line in ledger_lines(code, self.graphs[code]):
                self.ledger_digest.update(line.encode())


def assert_supported(scenario: dict[str, Any]) -> None:
    policies = [line.get("policy", {}) for line in scenario["trustlines"]]
    assert not any(policy.get("blocked_participants") or "max_hop_usage" in policy for policy in policies)
    assert all(event["type"] in {"stress", "note"} for event in scenario.get("events", ()))
    assert not any("extends" in profile for profile in scenario.get("behaviorProfiles", ()))


def capacity(graph: Graph, u: str, v: str) -> Decimal:
    line = graph[u][v]
    free: Decimal = line["limit"] - line["debt"] + debt(graph, v, u)
    return max(ZERO, free)


def debt(graph: Graph, debtor: str, creditor: str) -> Decimal:
    line = graph.get_edge_data(debtor, creditor)
    return line["debt"] if line else ZERO


def net_position(graph: Graph, name: str) -> Decimal:
    credits = sum((line["debt"] for _, _, line in graph.in_edges(name, data=True)), ZERO)
    debts = sum((line["debt"] for _, _, line in graph.out_edges(name, data=True)), ZERO)
    return credits - debts


def apply_hop(graph: Graph, debtor: str, creditor: str, amount: Decimal) -> None:
    back = min(amount, debt(graph, creditor, debtor))
    if back:
        graph[creditor][debtor]["debt"] -= back
    graph[debtor][creditor]["debt"] += amount - back


def eligible_debts(graph: Graph, active: set[str]) -> Graph:
    """The debts that clearing may change, as a separate graph."""
    debts = nx.DiGraph()
    for u, v, line in graph.edges(data=True):
        if line["debt"] > 0 and line["clears"] and u in active and v in active:
            debts.add_edge(u, v, debt=line["debt"])
    return debts


def ledger_lines(code: str, graph: Graph) -> Iterator[str]:
    for debtor, creditor, line in sorted(graph.edges(data=True), key=lambda edge: edge[:2]):
        if line["debt"]:
            yield f"{code}|{debtor}|{creditor}|{line['debt']:.8f}\n"
    for debtor, creditor, line in sorted(graph.edges(data=True), key=lambda edge: (edge[1], edge[0])):
        yield f"{code}|{creditor}|{debtor}|{line['limit']:.8f}|active\n"


def _graphs(scenario: dict[str, Any]) -> dict[str, Graph]:
    base = scenario.get("baseEquivalent")
    codes = {*scenario.get("equivalents", ()), *([base] if base else ())}
    codes |= {line["equivalent"] for line in scenario["trustlines"] if "equivalent" in line}
    graphs = {code: nx.DiGraph() for code in sorted(codes)}
    for graph in graphs.values():
        graph.add_nodes_from(sorted(entry["id"] for entry in scenario["participants"]))
    for line in scenario["trustlines"]:
        policy = line.get("policy", {})
        limit = Decimal(str(line["limit"]))
        graphs[line.get("equivalent", base)].add_edge(
            line["to"],
            line["from"],
            limit=limit,
            original=limit.quantize(CENT, ROUND_DOWN),
            debt=ZERO,
            mediates=policy.get("can_be_intermediate", True),
            clears=policy.get("auto_clearing", True),
        )
    return graphs


def _drift(scenario: dict[str, Any]) -> dict[str, Decimal]:
    given = scenario.get("settings", {}).get("trust_drift", {})
    if not given.get("enabled"):
        return {}
    defaults = {"growth_rate": 0.05, "decay_rate": 0.02, "max_growth": 2, "min_limit_ratio": 0.3}
    known = {**defaults, "overload_threshold": 0.8, **{key: value for key, value in given.items() if key != "enabled"}}
    return {key: Decimal(str(value)) for key, value in known.items()}
