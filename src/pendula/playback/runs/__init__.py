"""Runs of a playback file.

loading      read a file; all faults at once, each with its place; its JSON Schema
opening      open the channels of a file: records, caches, folders
script       make the calls of a file, or `next` N times; why an item was selected
journalled   the same calls to a player with a journal
"""

from pendula.playback.runs.loading import file_schema
from pendula.playback.runs.script import RunResult, run_document

__all__ = [
    "RunResult",  # items, answers, counts
    "file_schema",  # the JSON Schema of a file
    "run_document",  # run a document
]
