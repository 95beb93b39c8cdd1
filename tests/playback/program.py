"""`pendula playback …` in this process, and its input files."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct
from typer.testing import CliRunner

from pendula.cli.program import run

# Golden NAE-E, HIST and PICK-D of the requirements, as files.
NAE_E = """\
seed: 1
channels:
  - {id: a, records: [{id: 1, ts: 4}, {id: 2, ts: 3}, {id: 3, ts: 2}, {id: 4, ts: 1}]}
  - {id: b, records: [{id: 11, ts: 3}, {id: 12, ts: 2}, {id: 13, ts: 1}]}
lookahead: 8
calls:
  - nae_insert: {id: 900, ts: 5}
  - nae_insert: {id: 901, ts: 6}
  - next: 24
"""
PICK_D = """\
seed: 1
channels:
  - id: a
    records: [{id: 1, ts: 8}, {id: 2, ts: 7}, {id: 3, ts: 6}, {id: 4, ts: 5}, {id: 5, ts: 4}, {id: 6, ts: 3},
              {id: 7, ts: 2}, {id: 8, ts: 1}]
  - {id: b, records: [{id: 11, ts: 3}, {id: 12, ts: 2}, {id: 13, ts: 1}]}
exposure: {mode: MaE, manual_weights: {a: 3, b: 1}}
pick: {mode: random, r: 4}
"""
HIST = """\
seed: 1
channels:
  - {id: a, records: [{id: 100, ts: 9}, {id: 101, ts: 8}, {id: 102, ts: 7}, {id: 103, ts: 6}, {id: 104, ts: 5}]}
  - {id: b, records: [{id: 200, ts: 9}, {id: 201, ts: 8}, {id: 202, ts: 7}, {id: 203, ts: 6}, {id: 204, ts: 5}]}
  - {id: c, records: [{id: 300, ts: 9}, {id: 301, ts: 8}, {id: 302, ts: 7}, {id: 303, ts: 6}, {id: 304, ts: 5}]}
history: 4
lookahead: 4
calls: [{next: 12}, {prev: 5}, {next: 5}]
"""


class Finished(Struct, frozen=True):
    code: int
    out: str
    err: str

    @property
    def result(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)["error"]


def pendula(*arguments: object, scheduler: tuple[str, ...] = ("playback",)) -> Finished:
    """`pendula("run", path)` stands for `pendula playback run path`."""
    ours = {name: None for name in os.environ if name.startswith("PENDULA_")}
    with CliRunner().isolation(env={**ours, "COLUMNS": "140"}) as (out, err, _):
        code = run([*scheduler, *(str(argument) for argument in arguments)])
        sys.stdout.flush()
        sys.stderr.flush()
        return Finished(code, out.getvalue().decode(), err.getvalue().decode())


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def media(folder: Path, *names: str) -> Path:
    """A folder of files, newest first."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(names):
        (folder / name).write_bytes(b"")
        os.utime(folder / name, (1_000_000 - place, 1_000_000 - place))
    return folder
