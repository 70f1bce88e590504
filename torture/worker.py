"""A process that does what it is told, in the folder it is told of, and says how that went."""

import sys
from pathlib import Path

import saltus

from .subject import LONGER, RACERS, draw, expected, is_its_own_kernels, resume, same, train

ACTS = {
    "run with store": lambda home: same(draw(home, True), expected()),
    "run with segments": lambda home: same(draw(home), expected()),
    "longer with store": lambda home: same(resume(home, num_draws=LONGER), expected(LONGER)),
    "overwrite with store": lambda home: same(draw(home, True, seed=4, overwrite=True), expected(seed=4)),
    "race": lambda home: is_its_own_kernels(draw(home, sampler=RACERS)),
    "training": lambda home: bool(train(home)),
}
KINDS = list(ACTS)


def serve() -> None:
    expected()
    print("ready", flush=True)
    for line in sys.stdin:
        kind, home = next((k, line[len(k) + 1 : -1]) for k in KINDS if line.startswith(k))
        try:
            print("right" if ACTS[kind](Path(home)) else "wrong draws", flush=True)
        except saltus.StorageError:
            print("refused", flush=True)
        except Exception as error:
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    serve()
