"""Repeat a test with one seed: `python -m pendula.testing FILE_OR_MODULE:LAW SEED`."""

import sys
from pathlib import Path

from pendula.testing.histories import main

if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main(sys.argv[1:])
