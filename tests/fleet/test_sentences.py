"""Sentences are rendered where they are shown: no journal, state, event or answer of a fleet contains one."""

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pendula.fleet import explain, sentences
from pendula.fleet.commands import MissingRecords
from pendula.fleet.compiler import compile_map
from pendula.fleet.compiler.samples import FL_STD, hall_demo
from pendula.fleet.contracts import Alert, OperatorAction
from pendula.fleet.engine import FleetEngine
from pendula.fleet.events import AlertRaised, Incident, OperatorAnswered
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.site_file import from_bytes, to_bytes
from pendula.fleet.model import SourceMap
from pendula.fleet.runs import Recording, recording_disk
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tasks.model import (
    GoodsReported,
    OperationDone,
    OperationFailed,
    PriorityChanged,
    StreamEnded,
    StreamSet,
    TaskEvent,
    TaskEventRefused,
    TaskOrder,
    TaskStream,
    TaskSubmitted,
)
from pendula.kernel.canonical import Json, decode, encode
from tests.campaigns import campaign_except
from tests.fleet.compiler.test_validation import aisle_of_stations, crowded, narrow, no_way_out, parked_on_the_way

NAMES = ("pose-jump", "hall", "triangle-8")


# Together they have every warning and note that a compiled map stores.
MAPS_WITH_FINDINGS = (hall_demo, aisle_of_stations, parked_on_the_way, crowded, no_way_out, narrow)


def acted(kind: str, action_id: str, at_ms: int, **members: Any) -> OperatorAction:
    return OperatorAction("1.0.0", action_id, at_ms, operatorId="anna", type=kind, reason="drill", **members)


def actions() -> Iterator[OperatorAction]:
    """Accepted and rejected actions of most kinds."""
    yield acted("MEND_ROBOT", "op-unknown", 1_000, robotId="R1")
    yield acted("PAUSE_FLEET", "op-fleet", 1_000, robotId="R1")
    yield acted("PAUSE_ROBOT", "op-incomplete", 1_000)
    yield acted("PAUSE_ROBOT", "op-unknown", 1_000, robotId="R9")
    yield acted("PAUSE_ROBOT", "op-pause", 2_000, robotId="R1")
    yield acted("RESUME_ROBOT", "op-pause", 2_500, robotId="R1")
    yield acted("RESUME_ROBOT", "op-resume", 3_000, robotId="R1")
    yield acted("CLEAR_FAULT", "op-clear", 3_500, robotId="R1")
    yield acted("DECLARE_ABSENT", "op-absent", 3_500, robotId="R1")
    yield acted("FORCE_RELEASE", "op-unsecured", 4_000, robotId="R1", resources=("NODE:A",))
    yield acted("FORCE_RELEASE", "op-free", 4_000, robotId="R1", resources=("NODE:A",), physicallySecured=True)
    yield acted("CLOSE_RESOURCE", "op-no-place", 4_500, resources=("NODE:NOWHERE",))
    yield acted("CANCEL_TASK", "op-no-task", 5_000, taskId="T-9")
    yield acted("HOLD_TASK", "op-hold", 6_000, taskId="T-drill")
    yield acted("HOLD_TASK", "op-hold-again", 6_500, taskId="T-drill")
    yield acted("RESUME_TASK", "op-go-on", 7_000, taskId="T-drill")
    yield acted("CANCEL_TASK", "op-cancel", 8_000, taskId="T-drill")
    yield acted("PAUSE_FLEET", "op-all", 12_000)
    yield acted("REMOVE_ROBOT", "op-remove", 15_000, robotId="R1", physicallySecured=True)
    yield acted("REMOVE_ROBOT", "op-late", 16_000, robotId="R1", physicallySecured=True, confirmationOf="op-other")
    yield acted("REMOVE_ROBOT", "op-again", 16_500, robotId="R1", physicallySecured=True, confirmationOf="op-remove")
    yield acted("RESUME_FLEET", "op-all-on", 17_000)


