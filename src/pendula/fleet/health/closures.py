"""What trucks that have failed close to all others: every edge and every turn that what they keep excludes."""

import numpy as np

from pendula.fleet.routing.planner import OPEN, Closed
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.traffic.lock_state import LockState


def barred(locks: LockState, site: CompiledMap) -> Closed:
    """A route over any of these cannot be driven before somebody is back, or out of the hall."""
    failed = [i for i in locks.known() if locks.truck(i).frozen and locks.truck(i).held]
    if not failed:
        return OPEN
    around = np.unique(np.concatenate([locks.kept_from_others(i) for i in failed]))
    cells = around[around < len(site.cells)]
    zones = around[(around >= len(site.cells)) & (around < site.token(0))] - len(site.cells)
    return Closed(frozenset(np.unique(site.cells.edge[cells]).tolist()), frozenset(zones.tolist()))


def joined(one: Closed, other: Closed) -> Closed:
    return Closed(one.edges | other.edges, one.turns | other.turns) if other else one
