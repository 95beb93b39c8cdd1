"""The scenarios that come with Pendula: readable files, by their names."""

from importlib.resources import files
from pathlib import Path

from pendula.documents import Format, read_bytes
from pendula.fleet.scenarios.model import Scenario
from pendula.fleet.scenarios.reading import read_scenario
from pendula.kernel.errors import WrongUsage

_ENDING = ".yaml"


def shipped_names() -> tuple[str, ...]:
    here = files("pendula.fleet.scenarios").joinpath("files")
    return tuple(sorted(one.name.removesuffix(_ENDING) for one in here.iterdir() if one.name.endswith(_ENDING)))


def shipped(name: str) -> Scenario:
    """One of them by its name; raises `WrongUsage` for a name that is not one."""
    if name not in shipped_names():
        raise WrongUsage(f"There is no scenario {name!r}; there are {', '.join(shipped_names())}", scenario=name)
    file = files("pendula.fleet.scenarios").joinpath("files", name + _ENDING)
    return read_scenario(read_bytes(file.read_bytes(), Format.YAML, name + _ENDING), Path())
