"""A small network for the commands, and helpers to run them."""

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Finished

# Each pays the next one: debts form a circle of three, which every clearing reduces.
RING: dict[str, Any] = {
    "schema_version": "scenario/1",
    "scenario_id": "ring",
    "baseEquivalent": "UNIT",
    "participants": [
        {"id": "ann", "type": "person"},
        {"id": "ben", "type": "person"},
        {"id": "cleo", "type": "business"},
    ],
    "trustlines": [
        {"from": "ben", "to": "ann", "limit": 20},
        {"from": "cleo", "to": "ben", "limit": 20},
        {"from": "ann", "to": "cleo", "limit": 20},
    ],
    "events": [{"time": 2000, "type": "note", "description": "A note."}],
}
OFTEN = ("--set", "clearing_every_n_ticks=4")


def write_file(path: Path, scenario: object = RING) -> Path:
    path.write_text(scenario if isinstance(scenario, str) else json.dumps(scenario), encoding="utf-8")
    return path


def read_json(ended: Finished) -> Any:
    assert (ended.code, ended.err) == (0, ""), ended
    return json.loads(ended.out)


def error(ended: Finished) -> Any:
    assert ended.out == ""
    return json.loads(ended.err)["error"]
