"""Streams: when they create a task, its pick and drop, and when it is ready."""

import msgspec
import pytest
from msgspec.structs import replace

from pendula.fleet.contracts import Phase, TaskState
from pendula.fleet.map.planner import Closed
from pendula.fleet.saving import restore_tasks, saved_dispatch
from pendula.fleet.tasks import (
    Conditions,
    DispatchParams,
    GoodsReported,
    RoomReported,
    StreamEnded,
    StreamSet,
    TaskOrder,
    TasksRefused,
    TaskStream,
    TaskSubmitted,
)
from pendula.fleet.tasks.dispatch import MOST_OPEN, MOST_STREAMS
from pendula.kernel.canonical import encode
from tests.fleet.tasks.paper import Paper, crossing

BOTH = Conditions(pick_has_goods=True, drop_has_room=True)
COUNTED = TaskStream("S", ("S", "N"), ("W", "E"), conditions=BOTH, max_concurrent=3)
PLENTY = RoomReported("W", 9)


def made(paper: Paper) -> list[tuple[str, str]]:
    return [(task.order.pick_node_id, task.order.drop_node_id) for task in paper.dispatch.tasks()]


def standing(*streams: TaskStream) -> Paper:
    """A paper fleet whose trucks never get a route, so that tasks stay open."""
    paper = Paper(*streams)
    paper.unadmitted = {"R1", "R2"}
    return paper


@pytest.mark.req("FLT-TASK-1", "FLT-TASK-4")
def test_a_stream_creates_a_task_only_after_goods_and_room_are_reported() -> None:
    paper = standing(COUNTED)
    paper.step(GoodsReported("N", 1))
    before = made(paper)
    paper.step(RoomReported("E", 1))

    assert (before, made(paper)) == ([], [("N", "E")])


@pytest.mark.req("FLT-TASK-1")
def test_the_first_listed_pick_with_unclaimed_goods_is_taken() -> None:
    paper = standing(COUNTED)
    paper.step(GoodsReported("N", 2), GoodsReported("S", 1), PLENTY)
    paper.steps(2)

    assert made(paper) == [("S", "W"), ("N", "W"), ("N", "W")]


@pytest.mark.req("FLT-TASK-1")
def test_the_first_listed_drop_with_unclaimed_room_is_taken() -> None:
    paper = standing(COUNTED)
    paper.step(GoodsReported("S", 9), RoomReported("W", 1), RoomReported("E", 9))
    paper.steps(2)

    assert made(paper) == [("S", "W"), ("S", "E"), ("S", "E")]


@pytest.mark.req("FLT-TASK-1")
def test_a_stream_creates_one_task_per_step_up_to_its_limit_of_open_tasks() -> None:
    paper = standing(TaskStream("S", ("N",), ("S",), max_concurrent=3))
    counts = []
    for _ in range(5):
        paper.step()
        counts.append(len(paper.dispatch.tasks()))

    assert counts == [1, 2, 3, 3, 3]


@pytest.mark.req("FLT-TASK-1")
def test_a_cancelled_task_releases_its_claims() -> None:
    paper = standing(COUNTED)
    paper.step(GoodsReported("N", 1), RoomReported("E", 1))
    paper.steps(2)
    (first,) = paper.dispatch.tasks()
    assert paper.dispatch.cancel(first.task_id, "operator-1") is None
    paper.step()
    (second,) = paper.dispatch.tasks()

    assert first.task_id != second.task_id
    assert (second.order.pick_node_id, second.order.drop_node_id) == ("N", "E")


@pytest.mark.req("FLT-TASK-1")
def test_loaded_goods_cannot_be_claimed() -> None:
    paper = Paper(COUNTED)
    paper.step(GoodsReported("N", 1), PLENTY)
    paper.steps(20)

    assert paper.dispatch.book.done == 1
    assert made(paper) == []


