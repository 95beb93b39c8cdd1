"""The pictures that README and the first page of the documentation show are there, and small."""

from pathlib import Path

from scripts import pictures

ROOT = Path(__file__).resolve().parents[2]


def test_every_scheduler_has_a_small_picture_that_is_shown() -> None:
    found = {path.stem: path.stat().st_size for path in (ROOT / "docs/pictures").glob("*.webp")}
    shown = (ROOT / "README.md").read_text() + (ROOT / "docs/README.md").read_text()

    assert set(found) == set(pictures.SCHEDULERS)
    assert all(size < pictures.LARGEST for size in found.values())
    assert [name for name in found if f"pictures/{name}.webp)" not in shown] == []
