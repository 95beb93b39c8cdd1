"""Columns of trucks agree with plain sets, with more trucks than a word has bits."""

from random import Random

import numpy as np

from pendula.fleet.traffic.lock_state import Column, as_mask, trucks_of

TRUCKS, RESOURCES = 150, 40


def filled(seed: int) -> tuple[Column, list[set[int]]]:
    random = Random(seed)
    column = Column(RESOURCES, TRUCKS)
    plain: list[set[int]] = [set() for _ in range(RESOURCES)]
    for _ in range(300):
        truck, some = random.randrange(TRUCKS), random.sample(range(RESOURCES), 5)
        if random.random() < 0.7:
            column.add(truck, np.array(some))
            for resource in some:
                plain[resource].add(truck)
        else:
            column.remove(truck, np.array(some))
            for resource in some:
                plain[resource].discard(truck)
    return column, plain


def test_a_column_knows_the_trucks_of_each_resource() -> None:
    column, plain = filled(1)

    assert [trucks_of(column.at(resource)) for resource in range(RESOURCES)] == [sorted(row) for row in plain]


def test_a_column_joins_the_trucks_of_several_resources() -> None:
    column, plain = filled(2)

    assert trucks_of(column.over(np.array([3, 7, 31]))) == sorted(plain[3] | plain[7] | plain[31])
    assert column.over(np.zeros(0, dtype=np.int64)) == 0


def test_a_truck_does_not_count_itself() -> None:
    column, plain = filled(3)
    every = np.arange(RESOURCES)
    for truck in (0, 63, 64, 127, 128, 149):
        words = column.words_besides(truck, every)

        assert (column.besides(truck, every) != 0).tolist() == [bool(row - {truck}) for row in plain]
        assert [trucks_of(as_mask([int(word[k]) for word in words])) for k in range(RESOURCES)] == [
            sorted(row - {truck}) for row in plain
        ]


def test_a_removed_truck_is_in_no_row_and_all_others_stay() -> None:
    column, plain = filled(4)
    twin = column.copy()
    column.clear(100)

    assert [trucks_of(column.at(resource)) for resource in range(RESOURCES)] == [sorted(row - {100}) for row in plain]
    assert [trucks_of(twin.at(resource)) for resource in range(RESOURCES)] == [sorted(row) for row in plain]
