"""The bundled scenarios, by the names of their files."""

from importlib.resources import files
from pathlib import Path

from pendula.documents import Format, read_bytes
from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.scenarios.reading import read_scenario
from pendula.kernel.errors import WrongUsage

_ENDING = ".yaml"


def shipped_names() -> tuple[str, ...]:
    here = files("pendula.fleet.scenarios").joinpath("files")
    return tuple(sorted(file.name.removesuffix(_ENDING) for file in here.iterdir() if file.name.endswith(_ENDING)))


def shipped(name: str) -> Scenario:
    """A bundled scenario; raises `WrongUsage` for an unknown name."""
    if name not in shipped_names():
        raise WrongUsage(f"There is no scenario {name!r}; there are {', '.join(shipped_names())}", scenario=name)
    file = files("pendula.fleet.scenarios").joinpath("files", name + _ENDING)
    return read_scenario(read_bytes(file.read_bytes(), Format.YAML, name + _ENDING), Path())
