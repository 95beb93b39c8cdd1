"""Maps of our own: the scenes of the documents, halls to measure with, and random ones."""
