"""An evening before the frame, in a few lines of Python: three channels, a new picture, and the question why.

python examples/frame/evening.py
"""

import sys
from decimal import Decimal

from painters import channels, new_picture, title_in

from pendula.playback import Exposure, Item, Mode, Scheduler, Settings

weights = {"sea": Decimal(3), "hills": Decimal(2), "town": Decimal(1)}
frame = Scheduler(channels(), Settings(Exposure(Mode.MAE, weights), lookahead=6), seed=7)


def show(item: Item | None) -> None:
    if item is not None:
        sys.stdout.write(f"{item.ordinal:3}  {item.channel or 'new':5}  {title_in(item.payload)}\n")


for item in frame.take(12):
    show(item)

sys.stdout.write("\nA new picture has been painted.\n")
frame.nae_insert(new_picture(1, after_days=1))
for item in frame.take(12):
    show(item)

sys.stdout.write("\nWhat was that, just before?\n")
before = frame.prev()
show(before)
if before is not None:
    sys.stdout.write(f"     {frame.why(before).sentence}\n")
