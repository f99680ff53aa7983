"""`python -m gradsmith`, and the script `gradsmith`."""

import sys

from ._cli import main

if __name__ == "__main__":
    sys.exit(main())