@pytest.mark.req("FLT-TASK-1")
def test_filled_room_cannot_be_claimed() -> None:
    paper = Paper(COUNTED)
    paper.step(GoodsReported("N", 9), RoomReported("W", 1))
    paper.steps(20)

    assert paper.dispatch.book.done == 1
    assert made(paper) == []


def test_a_stream_without_conditions_serves_every_pair_of_pick_and_drop_in_turn() -> None:
    paper = standing(TaskStream("S", ("N", "S"), ("E", "W"), max_concurrent=4))
    paper.steps(4)

    assert sorted(made(paper)) == [("N", "E"), ("N", "W"), ("S", "E"), ("S", "W")]


@pytest.mark.req("FLT-TASK-1")
def test_no_task_is_created_after_the_last_time_of_a_stream() -> None:
    paper = standing(TaskStream("S", ("N",), ("S",), max_concurrent=9, last_ms=100))
    paper.steps(5)

    assert len(made(paper)) == 2


@pytest.mark.req("FLT-TASK-4")
def test_a_ready_task_whose_goods_are_gone_waits_again_with_a_reason() -> None:
    paper = standing(COUNTED)
    paper.see("R1", ok=False)
    paper.see("R2", ok=False)
    paper.step(GoodsReported("N", 1), PLENTY)
    ready = paper.state("S-1")
    paper.step(GoodsReported("N", 0))
    why = paper.dispatch.why("S-1")

    assert (ready, paper.state("S-1"), why.code) == (TaskState.READY, TaskState.WAITING, "NO_GOODS")


@pytest.mark.req("FLT-TASK-4")
def test_a_task_waits_for_room_with_a_reason() -> None:
    paper = standing(COUNTED)
    paper.submit("T", "N", "E", stream_id="S")
    paper.step(GoodsReported("N", 1))
    why = paper.dispatch.why("T")

    assert (paper.state("T"), why.code) == (TaskState.WAITING, "NO_ROOM")


@pytest.mark.req("FLT-TASK-4")
def test_tasks_under_way_of_a_stream_stay_within_its_limit_whatever_their_origin() -> None:
    paper = Paper(TaskStream("S", ("N",), ("S",), max_concurrent=1, last_ms=-1))
    paper.slow = {"R1", "R2"}
    paper.submit("T1", stream_id="S")
    paper.submit("T2", stream_id="S")
    why = paper.dispatch.why("T2")

    assert (paper.state("T1"), paper.state("T2")) == (TaskState.IN_PROGRESS, TaskState.READY)
    assert why.code == "STREAM_LIMIT"


@pytest.mark.req("FLT-TASK-4")
@pytest.mark.parametrize("node", ["N", "S"])
def test_tasks_under_way_to_a_pick_or_drop_stay_within_its_limit(node: str) -> None:
    paper = Paper(params=DispatchParams(node_limits={node: 1}))
    paper.slow = {"R1", "R2"}
    paper.submit("T1", "N", "S")
    paper.submit("T2", "N", "S")
    paper.submit("T3", "W", "E")
    why = paper.dispatch.why("T2")

    assert (paper.state("T2"), why.code, paper.state("T3")) == (TaskState.READY, "NODE_LIMIT", TaskState.IN_PROGRESS)


@pytest.mark.req("FLT-TASK-3")
def test_goods_at_an_unknown_node_are_refused() -> None:
    came = Paper(COUNTED).step(GoodsReported("nowhere", 1))

    assert [refusal.code for refusal in came.refused] == ["MISSING_PICK_DROP_NODE"]


@pytest.mark.req("FLT-TASK-4")
def test_a_load_held_on_its_way_counts_towards_the_limit_of_its_drop() -> None:
    paper = Paper(params=DispatchParams(node_limits={"S": 1}))
    paper.submit("T")
    paper.until(Phase.TO_DROP)
    paper.see("R1", ok=False, failed=True)
    paper.submit("U")
    paper.steps(5)

    assert (paper.state("T"), paper.state("U"), paper.task("R2")) == (TaskState.HELD, TaskState.READY, None)


