"""`pendula backup` lists what it copied, and refuses other folders."""

import json
from pathlib import Path

from pendula.server.data_directory import DataDirectory
from tests.cli.conftest import Pendula


def test_a_backup_is_reported_with_its_parts(tmp_path: Path, pendula: Pendula) -> None:
    DataDirectory.lock(tmp_path / "data").close()

    ended = pendula("backup", tmp_path / "data", "--to", tmp_path / "copy")

    message = f"Created {tmp_path / 'copy'}: 0 journals with 0 records, 0 databases; all checked.\n"
    assert (ended.code, ended.out) == (0, message)
    assert (tmp_path / "copy" / "lock").is_file()


def test_a_backup_without_a_name_is_written_beside_the_original(tmp_path: Path, pendula: Pendula) -> None:
    DataDirectory.lock(tmp_path / "data").close()

    made = Path(json.loads(pendula("backup", tmp_path / "data", "--json").out)["path"])

    assert made.parent == tmp_path
    assert made.name.startswith("data-2")
    assert made.stat().st_mode & 0o777 == 0o700


def test_a_folder_other_than_a_data_directory_is_refused(tmp_path: Path, pendula: Pendula) -> None:
    ended = pendula("backup", tmp_path)

    assert ended.code != 0
    assert "is not a data directory of a server (data_unusable)" in ended.err
