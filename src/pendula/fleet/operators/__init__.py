"""What people do to a running fleet: who may, what has to be said twice, what came of it.

measure       what an action may be at most, for every door that takes one in
actions       the actions of the contract, each as what traffic or tasks have to do
confirmation  what has to be said a second time, and until when
desk          `Desk`: actions in, orders and answers out, each action once
"""

from pendula.fleet.operators.actions import ActionType, Role
from pendula.fleet.operators.desk import ActionResult, Desk, DeskStep, SavedDesk, is_same
from pendula.fleet.operators.measure import beyond_measure

__all__ = ["ActionResult", "ActionType", "Desk", "DeskStep", "Role", "SavedDesk", "beyond_measure", "is_same"]
