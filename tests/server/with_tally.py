"""`pendula` with the example engine `tally` as a further scheduler: for the routes and pages of every engine.

python -m tests.server.with_tally serve --demo
"""

from pendula import cli
from pendula.server import schedulers

schedulers.SCHEDULERS = {**schedulers.SCHEDULERS, "tally": "tests.server.tally_scheduler:SCHEDULER"}

if __name__ == "__main__":
    cli.main()
