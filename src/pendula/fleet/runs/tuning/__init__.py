"""Find the best number of trucks and parameters for a map and its streams, by runs in virtual time.

trials      combinations of trucks, one-way preference and parameters, run on many cores
figures     results of one trial: tasks, waits and their places, load of stations
directions  the direction in which a one-way preference sends trucks
outcome     the best trial, and recommendations for fleet and map
picture     throughput over trucks, as one SVG
"""

from pendula.fleet.runs.tuning.directions import preferred_edges
from pendula.fleet.runs.tuning.figures import TrialFigures
from pendula.fleet.runs.tuning.outcome import Outcome, outcome_of
from pendula.fleet.runs.tuning.picture import throughput_svg
from pendula.fleet.runs.tuning.trials import InvalidTrial, Trial, Trials, run_trials, trials_of

__all__ = [
    "InvalidTrial",
    "Outcome",
    "Trial",
    "TrialFigures",
    "Trials",
    "outcome_of",
    "preferred_edges",
    "run_trials",
    "throughput_svg",
    "trials_of",
]
