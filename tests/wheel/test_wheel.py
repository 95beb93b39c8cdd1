"""The package as users get it: a wheel with the page inside, in environments that hold only what it declares.

No network: the declared dependencies are linked from the environment of the tests, found through their metadata.
Undeclared packages are absent, so a forgotten dependency fails here.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import Distribution, distribution
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def unpacked(wheel: Path) -> Path:
    """The contents of the wheel; environments share them, so that they are compiled once."""
    place = wheel.parent / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place)
    return place


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = target.glob("*.whl")
    return path


def needed(requirements: list[str], extras: frozenset[str]) -> Iterator[Distribution]:
    """The distributions that requirements need, each once, by the installed metadata."""
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


LIBRARIES = ("msgspec", "PyYAML", "tzdata")


def environment(place: Path, unpacked: Path, extras: frozenset[str], only: tuple[str, ...] = ()) -> Path:
    """A new environment with the wheel and exactly what it declares, or `only` these; returns its program."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = (place / "lib").glob("python*/site-packages")
    for part in unpacked.iterdir():
        (site / part.name).symlink_to(part)
    (metadata,) = site.glob("pendula-*.dist-info")
    installed = Distribution.at(metadata)
    for found in needed([*only] or installed.requires or [], extras):
        for top in {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(str(found.locate_file(top)))
    (entry,) = installed.entry_points
    program = place / "bin" / entry.name
    program.write_text(f"#!{place}/bin/python -I\nfrom {entry.module} import {entry.attr}\n{entry.attr}()\n")
    program.chmod(0o755)
    return program


@contextmanager
def served(program: Path, data: Path, log: list[str]) -> Iterator[str]:
    """The address of the demo, served by this program, which stops at the end; afterwards `log` has its output."""
    command = [str(program), "serve", "--port", "0", "--data", str(data), "--demo", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line, server.stderr.read() if server.stderr else ""
        yield json.loads(line)["address"]
    finally:
        server.send_signal(signal.SIGTERM)
        log += server.communicate(timeout=300)[1].splitlines()
    assert server.returncode == 0


def states_once_started(address: str) -> dict[str, str]:
    """The states of the schedulers, once all have started."""
    schedulers = {"none": "starting"}
    end = time.monotonic() + 300
    while "starting" in schedulers.values() and time.monotonic() < end:
        schedulers = {
            scheduler["name"]: scheduler["state"]
            for scheduler in httpx.get(f"{address}/api/v1/schedulers", timeout=120).json()["schedulers"]
        }
        time.sleep(0.05)
    return schedulers


@pytest.mark.campaign
def test_the_wheel_carries_the_control_room_and_the_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {"pendula/py.typed", "pendula/server/page/index.html"} <= names
    assert any(name.startswith("pendula/server/page/assets/") and name.endswith(".js") for name in names)
    docs = {f"pendula/server/page/docs/{name}" for name in ("index.html", "reference/python/kernel.html", "404.html")}
    assert docs | {"pendula/server/page/docs/script-hashes.json"} <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "web/"))]


@pytest.mark.campaign
def test_the_libraries_alone_need_three_packages_and_the_program_says_how_to_get_the_rest(
    tmp_path: Path, unpacked: Path
) -> None:
    program = environment(tmp_path / "bare", unpacked, frozenset(), only=LIBRARIES)
    code = (
        "import pendula.kernel.driver, pendula.kernel.replay, pendula.kernel.rng, pendula.documents, pendula.testing\n"
        "import pendula.actions, pendula.playback, pendula.jobs, pendula.credit\n"
        "from pendula.testing.tally import Tally\n"
        "print(Tally.create({'seed': 1}).now())\n"
    )
    python = program.with_name("python")

    imported = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    command = subprocess.run([program, "serve"], capture_output=True, text=True, check=False)

    assert (imported.returncode, imported.stdout) == (0, "0\n"), imported.stderr
    assert command.returncode == 3
    assert "install with: pip install pendula " in command.stderr
    assert len(command.stderr.splitlines()) == 1


@pytest.mark.campaign
def test_a_plain_installation_serves_the_page_and_says_which_scheduler_needs_more(
    tmp_path: Path, unpacked: Path
) -> None:
    program = environment(tmp_path / "plain", unpacked, frozenset())

    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    log: list[str] = []
    with served(program, tmp_path / "data", log) as address:
        page = httpx.get(f"{address}/", timeout=120).text
        schedulers = states_once_started(address)

    assert version.startswith("pendula ")
    assert '<div id="app"' in page
    assert schedulers == dict.fromkeys(("actions", "credit", "jobs", "playback"), "ready")
    assert [json.loads(line)["scheduler"] for line in log if 'pip install \\"pendula[fleet]\\"' in line] == ["fleet"]


