"""The drawn spans, compared with the result of a run."""

from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from pendula.actions.gantt import gantt_svg
from pendula.actions.gantt.spans import Kind, history_of
from pendula.actions.saving import saved_in
from tests.actions.scenarios import SLOTS, engine_run, scenario


@given(st.integers(0, 10**9))
def test_spans_match_the_events(seed: int) -> None:
    case = scenario(seed)
    result = engine_run(case)

    history = history_of(result.epochs, saved_in(result.carry), case.document["action_defs"])

    ElementTree.fromstring(gantt_svg(result, case.document["action_defs"], slots=SLOTS))
    events = [event for epoch in result.epochs for event in epoch.events]
    kinds = [event.__struct_config__.tag for event in events]
    assert history.counts["ended"] == kinds.count("end")
    assert history.counts["interrupted"] == kinds.count("interrupt")
    runs = [span for span in history.spans if span.kind is Kind.RUN]
    assert sum(span.over for span in runs) == kinds.count("end") + kinds.count("interrupt")
    assert len(runs) == kinds.count("start")
    waited = sum(event.meta["waited"] for event in events if event.__struct_config__.tag == "start")
    assert waited == sum(span.until - span.since for span in history.spans if span.kind is Kind.WAIT and span.over)


@given(st.integers(0, 10**9))
def test_bars_in_the_lane_of_a_lock_do_not_overlap(seed: int) -> None:
    case = scenario(seed)
    result = engine_run(case)
    history = history_of(result.epochs, saved_in(result.carry), case.document["action_defs"])

    for lock in {name for names in history.locks.values() for name in names}:
        held = sorted(
            (span.since, span.until)
            for span in history.spans
            if span.kind is Kind.RUN and lock in history.locks.get(span.verb, ())
        )
        assert all(before[1] <= after[0] for before, after in pairwise(held))
