-- Jobs that carry more: arguments, a wish to be cancelled, how far they are, what came of them; and lists by any filter.

-- Canonical JSON; never changes.
ALTER TABLE jobs ADD COLUMN payload TEXT;
ALTER TABLE jobs ADD COLUMN cancel_requested_at INTEGER;
-- Millionths, and a few words.
ALTER TABLE jobs ADD COLUMN progress INTEGER;
ALTER TABLE jobs ADD COLUMN progress_note TEXT;
-- Canonical JSON.
ALTER TABLE jobs ADD COLUMN outcome_result TEXT;

-- What stands before the first colon or line break of an error: lease_expired, timeout, ValueError.
ALTER TABLE jobs ADD COLUMN error_code TEXT GENERATED ALWAYS AS (
    substr(last_error, 1, min(64, instr(last_error || ':', ':') - 1, instr(last_error || char(10), char(10)) - 1))
) VIRTUAL;

-- When a job of this kind last came to this status: of running ones, when one was last handed out.
ALTER TABLE counts ADD COLUMN at INTEGER NOT NULL DEFAULT 0;

-- These never change after the insert, so that they cost nothing later.
CREATE INDEX jobs_kinds ON jobs (object_type, action, queue, seq);
CREATE INDEX jobs_correlations ON jobs (correlation_id, seq) WHERE correlation_id IS NOT NULL;
-- Only jobs with trouble are in these.
CREATE INDEX jobs_errors ON jobs (error_code, seq) WHERE last_error IS NOT NULL;
CREATE INDEX jobs_given_up ON jobs (status, seq) WHERE status IN ('failed', 'dead_letter');
-- Whether a job for the same work waits or runs.
CREATE INDEX jobs_waiting ON jobs (object_type, object_id, action, seq) WHERE status IN ('queued', 'running');
