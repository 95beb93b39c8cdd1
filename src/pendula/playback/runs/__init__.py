"""Runs of a playback file."""

from pendula.playback.runs.loading import file_schema
from pendula.playback.runs.script import RunResult, run_document

__all__ = [
    "RunResult",  # items, answers, counts
    "file_schema",  # the JSON Schema of a file
    "run_document",  # run a document
]
