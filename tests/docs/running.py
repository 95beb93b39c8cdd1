"""Runs the examples of a page, from top to bottom, in one directory and one namespace.

python              executed; a text block right after it is what it prints. On a page for beginners it is pasted into
                    the plain interpreter, as a reader does
python file=NAME    written to NAME, for later blocks to import or run
console             each `$ command` is run by the shell, the lines below it are what it prints; `# exit N` ends a
                    command that is meant to fail
console background  a server: keeps running while the rest of the page runs; 8765 stands for a free port
yaml, json, json5, toml  must be readable; with file=NAME written, too
text                what the block before prints, or a drawing
LANGUAGE no-run: …  not run, for the reason given

In what is printed, `…` stands for anything.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from pendula.documents import Format, read_bytes
from tests.docs.markdown import ROOT, Block, blocks, pages_of
from tests.ports import free_port

PORT = "8765"
PATIENCE_SECONDS = 600
RUNNABLE = frozenset({"python", "console"})
READABLE = frozenset({"yaml", "json", "json5", "toml"})
_EXIT = re.compile(r"# exit (?P<code>[0-9]+)\s*$")
_NO_RUN = re.compile(r"no-run: \S.{5,}")
_FILE = re.compile(r"file=(?P<name>[A-Za-z0-9_.-]+)")


class ExampleFailed(AssertionError):
    """An example of a page does not do what the page says."""


def fault_of_form(block: Block) -> str | None:
    """What is wrong with the head of a block, if anything: every block is run, or says why not."""
    if _NO_RUN.fullmatch(block.option):
        return None
    if block.language not in RUNNABLE | READABLE | {"text"}:
        return f"{block.place}: {block.language or 'a block without language'!r} is not run and gives no reason"
    options = {"": block.language in RUNNABLE | READABLE | {"text"}, "background": block.language == "console"}
    named = _FILE.fullmatch(block.option) is not None and block.language in READABLE | {"python"}
    return None if named or options.get(block.option) else f"{block.place}: {block.option!r} is unknown here"


def is_run(block: Block) -> bool:
    return block.language in RUNNABLE | READABLE and not block.option.startswith("no-run:")


class Page:
    """One run of one page's examples; `close` ends what runs in the background."""

    def __init__(self, directory: Path, pasted: bool = False) -> None:
        self._directory = directory
        self._pasted = pasted
        self._interpreter: Interpreter | None = None
        self._namespace: dict[str, Any] = {"__name__": "__main__"}
        self._port = str(free_port())
        self._background: list[subprocess.Popen[bytes]] = []
        self._environ = _environment(directory)

    def run(self, blocks: Sequence[Block]) -> None:
        for block, after in zip(blocks, [*blocks[1:], None], strict=True):
            if not is_run(block):
                continue
            expected = after.text if after is not None and after.language == "text" and after.follows else None
            self._run(block, expected)

    def close(self) -> None:
        if self._interpreter is not None:
            self._interpreter.close()
        for process in reversed(self._background):
            process.send_signal(signal.SIGTERM)
            with _impatience(process):
                code = process.wait()
            assert process.stdout is not None
            process.stdout.close()
            if code != 0:
                raise ExampleFailed(f"what ran in the background ended with {code}")

    def _run(self, block: Block, expected: str | None) -> None:
        text = block.text.replace(PORT, self._port)
        named = _FILE.fullmatch(block.option)
        if block.language in READABLE:
            _read(block)
        if named is not None:
            (self._directory / named["name"]).write_text(text, encoding="utf-8")
        elif block.language == "python":
            printed = self._paste(block, text) if self._pasted else self._python(block, text)
            if expected is not None:
                self._compare(block, printed, expected)
        elif block.language == "console":
            for command, shown in _commands(block, text):
                printed = self._start(command, shown) if block.option else self._call(block, command)
                if shown or block.option:
                    self._compare(block, printed, shown)

    def _python(self, block: Block, text: str) -> str:
        # As many empty lines before it as on the page: a traceback then names the line of the page.
        code = compile("\n" * (block.line - 1) + text, str(block.page), "exec")
        with redirect_stdout(StringIO()) as printed:
            exec(code, self._namespace)  # noqa: S102
        return printed.getvalue()

    def _paste(self, block: Block, text: str) -> str:
        if self._interpreter is None:
            self._interpreter = Interpreter(self._directory, self._environ)
        return self._interpreter.paste(block, text)

    def _call(self, block: Block, command: str) -> str:
        wanted = _EXIT.search(command)
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self._directory,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        printed = done.stdout.decode()
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        if code != int(wanted["code"] if wanted else 0):
            raise ExampleFailed(f"{block.place}: `{command}` exits with {code}:\n{printed}")
        return printed

    def _start(self, command: str, shown: str) -> str:
        """Start it and read as many lines as the page shows; it is ready when it has said them."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            cwd=self._directory,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._background.append(process)
        assert process.stdout is not None
        with _impatience(process):
            printed = b"".join(process.stdout.readline() for _ in shown.splitlines()).decode()
            self._await_ready(process)
        return printed

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        """A server answers while its engines are still opening; a reader of the page takes longer than that."""
        while process.poll() is None:
            try:
                with urlopen(f"http://127.0.0.1:{self._port}/readyz"):
                    return
            except HTTPError as not_yet:
                not_yet.close()
            threading.Event().wait(0.02)

    def _compare(self, block: Block, printed: str, expected: str) -> None:
        found, wanted = _lines(printed.replace(self._port, PORT)), _lines(expected.replace(self._port, PORT))
        pattern = ".*?".join(re.escape(part) for part in wanted.split("…"))
        if re.fullmatch(pattern, found, re.DOTALL) is None:
            raise ExampleFailed(f"{block.place} prints\n{found}\nand the page says\n{wanted}")


class Interpreter:
    """A plain interactive Python to paste into: an empty line ends what is indented, and values are echoed."""

    MARK = "-- pasted --"

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self._complaints = directory / ".complaints"
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                [sys.executable, "-i", "-q", "-u"],
                cwd=directory,
                env={**environ, "PYTHONIOENCODING": "utf-8"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )

    def paste(self, block: Block, text: str) -> str:
        """What the interpreter prints after an Enter at the end; raises `ExampleFailed` when it complains."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = self._complaints.stat().st_size
        self._process.stdin.write(f"{text}\nprint({self.MARK!r})\n".encode())
        self._process.stdin.flush()
        lines: list[str] = []
        with _impatience(self._process):
            for line in self._process.stdout:
                if line.decode() == f"{self.MARK}\n":
                    break
                lines.append(line.decode())
        said = self._complaints.read_bytes()[before:].decode(errors="replace")
        if COMPLAINT.search(said) or self._process.poll() is not None:
            raise ExampleFailed(f"{block.place} cannot be pasted into the interpreter:\n{said}")
        return "".join(lines)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        with _impatience(self._process):
            self._process.wait()
        self._process.stdout.close()


