"""``python -m palmette``: the command line."""

import sys

from palmette._command import main

sys.exit(main())
