"""A process that draws into every folder it is told of, and says how that went."""

import sys
from pathlib import Path

import saltus

from .subject import draw, expected, same

expected()
print("ready", flush=True)
for line in sys.stdin:
    try:
        print("right" if same(draw(Path(line.rstrip("\n")), True), expected()) else "wrong draws", flush=True)
    except saltus.StorageError:
        print("refused", flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)
