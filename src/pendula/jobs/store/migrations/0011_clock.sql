-- What the clock of the boot said when the store's time was known to be right, and how often that was set by a person.

CREATE TABLE clock (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    boot_id TEXT,
    boot_us INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    resets  INTEGER NOT NULL
) STRICT;
