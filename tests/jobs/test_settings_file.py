"""A settings file sets every parameter, or is rejected with all its faults, each with its place."""

import json
from decimal import Decimal
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pendula.documents import DocumentRefused, from_value
from pendula.documents.toml_text import read_toml
from pendula.governance.decisions import Limits
from pendula.governance.inputs import Rules, rules_of
from pendula.governance.machines import MEMORY, REFERENCE
from pendula.jobs import JobRefused, Policy
from pendula.jobs.messages import Recurring
from pendula.jobs.model import AuditCheck, Durability, Priority, PullClock, PullOrder, RetryBase
from pendula.jobs.settings_file import BESIDES, GOVERNED, POLICY, Configured, load, read
from tests.jobs.stores import opened

# Section 0.4 of the requirements: name, default, values at the limits of the range, values beyond them.
TABLE: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("default_priority", "medium", ["low", "high"], ["urgent", 1, None]),
    ("default_max_attempts", 3, [1, 100], [0, 101, "3", True]),
    ("pull_default_limit", 100, [1, 1000], [0, 1001]),
    ("pull_max_limit", 1000, [100, 10_000], [0, 10_001]),
    ("lease_sec", 900, [1, 43_200], [0, 43_201, Decimal("1.5")]),
    ("lease_expiry_retry_delay_sec", 0, [0, 86_400], [-1, 86_401]),
    ("min_retry_gap_sec", 5, [0, 3600], [-1, 3601]),
    ("retry_base", "run_at", ["now"], ["later"]),
    ("pull_clock", "request", ["server"], ["client"]),
    ("max_clock_step_sec", 300, [1, 86_400], [0, 86_401, "300"]),
    ("pull_order", "run_at", ["weighted"], ["fifo"]),
    ("worker_interval_sec", 5, [Decimal("0.05"), 3600], [Decimal("0.04"), 3601, "5"]),
    ("audit_event_check", "link", ["strict"], ["none"]),
    ("auto_followup", True, [False], ["no", 1]),
    ("one_running_per_object", False, [True], ["yes"]),
    ("auto_verify_budget", 2, [0, 1000], [-1, 1001]),
    ("uncertainty_ttl", "P7D", ["PT1S", "P2W"], ["7 days", "P1M", "P", "PT", "PT0S", "P999999W", 7]),
    ("ontic_verify_limit", 1, [1, 10], [0, 11]),
    ("min_evidence_count", 1, [1, 100], [0, 101]),
    ("learning_period_days", 7, [1, 365], [0, 366, "P7D"]),
    ("retention_days", 30, [1, 3650], [0, 3651]),
    ("unhandled_alert_sec", 600, [1, 2_592_000], [0, 2_592_001]),
    ("durability", "full", ["normal"], ["off"]),
]


def configured(**members: Any) -> Configured:
    return read(from_value(members))


def refused(**members: Any) -> list[tuple[str, str]]:
    with pytest.raises(DocumentRefused) as raised:
        configured(**members)
    return [(fault.path, fault.code) for fault in raised.value.faults]


def test_an_empty_file_gives_the_defaults() -> None:
    assert configured() == Configured(Policy(), Decimal(5), (), None)


@pytest.mark.parametrize(("name", "default"), [row[:2] for row in TABLE])
def test_defaults_are_those_of_the_specification(name: str, default: Any) -> None:
    assert configured(**{name: default}) == configured()


@pytest.mark.parametrize(("name", "value"), [(row[0], value) for row in TABLE for value in row[2]])
def test_values_at_the_limits_are_accepted(name: str, value: Any) -> None:
    found = configured(**{name: value})

    assert (found == configured()) is (value == {row[0]: row[1] for row in TABLE}[name])


@pytest.mark.parametrize(("name", "value"), [(row[0], value) for row in TABLE for value in row[3]])
def test_values_beyond_the_limits_are_rejected_by_name(name: str, value: Any) -> None:
    assert [path for path, _ in refused(**{name: value})] == [f"$.{name}"]


