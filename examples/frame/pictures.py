"""Paint the pictures of the example into three folders, one a channel, to play them.

python examples/frame/pictures.py pictures
"""

import os
import sys
from pathlib import Path

from painters import PAINTERS, records, title_in

COLOURS = {"sea": ("#0b3954", "#8fd3f4"), "hills": ("#274c2b", "#c5e1a5"), "town": ("#4a2c2a", "#ffcc80")}

SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300">
  <rect width="400" height="300" fill="{sky}"/>
  <path d="M0 {height} Q200 {bend} 400 {height} V300 H0 Z" fill="{ground}"/>
  <text x="20" y="40" font-family="serif" font-size="24" fill="{ground}">{title}</text>
</svg>
"""

root = Path(sys.argv[1])
for painter in PAINTERS:
    folder = root / painter.channel
    folder.mkdir(parents=True, exist_ok=True)
    ground, sky = COLOURS[painter.channel]
    for record in records(painter):
        title = title_in(record.payload)
        height, bend = 140 + record.id % 7 * 15, 60 + record.id % 5 * 40
        path = folder / f"{title.lower().replace(' ', '-')}.svg"
        path.write_text(SVG.format(sky=sky, ground=ground, height=height, bend=bend, title=title), encoding="utf-8")
        # The newest file of a folder comes first, so the pictures are as old as their records say.
        os.utime(path, (record.ts, record.ts))
    sys.stdout.write(f"{folder}: {painter.pictures} pictures\n")
