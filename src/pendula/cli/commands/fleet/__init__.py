"""`pendula fleet`: compile a map of aisles, check it, draw it, run trucks on it, and write maps of our own.

compile, check      a source map made ready, or everything that is wrong with it
draw, new           the picture of a map; maps of our own
run                 a scenario in virtual time, and why a truck stands
tune                the number of trucks and the parameters that do the most
journal             what is done with the journal of a fleet: replay, export, snapshot, incidents
payload             whether a payload is what its contract says
files, forms        reading and writing the files; the forms of what `new` writes
report              the validation report
tables              results as tables
"""

import typer

from pendula.cli.commands.fleet import check, compile, draw, journal, new, payload, run, tune
from pendula.cli.output import example

fleet = typer.Typer(
    epilog=example(
        "pendula fleet new --scene hall -o hall.json --profiles trucks.json --fleet fleet.json",
        "pendula fleet check hall.json --profiles trucks.json --fleet fleet.json",
        "pendula fleet compile hall.json --profiles trucks.json -o hall.map.json",
        "pendula fleet draw hall.map.json -o hall.svg",
        "pendula fleet run hall",
    )
)
compile.register(fleet)
check.register(fleet)
draw.register(fleet)
new.register(fleet)
run.register(fleet)
tune.register(fleet)
journal.register(fleet)
payload.register(fleet)