def test_every_parameter_of_the_policy_can_be_set() -> None:
    assert {row[0] for row in TABLE} | {"retry_jitter", "head_start_sec", "objects_elsewhere", "machines"} >= set(
        POLICY
    )
    assert {*POLICY, *BESIDES, *GOVERNED} >= {row[0] for row in TABLE}


SETTINGS: dict[str, Any] = {
    "default_priority": "high",
    "default_max_attempts": 5,
    "pull_default_limit": 50,
    "pull_max_limit": 500,
    "lease_sec": 30,
    "lease_expiry_retry_delay_sec": 10,
    "min_retry_gap_sec": 1,
    "retry_jitter": False,
    "retry_base": "now",
    "pull_clock": "server",
    "max_clock_step_sec": 60,
    "pull_order": "weighted",
    "head_start_sec": {"high": 600, "low": 5},
    "audit_event_check": "strict",
    "auto_followup": False,
    "one_running_per_object": True,
    "retention_days": 7,
    "durability": "normal",
    "worker_interval_sec": 0.5,
    "auto_verify_budget": 0,
    "uncertainty_ttl": "P1DT12H",
    "ontic_verify_limit": 2,
    "learning_period_days": 14,
    "min_evidence_count": 3,
    "object_types": ["invoice"],
    "actions": ["re-index"],
    "recurring": [
        {"name": "nightly", "cron": "0 3 * * *", "object_type": "invoice", "object_id": "all", "action": "re-index"},
        {
            "name": "weekly",
            "cron": "@weekly",
            "object_type": "memory",
            "object_id": "mem_1",
            "action": "decay",
            "priority": "low",
            "max_attempts": 1,
            "queue": "slow",
        },
    ],
    "alerts": {"webhook": "https://alerts.example/hook"},
}

TOML = """
default_priority = "high"
default_max_attempts = 5
pull_default_limit = 50
pull_max_limit = 500
lease_sec = 30
lease_expiry_retry_delay_sec = 10
min_retry_gap_sec = 1
retry_jitter = false
retry_base = "now"
pull_clock = "server"
max_clock_step_sec = 60
pull_order = "weighted"
head_start_sec = { high = 600, low = 5 }
audit_event_check = "strict"
auto_followup = false
one_running_per_object = true
retention_days = 7
durability = "normal"
worker_interval_sec = 0.5
auto_verify_budget = 0
uncertainty_ttl = "P1DT12H"
ontic_verify_limit = 2
learning_period_days = 14
min_evidence_count = 3
object_types = ["invoice"]
actions = ["re-index"]

[alerts]
webhook = "https://alerts.example/hook"

[[recurring]]
name = "nightly"
cron = "0 3 * * *"
object_type = "invoice"
object_id = "all"
action = "re-index"

[[recurring]]
name = "weekly"
cron = "@weekly"
object_type = "memory"
object_id = "mem_1"
action = "decay"
priority = "low"
max_attempts = 1
queue = "slow"
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", json.dumps(SETTINGS)),
        ("s.yaml", yaml.safe_dump(SETTINGS)),
        ("s.yml", yaml.safe_dump(SETTINGS)),
        ("s.TOML", TOML),
    ],
)
def test_toml_yaml_and_json_give_the_same_settings(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)

    found = load(tmp_path / name)

    policy = found.policy
    assert policy.vocabulary.object_types == ("memory", "experience", "cognition", "invoice")
    assert policy.vocabulary.actions[-2:] == ("reinstate-check", "re-index")
    assert policy == Policy(
        policy.vocabulary, Priority.HIGH, 5, 50, 500, 30, 10, 1, False, RetryBase.NOW, PullClock.SERVER,
        PullOrder.WEIGHTED, (600, 60, 5), AuditCheck.STRICT, False, True, 7, Durability.NORMAL,
        max_clock_step_sec=60, governance=Rules(limits=Limits(3, 2, 0, 36 * 3_600_000_000, 14)),
    )  # fmt: skip
    assert found.worker_interval_sec == Decimal("0.5")
    assert found.recurring == (
        Recurring("nightly", "0 3 * * *", "invoice", "all", "re-index"),
        Recurring("weekly", "@weekly", "memory", "mem_1", "decay", Priority.LOW, 1, "slow"),
    )
    assert found.alert_webhook == "https://alerts.example/hook"


def test_added_words_appear_in_rejections_of_the_scheduler(tmp_path: Path) -> None:
    found = configured(object_types=["invoice"], actions=["re-index"])
    scheduler, _ = opened(tmp_path, found.policy)

    stored = scheduler.enqueue(object_type="invoice", object_id="i_1", action="re-index")
    with pytest.raises(JobRefused) as raised:
        scheduler.enqueue(object_type="invoise", object_id="i_1", action="re-index")
    scheduler.close()

    assert stored.job.object_type == "invoice"
    assert raised.value.fields[0]["allowed"] == ["memory", "experience", "cognition", "invoice"]


WRONG_TOML = """lease_sec = 0
leese_sec = 5