def reports(run: Run) -> list[tuple[int, TaskEvent]]:
    """Reports about tasks, most of them rejected, and a task of the same stations as the first stream or task."""
    streams = [flow.stream for flow in run.dispatch.book.flows.values()]
    order = run.scenario.tasks[0] if run.scenario.tasks else None
    pick, drop = [node.id for node in run.site.network.nodes][:2]
    if order is not None:
        pick, drop = order.pick_node_id, order.drop_node_id
    elif streams:
        pick, drop = streams[0].pick_node_ids[0], streams[0].drop_node_ids[0]
    events: list[TaskEvent] = [
        GoodsReported("NOWHERE", 1),
        GoodsReported(pick, -1),
        TaskSubmitted(TaskOrder("T-drill", pick, drop)),
        TaskSubmitted(TaskOrder("T-drill", pick, drop)),
        TaskSubmitted(TaskOrder("T-same", pick, pick)),
        TaskSubmitted(TaskOrder("T-unknown", pick, drop, robot_ids=("R9",))),
        TaskSubmitted(TaskOrder("T-long", pick, drop, pick_ms=10**8)),
        TaskSubmitted(TaskOrder("T-no-stream", pick, drop, stream_id="NONE")),
        PriorityChanged("T-none", 3),
        StreamSet(TaskStream("S-none", (pick,), ())),
        StreamSet(TaskStream("S-none", ("NOWHERE",), (drop,))),
        StreamEnded("S-none"),
        OperationDone("R9"),
        OperationFailed("R1", "jammed", "T-9/LOAD"),
    ]
    jams = [(at_ms, OperationFailed("R2", "jammed")) for at_ms in range(3_000, 60_000, 500)]
    return [*((2_000, event) for event in events), *jams]


class Sample:
    """A recorded run with faults, operators and wrong reports."""

    def __init__(self, name: str, directory: Path) -> None:
        opened: list[Recording] = []

        def record(engine: FleetEngine, config: Json) -> Recording:
            opened.append(
                Recording.begin(engine, config, recording_disk(directory), background=False, snapshot_every=40)
            )
            return opened[0]

        scenario = shipped(name)
        plain = tuple(replace(action, reason=action.reason.replace(" ", "-")) for action in scenario.actions)
        self.run = Run(replace(scenario, actions=plain), make_applier=record)
        self.run._task_queue = sorted([*self.run._task_queue, *reports(self.run)], key=lambda entry: entry[0])
        for action in actions():
            self.run.act(action)
        self.recording = opened[0]
        stream = self.recording.driver.subscribe(None)
        self.states: list[bytes] = []
        for tick in range(600):
            self.run.step()
            if tick % 20 == 0:
                self.states.append(self.run.engine.state())
        self.events = [item.event for item in stream.take(1_000_000) if hasattr(item, "event")]
        self.result = self.run.result().form
        self.records = [(record.kind, record.t, bytes(record.body)) for record in self.recording.driver.journal.read()]
        self.recording.close()

    def shown(self) -> list[str]:
        """Every sentence that a reader of this run may see."""
        rendered = (OperatorAnswered, TaskEventRefused, Incident)
        events = [event.message for event in self.events if isinstance(event, rendered)]
        alerts = [event.alert for event in self.events if isinstance(event, AlertRaised)]
        alert_texts = [text for alert in alerts if (text := _rendered(alert)) is not None]
        reasons = [
            explain.why(self.run.traffic, self.run.dispatch, {"robot": name}) for name in self.run.traffic.robot_ids
        ]
        return [*events, *alert_texts, *(reason.sentence for reason in reasons)]


def _rendered(alert: Alert) -> str | None:
    """The sentence of an alert of tasks, the journal or the gateway; the fleet renders no others."""
    return sentences.alert_sentence(alert.code, "R1", alert.details) if "operation" in alert.details else None


def renderers() -> dict[int, Callable[..., Any]]:
    """All public functions that render sentences, by identity, each with one that renders a code."""
    functions = [
        function
        for module in (sentences, explain)
        for _, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and function.__annotations__.get("return") in (str, "str", str | None)
    ]
    return {id(function): lambda *_, **__: "CODE" for function in functions}


