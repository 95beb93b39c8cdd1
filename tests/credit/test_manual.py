"""Lines changed by commands."""

from pendula.credit.commands import CloseLine, OpenLine
from tests.credit.conftest import headless, network


def test_a_reopened_line_starts_afresh() -> None:
    run = headless(network(("b", "a", 10), ("c", "a", 1)))
    run.do(CloseLine("b", "a", "UAH"))
    run.do(OpenLine("b", "a", "UAH", "10.005"))
    run.do(OpenLine("a", "b", "UAH", "10.005"))

    trust = run.run.network.ledgers["UAH"].trust
    again, fresh = (run.run.network.ledgers["UAH"].book.line(*ends) for ends in (("b", "a"), ("a", "b")))

    assert again is not None
    assert fresh is not None
    assert trust.original[again] == trust.original[fresh] == 10 * 10**8
