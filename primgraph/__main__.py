"""Entry point of `python -m primgraph`: the command line."""

import sys

from primgraph.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
