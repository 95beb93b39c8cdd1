"""A truck is listed once in each edge group, even if it holds both directions."""

import pytest

from pendula.fleet.scenarios import Run, shipped


@pytest.mark.req("FLT-API-3", "FLT-LIVE-5")
def test_a_truck_that_holds_both_directions_of_a_dead_end_is_listed_once() -> None:
    run = Run(shipped("spur"))
    both = 0
    for _ in range(900):
        outputs = run.step()
        for record in outputs.scene.records:
            groups = [record.site.network.group_of[edge] for edge in record.edges]
            both += len(groups) > len(set(groups))
        for group in outputs.snapshot().edgeGroups:
            names = [occupant.robotId for occupant in group.occupants]
            assert names == sorted(set(names))

    assert both
