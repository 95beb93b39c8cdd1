-- The version of the object that a delivery read when it entered the verifier: its verdict is about that one.

ALTER TABLE governed_jobs ADD COLUMN begun_version INTEGER;