COMPLAINT = re.compile(r'^(?:>>> |\.\.\. )*(?:Traceback \(most recent call last\)|  File "<stdin>")', re.MULTILINE)


def _commands(block: Block, text: str) -> Iterator[tuple[str, str]]:
    """Each command with the output that the page shows for it."""
    if not text.startswith("$ "):
        raise ExampleFailed(f"{block.place}: a console block begins with `$ `")
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def _read(block: Block) -> None:
    match block.language:
        case "toml":
            tomllib.loads(block.text)
        case "json":
            read_bytes(block.text.encode(), Format.JSON, block.place)
            json.loads(block.text)
        case "json5":
            read_bytes(block.text.encode(), Format.JSON5, block.place)
        case "yaml":
            read_bytes(block.text.encode(), Format.YAML, block.place)


def _lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines())


def _environment(directory: Path) -> dict[str, str]:
    """An environment in which `pendula` and `python` are the ones under test."""
    programs = directory / ".bin"
    programs.mkdir()
    for name, words in (("python", ""), ("pendula", "-m pendula ")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n', encoding="utf-8")
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PENDULA_", "COVERAGE"))}
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**kept, "PATH": path, "COLUMNS": "80", "HOME": str(directory), "TERM": "dumb"}


@contextmanager
def _impatience(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Whoever waits for a process that hangs would wait for ever; this ends it."""
    timer = threading.Timer(PATIENCE_SECONDS, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def blocks_of(page: Path) -> list[Block]:
    return blocks(page, (ROOT / page).read_text(encoding="utf-8"))


# Pages whose examples take long, such as many seeds; with `--campaign` they are run like the others.
SLOW = (
    "add-a-stream",
    "bring-a-graph",
    "bring-your-own-state-machine",
    "bring-your-own-user-interface",
    "checkpoint-and-fork-a-run",
    "clearing-and-the-optimum",
    "compare-policies",
    "compile-your-first-hall",
    "describe-a-truck",
    "drill-a-failure",
    "plan-recurring-jobs",
    "read-a-compile-report",
    "read-why-a-truck-waits",
    "recompile-after-a-change",
    "run-a-remote-worker-under-governance",
    "run-several-workers",
    "serve-a-fleet",
    "serve-a-world",
    "serve-players",
    "serve-with-tokens",
    "sweep-settings",
    "tune-a-fleet",
    "watch-a-village",
)


def with_examples(scheduler: str | None) -> list[Any]:
    """The pages of a scheduler that have something to run, as parameters of a test."""
    found = [page for page in pages_of(scheduler) if any(is_run(block) for block in blocks_of(page))]
    return [pytest.param(page, marks=pytest.mark.campaign) if page.stem in SLOW else page for page in found]


def examples_of(scheduler: str | None) -> Callable[..., None]:
    """The test of a scheduler's pages, or of those of the whole: every example runs, and prints what the page says."""

    @pytest.mark.parametrize("path", with_examples(scheduler), ids=str)
    def run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with contextmanager(page_in)(tmp_path, monkeypatch, is_for_beginners(path)) as page:
            page.run(blocks_of(path))

    return run


def is_for_beginners(page: Path) -> bool:
    """Whether a reader of this page pastes what it shows into an interpreter, block after block."""
    return page == Path("README.md") or page.parent == Path("docs/tutorials")


def page_in(folder: Path, monkeypatch: pytest.MonkeyPatch, pasted: bool = False) -> Iterator[Page]:
    """A page that runs in this folder; for a fixture to hand out."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    known = set(sys.modules)
    running = Page(folder, pasted)
    try:
        yield running
    finally:
        running.close()
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
