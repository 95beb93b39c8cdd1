"""`pendula fleet`: compile, check and draw maps of aisles, run trucks on them, and write sample maps.

compile, check      compile a source map, or list all its faults
draw, new           a picture of a map; sample maps
run                 a scenario in virtual time, and why a truck stands
tune                the number of trucks and the parameters with the highest throughput
journal             replay, export, snapshot and incidents of a journal
payload             check a payload against its contract
files               reading and writing files
tables              results as tables
"""

import typer

from pendula.cli.commands.fleet import compile, draw, journal, new, payload, run, tune
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
draw.register(fleet)
new.register(fleet)
run.register(fleet)
tune.register(fleet)
journal.register(fleet)
payload.register(fleet)
