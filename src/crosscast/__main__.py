"""Run the command with ``python -m crosscast``."""

import sys

from crosscast.cli import main

if __name__ == "__main__":
    sys.exit(main())
