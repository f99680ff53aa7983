"""`python3 -m gradsmith_codegen`."""

import sys

from .cli import main

sys.exit(main())
