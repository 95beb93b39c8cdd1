"""A player on a terminal, with folders as channels."""
