"""Operator actions on a running fleet: roles, limits, confirmations, results.

measure       limits of an action, checked by every entry point
actions       the actions of the contract as orders for traffic or tasks
confirmation  actions that need a confirmation
inbox         `ActionInbox`: actions in, orders and answers out, each action once
"""

from pendula.fleet.operators.actions import ActionType, Role
from pendula.fleet.operators.inbox import ActionInbox, ActionResult, InboxStep, SavedInbox, is_same
from pendula.fleet.operators.measure import exceeded_limit

__all__ = ["ActionInbox", "ActionResult", "ActionType", "InboxStep", "Role", "SavedInbox", "exceeded_limit", "is_same"]
