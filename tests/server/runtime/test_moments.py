"""The index of a time slider stays small and evenly spread, however long the journal is."""

from itertools import pairwise
from typing import Any

import pytest
from msgspec import to_builtins

from pendula.actions import World
from pendula.actions.messages import Rejection
from pendula.actions.model import Code
from pendula.kernel.canonical import encode
from pendula.kernel.frames import OutcomeBytes
from pendula.server.runtime import past
from pendula.server.runtime.past import Moments, event_sentence
from pendula.testing import FaultyDisk
from pendula.testing.tally import Advance, Tally
from tests.kernel.journals import do, new_driver, new_journal


def test_moments_of_a_long_journal_are_sampled_evenly_with_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past, "MOST_TIMES", 16)
    driver = new_driver(FaultyDisk())
    index = Moments(driver.journal, {})
    for t in range(1, 101):
        do(driver, Advance(t))
        if t % 7 == 0:
            index.spread(2)

    times = [moment.t for moment in index.spread(201)]

    assert (times[0], times[-1]) == (1, 100)
    assert len(times) <= 17
    steps = {after - before for before, after in pairwise(times[:-1])}
    assert len(steps) == 1


REJECTION = Rejection("A", Code.INVALID_ACTION, "not_a_minute", {}, 0, 1)
EVENTS = [
    {"type": "rejection", **to_builtins(REJECTION), "reason": "unheard_of"},
    {"type": "rejection", **to_builtins(REJECTION), "code": "NoSuchCode"},
    {"type": "rejection", **to_builtins(REJECTION), "facts": {"value": []}},
]


@pytest.mark.parametrize("event", EVENTS, ids=["reason", "code", "facts"])
def test_an_event_that_cannot_be_rendered_is_an_incident_with_its_code(event: dict[str, Any]) -> None:
    journal = new_journal(FaultyDisk())
    journal.append("outcome", 0, OutcomeBytes(b"null", (encode(event),), b"null").body(0))
    journal.flush()

    incident = Moments(journal, {"rejection": event_sentence}, World).next_incident(-1)

    assert incident is not None
    assert (incident.n, incident.code, incident.sentence) == (0, event["code"], event["code"])


@pytest.mark.parametrize(
    "refusal", [{"code": "unheard_of", "facts": {}}, {"code": "not_enough", "facts": {"amount": 3}}]
)
def test_a_refusal_that_cannot_be_rendered_is_an_incident_with_its_code(refusal: dict[str, Any]) -> None:
    journal = new_journal(FaultyDisk())
    journal.append("outcome", 0, OutcomeBytes(b"null", (), encode(refusal)).body(0))
    journal.flush()

    incident = Moments(journal, {}, Tally).next_incident(-1)

    assert incident is not None
    assert (incident.code, incident.sentence) == (refusal["code"], refusal["code"])
