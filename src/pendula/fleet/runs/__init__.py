"""Journals of fleets: recording, reading, replay, export and comparison.

recording     an engine and its journal; a killed fleet resumes from it
ring_journal  a journal that never stops traffic, whatever the disk does
managing      the manager of a live fleet, between its gateway and its journal
reading       the fleet at any tick of a journal, and its ticks replayed
verifying     replayed ticks, and the first that differs
export        a journal as JSON Lines
snapshots     trucks, grants and locks after a tick, in the forms of the contract
comparing     two sets of parameters on one journal
incidents     bundles: the minute before and after an incident as a journal
watching      swings and distances of trucks, by their reports
tuning        the number of trucks and the parameters with the highest throughput
"""

from pendula.fleet.runs.comparing import compare_params
from pendula.fleet.runs.export import lines
from pendula.fleet.runs.incidents import Bundler, IncidentGroup, bundle, group_incidents, incidents_of, write_bundles
from pendula.fleet.runs.managing import Manager
from pendula.fleet.runs.reading import Moment, UnknownTick, fleet_at, last_tick, moments, reading, record_of_tick
from pendula.fleet.runs.recording import NoFleetJournal, Recording, recording_disk
from pendula.fleet.runs.ring_journal import RingJournal
from pendula.fleet.runs.snapshots import results_of, robots_of, snapshot_at, snapshot_lines, snapshots, tick_snapshot
from pendula.fleet.runs.verifying import verify_ticks
from pendula.fleet.runs.watching import Watch

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
