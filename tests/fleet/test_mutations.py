"""The mistakes that must be caught are planted, each where its text stands once."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLANTED = tomllib.loads((ROOT / "tests/mutations/mutations.toml").read_text())
REQUIRED = {
    "fleet-nodes-without-windows",
    "fleet-spacing-without-the-trailing-end",
    "fleet-node-released-by-the-pivot",
    "fleet-locks-that-expire",
    "fleet-opposite-directions-at-once",
    "fleet-backward-leads-with-its-front",
}


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_a_required_mistake_can_be_planted(name: str) -> None:
    plant = PLANTED[name]

    assert (ROOT / plant["file"]).read_text().count(plant["find"]) == 1
    assert plant["tests"]
