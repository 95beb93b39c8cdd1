"""Journals of fleets: recording, reading, replay, export and comparison; and tuning of a fleet."""

from pendula.fleet.runs.incidents import Bundler, IncidentGroup, bundle, group_incidents, incidents_of, write_bundles
from pendula.fleet.runs.managing import Manager, Watch
from pendula.fleet.runs.reading import (
    Moment,
    UnknownTick,
    compare_params,
    fleet_at,
    last_tick,
    lines,
    moments,
    reading,
    record_of_tick,
    results_of,
    robots_of,
    snapshot_at,
    snapshot_lines,
    snapshots,
    tick_snapshot,
    verify_ticks,
)
from pendula.fleet.runs.recording import NoFleetJournal, Recording, RingJournal, recording_disk

__all__ = [
    "Bundler",
    "IncidentGroup",
    "Manager",
    "Moment",
    "NoFleetJournal",
    "Recording",
    "RingJournal",
    "UnknownTick",
    "Watch",
    "bundle",
    "compare_params",
    "fleet_at",
    "group_incidents",
    "incidents_of",
    "last_tick",
    "lines",
    "moments",
    "reading",
    "record_of_tick",
    "recording_disk",
    "results_of",
    "robots_of",
    "snapshot_at",
    "snapshot_lines",
    "snapshots",
    "tick_snapshot",
    "verify_ticks",
    "write_bundles",
]
