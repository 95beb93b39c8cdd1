"""Files: the form by suffix or by name, and refusals where there is nothing to read."""

from pathlib import Path

import pytest

from pendula.documents import DocumentLimits, DocumentRefused, Format, read_file


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.yml", "A.YML"])
def test_the_suffix_gives_the_format(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"a": "no"}')

    assert read_file(tmp_path / name).value == {"a": "no"}


def test_an_explicit_form_wins_over_the_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("a: no\n")

    assert read_file(tmp_path / "a.json", Format.YAML).value == {"a": "no"}
    with pytest.raises(DocumentRefused):
        read_file(tmp_path / "a.json")


def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_file(tmp_path / "a.toml")

    assert refused.value.faults[0].code == "unknown_format"
    assert refused.value.faults[0].allowed == (".json", ".json5", ".yaml", ".yml")


@pytest.mark.parametrize("name", ["missing.json", "", "nul\0.json"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DocumentRefused) as refused:
        read_file(tmp_path / name, Format.JSON)

    assert refused.value.faults[0].code == "document_unreadable"
    assert refused.value.exit_code == 3


def test_a_file_larger_than_allowed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[1,2,3]")

    assert read_file(tmp_path / "a.json", limits=DocumentLimits(size=7)).value == [1, 2, 3]
    with pytest.raises(DocumentRefused) as refused:
        read_file(tmp_path / "a.json", limits=DocumentLimits(size=6))
    assert refused.value.faults[0].code == "document_too_large"


def test_faults_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "town.yaml").write_text("a: 1\na: 2\n")

    with pytest.raises(DocumentRefused) as refused:
        read_file(str(tmp_path / "town.yaml"))

    assert refused.value.render().startswith(f"{tmp_path / 'town.yaml'}:2:1: $.a: ")
