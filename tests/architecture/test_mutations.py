"""Every planted mistake can be planted: its text stands once where it says, and the tests that guard its law exist."""

import tomllib

import pytest

from tests.architecture.source import ROOT

PLANTED = tomllib.loads((ROOT / "tests/mutations/mutations.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("part", sorted({name.partition("-")[0] for name in PLANTED}))
def test_the_text_of_a_mistake_stands_exactly_once(part: str) -> None:
    mistakes = {name: plant for name, plant in PLANTED.items() if name.partition("-")[0] == part}

    found = {
        name: (ROOT / one["file"]).read_text(encoding="utf-8").count(one["find"]) for name, one in mistakes.items()
    }

    assert {name: times for name, times in found.items() if times != 1} == {}


def test_a_mistake_changes_something() -> None:
    assert [name for name, one in PLANTED.items() if one["find"] == one["replace"]] == []


def test_the_tests_that_guard_a_law_exist() -> None:
    assert [
        f"{name}: {test}" for name, one in PLANTED.items() for test in one["tests"] or ("none",) if not is_there(test)
    ] == []


def is_there(test: str) -> bool:
    """Whether a file of tests is there, and the test in it that is named, whatever its case."""
    file, _, name = test.partition("::")
    path = ROOT / file
    wanted = f"def {name.partition('[')[0]}("
    return path.exists() and (not name or wanted in path.read_text(encoding="utf-8"))
