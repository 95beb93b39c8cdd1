"""Set-up as a newcomer meets it: whole checkouts, in the circumstances a machine may offer."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.setup.conftest import copy_of_checkout, without_uv

BASE_PYTHON = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PENDULA_", "PYTEST_"))}
WITHOUT_NETWORK = ["unshare", "--net", "--map-root-user"]
AS_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def call(command: list[str], environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Called from another directory than the checkout, always."""
    return subprocess.run(command, cwd="/", env=environ, capture_output=True, text=True, check=False)


def begun(ended: subprocess.CompletedProcess[str]) -> list[str]:
    """The steps that were taken."""
    return [line.split()[1] for line in ended.stderr.splitlines() if line.endswith(" …")]


def needs(*command: str) -> None:
    done = shutil.which(command[0]) and subprocess.run([*command, "true"], capture_output=True, check=False)
    if not done or done.returncode:
        pytest.skip(f"{' '.join(command)} does not work here")


# ---- a small one, without network ------------------------------------------------------------------------------------


@pytest.mark.long  # nine seconds of pip; every run of ./test has set its own checkout up
def test_a_checkout_is_set_up_once_and_again_only_when_something_changed(small_checkout: Path) -> None:
    environ = without_uv(CLEAN) | {"PYTHON": BASE_PYTHON, "PIP_NO_INDEX": "1"}
    environ.pop("HOME", None)
    run = str(small_checkout / "run")

    first, second = call([run, "--port", "1"], environ), call([run], environ)
    with (small_checkout / "pyproject.toml").open("a") as project:
        project.write("description = 'changed'\n")
    third = call([run], environ)

    served = f"served with serve --demo --port 8765 --data {small_checkout}/.pendula/data"
    assert (first.returncode, first.stdout) == (0, f"{served} --port 1\n"), first.stderr
    assert (second.returncode, second.stdout) == (0, f"{served}\n")
    assert begun(first) == ["environment", "venv-packages", "venv-project"]
    assert begun(second) == []
    assert begun(third) == ["venv-project"]


@pytest.mark.long
def test_an_unavailable_package_stops_set_up_with_one_paragraph(small_checkout: Path) -> None:
    environ = without_uv(CLEAN) | {"PYTHON": BASE_PYTHON, "PIP_NO_INDEX": "1"}
    environ.pop("PIP_FIND_LINKS", None)
    (small_checkout / "requirements.lock").write_text(f"no-such-package==1 --hash=sha256:{'0' * 64}\n")

    ended = call([str(small_checkout / "run")], environ)

    assert (ended.returncode, ended.stdout) == (3, "")
    paragraph = ended.stderr.splitlines()[-1]
    assert paragraph.startswith('Set-up stopped at step "venv-packages": neither uv nor pip could install')
    assert "No matching distribution found for no-such-package==1" in paragraph
    assert paragraph.endswith(f"All output is in {small_checkout}/.pendula/log/venv-packages.log.")


# ---- this one, in --long ---------------------------------------------------------------------------------------------


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can reach; pytest's own are private."""
    with tempfile.TemporaryDirectory(prefix="pendula ") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def set_up_and_check(checkout: Path, environ: dict[str, str], prefix: Sequence[str] = ()) -> str:
    """`./test` and `./run` work there, and a second time without anything to set up; returns what the first said."""
    test = [*prefix, str(checkout / "test"), "browser"]

    first, second = call(test, environ), call(test, environ)

    assert (first.returncode, "NOT RUN" in first.stdout) == (0, False), first.stdout + first.stderr
    assert second.returncode == 0, second.stdout + second.stderr
    assert begun(second) == []
    with served(checkout, environ, prefix) as page:
        assert '<div id="' in page
    return first.stderr


@contextlib.contextmanager
def served(checkout: Path, environ: dict[str, str], prefix: Sequence[str]) -> Iterator[str]:
    """The start page of `./run` on a free port; the server is stopped afterwards."""
    port = free_port()
    command = [*prefix, str(checkout / "run"), "--port", str(port)]
    with subprocess.Popen(
        command, cwd="/", env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            yield page_of(port, server)
        finally:
            server.terminate()


def page_of(port: int, server: subprocess.Popen[bytes]) -> str:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=300) as answer:
                return str(answer.read().decode())
        except urllib.error.URLError:
            time.sleep(0.1)  # the server says nothing to us when it begins to listen
    raise AssertionError(f"./run ended with {server.returncode}")


