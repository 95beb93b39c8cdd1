"""The photographs of the rooms that the README shows are there, and small enough to be loaded by everybody."""

from pathlib import Path

from scripts import pictures

ROOT = Path(__file__).resolve().parents[2]


def test_every_room_has_a_small_photograph_that_the_readme_shows() -> None:
    found = {path.stem: path.stat().st_size for path in (ROOT / "docs/pictures").glob("*.webp")}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert set(found) == set(pictures.ROOMS)
    assert all(size < pictures.LARGEST for size in found.values())
    assert [name for name in found if f"docs/pictures/{name}.webp" not in readme] == []
