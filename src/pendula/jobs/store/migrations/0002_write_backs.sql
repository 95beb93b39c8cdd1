-- What objects that live elsewhere still have to be told; a row goes when they were.

CREATE TABLE write_backs (
    n    INTEGER PRIMARY KEY AUTOINCREMENT,
    body TEXT    NOT NULL
) STRICT;
