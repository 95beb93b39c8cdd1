"""Every invariant of a tick names a state that breaks it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.trucks import allowed_speed_um_s, brakes_um
from pendula.fleet.tick.aiming import Aim
from pendula.fleet.tick.invariants import FirstMove, broken, first_move, passed_over, unable_to_stop
from pendula.fleet.tick.params import TrafficParams
from pendula.fleet.tick.traffic import Traffic
from tests.fleet.tick.test_traffic import hall


@dataclass
class Moment:
    """Traffic after a tick, and its commands."""

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
    record = next(record for record in traffic._records if record.at_um > 1_000_000)
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


def test_a_run_breaks_no_invariant(moment: Moment) -> None:
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
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_corrupt_state_is_named(moment: Moment, spoil: Callable[[Moment], None], name: str) -> None:
    spoil(moment)

    assert name in broken_names(moment)


@pytest.mark.req("FLT-TEST-47", "FLT-RTP-6")
@pytest.mark.parametrize(("left_um", "names"), [(800_000, []), (799_999, ["I-8"])])
def test_a_truck_that_knows_its_stop_line_needs_only_its_brakes_to_keep_it(
    moment: Moment, left_um: int, names: list[str]
) -> None:
    # 0.9 m from 1.2 m/s at 0.8 m/s2, of which the tolerance of a stop line is a tenth of a metre.
    record = next(record for record in moment.traffic._records if record.track is not None and record.stop_code is None)
    record.v_um_s, record.hold_um = 1_200_000, record.at_um + left_um
    found = {name for name, _ in unable_to_stop([record], moment.traffic.params)}

    assert sorted(found) == names


@pytest.mark.req("FLT-TEST-47", "FLT-RTP-6")
@pytest.mark.parametrize("late_ms", range(0, 451, 50))
def test_a_truck_that_obeys_its_limits_as_late_as_it_may_can_always_stop(late_ms: int) -> None:
    # It approaches a line 6 m ahead, knows only the limits, and obeys each with a delay.
    left, v, step_ms, tolerance_um = 6_000_000, FL_STD.v_max_um_s, 10, TrafficParams().stop_line_tol_um
    speeds = [FL_STD.v_max_um_s] * (late_ms // step_ms + 1)
    nearest = left
    while v > 50_000:
        speeds.append(allowed_speed_um_s(FL_STD, left))
        v = max(min(v, speeds[-1 - late_ms // step_ms]), v - FL_STD.brake_um_s2 * step_ms // 1000)
        left -= v * step_ms // 1000
        nearest = min(nearest, left + tolerance_um - brakes_um(FL_STD, v))

    assert FL_STD.latency_us == 450_000
    assert nearest >= 0


def with_a_first_move() -> Traffic:
    """A moment in which the first truck of the witness can get its next unit."""
    yard = hall()
    for _ in range(600):
        traffic = yard.traffic
        yard.step()
        for record in traffic._records:
            # As if it had been passed over: it requests more than it was granted in this tick.
            record.asked_um += 2_000_000
        if first_move(traffic._records, traffic._locks, (), None) is not None:
            return traffic
    raise AssertionError("no truck with which the witness begins could go on")


@pytest.mark.req("FLT-LIVE-13")
def test_a_first_move_that_is_not_granted_is_counted_per_tick_and_reported_in_the_sixth() -> None:
    traffic = with_a_first_move()
    found: list[FirstMove | None] = [None]
    broken = []
    for _ in range(6):
        found.append(first_move(traffic._records, traffic._locks, (), found[-1]))
        broken.append([name for name, _ in passed_over(traffic._records, found[-1], traffic.params)])

    assert [move and move.ticks for move in found] == [None, 1, 2, 3, 4, 5, 6]
    assert broken == [[], [], [], [], [], ["I-13"]]


@pytest.mark.req("FLT-LIVE-13")
def test_a_blocked_first_move_is_not_counted() -> None:
    traffic = with_a_first_move()
    found = first_move(traffic._records, traffic._locks, (), None)
    assert found is not None
    truck = traffic._locks.truck(found.truck)
    other = next(j for j in traffic._locks.known() if j != found.truck)
    traffic._locks.hold(other, [int(truck.demand.needs(found.position, found.position + 1)[0])])

    assert first_move(traffic._records, traffic._locks, (), found) is None


@pytest.mark.req("FLT-LIVE-13")
def test_a_first_move_of_a_stopped_truck_is_not_counted() -> None:
    traffic = with_a_first_move()
    found = first_move(traffic._records, traffic._locks, (), None)
    assert found is not None
    traffic._records[found.truck].stop_code = "STOP_OPERATOR"

    assert first_move(traffic._records, traffic._locks, (), found) is None
