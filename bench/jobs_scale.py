"""A pull beside many jobs: other queued jobs, or jobs finished long ago, must not make it slower."""

from collections.abc import Mapping
from contextlib import ExitStack, closing
from decimal import Decimal
from functools import partial
from pathlib import Path

from bench.jobs_loads import Desk, assert_all, filled
from bench.measuring.wall_time import Turns
from pendula.cli.benchmarks import Progress, Row, Target, compared

PULLED, FEW = 100, 1000
MANY, QUICK_MANY = 1_000_000, 100_000
ROUNDS, QUICK_ROUNDS = 41, 11
TWICE, A_TENTH_MORE = Target("<=", Decimal(2)), Target("<=", Decimal("1.1"))
PLAIN, WAITING, FINISHED = "few", "many waiting", "many finished"


def rows(place: Path, quick: bool, progress: Progress, unfair: str | None) -> list[Row]:
    many, rounds = (QUICK_MANY, QUICK_ROUNDS) if quick else (MANY, ROUNDS)
    in_order = (rounds + 1) * PULLED
    sizes: Mapping[str, Mapping[str, int]] = {
        PLAIN: {"waiting": FEW, "in_order": FEW},
        WAITING: {"waiting": many, "in_order": in_order},
        FINISHED: {"waiting": FEW, "in_order": FEW, "finished": many},
    }
    with ExitStack() as stack:
        desks = {}
        for name, size in sizes.items():
            path = place / f"{name.replace(' ', '-')}.db"
            progress(f"filling a store: {name}")
            filled(path, **size)
            desks[name] = stack.enter_context(closing(Desk(path)))
        progress(f"pull of {PULLED} beside {many:,} jobs")
        near = pull_turns(desks, rounds)
        # All jobs due in order of enqueue are pulled by now.
        far = pull_turns({name: desks[name] for name in (PLAIN, WAITING)}, rounds)
    waiting, finished = f"pull of {PULLED}, {many:,} waiting", f"pull of {PULLED}, {FEW:,} waiting, {many:,} finished"
    return [
        _row(f"{waiting}, due as they came", near, WAITING, TWICE, unfair, "all of them are due"),
        _row(
            f"{waiting}, due at random",
            far,
            WAITING,
            TWICE,
            unfair,
            f"each job that is pulled lies on a page of its own, and so does its place in the trail; those of {FEW:,} "
            "jobs share a few pages, whatever their order",
        ),
        _row(finished, near, FINISHED, A_TENTH_MORE, unfair, "every finished job is there with its event"),
    ]


def pull_turns(desks: Mapping[str, Desk], rounds: int) -> Turns:
    turns = Turns()
    for _ in turns.rounds(rounds):
        for name, desk in desks.items():
            turns.take(name, partial(desk.pulls, PULLED))
            # Keep the number of queued jobs for the next round.
            assert_all(201, desk.enqueues(desk.bodies(PULLED, due_in=0)))
    return turns


def _row(name: str, turns: Turns, side: str, target: Target | None, unfair: str | None, fairness: str) -> Row:
    return compared(
        name,
        turns.seconds(side) * 1000,
        turns.seconds(PLAIN) * 1000,
        "ms a pull",
        against=f"{FEW:,} waiting, no others",
        ratio=turns.share(side, PLAIN),
        target=target,
        unfair=unfair,
        fairness=fairness,
    )