@pytest.mark.req("FLT-TASK-3")
@pytest.mark.parametrize(("pick", "drop"), [("nowhere", "S"), ("N", "nowhere")])
def test_a_task_with_an_unknown_pick_or_drop_is_refused(pick: str, drop: str) -> None:
    paper = Paper()
    came = paper.submit("T", pick, drop)

    assert [refusal.code for refusal in came.refused] == ["MISSING_PICK_DROP_NODE"]
    assert paper.dispatch.tasks() == []


@pytest.mark.req("FLT-TASK-3")
def test_a_task_from_a_node_to_itself_is_refused() -> None:
    paper = Paper()
    came = paper.submit("T", "N", "N")

    assert [(refusal.code, refusal.message) for refusal in came.refused] == [
        ("PICK_IS_DROP", "task 'T' picks up and drops in the same node 'N'; name two different nodes")
    ]
    assert paper.dispatch.tasks() == []


@pytest.mark.req("FLT-TASK-3")
def test_a_stream_that_could_create_a_task_from_a_node_to_itself_is_refused() -> None:
    with pytest.raises(TasksRefused, match="PICK_IS_DROP: stream 'S' picks up and drops in the same node 'S'"):
        Paper(TaskStream("S", ("N", "S"), ("S", "W")))


@pytest.mark.req("FLT-TASK-3")
@pytest.mark.parametrize(("pick", "drop"), [("nowhere", "S"), ("N", "nowhere")])
def test_a_stream_with_an_unknown_pick_or_drop_is_refused(pick: str, drop: str) -> None:
    with pytest.raises(TasksRefused, match="MISSING_PICK_DROP_NODE"):
        Paper(TaskStream("S", (pick,), (drop,)))


def test_a_task_with_a_duplicate_id_is_refused() -> None:
    paper = Paper()
    paper.submit("T")

    assert [refusal.code for refusal in paper.submit("T").refused] == ["TASK_KNOWN"]


def test_a_task_for_an_unknown_truck_is_refused() -> None:
    assert [refusal.code for refusal in Paper().submit("T", robot_ids=("R9",)).refused] == ["UNKNOWN_ROBOT"]


def test_a_task_beyond_the_limit_of_open_tasks_is_refused() -> None:
    paper = standing()
    orders = [TaskSubmitted(TaskOrder(f"T{number}", "N", "S")) for number in range(MOST_OPEN + 1)]
    step = paper.step(*orders)

    assert [(refusal.event, refusal.code) for refusal in step.refused] == [(orders[-1], "TOO_MANY_TASKS")]
    assert len(paper.dispatch.tasks()) == MOST_OPEN


NEW = TaskStream("A", ("W",), ("E",), max_concurrent=1)


@pytest.mark.req("FLT-TASK-1", "FLT-API-7")
def test_a_stream_set_at_run_time_creates_tasks_from_then_on() -> None:
    paper = standing(TaskStream("S", ("N",), ("S",), max_concurrent=1))
    paper.steps(3)
    before = made(paper)
    paper.step(StreamSet(NEW))
    paper.steps(2)

    assert before == [("N", "S")]
    assert sorted(made(paper)) == [("N", "S"), ("W", "E")]
    assert list(paper.dispatch.book.flows) == ["A", "S"]


@pytest.mark.req("FLT-TASK-1", "FLT-API-7")
def test_a_stream_that_is_set_again_continues_its_task_numbers() -> None:
    paper = standing(replace(NEW, max_concurrent=2))
    paper.steps(3)
    paper.step(StreamSet(replace(NEW, max_concurrent=3, priority=50)))
    paper.steps(3)

    assert [(task.task_id, task.order.priority) for task in paper.dispatch.tasks()] == [
        ("A-1", 10),
        ("A-2", 10),
        ("A-3", 50),
    ]


