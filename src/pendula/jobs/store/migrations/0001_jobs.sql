-- Jobs, their audit trail, plans, workers and governed objects. Times are microseconds since 1970, UTC.

-- `payload` and `outcome_result` are canonical JSON, `progress` is in millionths. `error_code` is what stands before the
-- first colon or line break of an error: lease_expired, timeout, ValueError. `aside` is 1 while another job of the
-- same object runs, so that no pull reads the row again and again.
CREATE TABLE jobs (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id              TEXT    NOT NULL,
    object_type         TEXT    NOT NULL,
    object_id           TEXT    NOT NULL,
    action              TEXT    NOT NULL,
    run_at              INTEGER NOT NULL,
    priority            INTEGER NOT NULL,
    attempt             INTEGER NOT NULL,
    max_attempts        INTEGER NOT NULL,
    idempotency_key     TEXT    NOT NULL UNIQUE,
    status              TEXT    NOT NULL,
    last_error          TEXT,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    scheduled_for       INTEGER NOT NULL,
    worker_id           TEXT,
    lease               BLOB,
    lease_expires_at    INTEGER,
    delivery_count      INTEGER NOT NULL,
    correlation_id      TEXT,
    audit_event_id      TEXT,
    outcome             TEXT,
    queue               TEXT    NOT NULL,
    last_lease          BLOB,
    ended               TEXT,
    expired             INTEGER NOT NULL,
    payload             TEXT,
    cancel_requested_at INTEGER,
    progress            INTEGER,
    progress_note       TEXT,
    outcome_result      TEXT,
    error_code          TEXT GENERATED ALWAYS AS (
        substr(last_error, 1, min(64, instr(last_error || ':', ':') - 1, instr(last_error || char(10), char(10)) - 1))
    ) VIRTUAL,
    aside               INTEGER NOT NULL DEFAULT 0
) STRICT;

-- In the order of a pull: all jobs, and those of one kind. Finished jobs are in neither.
CREATE INDEX jobs_due ON jobs (status, run_at, priority, seq) WHERE status = 'queued' AND aside = 0;
CREATE INDEX jobs_due_kinds ON jobs (queue, object_type, action, run_at, priority, seq)
    WHERE status = 'queued' AND aside = 0;
CREATE INDEX jobs_aside ON jobs (object_type, object_id, queue, action, priority, run_at, seq)
    WHERE status = 'queued' AND aside = 1;
CREATE INDEX jobs_leases ON jobs (lease_expires_at, seq) WHERE status = 'running';
-- Whether a job for the same work is queued or running.
CREATE INDEX jobs_waiting ON jobs (object_type, object_id, action, seq) WHERE status IN ('queued', 'running');
-- For lists. The columns of the first three never change after the insert, so an update does not touch these indexes.
CREATE INDEX jobs_objects ON jobs (object_type, object_id, seq);
CREATE INDEX jobs_kinds ON jobs (object_type, action, queue, seq);
CREATE INDEX jobs_correlations ON jobs (correlation_id, seq) WHERE correlation_id IS NOT NULL;
CREATE INDEX jobs_errors ON jobs (error_code, seq) WHERE last_error IS NOT NULL;
CREATE INDEX jobs_given_up ON jobs (status, seq) WHERE status IN ('failed', 'dead_letter');
-- For lists and retention of finished jobs.
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

