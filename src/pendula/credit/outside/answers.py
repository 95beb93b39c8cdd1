"""Routes questions of a run to a behaviour, a payment service or a solver."""

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
    """An `Outside` that routes each question to its handler; raises `NoAnswerSource` if there is none.

    `run` is the run that asks, or a function that returns it: `lambda: driver.engine` with a journal; None without a
    behaviour. `payments` is for runs with the engine "external". Without a `solver`, the first question loads OR-tools
    and raises `MissingExtra` if it is not installed.
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
        raise NoAnswerSource(f"No handler answers the question {name!r}", name=name, question=question)

    def _paying(self) -> Outside:
        if self.payments is None:
            message = "The run pays through an outside service, but none is configured; pass a PaymentService"
            raise NoAnswerSource(message, name=payment_service.QUESTION)
        return self.payments

    def _solving(self) -> Outside:
        if self._solver is None:
            from pendula.credit.outside.solver import OptimalOutside

            self._solver = OptimalOutside()
        return self._solver
