"""``python -m tack.aot``: the command ``tack-aot``."""

import sys

from tack.aot.cli import main

if __name__ == "__main__":
    sys.exit(main())
