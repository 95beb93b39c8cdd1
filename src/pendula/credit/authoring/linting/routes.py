"""Warnings about planned payments that have no allowed route."""

from collections.abc import Iterator

from pendula.credit.authoring.linting.survey import Survey
from pendula.credit.planning.planner import Planned
from pendula.credit.reading.scope import Caution
from pendula.credit.state.network import Network

# A deterministic sample: the plans of so many ticks on an empty ledger, with one seed.
SEED = 0
TICKS = 50
BUDGET = 20
WARN_FROM = 33  # per cent; every network has lines that do not mediate, and a few such payments
EXAMPLES = 3


def routes(survey: Survey) -> Iterator[Caution]:
    """Warn if too many planned payments have no allowed route even without debts."""
    network = Network(survey.scenario, survey.settings)
    planned = [payment for tick in range(TICKS) for payment in network.planner.plan(SEED, tick, BUDGET)]
    hopeless = [
        payment
        for payment in planned
        if network.ledgers[payment.book.code].processor.never(payment.sender, payment.receiver)
    ]
    if not planned or len(hopeless) * 100 < WARN_FROM * len(planned):
        return
    share = (200 * len(hopeless) + len(planned)) // (2 * len(planned))
    names = dict.fromkeys(_named(network, payment) for payment in hopeless)
    examples = ", ".join(list(names)[:EXAMPLES])
    message = f"{share} % of what these profiles may plan has no allowed route, whatever is cleared: {examples}"
    advice = "allow lines to mediate (policy.can_be_intermediate), or raise routing_max_hops"
    yield Caution("no_allowed_route", "$.trustlines", f"{message}; {advice}")


def _named(network: Network, planned: Planned) -> str:
    people = network.people.names
    return f"{people[planned.sender]} to {people[planned.receiver]} ({planned.book.code})"
