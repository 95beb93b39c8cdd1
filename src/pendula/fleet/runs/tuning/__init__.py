"""Find the best number of trucks and parameters for a map and its streams, by runs in virtual time.

trials      what is tried: how many trucks, how strongly one-way, with which parameters; and the work on many cores
figures     what one trial comes to: tasks, waits, where trucks waited, how busy stations were
directions  which way round a one-way preference sends trucks
outcome     the best of all, and what is to be said of trucks and of the map
picture     throughput over trucks, as one SVG
"""

from pendula.fleet.runs.tuning.directions import preferred_edges
from pendula.fleet.runs.tuning.figures import Figures
from pendula.fleet.runs.tuning.outcome import Outcome, outcome_of
from pendula.fleet.runs.tuning.picture import throughput_svg
from pendula.fleet.runs.tuning.trials import InvalidTrial, Trial, Trials, trials_of, tried

__all__ = [
    "Figures",
    "InvalidTrial",
    "Outcome",
    "Trial",
    "Trials",
    "outcome_of",
    "preferred_edges",
    "throughput_svg",
    "trials_of",
    "tried",
]
