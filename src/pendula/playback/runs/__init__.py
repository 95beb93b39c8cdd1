"""One file, run: what is in it, all its faults, its channels opened, its calls made, and why an item came.

loading      a file into what a run needs; every fault of the file at once, each with its place
wanted       its settings
schema       the form of such a file as JSON Schema
opening      the channels of a file, opened: records as they are written, caches from disk, folders as they are
script       the calls of a file, or so many times `next`, made one after the other
streaming    so many times `next`, told as they come
journalled   the same calls to a player with a journal
why          why an item of a run came up
"""

from pendula.playback.runs.schema import file_schema
from pendula.playback.runs.script import RunResult, run_document

__all__ = [
    "RunResult",  # items, answers, counts
    "file_schema",  # the form of a file as JSON Schema
    "run_document",  # run a document to its end
]
