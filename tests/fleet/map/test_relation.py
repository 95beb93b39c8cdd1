"""Relations over numbered resources: symmetric, sorted and searchable."""

import numpy as np
import pytest

from pendula.fleet.map.exclusion import Relation, Triples, merged, relation
from tests.fleet.sites import SCENES, is_symmetric, scene


@pytest.mark.req("FLT-MAP-9")
@pytest.mark.parametrize("name", SCENES)
def test_the_relation_is_symmetric_and_contains_everything_itself(name: str) -> None:
    site = scene(name)

    assert is_symmetric(site.conflicts)
    assert is_symmetric(site.following)
    assert all(site.conflicts.holds(i, i) for i in range(len(site.conflicts)))
    assert not any(site.following.holds(i, i) for i in range(len(site.cells)))


def test_ranges_merge_and_contain_their_members() -> None:
    parts = [
        Triples(np.array([2, 0, 0]), np.array([5, 1, 3]), np.array([5, 2, 4])),
        Triples(np.array([0]), np.array([8]), np.array([9])),
    ]

    built: Relation = relation(3, parts)

    assert built.ranges(0) == [(1, 4), (8, 9)]
    assert built.ranges(1) == []
    assert built.members(2) == [5]
    assert built.holds(0, 4)
    assert not built.holds(0, 5)
    assert built.sizes().tolist() == [6, 0, 1]
    assert built.contains(np.array([0, 0, 1, 2]), np.array([9, 5, 1, 5])).tolist() == [True, False, False, True]


def test_intervals_that_touch_become_one() -> None:
    assert merged([(5, 6), (0, 2), (2, 3)]) == [(0, 3), (5, 6)]
    assert merged([]) == []
