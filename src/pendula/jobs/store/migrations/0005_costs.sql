-- What a call costs: every index holds what its question is about, and nothing else.

-- Where one job an object may run, due jobs of a busy object stand aside: no pull looks at them again and again.
ALTER TABLE jobs ADD COLUMN aside INTEGER NOT NULL DEFAULT 0;

DROP INDEX jobs_due;
CREATE INDEX jobs_due ON jobs (status, run_at, priority, seq) WHERE status = 'queued' AND aside = 0;
-- In the order of a pull, by what a pull may ask for: jobs it does not want are never looked at.
CREATE INDEX jobs_due_kinds ON jobs (queue, object_type, action, run_at, priority, seq)
    WHERE status = 'queued' AND aside = 0;
CREATE INDEX jobs_aside ON jobs (object_type, object_id, queue, action, priority, run_at, seq)
    WHERE status = 'queued' AND aside = 1;

-- Events of removed jobs, many together and packed. Hashes are not kept whole: the chain gives them again.
CREATE TABLE audit_archive (
    segment INTEGER PRIMARY KEY,
    first_n INTEGER NOT NULL,
    last_n  INTEGER NOT NULL,
    events  INTEGER NOT NULL,
    body    BLOB    NOT NULL
) STRICT;

CREATE INDEX audit_archive_first ON audit_archive (first_n, last_n);

-- Which segments tell of a job or an object: numbers of jobs, and for objects a negative number made of their name.
CREATE TABLE audit_archive_about (
    about   INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    PRIMARY KEY (about, segment)
) STRICT, WITHOUT ROWID;
