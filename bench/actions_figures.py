"""Further figures of `actions`, mostly ours beside ours: features, memory, empty epochs, saving, growth."""

from collections.abc import Callable
from decimal import Decimal
from statistics import median

from bench import actions_loads as loads
from bench import actions_ours as ours
from bench.actions_loads import DAY, Closed, Open
from bench.measuring.cpu_time import Rounds, cpu_seconds, paused_collector, peak_bytes
from pendula.actions import Advance, Submit, World
from pendula.actions.messages import WORLD_EVENTS
from pendula.cli.benchmarks import Progress, Row, Target, compared

AT_MOST_ALL = Target("<=", Decimal(1))
FEATURES = Target("<=", Decimal("1.5"))
GROWTH = Target("<=", Decimal("1.3"))
PREEMPTION = Target("<=", Decimal(2))

ALLOWED_BYTES = 200
EPOCHS = 10_000
SAVED = 10_000
SAVED_EVENTS = 30_000
FEW, MANY, MANY_QUICK = 10_000, 1_000_000, 100_000
RUNNING, FEW_RUNNING, ALARMS = 10_000, 100, 10_000


def rows(quick: bool, progress: Progress) -> list[Row]:
    actions = loads.SUBMISSIONS // 5 if quick else loads.SUBMISSIONS
    rounds = 3 if quick else 7
    plain = loads.opened(actions)
    progress("every feature in use")
    found = [_features(plain, loads.everything(actions), rounds)]
    progress("memory")
    found += _memory(plain, loads.closed(each=actions // loads.ACTORS))
    progress("empty epochs")
    found.append(_empty_epochs(plain, rounds))
    progress("saving and restoring")
    found.append(_saving(plain, rounds))
    progress("preemption")
    found.append(_preemption(rounds))
    progress("growth")
    found.append(_growth(MANY_QUICK if quick else MANY, 2 if quick else 3))
    return found


def _features(plain: Open, full: Open, rounds: int) -> Row:
    measured = Rounds({"full": lambda: ours.events(full), "plain": lambda: ours.events(plain)}, rounds)
    counts = {"full": _world_events(full), "plain": _world_events(plain)}
    return compared(
        "every feature in use, an event",
        measured.seconds("full") / counts["full"] * 1e6,
        measured.seconds("plain") / counts["plain"] * 1e6,
        "us",
        against="plain open load",
        ratio=measured.share("full", "plain") * counts["plain"] / counts["full"],
        target=FEATURES,
        fairness="a tenth of the actions preempts, half need resources, a third reveal something; "
        "a preempted action has more events, and their cost is shared by more",
    )


def _memory(opened: Open, closed: Closed) -> list[Row]:
    """The peak while only the schedule is made, without the load itself."""
    from bench import actions_simpy as simpy_side

    fairness = "peak of traced memory without any list of events; the instances are there before, on both sides"
    mine, theirs = _bytes_each(opened, ours.schedule), _bytes_each(opened, simpy_side.schedule)
    closed_mine, closed_theirs = _bytes_each(closed, ours.schedule), _bytes_each(closed, simpy_side.schedule)
    unit = "bytes an action"
    return [
        compared("open: memory", mine, theirs, unit, against="SimPy", target=AT_MOST_ALL, fairness=fairness),
        compared("closed: memory", closed_mine, ALLOWED_BYTES, unit, against="allowed", target=AT_MOST_ALL),
        compared(
            "closed: memory beside SimPy",
            closed_mine,
            closed_theirs,
            unit,
            against="SimPy",
            fairness="ours remembers every id that was ever used; SimPy has no ids",
        ),
    ]


def _bytes_each(load: Closed | Open, schedule: Callable[[Closed | Open], None]) -> float:
    return peak_bytes(lambda: schedule(load)) / load.actions


def _empty_epochs(plain: Open, rounds: int) -> Row:
    config = {**plain.config, "action_defs": {}}

    def empty() -> None:
        World.create(config).apply(Advance(EPOCHS * DAY))

    measured = Rounds({"empty": empty, "events": lambda: ours.events(plain)}, rounds)
    share = EPOCHS / _world_events(plain)
    return compared(
        "10 000 empty epochs",
        measured.seconds("empty") * 1e3,
        measured.seconds("events") * share * 1e3,
        "ms",
        against="10 000 events",
        ratio=measured.share("empty", "events") / share,
        target=AT_MOST_ALL,
    )


def _saving(plain: Open, rounds: int) -> Row:
    crowd = loads.crowd(SAVED)
    world = ours.prepared(crowd, recording=True)
    world.apply(Advance(0))
    state = world.state()
    assert len(world.current.actions) == SAVED
    assert World.from_state(crowd.config, state).state() == state, "the restored state differs"

    def save_and_restore() -> None:
        World.from_state(crowd.config, world.state())

    measured = Rounds({"saving": save_and_restore, "events": lambda: ours.events(plain)}, rounds)
    share = SAVED_EVENTS / _world_events(plain)
    return compared(
        "save and restore 10 000 actions",
        measured.seconds("saving") * 1e3,
        measured.seconds("events") * share * 1e3,
        "ms",
        against="30 000 events",
        ratio=measured.share("saving", "events") / share,
        target=AT_MOST_ALL,
    )


def _preemption(rounds: int) -> Row:
    """The cost of an alarm among many running actions that it does not interrupt, without starting them."""
    many, few = loads.alarms(RUNNING, ALARMS), loads.alarms(FEW_RUNNING, ALARMS)
    with paused_collector():
        turns = [(_alarm_us(many), _alarm_us(few)) for _ in range(rounds)]
    return compared(
        "an alarm among 10 000 running actions",
        median(one for one, _ in turns),
        median(other for _, other in turns),
        "us",
        against="among 100",
        ratio=median(one / other for one, other in turns),
        target=PREEMPTION,
        fairness="10 000 alarms, each interrupts one action of the verb it lists; the others have another verb",
    )


def _alarm_us(load: Open) -> float:
    world = World.create(load.config)
    world.apply(Submit(load.submissions))
    world.apply(Advance(0))
    return cpu_seconds(lambda: world.apply(Advance(ALARMS))) / ALARMS * 1e6


def _growth(many: int, rounds: int) -> Row:
    """The cost of an event by the number of actions, without creating the world."""
    few, large = loads.opened(FEW), loads.opened(many)
    with paused_collector():
        turns = [(_event_us(large), _event_us(few)) for _ in range(rounds)]
    return compared(
        f"one of {many:_} actions, an event".replace("_", " "),
        median(one for one, _ in turns),
        median(other for _, other in turns),
        "us",
        against="one of 10 000",
        ratio=median(one / other for one, other in turns),
        target=GROWTH,
        fairness="the cycle collector pauses, as batch runs may let it",
    )


def _event_us(load: Open) -> float:
    world = ours.created(load, recording=False)
    return cpu_seconds(lambda: ours.lived_through(world, load)) / (2 * load.actions) * 1e6


def _world_events(load: Open) -> int:
    return sum(isinstance(event, WORLD_EVENTS) for event in ours.events(load))
