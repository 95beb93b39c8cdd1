"""Where jobs are kept, behind one protocol.

protocol       what the scheduler needs of a store: `Store`, and within a transaction `Reader` and `Writer`
governed_protocol  what governance needs of a transaction
sqlite         `SqliteStore`: one file, one writer at a time, one flush for many callers
sqlite_files   which file an address names, whether a store is there, and opening it
writer_thread  the line of callers and the one thread that serves it
turn           an effect's turn in a transaction: it can be taken away, and ends with the transaction
tables/        what a transaction reads and writes
file/          the file itself: opening, fairness among writers, time, damage
migrations/    the schema, step by step
"""

from pendula.jobs.store.protocol import Reader, Store, Writer
from pendula.jobs.store.sqlite import SqliteStore

__all__ = ["Reader", "SqliteStore", "Store", "Writer"]