pull_default_limit = 200
pull_max_limit = 100
actions = [
  "decay",
  "Big Word",
]
object_types = ["persona"]

[alerts]
webhook = "ftp://x"

[[recurring]]
name = "a"
cron = "61 * * * *"
object_type = "memory"
object_id = " x"
action = "verfy"
zone = "Europe/Berln"
[[recurring]]
name = "a"
cron = "@daily"
object_id = "x"
action = "decay"
"""
WRONG = [
    (1, "$.lease_sec", "invalid_field"),
    (2, "$.leese_sec", "unknown_field"),
    (4, "$.pull_default_limit", "invalid_field"),
    (6, "$.actions[0]", "invalid_field"),
    (6, "$.actions[1]", "invalid_field"),
    (10, "$.object_types[0]", "invalid_field"),
    (13, "$.alerts.webhook", "input_refused"),
    (17, "$.recurring[0].cron", "invalid_cron"),
    (19, "$.recurring[0].object_id", "invalid_field"),
    (20, "$.recurring[0].action", "invalid_enum"),
    (21, "$.recurring[0].zone", "invalid_zone"),
    (22, "$.recurring[1].object_type", "missing_field"),
    (23, "$.recurring[1].name", "not_unique"),
]


def test_all_faults_of_a_toml_file_are_reported_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(WRONG_TOML)

    with pytest.raises(DocumentRefused) as raised:
        load(file)

    assert [(fault.line, fault.path, fault.code) for fault in raised.value.faults] == WRONG
    assert f"{file}:1:1: $.lease_sec: 0 is out of range; allowed: from 1 to 43200" in raised.value.render()
    assert "did you mean lease_sec?" in raised.value.render()
    assert "did you mean verify?" in raised.value.render()


def test_all_faults_of_a_yaml_file_are_reported_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("lease_sec: 0\nrecurring:\n  - name: A\n    cron: '* *'\nalerts: loud\n")

    with pytest.raises(DocumentRefused) as raised:
        load(file)

    assert [(fault.line, fault.path) for fault in raised.value.faults] == [
        (1, "$.lease_sec"),
        (3, "$.recurring[0].action"),
        (3, "$.recurring[0].object_id"),
        (3, "$.recurring[0].object_type"),
        (3, "$.recurring[0].name"),
        (4, "$.recurring[0].cron"),
        (5, "$.alerts"),
    ]


def test_a_limit_above_the_maximum_is_rejected_with_its_place() -> None:
    assert refused(pull_max_limit=50) == [("$.pull_max_limit", "invalid_field")]
    assert refused(pull_default_limit=900, pull_max_limit=800) == [("$.pull_default_limit", "invalid_field")]


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        ("a = \n", 1, 5, "toml_syntax"),
        ("lease_sec = 1\nlease_sec = 2\n", 2, 14, "toml_syntax"),
        ("a = [1,\n", 1, 8, "toml_syntax"),
        ("x = 1\ny = '\xff'\n", 2, 1, "invalid_utf8"),
        ("x = 1\ny = [\n  1, " + 5000 * "9" + "]\n", 3, 6, "number_too_long"),
        ("x = 1\ny = 1e9999999999\nz = 2\n", 2, 7, "number_too_long"),
        ("x = 1\n  y = " + 5000 * "[" + "\n", 2, 3, "toml_syntax"),
    ],
)
def test_invalid_toml_is_reported_with_its_place(text: str, line: int, column: int, code: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(DocumentRefused) as raised:
        load(file)

    [fault] = raised.value.faults
    assert (fault.line, fault.column, fault.code) == (line, column, code)


@pytest.mark.parametrize(("name", "code"), [("none.toml", "document_unreadable"), ("none.ini", "unknown_format")])
def test_an_unreadable_file_is_one_fault(name: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(DocumentRefused) as raised:
        load(tmp_path / name)

    assert [fault.code for fault in raised.value.faults] == [code]


def test_a_toml_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b"# " + b"x" * 1024 * 1024)

    with pytest.raises(DocumentRefused, match="too large"):
        load(tmp_path / "s.toml")


@pytest.mark.parametrize("value", ["[\n" + 60_000 * "1,\n" + "]", '"""\n' + 200_000 * "x\n" + '"""'])
def test_a_statement_of_many_lines_is_located_in_time(value: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(f"x = {value}\nlease_sec = 0\n")
    begun = process_time()

    with pytest.raises(DocumentRefused) as raised:
        load(tmp_path / "s.toml")

    assert [fault.line for fault in raised.value.faults] == [1, value.count("\n") + 2]
    assert process_time() - begun < 20


@pytest.mark.parametrize(
    "value",
    [
        r'"""a \""" ] [ """""',
        "'''\n'' [ '''",
        '["#", \'"\', # ]\n]',
        '{a = "}", b = []}',
        r'"\\"',
    ],
)
def test_strings_and_comments_do_not_end_a_toml_statement(value: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(f"lease_sec = 1\nx = {value} # [\n\n  lease = 0")

    with pytest.raises(DocumentRefused) as raised:
        load(tmp_path / "s.toml")

    last = 4 + value.count("\n")
    assert [(fault.line, fault.column) for fault in raised.value.faults] == [(2, 1), (last, 3)]


@given(
    between=st.lists(st.sampled_from(["", "# a comment", 'text = """', "]", "[t]", "x = 1"]), max_size=4),
    indent=st.integers(0, 3),
)
def test_every_toml_statement_is_located_at_its_first_line(
    between: list[str], indent: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    inside = "\n".join(between)
    text = f"first = 1\nlong = '''\n{inside}\n'''\n{' ' * indent}last = [\n 1,\n]\n"
    file = tmp_path_factory.mktemp("toml") / "s.toml"
    file.write_text(text)

    place = read_toml(file).place(("last", 0))

    lines = text.split("\n")
    assert lines[place.line - 1] == f"{' ' * indent}last = ["
    assert place.column == indent + 1


@pytest.mark.parametrize("address", ["ftp://x/y", "https://", "http://h:99999/", "https://x/\n", "x", "http://[::1/"])
def test_a_webhook_is_an_http_address(address: str) -> None:
    assert refused(alerts={"webhook": address}) == [("$.alerts.webhook", "input_refused")]


PAYLOAD = """
[[recurring]]
name = "nightly"
cron = "0 3 * * *"
object_type = "memory"
object_id = "mem_1"
action = "decay"
payload = """


@pytest.mark.req("JOB-USE-7")
@pytest.mark.parametrize(
    ("written", "read"),
    [('{by = 0.5, to = ["a"]}', '{"by":0.5,"to":["a"]}'), ("7", "7"), ('"plain"', '"plain"')],
)
def test_a_plan_of_a_settings_file_can_have_a_payload(written: str, read: str, tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(PAYLOAD + written)

    assert load(tmp_path / "jobs.toml").recurring[0].payload == read


def test_a_payload_that_is_too_large_is_a_fault_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(f'{PAYLOAD}"{"x" * 65_536}"')

    with pytest.raises(DocumentRefused, match=r"\$\.recurring\[0\]\.payload: the payload has 65538 bytes"):
        load(tmp_path / "jobs.toml")


# State machines


HOUSE: dict[str, Any] = {
    "first": "planned",
    "trust": {"planned": 1, "lived_in": 3, "ruin": 0},
    "arrows": [
        {"from": "planned", "action": "verify", "finding": "passed", "to": "lived_in", "gates": ["risk_gate"]},
        {"from": "lived_in", "action": "decay", "finding": "faded", "to": "ruin"},
    ],
    "follow": {"planned": {"action": "verify", "after": "P1D"}, "lived_in": {"action": "decay", "after": "P2W"}},
    "never": [{"from": "ruin", "to": "lived_in", "because": "a ruin is never lived in again"}],
    "stale": ["ruin"],
    "needs": {"lived_in": ["falsify_if|expires_at"]},
}


@pytest.mark.req("JOB-SM-2")
def test_a_machine_of_the_settings_is_added_to_the_built_in_ones() -> None:
    machines = rules_of(configured(object_types=["house"], machines={"house": HOUSE}).policy).machines

    assert sorted(machines) == ["cognition", "experience", "house", "memory"]
    assert machines["memory"] is MEMORY
    house = machines["house"]
    assert (house.object_type, house.arrows[0].gates, house.follow["lived_in"].after) == (
        "house",
        ("risk_gate",),
        14 * 86_400_000_000,
    )
    assert (house.stale, house.needs) == (frozenset({"ruin"}), {"lived_in": ("falsify_if|expires_at",)})
    assert rules_of(configured().policy).machines is REFERENCE


@pytest.mark.req("JOB-SM-2")
def test_a_machine_in_a_file_can_replace_a_built_in_one(tmp_path: Path) -> None:
    (tmp_path / "memory.yaml").write_text(json.dumps(HOUSE))
    (tmp_path / "jobs.toml").write_text('[machines]\nmemory = "memory.yaml"\n')

    assert rules_of(load(tmp_path / "jobs.toml").policy).machines["memory"].first == "planned"


def test_all_faults_of_a_machine_are_reported_at_once_with_their_places() -> None:
    bad = {
        **HOUSE,
        "arrows": [*HOUSE["arrows"], {"from": "planned", "action": "paint", "finding": "x", "to": "castle"}],
        "follow": {**HOUSE["follow"], "planned": {"action": "verify", "after": "a month"}},
        "never": [],
    }

    found = refused(object_types=["house"], machines={"house": bad, "tree": HOUSE})

    assert sorted(found) == [
        *[("$.machines.house", "invalid_field")] * 3,
        ("$.machines.house.follow.planned.after", "input_refused"),
        ("$.machines.tree", "invalid_enum"),
    ]


def test_the_number_of_states_of_a_machine_is_limited() -> None:
    states = {f"s{n}": 1 for n in range(1001)}

    assert refused(object_types=["house"], machines={"house": {**HOUSE, "trust": states}}) == [
        ("$.machines.house.trust", "invalid_field")
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("[machines]\nmemory = 'nowhere.yaml'\n", "nowhere.yaml"), ("[machines]\nmemory = 'bad.yaml'\n", "first")],
)
def test_an_unusable_machine_file_is_reported_where_it_is_named(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "bad.yaml").write_text("trust: {}\n")
    (tmp_path / "jobs.toml").write_text(text)

    with pytest.raises(DocumentRefused) as refused:
        load(tmp_path / "jobs.toml")

    assert {fault.path for fault in refused.value.faults} == {"$.machines.memory"}
    assert any(expected in fault.message for fault in refused.value.faults)


def test_every_fault_of_a_machine_file_is_reported_separately(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("trust: {}\n")
    (tmp_path / "jobs.toml").write_text("[machines]\nmemory = 'bad.yaml'\n")

    with pytest.raises(DocumentRefused) as refused:
        load(tmp_path / "jobs.toml")

    lacking = [fault.message.split("'")[1] for fault in refused.value.faults]
    assert lacking == ["arrows", "first", "follow", "never"]


def test_words_before_the_type_in_a_path_cannot_be_types() -> None:
    assert refused(object_types=["show"]) == [("$.object_types[0]", "invalid_field")]
