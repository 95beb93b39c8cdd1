"""Nodes, directed edges, groups, and what hangs together.

components     which parts of a network hang together, and which of its nodes can be reached from each other
graph          the graph of a source map in normal form: sorted nodes, directed edges with keys and curves
lanes          which edges between the same two nodes are one physical lane: those whose geometries coincide
limits         how much a map may hold: counted before it is worked on
transitions    how one edge goes over into the next: tangent, or with a turn on the spot
"""
