"""Where jobs are kept, behind one protocol.

protocol        what the scheduler needs of a store: `Store`, and within a transaction `Reader` and `Writer`
sqlite          `SqliteStore`: one file, one writer at a time, one flush for many callers
writer_thread   the line of callers and the one thread that serves it
turn            an effect's turn in a transaction: it can be taken away, and ends with the transaction
store_time      the store's time, which never goes back
damage          which rows of a damaged file cannot be read
opening         connections, the read-only ones too, and migrations
sqlite_reader   every query, each answered by an index
sqlite_lists    jobs by any filter: pages and counts
sqlite_due      which due jobs a pull may take, in order, without a look at others
sqlite_archive  events of removed jobs, packed, still part of the chain
sqlite_counts   the numbers metrics are made of, kept with every change
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
