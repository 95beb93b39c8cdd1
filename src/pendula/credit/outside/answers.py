"""Routes questions of a run to a behaviour, a payment service or the solver of optimal clearing.

The solver is OR-tools, the extra `optimal`: it finds a minimum-cost flow over the debts, and is imported when a solver
is created. `ledger.cycles.check` verifies its answers before a debt changes.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from math import gcd
from typing import Any, Protocol

from pendula.credit.engine import Run
from pendula.credit.ledger.cycles import QUESTION, Edge, WrongFlows, check, facts_of, places
from pendula.credit.outside import behaviours, payment_service
from pendula.credit.outside.behaviours import BehaviourOutside
from pendula.credit.outside.payment_service import PaymentService
from pendula.credit.sentences import sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Engine, NoAnswerSource, NoOutside, Outside
from pendula.kernel.errors import InputRefused, MissingExtra

# OR-tools sums inflow and outflow of a node in 64 bits; one bit is reserved for the difference.
UNITS_MOST = 2**62


class AmountsTooLarge(InputRefused):
    """Debts that do not fit into 64 bits even in the largest unit they all share. Facts: `unit`, `value`, `allowed`."""

    code = "amounts_too_large"


class Solver(Protocol):
    """Finds a circulation of the largest volume."""

    @property
    def name(self) -> str:
        """Name and version, recorded with every answer."""
        ...

    def solve(self, edges: Sequence[Edge]) -> tuple[int, ...]:
        """The flow of each edge (debtor, creditor, atoms); raises `AmountsTooLarge`."""
        ...


class OrTools:
    """The minimum-cost flow of OR-tools, each unit at a cost of -1; raises `MissingExtra` on creation."""

    def __init__(self) -> None:
        if find_spec("ortools") is None:
            raise MissingExtra.of("optimal", "Optimal clearing", ["ortools"])
        # By name: the library has no types, and loading it is slow.
        self._library: Any = import_module("ortools.graph.python.min_cost_flow")
        # A dependency of OR-tools.
        self._numpy: Any = import_module("numpy")
        self.name = f"ortools {version('ortools')}"

    def solve(self, edges: Sequence[Edge]) -> tuple[int, ...]:
        unit = gcd(*(amount for _, _, amount in edges)) or 1
        _require_capacity(edges, unit)
        place, array = places(edges), self._numpy.array
        problem = self._library.SimpleMinCostFlow()
        # Nodes without a supply conserve flow, which makes it a circulation.
        arcs = problem.add_arcs_with_capacity_and_unit_cost(
            array([place[debtor] for debtor, _, _ in edges], dtype="int32"),
            array([place[creditor] for _, creditor, _ in edges], dtype="int32"),
            array([amount // unit for _, _, amount in edges], dtype="int64"),
            array([-1] * len(edges), dtype="int64"),
        )
        status = problem.solve()
        if status != problem.OPTIMAL:
            raise WrongFlows.of("solver_failed", solver=self.name, status=str(status.name))
        return tuple(flow * unit for flow in problem.flows(arcs).tolist())


def _require_capacity(edges: Sequence[Edge], unit: int) -> None:
    """Raise `AmountsTooLarge` if the debts or claims of one participant do not fit."""
    if sum(amount for _, _, amount in edges) // unit <= UNITS_MOST:
        return
    debts: dict[int, int] = {}
    claims: dict[int, int] = {}
    for debtor, creditor, amount in edges:
        debts[debtor] = debts.get(debtor, 0) + amount // unit
        claims[creditor] = claims.get(creditor, 0) + amount // unit
    most = max(*debts.values(), *claims.values())
    if most > UNITS_MOST:
        facts: dict[str, Json] = {"unit": unit, "value": most, "allowed": UNITS_MOST}
        raise AmountsTooLarge(sentence_of(AmountsTooLarge.code, facts), **facts)


def solve(edges: Sequence[Edge], solver: Solver | None = None) -> tuple[int, ...]:
    """The flow of each edge (debtor, creditor, atoms) in a verified circulation of the largest volume.

    Uses OR-tools unless another solver is given. Raises `MissingExtra`, `AmountsTooLarge`, and `WrongFlows` for a
    wrong answer of the solver.
    """
    flows = (solver or OrTools()).solve(edges)
    check(edges, flows)
    return flows


class OptimalOutside:
    """Answers `optimal_clearing`; every other question goes to `others`. Raises `MissingExtra` on creation.

    The answer is {"flows": [atoms as text, ...], "solver": name and version}, or {"refused": {code, facts}} if
    the solver fails: an exception would stop the engine for a refusal.
    """

    def __init__(self, solver: Solver | None = None, others: Outside | None = None) -> None:
        self._solver = solver or OrTools()
        self._others = others or NoOutside()

    def ask(self, name: str, question: Json) -> Json:
        if name != QUESTION:
            return self._others.ask(name, question)
        assert isinstance(question, Mapping)
        rows: Any = question["edges"]
        edges = [(debtor, creditor, int(amount)) for debtor, creditor, amount in rows]
        try:
            flows = self._solver.solve(edges)
        except (AmountsTooLarge, WrongFlows) as refused:
            return {"refused": {"code": refused.code, "facts": facts_of(refused)}}
        return {"flows": [str(flow) for flow in flows], "solver": self._solver.name}


class SolverWhenAsked:
    """Creates an `OptimalOutside` at the first question; without OR-tools, every question is refused.

    For served runs, which must not depend on what is installed in the server.
    """

    def __init__(self) -> None:
        self._found: Outside | None = None

    def ask(self, name: str, question: Json) -> Json:
        if name == QUESTION and self._found is None:
            try:
                self._found = OptimalOutside()
            except MissingExtra as missing:
                return {"refused": {"code": missing.code, "facts": facts_of(missing)}}
        return (self._found or NoOutside()).ask(name, question)


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
            self._solver = OptimalOutside()
        return self._solver
