"""Growing limits stay valid amounts."""

import pytest

from pendula.credit.commands import Clear, Pay
from pendula.credit.engine import Run
from pendula.credit.money import MOST
from pendula.kernel.canonical import Json
from tests.credit.conftest import headless, network


@pytest.mark.req("SIM-PAY-2")
@pytest.mark.req("SIM-STO-8")
def test_a_growing_limit_stays_a_valid_amount_and_can_be_restored() -> None:
    drift: Json = {"trust_drift": {"enabled": True, "growth_rate": 1, "max_growth": 10**15}}
    large = "999999999999"
    run = headless(
        network(("B", "A", large), ("C", "B", large), ("A", "C", large), settings=drift), routing_max_hops="1"
    )
    for _ in range(14):
        for sender, receiver in (("A", "B"), ("B", "C"), ("C", "A")):
            run.do(Pay(sender, receiver, "UAH", "1"))
        run.do(Clear())

    assert max(run.run.network.ledgers["UAH"].book.limit) <= MOST
    assert Run.from_state(run.plan.json, run.run.state()).state() == run.run.state()
