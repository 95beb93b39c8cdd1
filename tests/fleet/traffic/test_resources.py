import numpy as np
import pytest

from pendula.fleet.traffic.lock_state import Exclusion
from tests.fleet.sites import random_site


@pytest.mark.req("FLT-API-6", "FLT-RES-3")
def test_a_relation_made_of_pairs_is_symmetric_and_contains_everything_itself() -> None:
    relation = Exclusion.of_pairs(4, [(2, 0), (0, 3)])

    assert [relation.row(r).tolist() for r in range(4)] == [[0, 2, 3], [1], [0, 2], [0, 3]]


def test_rows_of_several_resources_are_concatenated() -> None:
    relation = Exclusion.of_pairs(4, [(2, 0), (0, 3)])

    assert relation.around(np.array([1, 0, 1])).tolist() == [1, 0, 2, 3, 1]
    assert relation.around(np.zeros(0, dtype=np.int64)).tolist() == []


def test_the_exclusions_of_several_resources_are_sorted_and_unique() -> None:
    relation = Exclusion.of_pairs(4, [(2, 0), (0, 3)])

    assert relation.shadow(np.array([1, 0, 2])).tolist() == [0, 1, 2, 3]
    assert relation.shadow(np.array([2])).tolist() == relation.shadow(np.array([2])).tolist() == [0, 2]


def test_a_token_with_room_for_several_cannot_exclude_another_resource() -> None:
    with pytest.raises(ValueError, match="room for several"):
        Exclusion.of_pairs(3, [(0, 2)], {2: 2})


@pytest.mark.req("FLT-API-6", "FLT-LIVE-3", "FLT-RES-2")
def test_the_relation_of_a_site_holds_conflicts_following_and_tokens() -> None:
    site = random_site(3)
    relation = Exclusion.of_site(site)

    assert len(relation) == site.token(len(site.sections))
    for resource in range(len(relation)):
        expected = {n for low, high in site.excluded(resource) for n in range(low, high + 1)} | {resource}
        if resource < len(site.following):
            expected |= set(site.following.members(resource))
        assert relation.row(resource).tolist() == sorted(expected)
        assert relation.capacity[resource] == site.capacity(resource)
