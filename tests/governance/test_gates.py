import pytest

from pendula.governance.gates import EVERYTHING, REQUIRED, Gate, Passage, Reading, is_high_risk, moved, read
from pendula.governance.model import Impact, Risk
from tests.governance.governed_objects import NOW, gates


def _read(**verdicts: str) -> Reading:
    return read(gates(**verdicts), REQUIRED)


@pytest.mark.req("JOB-GATE-3", "JOB-GATE-4")
@pytest.mark.parametrize(
    ("verdicts", "passage", "by"),
    [
        ({}, Passage.OPEN, None),
        ({"risk_gate": "limit"}, Passage.LOWERING_ONLY, "risk_gate"),
        ({"cognition_gate": "degrade"}, Passage.LOWERING_ONLY, "cognition_gate"),
        ({"social_gate": "defer", "risk_gate": "limit"}, Passage.DEFERRED, "social_gate"),
        ({"social_gate": "defer", "cognition_gate": "block"}, Passage.BLOCKED, "cognition_gate"),
        ({"social_gate": "pass"}, Passage.OPEN, None),
        ({"persona_conflict_gate": "override"}, Passage.BLOCKED, "persona_conflict_gate"),
    ],
)
def test_the_strictest_gate_wins(verdicts: dict[str, str], passage: Passage, by: str | None) -> None:
    reading = _read(**verdicts)

    assert (reading.passage, reading.decided_by) == (passage, by)


@pytest.mark.req("JOB-GATE-4")
def test_an_override_passes_only_with_a_user() -> None:
    named = Gate("persona_conflict_gate", EVERYTHING, "override", 2, NOW, "mia", "checked by hand", override_by="mia")
    others = [gate for gate in gates() if gate.name != named.name]

    assert read([named, *others], REQUIRED).passage is Passage.OPEN


@pytest.mark.req("JOB-GATE-3")
@pytest.mark.parametrize("missing", REQUIRED)
def test_an_unset_required_gate_does_not_pass(missing: str) -> None:
    reading = read([gate for gate in gates() if gate.name != missing], REQUIRED)

    assert (reading.passage, reading.decided_by) == (Passage.UNAVAILABLE, missing)


@pytest.mark.req("JOB-GATE-3")
def test_a_gate_of_the_object_counts_beside_the_global_one() -> None:
    own = Gate("risk_gate", "memory:x", "block", 1, NOW, "mia", "under inquiry")

    assert read([*gates(), own], REQUIRED).passage is Passage.BLOCKED
    assert read([*gates(), own], REQUIRED).verdicts["risk_gate"] == "block"


@pytest.mark.req("JOB-GATE-2")
def test_setting_a_gate_to_the_same_verdict_is_a_change() -> None:
    before, again = _read(), [Gate(g.name, g.scope, g.verdict, 2, NOW, "mia", "again") for g in gates()]

    assert not moved(before.versions, _read())
    assert moved(before.versions, read(again, REQUIRED))


@pytest.mark.req("JOB-GATE-1")
def test_high_risk_is_a_high_tier_or_a_critical_impact() -> None:
    high = {(risk, impact) for risk in Risk for impact in Impact if is_high_risk(risk, impact)}

    assert high == {(Risk.HIGH, impact) for impact in Impact} | {(risk, Impact.CRITICAL) for risk in Risk}


@pytest.mark.req("JOB-GATE-4")
def test_a_gate_blocks_even_if_another_is_unset() -> None:
    blocked = [gate for gate in gates(persona_conflict_gate="block") if gate.name != "risk_gate"]
    limited = [gate for gate in gates(cognition_gate="degrade") if gate.name != "risk_gate"]

    assert read(blocked, REQUIRED).passage is Passage.BLOCKED
    assert read(limited, REQUIRED).passage is Passage.UNAVAILABLE
