"""Every planted mistake can be planted: its pattern matches one place, and the tests that guard its law exist."""

import ast

import pytest

from tests.architecture.source import ROOT
from tests.mutations.anchors import NotOnce, found, planted, statements
from tests.mutations.run import Mistake, main, read_mistakes, with_mistake

PLANTED = read_mistakes((ROOT / "tests/mutations/mutations.toml").read_text(encoding="utf-8"))

SOURCE = """
LIMIT = 3


def fits(row: int, rows: list[int]) -> bool:
    count = len(rows)
    # The last row counts.
    return row < LIMIT and count < LIMIT


class Table:
    def fits(self, row: int) -> bool:
        self.rows.append(row)
        return row < LIMIT
"""


@pytest.mark.parametrize("part", sorted({mistake.name.partition("-")[0] for mistake in PLANTED}))
def test_a_mistake_has_one_place_and_changes_it(part: str) -> None:
    wrong = {}
    for mistake in PLANTED:
        if mistake.name.partition("-")[0] == part and (fault := fault_of(mistake)):
            wrong[mistake.name] = fault

    assert wrong == {}


def fault_of(mistake: Mistake) -> str | None:
    source = (ROOT / mistake.file).read_text(encoding="utf-8")
    try:
        changed = with_mistake(mistake, source)
        if mistake.where is not None:
            changed, source = written(mistake.replace), written(mistake.find)
    except (NotOnce, SyntaxError) as error:
        return str(error)
    return "it changes nothing" if changed == source else None


def written(pattern: str) -> str:
    """A pattern without its layout."""
    return ast.dump(ast.Module(statements(pattern), []))


def test_the_tests_that_guard_a_law_exist() -> None:
    assert [
        f"{mistake.name}: {test}" for mistake in PLANTED for test in mistake.tests or ("none",) if not is_there(test)
    ] == []


def is_there(test: str) -> bool:
    """Whether a test file exists, and the named test in it, without its parameters."""
    file, _, name = test.partition("::")
    path = ROOT / file
    wanted = f"def {name.partition('[')[0]}("
    return path.exists() and (not name or wanted in path.read_text(encoding="utf-8"))


def test_a_word_that_matches_no_mistake_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jornal"]) == 2

    assert capsys.readouterr() == ("", "no mistake has 'jornal' in its name\n")


def test_help_prints_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0

    assert "python tests/mutations/run.py journal" in capsys.readouterr().out


def test_a_pattern_is_found_in_its_function_alone() -> None:
    assert len(found(SOURCE, "fits", "row < LIMIT", "row <= LIMIT")) == 1
    assert len(found(SOURCE, "module", "row < LIMIT", "row <= LIMIT")) == 2
    assert found(SOURCE, "Table.has", "row < LIMIT", "row <= LIMIT") == []


def test_layout_and_names_of_local_variables_do_not_matter() -> None:
    changed = planted(SOURCE, "fits", "number   <  LIMIT and total<LIMIT", "number < LIMIT or total < LIMIT")

    assert "return (row < LIMIT or count < LIMIT)" in changed
    assert "# The last row counts." in changed


def test_a_name_of_the_module_stands_for_itself() -> None:
    assert found(SOURCE, "fits", "row < MOST", "row <= MOST") == []
    assert found(SOURCE, "fits", "LIMIT < LIMIT", "LIMIT") == []


def test_a_statement_is_replaced_or_left_out() -> None:
    changed = planted(SOURCE, "Table.fits", "self.rows.append(row)", "pass")

    assert "def fits(self, row: int) -> bool:\n        pass\n        return row < LIMIT" in changed


def test_a_pattern_of_two_places_is_refused() -> None:
    with pytest.raises(NotOnce, match="matches 2 places in module"):
        planted(SOURCE, "module", "row < LIMIT", "row <= LIMIT")