@pytest.mark.req("FLT-TASK-4")
def test_tasks_of_a_stream_wait_for_its_current_conditions() -> None:
    paper = standing(NEW)
    paper.see("R2", ok=False)
    paper.submit("mine", "W", "E", stream_id="A", robot_ids=("R2",))
    paper.step(StreamSet(replace(NEW, conditions=BOTH)))
    waits = paper.state("mine")
    paper.step(GoodsReported("W", 9), RoomReported("E", 9))

    assert (waits, paper.state("mine")) == (TaskState.WAITING, TaskState.READY)


@pytest.mark.req("FLT-TASK-1")
def test_an_ended_stream_creates_no_tasks_and_its_open_tasks_continue() -> None:
    paper = Paper(NEW)
    paper.steps(2)
    paper.step(StreamEnded("A"))
    paper.steps(60)

    assert (paper.dispatch.book.done, paper.dispatch.tasks()) == (1, [])
    assert paper.dispatch.book.is_over(paper.now_ms)


@pytest.mark.req("FLT-TASK-14", "FLT-OBS-3")
def test_set_and_ended_streams_survive_a_restart() -> None:
    def lived(restarted: bool) -> bytes:
        paper = standing(TaskStream("S", ("N",), ("S",)), TaskStream("Z", ("S",), ("N",)))
        paper.step(StreamSet(NEW), StreamEnded("Z"))
        paper.steps(2)
        if restarted:
            form = encode(saved_dispatch(paper.dispatch))
            twin = standing(TaskStream("S", ("N",), ("S",)), TaskStream("Z", ("S",), ("N",)))
            restore_tasks(twin.dispatch, msgspec.json.decode(form))
            twin.now_ms, twin.views, twin.pending, paper = paper.now_ms, paper.views, paper.pending, twin
        paper.steps(5)
        return encode(saved_dispatch(paper.dispatch))

    assert lived(restarted=True) == lived(restarted=False)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (StreamSet(replace(NEW, pick_node_ids=("Q",))), "MISSING_PICK_DROP_NODE"),
        (StreamSet(replace(NEW, drop_node_ids=())), "MISSING_PICK_DROP_NODE"),
        (StreamSet(replace(NEW, pick_ms=10**9)), "OPERATION_TOO_LONG"),
        (StreamSet(replace(NEW, pick_node_ids=(*NEW.pick_node_ids, NEW.drop_node_ids[0]))), "PICK_IS_DROP"),
        (StreamSet(replace(NEW, robot_ids=("R9",))), "UNKNOWN_ROBOT"),
        (StreamEnded("B"), "STREAM_UNKNOWN"),
    ],
)
def test_an_invalid_stream_is_refused_and_changes_nothing(event: StreamSet | StreamEnded, code: str) -> None:
    paper = standing(NEW)
    came = paper.step(event)

    assert [refusal.code for refusal in came.refused] == [code]
    assert [paper.dispatch.book.flows["A"].stream, *paper.dispatch.book.changed] == [NEW]
    assert saved_dispatch(paper.dispatch)["streams"] == {}


@pytest.mark.req("FLT-LIVE-7")
def test_a_stream_that_no_truck_can_serve_is_refused_unless_only_failed_trucks_block_it() -> None:
    everything = Closed(edges=frozenset(range(len(crossing().network.edges))))
    barred, closed = standing(NEW), standing(NEW)
    barred.dispatch.keep_off(everything)
    closed.dispatch._usual = [everything] * 2
    other = StreamSet(replace(NEW, stream_id="B"))

    assert [[refusal.code for refusal in paper.step(other).refused] for paper in (barred, closed)] == [
        [],
        ["UNREACHABLE"],
    ]


def test_the_number_of_streams_is_limited() -> None:
    paper = standing(NEW)
    came = [paper.step(StreamSet(replace(NEW, stream_id=f"S{k}", last_ms=0))) for k in range(MOST_STREAMS)]

    assert [refusal.code for step in came for refusal in step.refused] == ["TOO_MANY_STREAMS"]
