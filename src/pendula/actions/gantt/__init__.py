"""A run as one picture: a panel an epoch, a lane for each actor and each lock; an SVG that needs nothing else.

    spans       what is shown: stretches and moments, read off the result of a run
    rows        which row of its lane an action goes to; where names have room
    marks       shapes, colours and texts as SVG
    panel       one epoch: axis, lanes, spans and marks
    picture     title, legend and panels below each other
    timeline    the same of what a live world remembers

The same result gives the same bytes. Colours follow the reader's light or dark scheme; every bar and mark has a
tooltip; names are shortened where there is no room for them, and left out before they get in each other's way.
"""

from pendula.actions.gantt.picture import gantt_svg
from pendula.actions.gantt.timeline import Timeline

__all__ = ["Timeline", "gantt_svg"]
