"""Encodes events of the engine for the stream of a served run, in the forms of the protocol, with display keys.

Internal events (`clearing.decision`, `note`, and `tick` unless enabled for debugging) are not streamed. Amounts and
positions come from the event itself. The result is not journalled, because it is derived from the events.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from pendula.credit.events import ClearingDecision, Event, Note, RunStatus, Ticked, TxFailed, TxUpdated
from pendula.credit.money import atoms
from pendula.credit.runs.artifacts import tick_form
from pendula.credit.served.pictures import DisplayKeys
from pendula.credit.served.records import Record
from pendula.credit.served.ring import StreamEvent
from pendula.credit.state.network import Network
from pendula.kernel.canonical import encode

TTL_MS = 1200
EDGE_STYLE = {"viz_width_key": "highlight", "viz_alpha_key": "hi"}
OFF_THE_STREAM = (ClearingDecision, Note, RunStatus, Ticked)


class StreamEncoder:
    """Encodes events for the stream, for the current network; create one per batch of events."""

    def __init__(self, network: Network, ts: str, ticks: bool = False) -> None:
        """`ticks` adds a debug event for each tick."""
        self._ticks = ticks
        self._network = network
        self._ts = ts
        self._keys: dict[str, DisplayKeys] = {}

    def encode_event(self, event: Event) -> StreamEvent | None:
        """The event as it is streamed; None if it is not streamed."""
        if isinstance(event, Ticked) and self._ticks:
            return StreamEvent("tick", None, tick_form(event))
        if isinstance(event, OFF_THE_STREAM):
            return None
        form: dict[str, Any] = msgspec.to_builtins(event, builtin_types=(Decimal,))
        equivalent = event.equivalent
        match event:
            case TxUpdated():
                form |= {"amount_flyout": True, "ttl_ms": TTL_MS, "intensity_key": "active"}
                form["edges"] = [edge | {"style": EDGE_STYLE} for edge in form["edges"]]
            case TxFailed():
                form["error"] |= {"message": event.message, "at": self._ts}
            case _:
                pass
        for part in (form, form.get("payload", {})):
            self._add_style(equivalent, part)
        return StreamEvent(form["type"], equivalent, encode(form))

    def _add_style(self, equivalent: str, form: Mapping[str, Any]) -> None:
        """Add display keys to the patches."""
        if not (form.get("node_patch") or form.get("edge_patch")) or equivalent not in self._network.ledgers:
            return
        keys = self._keys_of(equivalent)
        index = self._network.people.index
        for patch in form.get("node_patch", ()):
            patch.update(keys.node(index[patch["id"]]))
        for patch in form.get("edge_patch", ()):
            patch.update(keys.link(atoms(patch["used"]), atoms(patch["trust_limit"])))

    def _keys_of(self, equivalent: str) -> DisplayKeys:
        if equivalent not in self._keys:
            self._keys[equivalent] = DisplayKeys(self._network.ledgers[equivalent].book)
        return self._keys[equivalent]


def status_event(record: Record, current_phase: str | None, *, terminal: bool) -> StreamEvent:
    """The status of the run, for every reader."""
    form = {
        "type": "run_status",
        "run_id": record.run_id,
        "scenario_id": record.scenario_id,
        "state": record.state.value,
        "sim_time_ms": record.sim_time_ms,
        "intensity_percent": record.intensity_percent,
        "ops_sec": record.ops_sec,
        "queue_depth": record.queue_depth,
        "attempts_total": record.attempts_total,
        "committed_total": record.committed_total,
        "rejected_total": record.rejected_total,
        "errors_total": record.errors_total,
        "timeouts_total": record.timeouts_total,
        "consec_all_rejected_ticks": record.consec_all_rejected_ticks,
        "last_event_type": record.last_event_type,
        "current_phase": current_phase,
        "last_error": record.last_error,
    }
    return StreamEvent("run_status", None, encode(form), terminal)


def note_form(note: Note) -> bytes:
    """A note as in the files of a run."""
    return encode(note)
