"""Events of a scenario: due times, multipliers of stress, effects of injections."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.credit.oracle.ledger import apply_hop
from tests.credit.oracle.money import CENT, NOTHING, down_to, exact, is_number
from tests.credit.oracle.world import Line, Participant, World, code, participant

MOST_EFFECTS = 500
MOST_STRESS = 10.0


def is_first_tick_after(time: Any, sim_time_ms: int, tick_ms: int) -> bool:
    """Whether an event fires now: at the first tick at or after its time; times in words never fire."""
    return isinstance(time, int) and sim_time_ms - tick_ms < time <= sim_time_ms


def duration_of(event: Mapping[str, Any]) -> int:
    for place in ("metadata", "params"):
        if "duration_ms" in event.get(place, {}):
            return int(event[place]["duration_ms"])
    return 0


def is_stressing(event: Mapping[str, Any], sim_time_ms: int) -> bool:
    time = event["time"]
    if event["type"] != "stress" or not isinstance(time, int):
        return False
    duration = duration_of(event)
    return time <= sim_time_ms < time + duration if duration > 0 else sim_time_ms == time


def concerns(scope: Any, sender: Participant) -> bool:
    if scope == "all":
        return True
    return scope in (f"group:{sender.group}", f"profile:{sender.profile}")


def stressed_rate(world: World, sender: Participant, rate: float, sim_time_ms: int) -> float:
    """The rate times every active multiplier, in the order of the file, clamped to 0 to 1."""
    for event in world.scenario.get("events", []):
        if not is_stressing(event, sim_time_ms):
            continue
        for effect in event.get("effects", []):
            value = effect.get("value")
            if (effect.get("op"), effect.get("field")) != ("mult", "tx_rate") or not is_number(value) or value <= 0:
                continue
            if concerns(effect.get("scope", "all"), sender):
                rate *= min(float(value), MOST_STRESS)
    return min(1.0, max(0.0, rate))


def apply_due(world: World, sim_time_ms: int) -> list[tuple[int, int, int, Fraction]]:
    """Apply due injections; for each: index of the event, applied, skipped, total injected."""
    tick_ms = world.knobs.number("SIMULATOR_TICK_MS_BASE")
    broken = []
    for index, event in enumerate(world.scenario.get("events", [])):
        if event["type"] != "inject" or not is_first_tick_after(event["time"], sim_time_ms, tick_ms):
            continue
        if world.knobs.is_on("SIMULATOR_REAL_ENABLE_INJECT"):
            broken.append((index, *inject(world, event)))
    return broken


@dataclass(frozen=True)
class Dated:
    """The action of an event of type payment or clearing; a clearing has only an equivalent."""

    equivalent: str
    payment: tuple[str, str, Fraction] | None = None


def dated(world: World, sim_time_ms: int) -> list[Dated]:
    """The actions due now, in the order of the file."""
    tick_ms = world.knobs.number("SIMULATOR_TICK_MS_BASE")
    base = world.scenario.get("baseEquivalent")
    actions: list[Dated] = []
    for event in world.scenario.get("events", []):
        if event["type"] not in ("payment", "clearing") or not is_first_tick_after(event["time"], sim_time_ms, tick_ms):
            continue
        effects = list(event.get("effects", []))
        entries = [event["params"], *effects] if "params" in event else effects or [{}]
        for entry in entries:
            if event["type"] == "payment" and entry:
                who = entry["from"], entry["to"], exact(entry["amount"])
                actions.append(Dated(code(entry.get("equivalent", base)), who))
            elif event["type"] == "clearing":
                own = entry.get("equivalent", base)
                actions += [Dated(equivalent) for equivalent in (world.equivalents if own is None else [code(own)])]
    return actions


def inject(world: World, event: Mapping[str, Any]) -> tuple[int, int, Fraction]:
    most = event.get("metadata", {}).get("max_total_amount")
    applied = skipped = 0
    total = NOTHING
    for position, effect in enumerate(event["effects"]):
        done = position < MOST_EFFECTS
        if done and effect["op"] == "inject_debt":
            injected = inject_debt(world, effect, None if most is None else exact(most) - total)
            done = injected > 0
            total += injected
        elif done:
            done = EFFECTS[effect["op"]](world, effect)
        applied, skipped = applied + done, skipped + (not done)
    return applied, skipped, total


def inject_debt(world: World, effect: Mapping[str, Any], most: Fraction | None) -> Fraction:
    equivalent = code(effect["equivalent"])
    creditor = effect.get("from", effect.get("creditor"))
    debtor = effect.get("to", effect.get("debtor"))
    amount = down_to(CENT, exact(effect["amount"]))
    line = world.lines.get((equivalent, creditor, debtor))
    if amount <= 0 or line is None or line.status != "active" or (most is not None and amount > most):
        return NOTHING
    netted = max(NOTHING, amount - world.debt(equivalent, creditor, debtor))
    if world.debt(equivalent, debtor, creditor) + netted > line.limit:
        return NOTHING
    apply_hop(world.debts, equivalent, debtor, creditor, amount)
    return amount


def add_line(world: World, equivalent: str, creditor: str, debtor: str, limit: Any) -> bool:
    known = creditor in world.participants and debtor in world.participants and creditor != debtor
    name = (code(equivalent), creditor, debtor)
    if not known or name[0] not in world.equivalents or name in world.lines or exact(limit) <= 0:
        return False
    world.lines[name] = Line(exact(limit))
    return True


def create_trustline(world: World, effect: Mapping[str, Any]) -> bool:
    return add_line(world, effect["equivalent"], effect["from"], effect["to"], effect["limit"])


def add_participant(world: World, effect: Mapping[str, Any]) -> bool:
    entry = effect["participant"]
    if entry["id"] in world.participants:
        return False
    world.participants[entry["id"]] = participant(entry)
    for line in effect.get("initial_trustlines", []):
        ends = (line["sponsor"], entry["id"])
        creditor, debtor = ends if line.get("direction") != "new_credits_sponsor" else ends[::-1]
        add_line(world, line["equivalent"], creditor, debtor, line["limit"])
    return True


def freeze_participant(world: World, effect: Mapping[str, Any]) -> bool:
    who = effect["participant_id"]
    if who not in world.participants:
        return False
    world.participants[who].status = "suspended"
    if effect.get("freeze_trustlines", True):
        for (_, creditor, debtor), line in world.lines.items():
            if who in (creditor, debtor) and line.status == "active":
                line.status = "frozen"
    return True


EFFECTS = {
    "create_trustline": create_trustline,
    "add_participant": add_participant,
    "freeze_participant": freeze_participant,
}
