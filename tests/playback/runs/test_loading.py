"""Loading of files: every member, every form, every fault at once with its place."""

import json
from base64 import b64encode
from decimal import Decimal
from typing import Any

import pytest
import yaml
from msgspec import UNSET

from pendula.documents import DocumentRefused, Format, from_value, read_bytes
from pendula.playback.model import Record
from pendula.playback.runs.loading import (
    NaeInsert,
    Next,
    Peek,
    Prev,
    Reset,
    Set,
    Spec,
    read_records,
    read_spec,
)
from pendula.playback.settings import DEFAULTS, Mode, Nae, Pick, PickMode
from tests.playback.program import HIST, NAE_E, PICK_D

FULL = """\
seed: 18446744073709551615
channels:
  - id: a
    records:
      - {id: 1, ts: -5, kind: 1, format: 2, flags: 3, dwell_ms: 4, modified_ts: 5, payload: PAYLOAD, storage_key: KEY}
  - {id: b, cache: b.pch}
  - {id: c, folder: ./pictures}
exposure:
  mode: PrE
  manual_weights: {a: 0.1, b: -2}
  total_count: {a: 10, c: 3}
  recent_count: {b: 1}
  alpha: 0.5
  p_min: 0.01
  p_max: 1
pick: {mode: random, r: 8192}
history: 1
lookahead: 1024
nae: {enabled: false, cap: 64}
preserve_history: true
calls: [next, {next: 0}, {prev: 2}, {peek: 5}, {nae_insert: {id: 900, ts: 5}}, {reset: why not}, {set: {history: 7}}]
""".replace("PAYLOAD", b64encode(bytes(range(32))).decode()).replace("KEY", b64encode(bytes(range(16))).decode())


def spec(text: str, form: Format = Format.YAML) -> Spec:
    return read_spec(read_bytes(text.encode(), form, "file"))


def faults(text: str) -> list[tuple[int, int, str, str]]:
    with pytest.raises(DocumentRefused) as refused:
        spec(text)
    return [(fault.line, fault.column, fault.code, fault.message) for fault in refused.value.faults]


@pytest.mark.req("PLAY-FILE-1")
@pytest.mark.req("PLAY-FILE-2")
def test_every_member_of_a_file_is_read() -> None:
    read = spec(FULL)

    assert read.seed == 2**64 - 1
    assert [(channel.id, channel.cache, channel.folder) for channel in read.channels] == [
        ("a", UNSET, UNSET),
        ("b", "b.pch", UNSET),
        ("c", UNSET, "./pictures"),
    ]
    assert read.channels[0].records == (Record(1, -5, 1, 2, 3, 4, 5, bytes(range(16)), bytes(range(32))),)
    exposure = read.settings.exposure
    assert exposure.mode is Mode.PRE
    assert exposure.manual_weights == {"a": Decimal("0.1")}  # less than 0 counts as 0, the default
    assert (exposure.total_count, exposure.recent_count) == ({"a": 10, "c": 3}, {"b": 1})
    assert (exposure.alpha, exposure.p_min, exposure.p_max) == (Decimal("0.5"), Decimal("0.01"), Decimal(1))
    assert read.settings.pick == Pick(PickMode.RANDOM, 8192)
    assert (read.settings.history, read.settings.lookahead) == (1, 1024)
    assert read.settings.nae == Nae(False, 64)
    assert read.settings.preserve_history is True
    assert read.calls is not None
    assert read.calls[:6] == (Next(1), Next(0), Prev(2), Peek(5), NaeInsert(Record(900, 5)), Reset("why not"))
    assert isinstance(read.calls[6], Set)


def test_a_file_of_channels_alone_has_the_defaults() -> None:
    assert spec("channels: []") == Spec((), DEFAULTS)


@pytest.mark.parametrize("text", [FULL, NAE_E, PICK_D, HIST])
def test_yaml_and_json_are_equivalent(text: str) -> None:
    assert spec(json.dumps(yaml.safe_load(text)), Format.JSON) == spec(text)


def test_a_name_alone_is_a_call() -> None:
    assert spec("channels: []\ncalls: [next, prev, peek, reset]").calls == (Next(), Prev(), Peek(), Reset())
    assert spec("channels: []\ncalls:\n- next:\n").calls == (Next(),)


def test_a_set_call_changes_only_the_given_members() -> None:
    read = spec(
        "channels: [{id: a, records: []}, {id: b, records: []}]\n"
        "exposure: {mode: MaE, manual_weights: {a: 3, b: 1}}\n"
        "pick: {r: 5}\n"
        "calls:\n"
        "- set: {pick: {mode: random}}\n"
        "- next\n"
        "- set: {exposure: {manual_weights: {b: 2}}, nae: {enabled: false}}\n"
    )

    assert read.calls is not None
    first, _, second = read.calls
    assert isinstance(first, Set)
    assert isinstance(second, Set)
    assert first.settings.pick == second.settings.pick == Pick(PickMode.RANDOM, 5)
    assert first.settings.exposure == read.settings.exposure
    assert second.settings.exposure.mode is Mode.MAE
    assert second.settings.exposure.manual_weights == {"a": 3, "b": 2}
    assert second.settings.nae == Nae(False, 32)


@pytest.mark.req("PLAY-EXP-1")
def test_fractions_have_the_exact_value_of_their_text() -> None:
    read = spec("channels: [{id: a, records: []}]\nexposure: {alpha: 0.35, p_min: 0.020, manual_weights: {a: 1e2}}")

    assert read.settings.exposure.alpha == Decimal("0.35")
    assert str(read.settings.exposure.p_min) == "0.02"
    assert read.settings.exposure.manual_weights == {"a": 100}


