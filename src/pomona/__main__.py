"""``python -m pomona``: the same as the command ``pomona``."""

import sys

from pomona.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
