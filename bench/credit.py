"""Credit compared with alternatives: whole ticks, decisions, payments, clearing, served runs.

Sides with equal work are first compared for equal plans, ledgers, cycles and optima; a difference fails the benchmark.
Then they are timed in turns.
"""

from bench import credit_clearing as clearing
from bench import credit_decisions as decisions
from bench import credit_routing as routing
from bench import credit_served as served
from bench import credit_ticks as ticks
from pendula.cli.benchmarks import Progress, Row

PEERS: tuple[str, ...] = ("igraph", "mesa", "networkx", "ortools")


def run(quick: bool, progress: Progress) -> list[Row]:
    results = ticks.rows(quick, progress)
    results += decisions.rows(quick, progress)
    results += routing.rows(quick, progress)
    results += served.rows(quick, progress)
    progress("a village that never clears")
    return results + clearing.rows(ticks.debts_without_clearing(), ticks.UNCLEARED_TICKS, quick, progress)
