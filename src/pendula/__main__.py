"""`python -m pendula` is `pendula`."""

from pendula.cli import main

main()
