"""Random maps are reproducible, and compile."""

import pytest
from msgspec.structs import replace

from pendula.fleet import Severity, examine
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.model import Origin
from tests.campaigns import campaign_after
from tests.fleet.sites import odd_site


@pytest.mark.parametrize("seed", campaign_after(8, range(20)))
def test_random_maps_are_reproducible_and_compile(seed: int) -> None:
    source = random_map(seed)

    report = examine(source, [FL_STD])

    assert source == random_map(seed)
    assert 4 <= len(source.nodes) <= 25
    errors = {finding.code.value for finding in report.findings if finding.severity is Severity.ERROR}
    assert errors <= {"NODE_UNREACHABLE"}


@pytest.mark.parametrize("seed", range(10))
def test_odd_maps_are_reproducible_and_compile_to_the_same_bytes_in_any_order(seed: int) -> None:
    source = random_map(seed, 4, 9, odd=True)
    turned = replace(source, nodes=source.nodes[::-1], edges=source.edges[::-1], sections=source.sections[::-1])

    assert source == random_map(seed, 4, 9, odd=True)
    assert examine(turned, [FL_STD]).data == examine(source, [FL_STD]).data is not None


def test_odd_maps_have_rare_features() -> None:
    sites = [odd_site(seed) for seed in range(8)]
    paths = [edge.path.length_um for site in sites for edge in site.network.edges]
    styles = {
        (site.map_id, edge.start, edge.end): {
            other.style for other in site.network.edges if (other.start, other.end) == (edge.start, edge.end)
        }
        for site in sites
        for edge in site.network.edges
    }
    moves = [site.transitions for site in sites]
    kinks = [
        turn
        for move in moves
        for turn, tangent in zip(move.turn_urad.tolist(), move.tangent.tolist(), strict=True)
        if tangent and abs(turn) > 20_000
    ]

    assert min(paths) < 50_000
    assert any(len(both) == 2 for both in styles.values())
    assert kinks
    assert all(any(section.origin is Origin.AUTHORED for section in site.sections) for site in sites)
    assert any(site.zones.overlaps[node] for site in sites for node in range(len(site.network.nodes)))
