"""Credit beside what one would take instead, in one run: whole ticks, decisions, payments, clearing, served runs.

Where two sides do the same work they are first made to agree: plans, ledgers, cycles and optima are compared, and no
ratio is given for sides that differ. Then they take turns.
"""

from bench import credit_clearing as clearing
from bench import credit_decisions as decisions
from bench import credit_routing as routing
from bench import credit_served as served
from bench import credit_ticks as ticks
from pendula.cli.benchmarks import Progress, Row

PEERS: tuple[str, ...] = ("igraph", "mesa", "networkx", "ortools")


def run(quick: bool, progress: Progress) -> list[Row]:
    found = ticks.rows(quick, progress)
    found += decisions.rows(quick, progress)
    found += routing.rows(quick, progress)
    found += served.rows(quick, progress)
    progress("a village that never clears")
    return found + clearing.rows(ticks.lived_in(), ticks.LIVED, quick, progress)
