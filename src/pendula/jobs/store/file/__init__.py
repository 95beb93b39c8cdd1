"""The file of a store: opening, fairness among writers, time, damage.

opening     connections, the read-only ones too, and migrations
turnstile   the queue of writers of all processes: a lock on a file beside the store
identity    whether the file is still the one that was opened
checkpoints checkpoints of a large write-ahead log, beside the writer
copies      copies during writes, and the mark of a restored copy
mounts      which file systems a store may be on
store_time  the store's time, which never goes back
proof       whether the file can be written now, proved by a write
damage      unreadable rows of a damaged file
schema      missing tables, columns and indexes
"""
