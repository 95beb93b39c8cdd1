"""The file itself: how it is opened, who may write next, which time it has reached, what is damaged.

opening     connections, the read-only ones too, and migrations
turnstile   the queue of writers over all processes: a lock on a file beside the store
identity    whether the file is still the one that was opened
checkpoints what copies a large write-ahead log back beside the writer
copies      copies while others write, and how a restored store knows that it was one
mounts      which file systems a store may lie on
store_time  the store's time, which never goes back
proof       whether the file can be written now, shown by a write
damage      which rows of a damaged file cannot be read
schema      which tables, columns and indexes are missing
"""
