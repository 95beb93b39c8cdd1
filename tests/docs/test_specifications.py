"""The table of sections and tests, on tiny trees: what is found, and what makes the check fail."""

from pathlib import Path
from textwrap import dedent

import pytest

from scripts import specifications
from tests.docs.markdown import ROOT

TWO = '''
    import pytest

    @pytest.mark.section("3.10 Later", interface="HTTP")
    def test_3_10_later():
        """The tenth part asks for a | that is escaped.

        Not shown.
        """

    @pytest.mark.req("TOY-1")
    @pytest.mark.section("3.9 Sooner", interface="library")
    def test_3_9_sooner():
        """The ninth part asks
        for two lines."""
'''
DIFFERENCE = """
    [[difference]]
    scheduler = "jobs"
    section = "3.2"
    says = "one"
    does = "two"
    reason = "three"
"""


def tree(root: Path, tests: str, kept_different: str = "") -> Path:
    (root / specifications.FOLDER).mkdir(parents=True)
    (root / specifications.FOLDER / "test_jobs.py").write_text(dedent(tests))
    (root / specifications.DIFFERENCES).write_text(dedent(kept_different))
    return root


def test_sections_are_in_numeric_order_with_their_requirements(tmp_path: Path) -> None:
    assert specifications.main([], tree(tmp_path, TWO, DIFFERENCE)) == 0

    rows = [line for line in (tmp_path / specifications.PAGE).read_text().splitlines() if line.startswith("| ")]
    assert "| 3.9 Sooner | The ninth part asks for two lines. | library | `test_3_9_sooner` |" in rows
    assert "| 3.10 Later | The tenth part asks for a \\| that is escaped. | HTTP | `test_3_10_later` |" in rows
    assert rows.index(next(row for row in rows if "3.9" in row)) < rows.index(
        next(row for row in rows if "3.10" in row)
    )
    assert rows[-1] == "| jobs | 3.2 | one | two | three |"
    assert specifications.main(["--check"], tmp_path) == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('@pytest.mark.section("3.10 Later", interface="HTTP")', "@pytest.mark.slow", "names no section"),
        ('interface="HTTP"', 'interface="window"', "unknown interface 'window'"),
        ('"3.10 Later"', '"3.10 " + "Later"', "with literals"),
        ('"3.10 Later"', '"Later"', "the title begins with the number"),
        ("The tenth part asks for a | that is escaped.", "Short.", "the docstring says what the section asks"),
    ],
)
def test_a_test_that_lacks_a_part_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    assert old in TWO

    assert specifications.main([], tree(tmp_path, TWO.replace(old, new))) == 1
    assert message in capsys.readouterr().err


def test_more_than_ten_differences_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert specifications.main([], tree(tmp_path, TWO, DIFFERENCE * 11)) == 1
    assert "at most 10" in capsys.readouterr().err


def test_the_tests_of_this_checkout_are_in_order() -> None:
    assert specifications.main(["--check"], ROOT) == 0
