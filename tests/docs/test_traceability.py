"""The table of requirements and tests, on tiny trees: what is found, and what turns the check red."""

from pathlib import Path
from textwrap import dedent

import pytest

from scripts import traceability
from tests.docs.markdown import ROOT

DOCUMENT = """
    # Requirements

    **TOY-TIME-1 (MUST)** Time goes forward. See TOY-TIME-9.
    **TOY-TIME-2 (SHOULD) [L1]** Slowly.
    **TOY-TIME-2a (SHOULD) [L1]** What came between.
    - **TOY-DET-1** MUST. Always the same. *(seed)*
    **TOY-MAP-1** (MUST NOT) Never.
    | TOY-TEST-10 (MAY) | a table |
    | **TOY-TEST-11** SHOULD | another |
    - **TOY-ADP-20** Worked trace.
    TOY-TIME-8 is mentioned at the start of a line.
"""


def tree(root: Path, tests: str, complete: str = "") -> Path:
    """A checkout beside a requirement document, with one module of tests."""
    checkout = root / "checkout"
    for folder in ("checkout/docs/reference", "checkout/tests/toy", "shared/requirements"):
        (root / folder).mkdir(parents=True)
    (root / "shared/requirements/toy.md").write_text(dedent(DOCUMENT))
    (checkout / "tests/toy/test_toy.py").write_text(dedent(tests))
    (checkout / "pyproject.toml").write_text(f"[tool.pendula]\ncomplete = [{complete}]\n")
    assert traceability.main(["--refresh"], checkout) == 0
    return checkout


def found_in(checkout: Path) -> set[tuple[str | None, str]]:
    return {(mark.requirement, mark.test.partition("::")[2]) for mark in traceability.marks_of(checkout)}


ALL_MUSTS = """
    import pytest

    @pytest.mark.req("TOY-TIME-1", "TOY-DET-1")
    def test_one(): ...

    @pytest.mark.req("TOY-MAP-1")
    @pytest.mark.req("TOY-ADP-20")
    def test_two(): ...
"""


def test_ids_and_forces_are_read_in_every_form() -> None:
    assert traceability.defined_in(dedent(DOCUMENT)) == {
        "TOY-TIME-1": "MUST",
        "TOY-TIME-2": "SHOULD",
        "TOY-TIME-2a": "SHOULD",
        "TOY-DET-1": "MUST",
        "TOY-MAP-1": "MUST",
        "TOY-TEST-10": "MAY",
        "TOY-TEST-11": "SHOULD",
        "TOY-ADP-20": "MUST",
    }


def test_marks_are_found_in_every_place_of_pytest(tmp_path: Path) -> None:
    checkout = tree(
        tmp_path,
        """
        import pytest

        CASES = [pytest.param(1, marks=pytest.mark.req("TOY-TIME-1"))]

        @pytest.mark.parametrize("x", [1, pytest.param(2, marks=[pytest.mark.req("TOY-DET-1")])])
        def test_parameter(x): ...

        @pytest.mark.parametrize("x", CASES)
        async def test_parameters_apart(x): ...

        @pytest.mark.req("TOY-MAP-1")
        class TestClass:
            @pytest.mark.req("TOY-TIME-2")
            def test_method(self): ...

            def helper(self): ...

        def test_unmarked(): ...
        """,
    )

    assert found_in(checkout) == {
        ("TOY-DET-1", "test_parameter"),
        ("TOY-TIME-1", "test_parameters_apart"),
        ("TOY-MAP-1", "TestClass::test_method"),
        ("TOY-TIME-2", "TestClass::test_method"),
    }


def test_a_mark_of_the_module_counts_for_all_its_tests(tmp_path: Path) -> None:
    checkout = tree(tmp_path, 'import pytest\npytestmark = [pytest.mark.req("TOY-TIME-1")]\ndef test_a(): ...\n')

    assert found_in(checkout) == {("TOY-TIME-1", "test_a")}


def test_a_tree_in_order_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = tree(tmp_path, ALL_MUSTS, '"toy"')

    assert traceability.main(["--check"], checkout) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.req("FLT-TEST-6")
def test_a_must_without_a_test_fails_only_in_a_complete_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout = tree(tmp_path, ALL_MUSTS.replace('@pytest.mark.req("TOY-MAP-1")', ""))
    assert traceability.main(["--check"], checkout) == 0

    (checkout / "pyproject.toml").write_text('[tool.pendula]\ncomplete = ["toy"]\n')

    assert traceability.main(["--check"], checkout) == 1
    expected = "TOY-MAP-1: toy is declared complete, and no test is marked with this MUST\n"
    assert capsys.readouterr().out == expected


def test_a_mark_of_an_unknown_requirement_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = tree(tmp_path, ALL_MUSTS.replace("TOY-DET-1", "TOY-DET-99"))

    assert traceability.main(["--check"], checkout) == 1
    assert "tests/toy/test_toy.py:4: TOY-DET-99 is no requirement" in capsys.readouterr().out


def test_a_mark_with_a_computed_requirement_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = tree(tmp_path, ALL_MUSTS.replace('"TOY-MAP-1"', "*IDS"))

    assert traceability.main(["--check"], checkout) == 1
    assert "a mark takes plain strings" in capsys.readouterr().out


def test_the_table_names_tests_as_they_are_run(tmp_path: Path) -> None:
    checkout = tree(tmp_path, ALL_MUSTS)

    assert traceability.main([], checkout) == 0

    table = (checkout / traceability.PAGE).read_text()
    assert "| TOY-MAP-1 | MUST | `tests/toy/test_toy.py::test_two` |" in table
    assert "| [toy](#toy) | 8 | 4 | 4 |" in table


def test_a_complete_scheduler_without_requirements_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkout = tree(tmp_path, ALL_MUSTS, '"toys"')

    assert traceability.main(["--check"], checkout) == 1
    assert "toys is complete without requirements" in capsys.readouterr().out


def test_without_documents_the_list_is_unchanged(tmp_path: Path) -> None:
    checkout = tree(tmp_path, ALL_MUSTS)
    before = (checkout / traceability.LIST).read_text()
    (tmp_path / "shared/requirements/toy.md").unlink()

    assert traceability.main(["--refresh"], checkout) == 1
    assert (checkout / traceability.LIST).read_text() == before
    assert traceability.main(["--check"], checkout) == 0


@pytest.mark.long  # the part lint of ./test asks the same
def test_this_checkout_is_in_order() -> None:
    assert traceability.main(["--check"], ROOT) == 0


def test_a_worktree_finds_the_documents_beside_the_checkout_it_belongs_to(tmp_path: Path) -> None:
    checkout = tree(tmp_path, ALL_MUSTS)
    worktree = tmp_path / "elsewhere/worktree"
    (worktree / "docs/reference").mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {checkout}/.git/worktrees/worktree\n")

    assert traceability.refresh(worktree)
    assert (worktree / traceability.LIST).read_text() == (checkout / traceability.LIST).read_text()
