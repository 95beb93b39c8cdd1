"""All warnings about a scenario, by topic, in a fixed order."""

from pendula.credit.authoring.linting import network, profiles, routes, timeline
from pendula.credit.authoring.linting.survey import Survey
from pendula.credit.model import Scenario
from pendula.credit.reading.scope import Caution
from pendula.credit.settings import Settings


def lint(scenario: Scenario, settings: Settings) -> tuple[Caution, ...]:
    """All warnings in a fixed order; takes a second or two for ten thousand participants."""
    survey = Survey(scenario, settings)
    return (
        *network.cut_off(survey),
        *network.lines(survey),
        *network.equivalents(survey),
        *network.groups(survey),
        *profiles.props(survey),
        *profiles.profiles(survey),
        *routes.routes(survey),
        *timeline.events(survey),
    )
