"""Who answers what a run asks: behaviours of the user's own, a payment service, a solver.

answers            all of them behind one door
behaviours         behaviour of one's own: a Python object that plans the payments of a tick
payment_service    a payment service over HTTP
solver             the best circulation, by OR-tools
"""

from pendula.credit.outside.answers import Answers
from pendula.credit.outside.behaviours import Draw, OtherBehaviourVersion, View, Wish, register_behaviour, wish
from pendula.credit.outside.payment_service import PaymentService
from pendula.credit.outside.solver import OptimalOutside, solve

__all__ = [
    "Answers",  # hands each question to the one who knows
    "Draw",  # chance for a behaviour
    "OptimalOutside",  # answers questions for the best circulation
    "OtherBehaviourVersion",  # a run wants another version of a behaviour
    "PaymentService",  # pays through another system
    "View",  # a run as a behaviour sees it
    "Wish",  # a payment that a behaviour wants
    "register_behaviour",  # make a behaviour known by a name
    "solve",  # the best circulation over some debts
    "wish",  # a wish, its amount checked
]
