"""Built warehouses have the promised parts, and are LIVE."""

import pytest

from pendula.fleet import certify, compile_map
from pendula.fleet.compiler.generated_maps import built_warehouse
from pendula.fleet.compiler.samples import FL_STD


def is_live(parks: int, nodes: int, percent: int) -> bool:
    sample = built_warehouse(parks, nodes, percent)
    made, _ = certify(compile_map(sample.source, [FL_STD]), sample.fleet, [FL_STD])
    assert made is not None
    return made.live


@pytest.mark.parametrize(("parks", "nodes"), [(20, 300), (100, 1000), (200, 1000)])
def test_a_built_warehouse_has_its_parks_and_nodes(parks: int, nodes: int) -> None:
    sample = built_warehouse(parks, nodes, 50)

    assert len(sample.source.nodes) == nodes
    assert sum(node.kind == "ParkPoint" for node in sample.source.nodes) == parks
    assert len(sample.fleet.trucks) == parks // 2


def test_a_warehouse_without_room_for_its_aisles_is_refused() -> None:
    with pytest.raises(ValueError, match="need at least"):
        built_warehouse(200, 300)


@pytest.mark.req("FLT-LIVE-7")
@pytest.mark.parametrize("percent", [25, 50, 100])
def test_a_built_warehouse_is_live_with_a_part_of_its_parks_and_with_all(percent: int) -> None:
    assert is_live(20, 300, percent)


@pytest.mark.long
@pytest.mark.parametrize("parks", [100, 200])
def test_a_large_built_warehouse_is_live(parks: int) -> None:
    assert is_live(parks, 1000, 100)