@pytest.mark.long
def test_with_the_extra_of_the_fleet_every_scheduler_starts_from_the_wheel(tmp_path: Path, unpacked: Path) -> None:
    program = environment(tmp_path / "fleet", unpacked, frozenset({"fleet"}))

    with served(program, tmp_path / "data", []) as address:
        schedulers = states_once_started(address)

    assert schedulers == dict.fromkeys(("actions", "credit", "fleet", "jobs", "playback"), "ready")


@pytest.fixture
def clean_clone(tmp_path: Path) -> Path:
    """The files that a build reads, in a clone without set-up."""
    clone = tmp_path / "clone"
    for name in ("pyproject.toml", "README.md", "LICENSE", "scripts/page_in_package.py", "web/package.json"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    (clone / "src/pendula").mkdir(parents=True)
    shutil.copy(ROOT / "src/pendula/__init__.py", clone / "src/pendula")
    return clone


def built(clone: Path, tools: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A wheel of this clone in `dist`, on a machine that has these commands and no others."""
    programs = clone.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name, script in tools.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    environ = {**os.environ, "PATH": str(programs)}
    return subprocess.run(command, cwd=clone, env=environ, capture_output=True, text=True, check=False)


NPM = "PATH=/bin:/usr/bin; test $1 = ci || { cd ../src/pendula && %s; }"
BUILDS = NPM % "mkdir -p server/page; echo built > server/page/index.html"


def test_a_clean_clone_on_a_machine_with_node_packs_the_page_it_builds(clean_clone: Path) -> None:
    ended = built(clean_clone, {"node": "echo v20.19.0", "npm": BUILDS})

    assert ended.returncode == 0, ended.stderr
    (wheel,) = (clean_clone / "dist").glob("*.whl")
    assert zipfile.ZipFile(wheel).read("pendula/server/page/index.html") == b"built\n"


@pytest.mark.parametrize(
    ("tools", "why"),
    [
        ({}, "no Node was found"),
        ({"node": "echo v18.20.0", "npm": "exit 0"}, "no Node was found"),
        (
            {"node": "echo v22.0.0", "npm": "echo E404 no such package; exit 1"},
            "the last lines were: E404 no such package",
        ),
        ({"node": "echo v22.0.0", "npm": NPM % "true"}, "made no src/pendula/server/page/index.html"),
    ],
    ids=["no Node", "an old Node", "npm fails", "no page is built"],
)
def test_a_clean_clone_that_cannot_build_the_page_is_not_packed_and_says_what_to_install(
    clean_clone: Path, tools: dict[str, str], why: str
) -> None:
    ended = built(clean_clone, tools)

    assert ended.returncode != 0
    assert why in ended.stderr
    assert "Install Node 20.19 or newer" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not [*(clean_clone / "dist").glob("*.whl")]


def with_docs(clone: Path, theme: str) -> None:
    (clone / "docs").mkdir()
    (clone / "docs/index.md").write_text("# A page of the clone\n")
    (clone / "mkdocs.yml").write_text(f"site_name: Pendula\ntheme: {theme}\n")


def test_a_clean_clone_packs_the_documentation_it_builds(clean_clone: Path) -> None:
    with_docs(clean_clone, "mkdocs")

    ended = built(clean_clone, {"node": "echo v20.19.0", "npm": BUILDS})

    assert ended.returncode == 0, ended.stderr
    (wheel,) = (clean_clone / "dist").glob("*.whl")
    assert b"A page of the clone" in zipfile.ZipFile(wheel).read("pendula/server/page/docs/index.html")


def test_a_clean_clone_that_cannot_build_the_documentation_is_not_packed(clean_clone: Path) -> None:
    with_docs(clean_clone, "no-such-theme")

    ended = built(clean_clone, {"node": "echo v20.19.0", "npm": BUILDS})

    assert ended.returncode != 0
    assert "it would lack the documentation: mkdocs build failed; the last lines were:" in ended.stderr
    assert "no-such-theme" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not [*(clean_clone / "dist").glob("*.whl")]


def test_a_build_asks_for_what_the_documentation_needs_only_where_it_is_missing(clean_clone: Path) -> None:
    asks = "import json, hatchling.build; print(json.dumps(hatchling.build.get_requires_for_build_wheel()))"

    def asked() -> list[str]:
        done = subprocess.run([sys.executable, "-c", asks], cwd=clean_clone, capture_output=True, text=True, check=True)
        names: list[str] = [Requirement(line).name for line in json.loads(done.stdout)]
        return names

    (clean_clone / "src/pendula/server/page").mkdir(parents=True)
    (clean_clone / "src/pendula/server/page/index.html").touch()
    assert asked() == []
    with_docs(clean_clone, "mkdocs")
    assert {"mkdocs", "mkdocs-material", "mkdocstrings", "msgspec", "shapely"} <= set(asked())
    (clean_clone / "src/pendula/server/page/docs").mkdir()
    (clean_clone / "src/pendula/server/page/docs/index.html").touch()
    assert asked() == []
