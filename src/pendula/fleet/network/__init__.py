"""Nodes, directed edges, groups, and what hangs together.

graph          nodes, directed edges with their paths, groups of edges that are one physical lane
lanes          which edges between the same two nodes are one lane: those whose geometries coincide
components     which parts of a network hang together, and which nodes can be reached from each other
transitions    how one edge goes over into the next: tangent, or with a turn on the spot
limits         how much a map may hold, counted before it is worked on
"""

from pendula.fleet.network.graph import Edge, Group, Network, Node

__all__ = ["Edge", "Group", "Network", "Node"]
