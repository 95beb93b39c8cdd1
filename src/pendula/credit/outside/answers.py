"""Everybody a run may ask, behind one door: a behaviour, a payment service, a solver."""

from collections.abc import Callable
from typing import Any

from pendula.credit.engine import Run
from pendula.credit.outside import behaviours, payment_service
from pendula.credit.outside.behaviours import BehaviourOutside
from pendula.credit.outside.payment_service import PaymentService
from pendula.kernel.bodies import NoAnswerSource
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine, Outside

SOLVE = "optimal_clearing"
PAYING = (payment_service.QUESTION, payment_service.TOGETHER, payment_service.CLEARING)


class Answers:
    """An `Outside` that hands each question to the one who knows; raises `NoAnswerSource` where nobody does.

    `run` is the run that asks, or a function that gives it: `lambda: driver.engine` where there is a journal; None
    where no behaviour is asked.
    `payments` is for runs with the engine "external". Without a `solver`, OR-tools is loaded when it is first asked
    for; `MissingExtra` if it is not installed.
    """

    def __init__(
        self,
        run: Run | Callable[[], Engine[Any, Any]] | None,
        payments: "PaymentService | None" = None,
        solver: Outside | None = None,
    ) -> None:
        self._behaviours = None if run is None else BehaviourOutside(run)
        self.payments = payments
        self._solver = solver

    def ask(self, name: str, question: Json) -> Json:
        if name == behaviours.QUESTION and self._behaviours is not None:
            return self._behaviours.ask(name, question)
        if name in PAYING:
            return self._paying().ask(name, question)
        if name == SOLVE:
            return self._solving().ask(name, question)
        raise NoAnswerSource(f"The run asks {name!r}, which nobody answers", name=name, question=question)

    def _paying(self) -> Outside:
        if self.payments is None:
            message = "The run pays through an outside service, and none was given; hand over a PaymentService"
            raise NoAnswerSource(message, name=payment_service.QUESTION)
        return self.payments

    def _solving(self) -> Outside:
        if self._solver is None:
            from pendula.credit.outside.solver import OptimalOutside

            self._solver = OptimalOutside()
        return self._solver
