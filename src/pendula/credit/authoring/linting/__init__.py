"""What a designer should look at in a scenario before it runs: who is cut off, what is silenced, what nobody reads.

    families    all warnings, family by family
    network     participants, lines, equivalents and groups
    profiles    how participants are meant to pay
    routes      payments that no line lets through
    timeline    stress and injections
    survey      what several of these need, worked out once
    wording     how things are named in a sentence

Nothing here is a fault: the scenario runs all the same. Each finding has a code, a place and a sentence that says what
to do. Participants and lines are named together, the first few of them; a place with a condition, such as
`$.behaviorProfiles[?@.id=='retail']`, is JSONPath. The network is taken as it is at the start and, where injections
are on, with the lines they bring.
"""

from pendula.credit.authoring.linting.families import lint

__all__ = ["lint"]
