"""Print three days in Aldermill as the player character sees them, and draw them.

python examples/town/story.py [town.svg]
"""

import sys
from pathlib import Path

from pendula.actions import End, Interrupted, Start, VisibilityChange, accept, run_document, town
from pendula.actions.gantt import gantt_svg

document = accept(town())
result = run_document(document)

for epoch in result.epochs:
    sys.stdout.write(f"\n{epoch.header.start_at[:10]}\n")
    for event in epoch.events:
        if not event.pc:
            continue
        match event:
            case Start(meta={"segment": 0}):
                what = f"{event.actor} begins: {event.verb}"
            case End() | Start():
                continue
            case Interrupted(meta=meta):
                what = f"{event.actor} stops ({event.verb}), because of {meta['by']}"
            case VisibilityChange(meta=meta):
                what = f"now known: {meta['knowledge']}"
        sys.stdout.write(f"  {event.at[11:16]}  {what}\n")

if len(sys.argv) > 1:
    picture = gantt_svg(result, document["action_defs"], title="Three days in Aldermill")
    Path(sys.argv[1]).write_text(picture, encoding="utf-8")
