"""The package as users get it: a wheel with the page inside, in environments that hold only what it declares.

No network: the declared dependencies are copied from the environment of the tests, found through their metadata. What
is not declared is not there, so a forgotten dependency fails here.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = target.glob("*.whl")
    return path


def needed(requirements: list[str], extras: frozenset[str]) -> Iterator[Distribution]:
    """The distributions that requirements lead to, each once, by the metadata of what is installed."""
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(Requirement(text), extras) for text in requirements]
    while waiting:
        requirement, context = waiting.pop()
        if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in context | {""}):
            continue
        wanted = frozenset(requirement.extras)
        if requirement.name == "pendula":
            waiting += [(Requirement(text), wanted) for text in requirements]
            continue
        if (requirement.name, wanted) in seen:
            continue
        seen.add((requirement.name, wanted))
        found = distribution(requirement.name)
        yield found
        waiting += [(Requirement(text), wanted) for text in found.requires or []]


def environment(place: Path, wheel: Path, extras: frozenset[str]) -> Path:
    """A new environment with the wheel and exactly what it declares; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = (place / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (metadata,) = site.glob("pendula-*.dist-info")
    requirements = Distribution.at(metadata).requires or []
    for found in needed(requirements, extras):
        for file in found.files or []:
            source = Path(str(file.locate()))
            if ".." not in file.parts and "__pycache__" not in file.parts and source.is_file():
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, site / file)
    return place / "bin" / "python"


def test_the_wheel_carries_the_control_room_and_the_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {"pendula/py.typed", "pendula/server/page/index.html"} <= names
    assert any(name.startswith("pendula/server/page/assets/") and name.endswith(".js") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "bench/", "web/"))]


def test_the_bare_package_works_with_what_it_declares_and_names_the_extra_it_lacks(tmp_path: Path, wheel: Path) -> None:
    python = environment(tmp_path / "bare", wheel, frozenset())
    code = (
        "import pendula.kernel.driver, pendula.kernel.replay, pendula.kernel.rng, pendula.documents, pendula.testing\n"
        "import pendula.actions, pendula.playback\n"
        "from pendula.testing.tally import Tally\n"
        "print(Tally.create({'seed': 1}).now())\n"
    )

    imported = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    command = subprocess.run([python, "-I", "-m", "pendula", "serve"], capture_output=True, text=True, check=False)

    assert (imported.returncode, imported.stdout) == (0, "0\n"), imported.stderr
    assert command.returncode == 3
    assert 'pip install "pendula[cli]"' in command.stderr
    assert len(command.stderr.splitlines()) == 1


def test_with_all_extras_the_server_starts_from_the_wheel_and_shows_the_page(tmp_path: Path, wheel: Path) -> None:
    python = environment(tmp_path / "all", wheel, frozenset({"all"}))
    arguments = ["-I", "-m", "pendula", "serve", "--port", "0", "--data", str(tmp_path / "data"), "--demo", "--json"]
    server = subprocess.Popen([python, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, server.stderr.read() if server.stderr else ""
        address = json.loads(line)["address"]
        assert '<div id="app"' in httpx.get(f"{address}/").text
        rooms = {"none": "starting"}
        end = time.monotonic() + 30
        while "starting" in rooms.values() and time.monotonic() < end:
            rooms = {room["name"]: room["state"] for room in httpx.get(f"{address}/api/v1/rooms").json()["rooms"]}
            time.sleep(0.05)
        assert rooms == dict.fromkeys(("actions", "credit", "fleet", "jobs", "playback", "tally"), "ready")
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=20)
    assert server.returncode == 0
