"""How the events of an engine are told on the stream of a served run: in the forms of its protocol, with their looks.

What concerns the engine alone (`clearing.decision`, `note`, and `tick` unless the run emits it for debugging) is not
streamed; of the rest every amount and position comes from the event itself. Nothing here is in the journal: it can be
made again from what is.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from pendula.credit.events import ClearingDecision, Event, Note, RunStatus, Ticked, TxFailed, TxUpdated
from pendula.credit.money import atoms
from pendula.credit.runs.artifacts import tick_form
from pendula.credit.served.pictures import Painter
from pendula.credit.served.records import Record
from pendula.credit.served.ring import StreamEvent
from pendula.credit.state.network import Network
from pendula.kernel.canonical import encode

TTL_MS = 1200
EDGE_STYLE = {"viz_width_key": "highlight", "viz_alpha_key": "hi"}
OFF_THE_STREAM = (ClearingDecision, Note, RunStatus, Ticked)


class StreamEncoder:
    """Turns events into what is streamed, for the network as it stands; made anew for each batch of events."""

    def __init__(self, network: Network, ts: str, ticks: bool = False) -> None:
        """`ticks` adds a debug event for each tick."""
        self._ticks = ticks
        self._network = network
        self._ts = ts
        self._painters: dict[str, Painter] = {}

    def told(self, event: Event) -> StreamEvent | None:
        """The event as it is streamed; None for what is not."""
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
        """Let the patches say how what has changed looks now."""
        if not (form.get("node_patch") or form.get("edge_patch")) or equivalent not in self._network.ledgers:
            return
        painter = self._painter(equivalent)
        index = self._network.people.index
        for patch in form.get("node_patch", ()):
            patch.update(painter.node(index[patch["id"]]))
        for patch in form.get("edge_patch", ()):
            patch.update(painter.link(atoms(patch["used"]), atoms(patch["trust_limit"])))

    def _painter(self, equivalent: str) -> Painter:
        if equivalent not in self._painters:
            self._painters[equivalent] = Painter(self._network.ledgers[equivalent].book)
        return self._painters[equivalent]


def status_event(record: Record, current_phase: str | None, *, terminal: bool) -> StreamEvent:
    """Where the run stands, for every reader."""
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
    """A note as the files of a run keep it."""
    return encode(note)
