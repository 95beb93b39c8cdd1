"""Linter of scenarios: isolated participants, silent profiles, values without effect.

    families    all warnings in a fixed order
    network     participants, lines, equivalents and groups
    profiles    behaviour of participants
    routes      planned payments without an allowed route
    timeline    stress and injections
    survey      shared analysis of a scenario
    wording     names of things in sentences

Warnings are not faults: the scenario runs nevertheless. Each has a code, a place and a sentence with advice. The first
few participants or lines are named together; a place with a condition, such as `$.behaviorProfiles[?@.id=='retail']`,
is JSONPath. The network is that of the start and, if injections are enabled, includes the lines they add.
"""

from pendula.credit.authoring.linting.families import lint

__all__ = ["lint"]
