"""Journals of short runs, for the tests beside this file."""

from pathlib import Path
from typing import Any

from pendula.fleet.engine import FleetEngine
from pendula.fleet.runs import Recording, recording_disk
from pendula.fleet.scenarios import Run, shipped
from pendula.kernel.canonical import Json


class Recorded:
    """A scenario whose ticks go through a journal, and the recording of them."""

    def __init__(self, name: str, directory: Path, **options: Any) -> None:
        opened: list[Recording] = []

        def make_applier(engine: FleetEngine, config: Json) -> Recording:
            opened.append(Recording.begin(engine, config, recording_disk(directory), **options))
            return opened[0]

        self.run = Run(shipped(name), make_applier=make_applier)
        self.recording = opened[0]

    def step(self, ticks: int) -> None:
        for _ in range(ticks):
            self.run.step()


def recorded(name: str, directory: Path, ticks: int, **options: Any) -> Path:
    """The directory of the journal of the first ticks of a scenario."""
    made = Recorded(name, directory, **options)
    made.step(ticks)
    made.recording.close()
    return directory
