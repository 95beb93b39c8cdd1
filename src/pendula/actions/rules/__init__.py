"""Rules without a world: durations, locks, resources, visibility. Each module can be read and tested alone."""
