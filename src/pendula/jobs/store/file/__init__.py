"""The file of a store: opening, fairness among writers, time, damage.

opening     connections, the read-only ones too, migrations, and the proof that the file can be written
turnstile   the queue of writers of all processes: a lock on a file beside the store
identity    whether the file is still the one that was opened, and not on a network file system
checkpoints checkpoints of a large write-ahead log, beside the writer
copies      copies during writes, and the mark of a restored copy
store_time  the store's time, which never goes back
damage      unreadable rows of a damaged file; missing tables, columns and indexes
"""
