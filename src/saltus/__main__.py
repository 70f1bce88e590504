"""`python -m saltus`."""

import sys

from .cli import main

sys.exit(main())