@pytest.fixture
def codes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces every renderer, in each module that imported it."""
    replaced = renderers()
    for name, module in sorted(sys.modules.items()):
        if name.startswith("pendula.fleet") or name == "pendula.fleet":
            for member, value in list(vars(module).items()):
                if id(value) in replaced:
                    monkeypatch.setattr(module, member, replaced[id(value)])
    for table in (sentences.REFUSALS, sentences.WAITING, sentences.DONE):
        for code in table:
            monkeypatch.setitem(table, code, "CODE" if table is sentences.DONE else lambda _: "CODE")


def texts(value: Json, path: str = "$") -> Iterator[tuple[str, str]]:
    """Every string in a value, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from texts(member, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for number, member in enumerate(value):
            yield from texts(member, f"{path}[{number}]")


def spaced(value: Json) -> list[tuple[str, str]]:
    return [(path, text) for path, text in texts(value) if " " in text]


def finding_texts(sites: list[CompiledMap]) -> set[str]:
    return {text for site in sites for finding in site.findings for text in (finding.message, finding.remedy)}


@pytest.fixture(scope="module", params=campaign_except(("pose-jump", "triangle-8"), NAMES))
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Sample, list[str]]:
    name = request.param
    made = Sample(name, tmp_path_factory.mktemp(name) / "journal")
    return name, made, made.shown()


@pytest.mark.req("FLT-OBS-1", "FLT-OBS-2")
def test_no_record_event_state_or_answer_contains_a_sentence(sample: tuple[str, Sample, list[str]]) -> None:
    _, made, _ = sample

    assert [found for _, _, body in made.records for found in spaced(decode(body))] == []
    assert [found for state in made.states for found in spaced(decode(state))] == []
    assert [found for event in made.events for found in spaced(decode(encode(event)))] == []


@pytest.mark.req("FLT-OBS-2")
@pytest.mark.usefixtures("codes_only")
def test_other_sentences_change_no_byte_of_a_run(sample: tuple[str, Sample, list[str]], tmp_path: Path) -> None:
    name, made, shown = sample
    other = Sample(name, tmp_path / "journal")

    assert other.records == made.records
    assert other.states == made.states
    assert other.result["digest"] == made.result["digest"]
    assert len(shown) > 20
    assert {*other.shown()} == {"CODE"}
    assert "CODE" not in shown


@pytest.mark.req("FLT-MAP-15", "FLT-MAP-19")
def test_other_sentences_of_findings_change_no_byte_of_a_compiled_map(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [compile_map(make(), [FL_STD]) for make in MAPS_WITH_FINDINGS]
    for code in sentences.FINDINGS:
        monkeypatch.setitem(sentences.FINDINGS, code, (lambda _: "CODE", lambda _: "CODE"))
    reworded = [compile_map(make(), [FL_STD]) for make in MAPS_WITH_FINDINGS]
    before, after = finding_texts(shown), finding_texts(reworded)

    assert [site.compiled_hash for site in reworded] == [site.compiled_hash for site in shown]
    assert [to_bytes(site) for site in reworded] == [to_bytes(site) for site in shown]
    assert {finding.code for site in shown for finding in site.findings} == {*sentences.FINDINGS}
    assert "CODE" not in before
    assert after == {"CODE"}


@pytest.mark.req("FLT-MAP-15")
@pytest.mark.parametrize("make", MAPS_WITH_FINDINGS)
def test_a_compiled_map_stores_codes_and_details_and_gives_the_same_sentences_when_read(
    make: Callable[[], SourceMap],
) -> None:
    site = compile_map(make(), [FL_STD])
    data = to_bytes(site)
    stored: Any = decode(data)
    findings = stored["validation"]

    assert from_bytes(data).findings == site.findings
    assert [sorted(finding) for finding in findings] == [["code", "details", "severity"]] * len(site.findings)
    assert spaced(findings) == []


@pytest.mark.req("FLT-OBS-3")
def test_the_journal_is_described_by_codes_and_numbers() -> None:
    missing = MissingRecords(3, 9, 100, 700)

    assert sentences.trouble_sentence(sentences.DISK_NEARLY_FULL) == "the disk is nearly full"
    assert sentences.alert_sentence(
        "LOGGING_RESTORED", None, {"trouble": "EIO", "missing": decode(encode(missing))}
    ) == (
        "the journal is written again after EIO; records 3 to 9, between 100 and 700 ms, are missing from the journal"
    )
