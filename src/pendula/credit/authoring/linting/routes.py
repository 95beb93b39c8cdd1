"""What the linter says of payments that can never be made: planned by the profiles, and no line lets them through."""

from collections.abc import Iterator

from pendula.credit.authoring.linting.survey import Survey
from pendula.credit.planning.planner import Planned
from pendula.credit.reading.scope import Caution
from pendula.credit.state.network import Network

# A sample that repeats: the plans of so many ticks on an empty ledger, with one seed.
SEED = 0
TICKS = 50
BUDGET = 20
WORTH_A_WORD = 33  # per cent; lines that pass nothing on are in every network, and so are a few such payments
EXAMPLES = 3


def routes(survey: Survey) -> Iterator[Caution]:
    """How much of what profiles plan has no allowed route even where nobody owes anything."""
    network = Network(survey.scenario, survey.settings)
    planned = [one for tick in range(TICKS) for one in network.planner.plan(SEED, tick, BUDGET)]
    hopeless = [one for one in planned if network.ledgers[one.book.code].processor.never(one.sender, one.receiver)]
    if not planned or len(hopeless) * 100 < WORTH_A_WORD * len(planned):
        return
    share = (200 * len(hopeless) + len(planned)) // (2 * len(planned))
    names = dict.fromkeys(_named(network, one) for one in hopeless)
    examples = ", ".join(list(names)[:EXAMPLES])
    message = f"{share} % of what these profiles may plan has no allowed route, whatever is cleared: {examples}"
    advice = "let lines pass value on (policy.can_be_intermediate), or raise routing_max_hops"
    yield Caution("no_allowed_route", "$.trustlines", f"{message}; {advice}")


def _named(network: Network, one: Planned) -> str:
    people = network.people.names
    return f"{people[one.sender]} to {people[one.receiver]} ({one.book.code})"
