"""A generation of files of one room, kept since the room came to decide by another version: its document, its journal,
and what commands said of both. It is never made again: a version that writes other bytes gets one of its own beside it.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tests.compatibility.questions import HERE, Answer, Question, asked


class Generation(Struct, frozen=True):
    """A folder `name` with `document` in `file`, the journal that `run` wrote, and `name`.json with the answers.

    `questions` are asked of the journal, `replay` among them; `state` gives the digest of the state in it.
    """

    name: str
    file: str
    document: dict[str, Any]
    run: Question
    journal: str
    questions: Mapping[str, Question]
    state: Callable[[Path], str]

    @property
    def folder(self) -> Path:
        return HERE / self.name

    @property
    def notes(self) -> Path:
        return HERE / f"{self.name}.json"

    def noted(self, name: str) -> Any:
        return json.loads(self.notes.read_text(encoding="utf-8"))[name]

    def copied(self, target: Path) -> Path:
        return Path(shutil.copytree(self.folder, target / self.name))

    def assert_reads_as_then(self, name: str, target: Path) -> None:
        """The question `name`, asked of a copy of the journal, is answered as it was."""
        assert asked(self.questions[name], self.copied(target)) == msgspec.convert(self.noted(name), Answer)

    def assert_state_as_then(self, target: Path) -> None:
        assert self.state(self.copied(target) / self.journal) == self.noted("state")

    def assert_runs_as_then(self, target: Path) -> None:
        """The document gives the same answer, and a journal of which the same is said."""
        folder = self.copied(target)
        shutil.rmtree(folder / self.journal)
        self._write(self.document, folder)

        assert asked(self.run, folder) == msgspec.convert(self.noted("run"), Answer)
        asked(self._keeping_a_journal, folder)
        told, then = asked(self.questions["replay"], folder).said, self.noted("replay")["said"]
        # The version that wrote it is the one thing that may differ.
        assert {**told, "package": then["package"]} == then

    def _write(self, document: Mapping[str, Any], folder: Path) -> None:
        (folder / self.file).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")

    @property
    def _keeping_a_journal(self) -> Question:
        return Question(f"{self.run.words} --journal {self.journal}")

    def make(self) -> None:
        """Write the folder and the notes; fails where they are."""
        self.folder.mkdir()
        self._write(self.document, self.folder)
        answers = {"run": asked(self.run, self.folder)}
        assert asked(self._keeping_a_journal, self.folder).code == 0
        answers |= {name: asked(question, self.folder) for name, question in self.questions.items()}
        for path in self.folder.rglob("*lock"):
            path.unlink()
        told = {**msgspec.to_builtins(answers), "state": self.state(self.folder / self.journal)}
        self.notes.write_text(json.dumps(told, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
