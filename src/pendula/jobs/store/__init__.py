"""Where jobs are kept: `protocol` says what a store can do, `sqlite` is one file."""
