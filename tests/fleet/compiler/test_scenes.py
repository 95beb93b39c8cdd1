"""The scenes of the documents compile without an error."""

import pytest

from tests.fleet.sites import SCENES, scene


@pytest.mark.parametrize("name", SCENES)
def test_scenes_compile(name: str) -> None:
    assert len(scene(name).cells) > 0