-- Events of removed jobs, many packed into one row. Hashes are not stored whole: they follow from the chain.
CREATE TABLE audit_archive (
    segment INTEGER PRIMARY KEY,
    first_n INTEGER NOT NULL,
    last_n  INTEGER NOT NULL,
    events  INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

CREATE INDEX audit_archive_first ON audit_archive (first_n, last_n);

-- Which segments hold events about a job (its number) or an object (a negative number derived from its name).
CREATE TABLE audit_archive_about (
    about   INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    PRIMARY KEY (about, segment)
) STRICT, WITHOUT ROWID;

CREATE TABLE objects (
    object_type    TEXT    NOT NULL,
    object_id      TEXT    NOT NULL,
    next_action_at INTEGER,
    version        INTEGER NOT NULL,
    state          TEXT,
    PRIMARY KEY (object_type, object_id)
) STRICT, WITHOUT ROWID;

-- One effect a key, written in the transaction of the effect.
CREATE TABLE effects (
    idempotency_key TEXT    NOT NULL PRIMARY KEY,
    job_seq         INTEGER NOT NULL,
    fence           INTEGER NOT NULL,
    result          TEXT    NOT NULL,
    at              INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Write-backs for objects in another database; a row is deleted once it is delivered.
CREATE TABLE write_backs (
    n    INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT    NOT NULL
) STRICT;

CREATE TABLE alerts (
    n            INTEGER PRIMARY KEY,
    alert_id     TEXT    NOT NULL UNIQUE,
    body         TEXT    NOT NULL,
    delivered_at INTEGER
) STRICT;

CREATE INDEX alerts_waiting ON alerts (n) WHERE delivered_at IS NULL;

-- Hashes of the keys of removed jobs.
CREATE TABLE used_keys (
    hash BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- How many jobs there are of each kind, so that metrics never count rows of jobs. `at` is when a job of the kind last
-- came to this status: of running ones, when one was last delivered.
CREATE TABLE counts (
    status      TEXT    NOT NULL,
    object_type TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    priority    INTEGER NOT NULL,
    queue       TEXT    NOT NULL,
    n           INTEGER NOT NULL,
    at          INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (status, object_type, action, priority, queue)
) STRICT, WITHOUT ROWID;

-- What ended in which second, for rates.
CREATE TABLE ended (
    second      INTEGER NOT NULL PRIMARY KEY,
    succeeded   INTEGER NOT NULL,
    failed      INTEGER NOT NULL,
    dead_letter INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    requeues    INTEGER NOT NULL
) STRICT;

-- Time plans with their pauses. `payload` is canonical JSON.
CREATE TABLE plans (
    name         TEXT    NOT NULL PRIMARY KEY,
    cron         TEXT    NOT NULL,
    object_type  TEXT    NOT NULL,
    object_id    TEXT    NOT NULL,
    action       TEXT    NOT NULL,
    priority     INTEGER,
    max_attempts INTEGER,
    queue        TEXT    NOT NULL,
    zone         TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    changed_at   INTEGER NOT NULL,
    declared_at  INTEGER NOT NULL,
    turn         INTEGER NOT NULL,
    paused_at    INTEGER,
    paused_by    TEXT,
    job_id       TEXT,
    occurs_at    INTEGER,
    asked_job_id TEXT,
    payload      TEXT
) STRICT, WITHOUT ROWID;

-- One row a worker, from its heartbeats; the oldest rows are dropped. Of a worker that calls a server, only what the
-- server sees is known.
CREATE TABLE workers (
    worker_id   TEXT    NOT NULL PRIMARY KEY,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL,
    ended_at    INTEGER,
    taken       INTEGER NOT NULL,
    concurrency INTEGER,
    running     INTEGER,
    succeeded   INTEGER,
    failed      INTEGER,
    dropped     INTEGER,
    released    INTEGER,
    works       TEXT    NOT NULL,
    queues      TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX workers_seen ON workers (seen_at);

-- Governed objects: what machines, gates and budgets need beside the row in `objects`.
CREATE TABLE governed (
    object_type    TEXT    NOT NULL,
    object_id      TEXT    NOT NULL,
    place          TEXT    NOT NULL,
    next_action_at INTEGER,
    body           TEXT    NOT NULL,
    PRIMARY KEY (object_type, object_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX governed_place ON governed (object_type, place, object_id);
-- Objects that only a person may decide about. A quotation mark inside a JSON string has a backslash before it, so
-- these texts match members and nothing else.
CREATE INDEX governed_for_a_person ON governed (object_type, object_id)
    WHERE instr(body, '"decision_mode":"escalate"') > 0 AND instr(body, '"closed":') = 0;

-- Objects whose verification limit is reached: no further verification is enqueued.
CREATE TABLE closed_objects (
    object_type TEXT NOT NULL,
    object_id   TEXT NOT NULL,
    PRIMARY KEY (object_type, object_id)
) STRICT, WITHOUT ROWID;

-- How often a gate deferred a job, which delivery of it entered the verifier, and the version of the object it read.
CREATE TABLE governed_jobs (
    job_seq       INTEGER PRIMARY KEY,
    deferrals     INTEGER NOT NULL,
    begun_fence   INTEGER NOT NULL,
    begun_version INTEGER
) STRICT;

CREATE TABLE gates (
    name        TEXT    NOT NULL,
    scope       TEXT    NOT NULL,
    verdict     TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    set_at      INTEGER NOT NULL,
    set_by      TEXT    NOT NULL,
    reason      TEXT    NOT NULL,
    override_by TEXT,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE decision_traces (
    n           INTEGER PRIMARY KEY,
    object_type TEXT    NOT NULL,
    object_id   TEXT    NOT NULL,
    body        TEXT    NOT NULL
) STRICT;

CREATE INDEX decision_traces_object ON decision_traces (object_type, object_id, n);

CREATE TABLE rollbacks (
    n           INTEGER PRIMARY KEY,
    object_type TEXT    NOT NULL,
    object_id   TEXT    NOT NULL,
    asked_at    INTEGER NOT NULL,
    reason      TEXT    NOT NULL,
    job_id      TEXT,
    finished_at INTEGER
) STRICT;

CREATE INDEX rollbacks_waiting ON rollbacks (object_type, object_id) WHERE finished_at IS NULL;

-- Counters of governance: gate verdicts, budget units, closures, escalations.
CREATE TABLE governance_counts (
    kind  TEXT    NOT NULL,
    word  TEXT    NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, word)
) STRICT, WITHOUT ROWID;

-- One row for each copy that replaced the store: job numbers, and fences of older jobs, continue from `epoch`.
CREATE TABLE restores (
    epoch INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- The anchor of the store's time: a time that was right, and the boot clock at that moment; `resets` counts repairs.
CREATE TABLE clock (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    boot_id TEXT,
    boot_us INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    resets  INTEGER NOT NULL
) STRICT;
