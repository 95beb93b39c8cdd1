"""Random worlds with every feature, from one seed; and the comparison of engine and oracle."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

from pendula.actions import Advance, Request, RunResult, Submit, World
from pendula.actions.messages import Command, Event
from pendula.actions.runs.batch import config_of, drive
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from tests.actions.oracle import Day, Oracle

SEEDS = st.integers(0, 10**9)
# A smaller seed is no simpler world: shrinking only takes time.
unshrunk = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])

START = datetime(2025, 7, 1)  # noqa: DTZ001 - worlds have naive times of their own
SLOTS, SLOT_MINUTES = 3, 20
HORIZON = SLOTS * SLOT_MINUTES
LOCKS = ("anvil", "bridge", "cellar", "dock")
ACTORS = ("ann", "bob", "cid", "pia")
VERBS = ("clean", "dig", "fetch", "guard", "hail", "iron")
FollowUps = dict[str, list[dict[str, Any]]]
Live = dict[int, list[dict[str, Any]]]


class Scenario:
    """A document and the answer of the hook for each action that ends; `live` has requests sent after their
    minute was run."""

    def __init__(self, document: dict[str, Any], follow: FollowUps, live: Live | None = None) -> None:
        self.document = document
        self.follow = follow
        self.live = live or {}

    def with_(self, **changes: Any) -> "Scenario":
        return Scenario({**self.document, **changes}, self.follow, self.live)


class Hook:
    """The outside of a scenario: follow-ups by the id of the action that ended."""

    def __init__(self, follow: FollowUps) -> None:
        self._follow = follow

    def ask(self, name: str, question: Json) -> Json:
        assert name == "follow_up"
        assert isinstance(question, Mapping)
        outcome: Any = question["outcome"]
        assert "ended" in outcome
        # A copy, so that the caller cannot change the next answer.
        return [{"t": outcome["t"], **step} for step in self._follow.get(str(question["action_id"]), ())]


def iso(minutes: int, seconds: int = 0) -> str:
    return (START + timedelta(minutes=minutes, seconds=seconds)).isoformat()


def epoch_of(index: int = 0, horizon: int = HORIZON) -> dict[str, Any]:
    return {"index": index, "start_at": iso(index * horizon), "end_at": iso((index + 1) * horizon)}


def scenario(seed: int, epochs: int | None = None, late: bool = True) -> Scenario:
    """A random world of consecutive `epochs`, with submissions before its start if `late`."""
    luck = Random(seed)
    count = epochs or luck.choice((1, 1, 2, 3))
    until = count * HORIZON
    instances = [_instance(luck, f"A{number}", until, late) for number in range(luck.randint(1, 22))]
    if luck.random() < 0.2:
        instances.append({**luck.choice(instances)})
    follow = {f"A{n}": [_step(luck, f"F{n}", until)] for n in range(len(instances)) if luck.random() < 0.2}
    ids = [*(instance["id"] for instance in instances), *(f"F{n}" for n in range(5)), "nobody"]
    document: dict[str, Any] = {
        "epoch": epoch_of(),
        "action_defs": {verb: _definition(luck) for verb in VERBS},
        "actions_submitted": instances,
        "skills": {"ann": {verb: luck.randint(0, 3) for verb in VERBS[:3]}, "bob": _matrix(luck)},
        "skill_weights": {verb: {"base": "1", "weights": {"care": "0.9", "haste": "-0.6"}} for verb in VERBS[:4]},
        "resources": {"parts": luck.randint(0, 6), "water": "2.5"},
        "world_state": {"modifiers": [_modifier(luck, number, until) for number in range(luck.randint(0, 2))]},
        "interrupts": [_interrupt(luck, ids, until) for _ in range(luck.randint(0, 8))],
        "commands": [_command(luck, ids, until) for _ in range(luck.randint(0, 6))],
        "options": {
            "slots": SLOTS,
            "slot_minutes": SLOT_MINUTES,
            "actor_exclusive": luck.random() < 0.2,
            "pc": "pia",
            "allies": ["ann"],
            "follow_ups": True,
        },
        "epochs": count,
    }
    if luck.random() < 0.2:
        document["options"]["strict_locks"] = list(LOCKS[:3])
    for _ in range(luck.randint(0, 3)):
        _aim(luck, Scenario(document, follow))
    return Scenario(document, follow)


def watched(seed: int) -> Scenario:
    """A random world with shared locks, waits for resources, and live requests for actions started in the minute."""
    case, luck = scenario(seed), Random(-seed)
    document = {**case.document, "locks": {lock: {"capacity": luck.choice((1, 2, 2, 3))} for lock in LOCKS}}
    for verb in document["action_defs"].values():
        if luck.random() < 0.6:
            verb["on_shortage"] = "wait"
        if luck.random() < 0.3:
            need = {"name": "parts", "amount": 1, "refund": luck.random() < 0.5}
            verb["resources"] = [*verb.get("resources", ()), need]
    live: Live = {}
    for turn in range(luck.randint(1, 3)):
        days = Oracle(document, case.follow, live).days
        starts = [(day, event) for day in days for event in day.events if event["type"] == "start"]
        for number, (day, event) in enumerate(luck.sample(starts, min(len(starts), 3))):
            target, minute = event["action_id"], event["t"] + day.index * HORIZON
            request = luck.choice(({"target": target, "priority": 9}, {"cancel": target}, None, None))
            # A run cannot stop in the first minute of a later epoch: its ends are reported with the epoch before.
            if minute % HORIZON or not minute:
                step = {**_step(luck, f"L{turn}-{number}", 0), "t": minute}
                live.setdefault(minute, []).append(request or step)
    return Scenario(document, case.follow, live)


def declared(seed: int) -> Scenario:
    """A random world without user code, with the declarations of a file: follow-ups, daily and conditional modifiers,
    knowledge that expires, holds after a preemption, forced cancellations, actions that reveal themselves."""
    case, luck = (watched if seed % 2 else scenario)(seed), Random(seed + 1)
    document = {**case.document, "options": {**case.document["options"], "follow_ups": False}}
    until = document["epochs"] * HORIZON
    state: dict[str, Any] = {"weather": luck.choice(("rain", "sun")), "market": luck.random() < 0.5, "crew": 1}
    state["modifiers"] = [_conditional(luck, one) for one in document["world_state"]["modifiers"]]
    state["knowledge"] = [_expiring(luck, name, until) for name in ("rumour", "map", "key", "oath")]
    for verb in document["action_defs"].values():
        verb["interruptible"] = luck.random() < 0.7
        if verb.get("preempts") and luck.random() < 0.5:
            verb["hold_min"] = luck.choice((1, 5, 30))
        if luck.random() < 0.3:
            verb["followups"] = [_followup(luck) for _ in range(luck.randint(1, 2))]
    for command in document["commands"]:
        if "cancel" in command and luck.random() < 0.5:
            command["force"] = True
    document["options"]["confidence_threshold"] = luck.choice((0, "0.5"))
    return Scenario({**document, "world_state": state}, {}, case.live)


def _conditional(luck: Random, modifier: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in modifier.items() if name not in ("from", "to")}
    if luck.random() < 0.5:
        since, to = luck.choice((("00:10", "01:30"), ("01:45", "00:20"), (None, "02:00"), ("00:40", None)))
        times = {name: text for name, text in (("from", since), ("to", to)) if text is not None}
        modifier = {**kept, "daily": True, **times}
    if luck.random() < 0.5:
        modifier = {**modifier, "when": _condition(luck)}
    return modifier


def _condition(luck: Random) -> dict[str, Any]:
    choices: tuple[dict[str, Any], ...] = (
        {"weather": "rain"},
        {"weather": ["rain", "fog"], "market": True},
        {"crew": 1, "params.n": 1},
        {"market": [False, None]},
    )
    return luck.choice(choices)


def _expiring(luck: Random, name: str, until: int) -> dict[str, Any]:
    item: dict[str, Any] = {"id": name, "scope": luck.choice(("private", "allies_only", "pc", "public", "redacted"))}
    item |= {"freshness": luck.randrange(-20, until, 5), "ttl_min": luck.choice((0, 4, 19, 39, 60))}
    item |= {"confidence": luck.choice(("0.3", 1)), "visibility_to": luck.choice(([], ["pia"], ["bob"]))}
    return item | ({"source": luck.choice(ACTORS)} if luck.random() < 0.4 else {})


def _followup(luck: Random) -> dict[str, Any]:
    step: dict[str, Any] = {"verb": luck.choice((*VERBS, "juggle")), "after_min": luck.choice((0, 0, 3, 10, 60))}
    if luck.random() < 0.5:
        step["when"] = _condition(luck)
    if luck.random() < 0.3:
        step |= {"actor": luck.choice(ACTORS), "params": {"n": luck.randint(0, 2)}}
    return step


def _aim(luck: Random, case: Scenario) -> None:
    """Add requests for actions in every stage: running, held or suspended."""
    days = Oracle(case.document, case.follow).days
    starts = [(day, event) for day in days for event in day.events if event["type"] == "start"]
    for day, event in luck.sample(starts, min(len(starts), 3)):
        start = event["t"] + day.index * HORIZON
        within = start + luck.randint(0, max(1, event["meta"]["d"]))
        target, kind = event["action_id"], luck.random()
        if kind < 0.6:
            hold = luck.choice((0, 0, 1, 5, 30))
            case.document["interrupts"].append({"t": within, "target": target, "priority": 9, "hold_min": hold})
        if kind > 0.4:
            word = luck.choice(("cancel", "resume", "resume"))
            case.document["commands"].append({"t": within + luck.choice((0, 1, 4)), word: target})


def _definition(luck: Random) -> dict[str, Any]:
    verb: dict[str, Any] = {
        "base_duration_min": luck.choice((1, 2, 5, 10, 15, 33, 70)),
        "effort": luck.choice(("low", "medium", "high")),
        "interruptible": luck.random() < 0.7,
        "locks": luck.sample(LOCKS, luck.choice((0, 1, 1, 1, 2, 3))),
        "may_trigger_event": luck.random() < 0.6,
        "priority": luck.randint(0, 3),
        "resume": luck.choice(("auto", "auto", "manual", "drop")),
    }
    if luck.random() < 0.3:
        verb |= {"preempts": True, "interrupts": luck.choice(([], "*", [luck.choice(VERBS), luck.choice(VERBS)]))}
    if luck.random() < 0.2:
        verb["wait"] = "fail"
    if luck.random() < 0.4:
        amount = luck.choice((1, 2, "0.5"))
        kind = luck.choice(({}, {}, {"refund": True}, {"produce": True}))
        verb["resources"] = [{"name": luck.choice(("parts", "water")), "amount": amount, **kind}]
    if luck.random() < 0.2:
        verb["skill"] = luck.choice(VERBS)
    return verb


def _instance(luck: Random, name: str, until: int, late: bool) -> dict[str, Any]:
    # Round times put several events into one minute.
    minute = luck.choice((luck.randrange(until + 10), luck.randrange(0, until, 5), luck.randrange(0, until, 20)))
    if late and luck.random() < 0.05:
        minute = -luck.randint(0, 3)
    step = _step(luck, name, until)
    step.pop("t", None)
    if luck.random() < 0.5:
        step["t"] = minute
    else:
        early = -30 if minute > 0 or late else 0
        step["submitted_at"] = iso(minute, luck.choice((0, early, early)))
    return step


def _step(luck: Random, name: str, until: int) -> dict[str, Any]:
    step: dict[str, Any] = {"id": name, "actor": luck.choice(ACTORS), "verb": luck.choice(VERBS), "params": {"n": 1}}
    if luck.random() < 0.03:
        step["verb"] = "juggle"
    if luck.random() < 0.2:
        step["priority"] = luck.randint(0, 5)
    if luck.random() < 0.5:
        step["knowledge"] = [_item(luck) for _ in range(luck.randint(1, 2))]
    if luck.random() < 0.4:
        scope = luck.choice(("private", "allies_only", "pc", "public", "redacted"))
        step["visibility"] = {"scope": scope, "visibility_to": luck.choice(([], ["pia"]))}
    return step


def _item(luck: Random) -> str | dict[str, Any]:
    name = luck.choice(("rumour", "map", "key"))
    if luck.random() < 0.5:
        return name
    scope = luck.choice(("private", "allies_only", "pc", "public", "redacted"))
    return {"id": name, "to_scope": scope, "visibility_to": luck.choice(([], ["pia"])), "reveals": [0]}


def _matrix(luck: Random) -> dict[str, Any]:
    matrix = {"care": luck.choice(("-1", "0.5", "0.8", "1")), "haste": luck.choice(("-1", "0.2", "1"))}
    return {"matrix": matrix, "override": {"dig": luck.randint(0, 3)} if luck.random() < 0.5 else {}}


def _modifier(luck: Random, number: int, until: int) -> dict[str, Any]:
    one: dict[str, Any] = {"name": f"m{number}", "factor": luck.choice(("0.5", "1.25", "0.333", 2, 11))}
    if luck.random() < 0.6:
        one["from"] = luck.choice((luck.randrange(until), iso(luck.randrange(until), 30)))
    if luck.random() < 0.6:
        one["to"] = luck.randrange(until)
    if luck.random() < 0.5 or one["factor"] == 11:
        one["verbs"] = luck.sample(VERBS, 2)
    if luck.random() < 0.3:
        one["actors"] = luck.sample(ACTORS, 2)
    return one


def _interrupt(luck: Random, ids: Sequence[str], until: int) -> dict[str, Any]:
    form: dict[str, Any] = {"target": luck.choice(ids), "priority": luck.randint(0, 5)}
    form |= _when(luck, until)
    if luck.random() < 0.5:
        form["hold_min"] = luck.choice((1, 3, 10, 40))
    if luck.random() < 0.5:
        form["source"] = "alarm"
    return form


def _command(luck: Random, ids: Sequence[str], until: int) -> dict[str, Any]:
    return {luck.choice(("cancel", "resume", "resume")): luck.choice(ids), **_when(luck, until)}


def _when(luck: Random, until: int) -> dict[str, Any]:
    minute = luck.choice((luck.randrange(until), luck.randrange(0, until, 5)))
    return {"t": minute} if luck.random() < 0.7 else {"at": iso(minute)}


# The engine in the oracle's terms


def engine_run(case: Scenario) -> RunResult:
    world = World.create(config_of(case.document))
    world.outside = Hook(case.follow)
    return drive(world, lambda command: _watching(world, case.live, command), case.document)


def _watching(world: World, live: Live, command: Command) -> Outcome[Event]:
    """Apply a command, stopping in the minutes with live requests."""
    if not isinstance(command, Advance):
        return world.apply(command)
    seen: list[Event] = []
    for minute in sorted(minute for minute in live if world.now() <= minute < command.to):
        seen += world.apply(Advance(minute)).events
        for form in live[minute]:
            seen += world.apply(_command_of(form, minute)).events
        seen += world.apply(Advance(minute)).events
    seen += world.apply(command).events
    return Outcome(tuple(seen))


def _command_of(form: dict[str, Any], minute: int) -> Command:
    if "actor" in form:
        return Submit((form,))
    timed = {**form, "t": minute}
    return Request(interrupts=(timed,)) if "target" in form else Request(commands=(timed,))


def fresh(case: Scenario) -> World:
    world = World.create(config_of(case.document))
    world.outside = Hook(case.follow)
    return world


def commands_of(case: Scenario, step: int | None = None) -> list[Submit | Request | Advance]:
    """The document as commands, advancing in steps."""
    document = case.document
    until = document["epochs"] * HORIZON
    return [
        Submit(tuple(document["actions_submitted"])),
        Request(tuple(document["interrupts"]), tuple(document["commands"])),
        *(Advance(to) for to in range(step or HORIZON, until + 1, step or HORIZON)),
    ]


def core(event: Mapping[str, Any]) -> dict[str, Any]:
    """The members of an event that the requirements define."""
    named = ("segment", "d", "t_end", "waited", "d_rem", "by", "resume", "knowledge", "from_scope", "to_scope")
    others = ("reveals", "admission", "late", "reason", "forced")
    meta = {name: event["meta"][name] for name in (*named, *others) if name in event["meta"]}
    return {**{name: event[name] for name in ("seq", "type", "action_id", "t")}, "meta": meta}


def comparable(result: RunResult) -> list[dict[str, Any]]:
    """The result of the engine, in the form of `expected`."""
    days = []
    for epoch, plain in zip(result.epochs, result.as_json()["epochs"], strict=True):
        days.append(
            {
                "index": plain["epoch"]["index"],
                "events": [core(event) for event in plain["events"]],
                "pc": [event.seq for event in epoch.events if event.pc],
                "rejections": sorted((rejection["action_id"], rejection["code"]) for rejection in plain["rejections"]),
                "diagnostics": sorted(
                    (diagnostic["t"], diagnostic["code"], diagnostic["action_id"])
                    for diagnostic in plain["diagnostics"]
                ),
                "deferred": [one["id"] for one in plain["deferred"]],
                "locks": {
                    name: (_held(row["held_by"]), row["queue"])
                    for name, row in plain["locks"].items()
                    if row["held_by"] or row["queue"]
                },
                "available": _amounts(plain["resources"], "available"),
                "reserved": _amounts(plain["resources"], "reserved"),
                "carried_in": [(one["action_id"], one["remaining"]) for one in plain["carried_in"]],
            }
        )
    return days


def _held(by: str | list[str] | None) -> list[str]:
    return by if isinstance(by, list) else [] if by is None else [by]


def expected(case: Scenario) -> list[dict[str, Any]]:
    return [_day(day) for day in Oracle(case.document, case.follow, case.live).days]


def _day(day: Day) -> dict[str, Any]:
    return {
        "index": day.index,
        "events": [{name: value for name, value in event.items() if name != "pc"} for event in day.events],
        "pc": [event["seq"] for event in day.events if event["pc"]],
        "rejections": sorted(day.rejections),
        "diagnostics": sorted(day.diagnostics),
        "deferred": day.deferred,
        "locks": {name: row for name, row in day.locks.items() if row[0] or row[1]},
        "available": {name: amount for name, amount in sorted(day.available.items()) if amount},
        "reserved": {name: amount for name, amount in sorted(day.reserved.items()) if amount},
        "carried_in": day.carried_in,
    }


def _amounts(rows: Mapping[str, Any], name: str) -> dict[str, Fraction]:
    return {resource: Fraction(row[name]) for resource, row in sorted(rows.items()) if row[name]}


def events_of(outcomes: Sequence[Sequence[Event]]) -> list[Event]:
    return [event for events in outcomes for event in events]
