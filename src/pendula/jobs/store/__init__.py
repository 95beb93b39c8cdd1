"""Where jobs are stored, behind one protocol.

protocol       what the scheduler needs of a store: `Store`, and within a transaction `Reader` and `Writer`
sqlite         `SqliteStore`: one file, one writer at a time, one flush for many callers
sqlite_files   the file of an address, whether it holds a store, and opening it
writer_thread  the queue of callers, the one thread that serves it, and the bounded turn of an effect
tables/        what a transaction reads and writes
file/          the file: opening, fairness among writers, time, damage
migrations/    the schema, in numbered steps
"""

from pendula.jobs.store.protocol import Reader, Store, Writer
from pendula.jobs.store.sqlite import SqliteStore

__all__ = ["Reader", "SqliteStore", "Store", "Writer"]
