"""Where jobs are kept, behind one protocol.

protocol        what the scheduler needs of a store: `Store`, and within a transaction `Reader` and `Writer`
sqlite          `SqliteStore`: one file, one writer at a time, one flush for many callers
sqlite_reader   every query, each answered by an index
sqlite_writer   what a transaction writes, collected and written at once
sqlite_registry the tables of time plans and of workers' signs of life
sqlite_bulk     many rows with one statement
sqlite_guard    what a handler's own SQL may do within our transaction
sqlite_files    which file an address names, whether a store is there, and opening it
turnstile       the queue of writers over all processes: a lock on a file beside the store
mounts          which file systems a store may lie on
migrations/     the schema, step by step
"""

from pendula.jobs.store.protocol import Reader, Store, Writer
from pendula.jobs.store.sqlite import SqliteStore

__all__ = ["Reader", "SqliteStore", "Store", "Writer"]
