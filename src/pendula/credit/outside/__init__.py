"""External answers to questions of a run: custom behaviours, a payment service, a solver."""

from pendula.credit.outside.answers import Answers, OptimalOutside, solve
from pendula.credit.outside.behaviours import Draw, OtherBehaviourVersion, Proposal, View, propose, register_behaviour
from pendula.credit.outside.payment_service import PaymentService

__all__ = [
    "Answers",  # routes each question of a run
    "Draw",  # random numbers for a behaviour
    "OptimalOutside",  # answers questions of optimal clearing
    "OtherBehaviourVersion",  # a run needs another version of a behaviour
    "PaymentService",  # pays through another system
    "Proposal",  # a payment that a behaviour proposes
    "View",  # a run as a behaviour sees it
    "propose",  # make a proposal, with its amount checked
    "register_behaviour",  # register a behaviour by name
    "solve",  # the best circulation over some debts
]
