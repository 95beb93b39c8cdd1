-- Governed objects: what their machines, gates and budgets need beside their row in `objects`.

CREATE TABLE governed (
    object_type    TEXT    NOT NULL,
    object_id      TEXT    NOT NULL,
    place          TEXT    NOT NULL,
    next_action_at INTEGER,
    body           TEXT    NOT NULL,
    PRIMARY KEY (object_type, object_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX governed_place ON governed (object_type, place, object_id);

-- Verified as often as the unknowable may be: no verification of these is enqueued any more.
CREATE TABLE closed_objects (
    object_type TEXT NOT NULL,
    object_id   TEXT NOT NULL,
    PRIMARY KEY (object_type, object_id)
) STRICT, WITHOUT ROWID;

-- How often a job was put off by a gate, and which delivery of it has entered the verifier.
CREATE TABLE governed_jobs (
    job_seq     INTEGER PRIMARY KEY,
    deferrals   INTEGER NOT NULL,
    begun_fence INTEGER NOT NULL
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

-- What governance did, counted by kind and word: gate verdicts, budget units, closures, escalations.
CREATE TABLE governance_counts (
    kind  TEXT    NOT NULL,
    word  TEXT    NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, word)
) STRICT, WITHOUT ROWID;