@pytest.mark.long
def test_a_tarball_in_a_path_with_a_space_may_be_moved_and_needs_no_network_once_set_up(place: Path) -> None:
    checkout = copy_of_checkout(place / "a tarball")
    set_up_and_check(checkout, CLEAN)
    checkout = checkout.rename(place / "moved")
    set_up_and_check(checkout, CLEAN)
    needs(*WITHOUT_NETWORK)

    offline = call([*WITHOUT_NETWORK, str(checkout / "scripts/setup"), "test"], CLEAN)

    assert (offline.returncode, len(offline.stderr.splitlines())) == (0, 1), offline.stderr


@pytest.mark.long
def test_a_user_who_is_not_root_and_has_no_home(place: Path) -> None:
    needs(*AS_NOBODY)
    checkout = copy_of_checkout(place / "checkout")
    subprocess.run(["chown", "-R", "65534:65534", str(checkout)], check=True)

    set_up_and_check(checkout, CLEAN | {"HOME": "/nonexistent"}, AS_NOBODY)

    assert not Path("/nonexistent").exists()


@pytest.mark.long
def test_a_home_that_is_not_set(place: Path) -> None:
    environ = {name: value for name, value in CLEAN.items() if name != "HOME"}

    set_up_and_check(copy_of_checkout(place / "checkout"), environ)


@pytest.mark.long
def test_a_home_that_cannot_be_written(place: Path) -> None:
    needs(*AS_NOBODY)
    checkout, home = copy_of_checkout(place / "checkout"), place / "home"
    subprocess.run(["chown", "-R", "65534:65534", str(checkout)], check=True)
    home.mkdir()

    set_up_and_check(checkout, CLEAN | {"HOME": str(home)}, AS_NOBODY)

    assert list(home.iterdir()) == []


@pytest.mark.long
def test_a_machine_without_node_gets_it_from_a_wheel(place: Path) -> None:
    tools = path_without(place / "bin", "node", "npm", "npx")

    checkout, environ = copy_of_checkout(place / "checkout"), CLEAN | {"PATH": tools}

    said = set_up_and_check(checkout, environ)
    lint = call([str(checkout / "test"), "lint"], environ)

    assert "set-up: venv-node done" in said
    assert ("tsc: passed" in lint.stdout, "vitest: passed" in lint.stdout) == (True, True), lint.stdout


@pytest.mark.long
def test_a_python_without_ensurepip_is_filled_by_another_installer(place: Path) -> None:
    """ensurepip is hidden by an empty folder over it, in a mount namespace of its own."""
    ensurepip = call([BASE_PYTHON, "-c", "import ensurepip; print(*ensurepip.__path__)"], CLEAN).stdout.strip()
    hidden = [
        "unshare",
        "--mount",
        "--map-root-user",
        "sh",
        "-c",
        f"mount -t tmpfs none '{ensurepip}' && exec \"$@\"",
        "sh",
    ]
    needs(*hidden)
    checkout = copy_of_checkout(place / "checkout")

    ended = call([*hidden, str(checkout / "scripts/setup"), "run"], CLEAN | {"PYTHON": BASE_PYTHON})

    assert ended.returncode == 0, ended.stderr
    assert "--without-pip" in (checkout / ".pendula/log/environment.log").read_text()
    assert (checkout / ".venv/bin/pendula").exists()


@pytest.mark.long
def test_a_clone_is_clean_after_both_and_a_taken_port_is_one_sentence(place: Path) -> None:
    needs("git", "--version")
    checkout = copy_of_checkout(place / "clone")
    git = ["git", "-C", str(checkout), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run([*git, *words], check=True)
    set_up_and_check(checkout, CLEAN)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = call([str(checkout / "run"), "--port", str(taken.getsockname()[1])], CLEAN)

    assert ended.returncode == 3
    assert len([line for line in ended.stderr.splitlines() if not line.startswith("set-up: ")]) == 1, ended.stderr
    assert call([*git, "status", "--porcelain"], CLEAN).stdout == ""


def path_without(folder: Path, *names: str) -> str:
    """A PATH of links to every command of this one but the named."""
    folder.mkdir()
    for source in reversed(CLEAN.get("PATH", os.defpath).split(os.pathsep)):
        for command in Path(source).iterdir() if Path(source).is_dir() else []:
            (folder / command.name).unlink(missing_ok=True)
            (folder / command.name).symlink_to(command)
    for name in names:
        (folder / name).unlink(missing_ok=True)
    return str(folder)
