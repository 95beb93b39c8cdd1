"""Readers of source maps, profiles, parameters and fleets; each reports all faults of a document at once.

source_map    a graph of aisles
profiles      types of trucks: outline, margins with their sources, dynamics
params        compile parameters
fleet         trucks with their rest nodes, streams of goods
values        values that all documents share: versions, names, lengths
findings      faults of a document as findings of the validator; places of findings in a document
unread        unknown members: allowed within a major version, but often a misspelling
"""

from pendula.fleet.reading.findings import findings_of, with_places
from pendula.fleet.reading.fleet import read_fleet
from pendula.fleet.reading.params import read_params
from pendula.fleet.reading.profiles import read_profiles
from pendula.fleet.reading.source_map import read_source_map
from pendula.fleet.reading.unread import unread_fleet, unread_graph, unread_params, unread_profiles

__all__ = [
    "findings_of",
    "read_fleet",
    "read_params",
    "read_profiles",
    "read_source_map",
    "unread_fleet",
    "unread_graph",
    "unread_params",
    "unread_profiles",
    "with_places",
]