def test_every_fault_has_its_line_and_column() -> None:
    found = faults(
        "seed: -1\n"
        "channels:\n"
        "  - {id: a, records: [{id: 1, ts: 1}, {id: 1, ts: 2}, {ts: 3}]}\n"
        "  - {id: a, cache: x, folder: y}\n"
        "  - {id: c}\n"
        "exposure: {mode: Mae, manual_weights: {d: 1, a: lots}, alpha: 2}\n"
        "pick: {mode: newest, r: 0}\n"
        "histroy: 4\n"
        "lookahead: 1025\n"
        "calls: [nxt, {next: -1}, {next: 1, prev: 1}, {set: {nae: {cap: 65}}}, 5]\n"
    )

    assert [(line, column) for line, column, _, _ in found] == sorted((line, column) for line, column, _, _ in found)
    assert {(line, column, code) for line, column, code, _ in found} == {
        (1, 7, "invalid_field"),
        (3, 44, "not_unique"),
        (3, 55, "missing_field"),
        (4, 5, "invalid_field"),
        (4, 10, "channel_taken"),
        (5, 5, "invalid_field"),
        (6, 18, "invalid_enum"),
        (6, 40, "unknown_channel"),
        (6, 49, "invalid_field"),
        (6, 63, "invalid_field"),
        (7, 14, "invalid_enum"),
        (7, 25, "invalid_field"),
        (8, 1, "unknown_field"),
        (9, 12, "invalid_field"),
        (10, 9, "invalid_field"),
        (10, 21, "invalid_field"),
        (10, 26, "invalid_field"),
        (10, 64, "invalid_field"),
        (10, 71, "invalid_field"),
    }


@pytest.mark.req("PLAY-CACHE-1")
def test_a_65th_channel_is_refused() -> None:
    channels = [{"id": str(number), "records": []} for number in range(65)]

    with pytest.raises(DocumentRefused, match="at most 64"):
        read_spec(from_value({"channels": channels}))


@pytest.mark.req("PLAY-EXP-3")
@pytest.mark.req("PLAY-EXP-5")
@pytest.mark.parametrize(
    "exposure",
    [
        "{manual_weights: {a: .nan}}",
        "{manual_weights: {a: .inf}}",
        "{manual_weights: {a: 1e99}}",
        "{manual_weights: {a: true}}",
        "{alpha: -0.1}",
        "{alpha: 1.1}",
        "{p_min: 0}",
        "{p_min: 0.5}",
        "{p_max: 1.01}",
        "{p_min: 0.00000000000000000000000000000000001}",
        "{total_count: {a: -1}}",
        "{total_count: {a: 1.5}}",
        "null",
        "[]",
    ],
)
def test_an_invalid_exposure_is_a_fault(exposure: str) -> None:
    assert faults(f"channels: [{{id: a, records: []}}]\nexposure: {exposure}\n")


@pytest.mark.parametrize(
    "record",
    [
        "{id: 18446744073709551616, ts: 0}",
        "{id: -1, ts: 0}",
        "{id: 1, ts: 9223372036854775808}",
        "{id: 1, ts: 0, payload: AAAA}",
        "{id: 1, ts: 0, payload: '?'}",
        "{id: 1, ts: 0, kind: 256}",
        "{id: 1, ts: 0, colour: red}",
        "5",
    ],
)
def test_an_invalid_record_of_a_channel_is_a_fault(record: str) -> None:
    assert len(faults(f"channels: [{{id: a, records: [{record}]}}]\n")) == 1


@pytest.mark.req("PLAY-NAE-10")
@pytest.mark.parametrize(
    "artwork",
    [{}, {"ts": 5}, {"id": -1}, {"id": "1"}, {"id": 1, "payload": "AAAA"}, {"id": 1, "payload": 5}, {"id": None}],
)
def test_an_invalid_new_artwork_is_left_to_the_scheduler(artwork: Any) -> None:
    read = read_spec(from_value({"channels": [], "calls": [{"nae_insert": artwork}]}))

    assert read.calls == (NaeInsert(b""),)


def test_a_new_artwork_with_an_unknown_member_is_a_fault() -> None:
    assert faults("channels: []\ncalls: [{nae_insert: {id: 1, colour: red}}]\n")[0][2] == "unknown_field"


@pytest.mark.req("PLAY-EDGE-3")
def test_ids_and_times_have_the_full_range_of_their_fields() -> None:
    records = [{"id": 0, "ts": -(2**63)}, {"id": 2**64 - 1, "ts": 2**63 - 1}]

    read = read_spec(from_value({"channels": [{"id": "a", "records": records}]}))

    assert read.channels[0].records == (Record(0, -(2**63)), Record(2**64 - 1, 2**63 - 1))


def test_a_list_of_records_can_be_read_alone() -> None:
    assert read_records(from_value([{"id": 1, "ts": 2}])) == (Record(1, 2),)

    with pytest.raises(DocumentRefused) as refused:
        read_records(from_value([{"id": 1, "ts": 2}, {"id": 1, "ts": 2}, {"id": False, "ts": 0}, {"id": False}]))

    assert [fault.code for fault in refused.value.faults] == [
        "not_unique",
        "invalid_field",
        "invalid_field",
        "missing_field",
    ]
