"""``python -m ci``: what the command ``flopwatch`` does, from a checkout without an install."""

import sys

from ci.cli import main

if __name__ == "__main__":
    sys.exit(main())
