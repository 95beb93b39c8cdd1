-- Time plans with their pauses, and what workers tell of themselves. Times are microseconds since 1970, UTC.

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
    asked_job_id TEXT
) STRICT, WITHOUT ROWID;

-- One row a worker; whoever has not been heard of for long makes room for others. Of a worker that talks to a server
-- only that is known which the server sees.
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
