"""The network of a map: nodes, directed edges, groups and components.

graph          nodes, directed edges with their paths, groups of edges that are one physical lane
lanes          which edges between the same two nodes are one lane: those whose geometries coincide
components     connected parts of a network, and nodes that can reach each other
transitions    from one edge to the next: tangent, or with a turn on the spot
limits         limits of the size of a map, checked before compilation
"""

from pendula.fleet.network.graph import Edge, Group, Network, Node

__all__ = ["Edge", "Group", "Network", "Node"]
