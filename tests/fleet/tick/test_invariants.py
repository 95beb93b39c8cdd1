"""Every invariant of a tick names a state that breaks it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from pendula.fleet.targets.rolling_target import Aim
from pendula.fleet.tick.invariants import broken
from pendula.fleet.tick.traffic import Traffic
from tests.fleet.tick.test_traffic import hall


@dataclass
class Moment:
    """Traffic after a tick, and what the trucks were told in it."""

    traffic: Traffic
    aims: list[Aim]


@pytest.fixture
def moment() -> Moment:
    yard = hall()
    yard.run(150)
    return Moment(yard.traffic, list(yard.step().aims))


def broken_names(moment: Moment) -> list[str]:
    traffic = moment.traffic
    return sorted({name for name, _ in broken(traffic._records, traffic._locks, moment.aims, traffic.params)})


def runs_backwards(moment: Moment) -> None:
    """Another truck owns a cell of the opposite direction of an edge that the first one is on."""
    traffic = moment.traffic
    first, second = traffic._records[:2]
    network, cells = traffic.site.network, traffic.site.cells
    for edge in sorted(first.edges):
        for other in network.groups[network.group_of[edge]].edges:
            if network.edges[other].forward_on_axis != network.edges[edge].forward_on_axis:
                cell = int(cells.first[other])
                traffic._locks.hold(second.number, [cell])
                return


def aims_too_far(moment: Moment) -> None:
    moment.aims[0] = replace(moment.aims[0], stop_um=moment.aims[0].stop_um + 50_000_000)


def forgets_where_it_is(moment: Moment) -> None:
    traffic = moment.traffic
    record = next(one for one in traffic._records if one.at_um > 1_000_000)
    for use in record.track.uses if record.track is not None else ():
        if use.need_um < record.at_um <= use.free_um:
            record.held.pop(use.resource, None)
            record.changed()


def believes_too_much(moment: Moment) -> None:
    traffic = moment.traffic
    first, second = traffic._records[:2]
    first.held.update(dict.fromkeys(second.held, 0))


def drives_too_fast(moment: Moment) -> None:
    traffic = moment.traffic
    record = traffic._records[0]
    record.v_um_s, record.hold_um = 1_200_000, record.at_um


def loses_the_witness(moment: Moment) -> None:
    traffic = moment.traffic
    traffic._locks.witness = []


def test_a_run_breaks_none(moment: Moment) -> None:
    assert broken_names(moment) == []


@pytest.mark.req(
    "FLT-TEST-40", "FLT-TEST-42", "FLT-TEST-44", "FLT-TEST-45", "FLT-TEST-46", "FLT-TEST-47", "FLT-TEST-51"
)
@pytest.mark.req("FLT-RES-4", "FLT-RES-16", "FLT-LIVE-6")
@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (runs_backwards, "I-1"),
        (aims_too_far, "I-3"),
        (forgets_where_it_is, "I-5"),
        (believes_too_much, "I-6"),
        (drives_too_fast, "I-8"),
        (loses_the_witness, "I-12"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_spoilt_state_is_named(moment: Moment, spoil: Callable[[Moment], None], name: str) -> None:
    spoil(moment)

    assert name in broken_names(moment)
