"""Command groups and engines by scheduler, each imported on demand.

A scheduler is registered here for the command line.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from pendula.kernel.engine import Engine
from pendula.kernel.errors import InputRefused

if TYPE_CHECKING:
    import typer


class Group(Struct, frozen=True):
    """The commands of one scheduler: the `typer.Typer` at `target` ("module:name"), and a summary."""

    target: str
    sentence: str


class UnknownScheduler(InputRefused):
    """Facts: `scheduler` and the `known` ones."""

    code = "unknown_scheduler"


GROUPS: Mapping[str, Group] = {
    "actions": Group("pendula.cli.commands.actions:actions", "Actions of actors: run a file, check it, ask why."),
    "credit": Group(
        "pendula.cli.commands.credit:credit", "Credit networks: run a scenario, check it, fork a run, ask why."
    ),
    "fleet": Group(
        "pendula.cli.commands.fleet:fleet",
        "Fleets of trucks: compile and check maps, run scenarios, replay journals, ask why.",
    ),
    "jobs": Group("pendula.cli.commands.jobs:jobs", "Jobs that run when they are due: enqueue, work, watch, check."),
    "playback": Group(
        "pendula.cli.commands.playback:playback", "What a display shows next: run a file, play folders, ask why."
    ),
}

ENGINES: Mapping[str, str] = {
    "actions": "pendula.actions.engine:World",
    "credit": "pendula.credit.engine:Run",
    "fleet": "pendula.fleet.engine:FleetEngine",
    "playback": "pendula.playback.engine:Player",
    "tally": "pendula.testing.tally:Tally",
}


BESIDE: Mapping[str, str] = {"fleet": "pendula.fleet.runs.recording:find_map_in"}


def commands_of(group: Group) -> "typer.Typer":
    """The command tree of a scheduler."""
    return cast("typer.Typer", _imported(group.target))


def engine_of(scheduler: str) -> type[Engine[Any, Any]]:
    """The engine class of a scheduler; raises `UnknownScheduler`."""
    if scheduler not in ENGINES:
        known = sorted(ENGINES)
        raise UnknownScheduler(
            f"Unknown scheduler {scheduler!r}; known are {', '.join(known)}", scheduler=scheduler, known=known
        )
    return cast("type[Engine[Any, Any]]", _imported(ENGINES[scheduler]))


def load_compiled(scheduler: str, directory: Path) -> None:
    """Load compiled maps stored beside a journal of a fleet, so that its engine need not compile them again."""
    if scheduler in BESIDE:
        _imported(BESIDE[scheduler])(directory)


def _imported(target: str) -> Any:
    module, name = target.split(":")
    return getattr(import_module(module), name)
