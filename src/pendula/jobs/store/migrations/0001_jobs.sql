-- Jobs, their trail, and what belongs to a change of one. Times are microseconds since 1970, UTC.

CREATE TABLE jobs (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id           TEXT    NOT NULL,
    object_type      TEXT    NOT NULL,
    object_id        TEXT    NOT NULL,
    action           TEXT    NOT NULL,
    run_at           INTEGER NOT NULL,
    priority         INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    idempotency_key  TEXT    NOT NULL UNIQUE,
    status           TEXT    NOT NULL,
    last_error       TEXT,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    scheduled_for    INTEGER NOT NULL,
    worker_id        TEXT,
    lease            BLOB,
    lease_expires_at INTEGER,
    delivery_count   INTEGER NOT NULL,
    correlation_id   TEXT,
    audit_event_id   TEXT,
    outcome          TEXT,
    queue            TEXT    NOT NULL,
    last_lease       BLOB,
    ended            TEXT,
    expired          INTEGER NOT NULL
) STRICT;

-- In the order of a pull. Finished jobs are not in it, so their number changes nothing.
CREATE INDEX jobs_due ON jobs (status, run_at, priority, seq) WHERE status = 'queued';
CREATE INDEX jobs_leases ON jobs (lease_expires_at, seq) WHERE status = 'running';
CREATE INDEX jobs_objects ON jobs (object_type, object_id, seq);
-- For lists and retention of what is over.
CREATE INDEX jobs_over ON jobs (status, updated_at, seq) WHERE status IN ('succeeded', 'failed', 'dead_letter');

CREATE TABLE audit (
    n           INTEGER PRIMARY KEY,
    event_type  TEXT    NOT NULL,
    object_type TEXT    NOT NULL,
    object_id   TEXT    NOT NULL,
    job_seq     INTEGER,
    body        TEXT    NOT NULL,
    hash        BLOB    NOT NULL
) STRICT;

CREATE INDEX audit_jobs ON audit (job_seq, n);
CREATE INDEX audit_objects ON audit (object_type, object_id, n) WHERE object_type <> 'scheduler_job';

CREATE TABLE objects (
    object_type    TEXT    NOT NULL,
    object_id      TEXT    NOT NULL,
    next_action_at INTEGER,
    version        INTEGER NOT NULL,
    state          TEXT,
    PRIMARY KEY (object_type, object_id)
) STRICT, WITHOUT ROWID;

-- One effect a key, written together with it.
CREATE TABLE effects (
    idempotency_key TEXT    NOT NULL PRIMARY KEY,
    job_seq         INTEGER NOT NULL,
    fence           INTEGER NOT NULL,
    result          TEXT    NOT NULL,
    at              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE alerts (
    n            INTEGER PRIMARY KEY,
    alert_id     TEXT    NOT NULL UNIQUE,
    body         TEXT    NOT NULL,
    delivered_at INTEGER
) STRICT;

CREATE INDEX alerts_waiting ON alerts (n) WHERE delivered_at IS NULL;

CREATE TABLE used_keys (
    hash BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- How many jobs there are of each kind, and what ended in which second: metrics never count rows of jobs.
CREATE TABLE counts (
    status      TEXT    NOT NULL,
    object_type TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    priority    INTEGER NOT NULL,
    queue       TEXT    NOT NULL,
    n           INTEGER NOT NULL,
    PRIMARY KEY (status, object_type, action, priority, queue)
) STRICT, WITHOUT ROWID;

CREATE TABLE ended (
    second      INTEGER NOT NULL PRIMARY KEY,
    succeeded   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    dead_letter INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    requeues    INTEGER NOT NULL
) STRICT;
