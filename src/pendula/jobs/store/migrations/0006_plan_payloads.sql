-- Jobs of a time plan carry arguments for their handler: canonical JSON, null where there are none.

ALTER TABLE plans ADD COLUMN payload TEXT;
