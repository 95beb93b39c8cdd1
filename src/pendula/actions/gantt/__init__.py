"""A run as one picture: a panel an epoch, a lane for each actor and each lock; an SVG that needs nothing else.

The same result gives the same bytes. Colours follow the reader's light or dark scheme; every bar and mark has a
tooltip; names are shortened where there is no room for them, and left out before they get in each other's way.
"""

from pendula.actions.gantt.picture import Timeline, gantt_svg

__all__ = ["Timeline", "gantt_svg"]
