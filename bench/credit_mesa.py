"""The Mesa side of the credit benchmark: an equally active village of agents that plan payments.

Idiomatic Mesa: one agent per participant, `shuffle_do` once a tick, the generator of the model, amounts in floats.
The rules for receiver and amount are those of the scheduler; nothing is routed, paid, cleared, digested or checked.
"""

from collections.abc import Mapping
from importlib import import_module
from math import floor, log
from random import Random
from typing import Any, NamedTuple

from bench.credit_plain_plan import LOWEST, REACH_DEPTH, REACH_NODES, Z_90

mesa: Any = import_module("mesa")


class PlannedPayment(NamedTuple):
    sender: str
    receiver: str
    amount: float


class Villager(mesa.Agent):  # type: ignore[misc]
    def __init__(self, model: Any, name: str, group: str | None, props: Mapping[str, Any], code: str) -> None:
        super().__init__(model)
        self.name = name
        self.group = group
        self.rate = float(props.get("tx_rate", 1.0))
        self.weights = [(key, float(w)) for key, w in sorted(props.get("recipient_group_weights", {}).items()) if w > 0]
        self.targets = [target for origin, target in props.get("flow_chains", ()) if origin == group]
        self.affinity = float(props.get("flow_affinity", model.affinity))
        self.periodicity = float(props.get("periodicity_factor", 1.0))
        known = props.get("amount_model", {}).get(code)
        self.amounts = None if known is None else {key: float(value) for key, value in known.items()}
        self.creditors: list[Villager] = []
        self.limits: dict[Villager, float] = {}  # by creditor
        self.highest_out = self.highest_in = 0.0
        self.owes = self.is_owed = 0.0

    def decide(self) -> None:
        draw: Random = self.model.random
        if not self.creditors or draw.random() > self.rate:
            return
        receiver = self.choose_receiver(draw)
        amount = self.draw_amount(draw, receiver)
        if amount is not None:
            self.model.planned.append(PlannedPayment(self.name, receiver.name, amount))

    def choose_receiver(self, draw: Random) -> "Villager":
        reachable = self.reachable()
        if self.targets and self.model.flows and draw.random() < self.affinity:
            target = draw.choice(self.targets)
            if members := [villager for villager in reachable if villager.group == target]:
                return draw.choice(members)
        if self.weights:
            groups, weights = zip(*self.weights, strict=True)
            group = draw.choices(groups, weights)[0]
            if members := [villager for villager in reachable if villager.group == group]:
                return draw.choice(members)
        for group in draw.sample(self.model.groups, len(self.model.groups)):
            if members := [villager for villager in reachable if villager.group == group]:
                return draw.choice(members)
        return draw.choice(reachable)

    def reachable(self) -> list["Villager"]:
        seen, level = {self}, [self]
        for _ in range(REACH_DEPTH):
            following = []
            for villager in level:
                for creditor in villager.creditors:
                    if creditor not in seen:
                        seen.add(creditor)
                        following.append(creditor)
                        if len(seen) == REACH_NODES:
                            return sorted(seen - {self}, key=_by_name)
            level = following
        return sorted(seen - {self}, key=_by_name)

    def draw_amount(self, draw: Random, receiver: "Villager") -> float | None:
        headroom = min(self.highest_out - self.owes, receiver.highest_in - receiver.is_owed)
        if receiver in self.limits:
            headroom = min(headroom, self.limits[receiver])
        known = self.amounts or {}
        ceiling = min(headroom, self.model.cap, known.get("max", self.model.cap))
        least = known.get("min", 0.0)
        if ceiling <= 0 or least > ceiling:
            return None
        raw = _raw(draw, self.amounts, ceiling)
        amount: float = max(floor(min(raw, ceiling) * 100) / 100, least)
        if amount <= 0:
            return None
        if self.periodicity != 1.0:
            d = 1 + self.periodicity * log(max(amount / known.get("p50", 50.0), 0.1))
            if draw.random() > (0.0 if d <= 0 else min(1.0, 1 / d)):
                return None
        return amount


class Village(mesa.Model):  # type: ignore[misc]
    """`step` is a tick; `planned` then has its payments."""

    def __init__(self, scenario: Mapping[str, Any], seed: int, cap: float) -> None:
        super().__init__(seed=seed)
        flow = scenario.get("settings", {}).get("flow", {})
        self.cap = cap
        self.flows = bool(flow.get("enabled"))
        self.affinity = flow.get("default_affinity", 0.7)
        self.planned: list[PlannedPayment] = []
        profiles = {profile["id"]: profile.get("props", {}) for profile in scenario.get("behaviorProfiles", ())}
        active = [entry for entry in scenario["participants"] if entry.get("status", "active") == "active"]
        code = scenario["baseEquivalent"]
        people = {
            entry["id"]: Villager(
                self, entry["id"], entry.get("groupId"), profiles.get(entry.get("behaviorProfileId"), {}), code
            )
            for entry in active
        }
        self.groups = sorted({villager.group for villager in people.values() if villager.group})
        for line in scenario["trustlines"]:
            creditor, debtor = people.get(line["from"]), people.get(line["to"])
            if creditor and debtor:
                _add_line(creditor, debtor, float(line["limit"]))
        for villager in people.values():
            villager.creditors.sort(key=_by_name)

    def step(self) -> None:
        self.planned.clear()
        self.agents.shuffle_do("decide")


def _add_line(creditor: Villager, debtor: Villager, limit: float) -> None:
    debtor.creditors.append(creditor)
    debtor.limits[creditor] = limit
    debtor.highest_out = max(debtor.highest_out, limit)
    creditor.highest_in = max(creditor.highest_in, limit)


def _by_name(villager: Villager) -> str:
    return villager.name


def _raw(draw: Random, known: Mapping[str, float] | None, ceiling: float) -> float:
    if known is None:
        return LOWEST + draw.random() * ceiling
    low = known.get("min", LOWEST)
    p50 = min(max(known["p50"], low), ceiling) if "p50" in known else (low + ceiling) / 2
    p90 = min(max(known["p90"], p50), ceiling) if "p90" in known else p50
    if "p50" in known and p90 > p50:
        return draw.lognormvariate(log(p50), log(p90 / p50) / Z_90)
    return draw.triangular(low, ceiling, p50)
