import sys

from .command import main

if __name__ == "__main__":  # the processes of a pool import this file too
    sys.exit(main())
