"""A disc query finds the same resources as a full scan."""

import numpy as np
import pytest

from pendula.fleet.map.geometry import near
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.tick.track import DiscIndex
from tests.fleet.sites import any_site, names, scene


def among_all(site: CompiledMap, x: int, y: int, radius: int) -> list[int]:
    met = near(site.cells.quads, x, y, float(radius + 1)).nonzero()[0]
    found: list[int] = np.unique(np.searchsorted(site.cells.quad_first, met, side="right") - 1).tolist()
    for number, node in enumerate(site.network.nodes):
        dx, dy = node.at.x_um - x, node.at.y_um - y
        if (dx * dx + dy * dy) ** 0.5 <= radius + site.zones.radius_um + 1:
            found.append(site.zone(number))
    return found


@pytest.mark.req("FLT-FAIL-5")
@pytest.mark.parametrize("name", ["hall-demo", *names(3)])
def test_a_disc_finds_the_same_cells_as_a_full_scan(name: str) -> None:
    site = scene(name) if name == "hall-demo" else any_site(name)
    index = DiscIndex.of(site)
    draw = np.random.default_rng(5)
    for x, y, radius in draw.integers(
        [-8_000_000, -25_000_000, 0], [50_000_000, 50_000_000, 6_000_000], (25, 3)
    ).tolist():
        assert index.resources(x, y, radius) == among_all(site, x, y, radius)


@pytest.mark.req("FLT-FAIL-5")
def test_a_disc_far_away_finds_nothing() -> None:
    assert DiscIndex.of(scene("hall-demo")).resources(900_000_000, 900_000_000, 3_000_000) == []
