"""Ways to use a world: batch runs, a game loop, logs."""
