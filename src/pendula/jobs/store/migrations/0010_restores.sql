-- Each time a copy was put in the place of a store: from this number on jobs are counted, and fences of older jobs.

CREATE TABLE restores (
    epoch INTEGER NOT NULL PRIMARY KEY
) STRICT;
