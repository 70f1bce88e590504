"""A hundred real kills of trainings, with a callback, a log, a loader and an optimiser that changes half-way.

python tests/training/many_kills.py FOLDER --kills 100 --seconds 500

One training after another is killed with SIGKILL until it ends, and held against the same one left alone: parameters, average,
kernel, chains, history, changes and the lines of the log, bit for bit. Every other training takes its batches from a loader,
the rest from a function of the update. An interrupted call goes on where it was; FOLDER/kills.jsonl has a line for each kill.
Processes are forked before JAX has started anything, so that none has to import it again.
"""

import argparse
import functools
import json
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

CLOCKS = ("seconds", "updates_per_second")


def train(folder: Path, number: int, updates: int) -> None:
    """To the end, or until it is killed."""
    import killable_training

    folder.mkdir(parents=True, exist_ok=True)
    data = killable_training.Loader() if number % 2 else killable_training.data
    killable_training.run(folder, updates, seed=number, data=data)
    (folder / "done").touch()


def differences(folder: Path, updates: int) -> list[str]:
    """Names of what is not the same, to the last bit, in a training that was killed and in one that was not."""
    from saltus.engine.files import read_npz

    (one, one_arrays), (two, two_arrays) = (
        read_npz(folder / n / "train.ckpt" / "state.npz", "training state") for n in ("killed", "whole")
    )
    names = one_arrays.keys() | two_arrays.keys()
    found = [n for n in names if n not in one_arrays or n not in two_arrays or one_arrays[n].tobytes() != two_arrays[n].tobytes()]
    found += ["changes"] * (one["changes"] != two["changes"] or len(one["changes"]) != 1)
    found += ["updates"] * (len(one_arrays["history.loss"]) != updates)
    lines = [[json.loads(line) for line in (folder / n / "log.jsonl").read_text().splitlines()] for n in ("killed", "whole")]
    plain = [[{**line, "run": "", **dict.fromkeys(CLOCKS)} for line in log] for log in lines]
    return found + ["log"] * (plain[0] != plain[1])


def in_a_process(work, *given, rng=None, folder=None) -> bool:
    """Whether it was killed; without `rng` it never is. The kill comes within a tenth of a second of its first new checkpoint."""
    state = folder / "train.ckpt" / "state.npz" if folder else None
    written = lambda: state.stat().st_mtime_ns if state.exists() else 0  # noqa: E731
    before = written() if state else 0
    child = multiprocessing.get_context("fork").Process(target=work, args=given)
    child.start()
    if rng is not None:
        while child.is_alive() and written() == before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(child.pid, signal.SIGKILL)
    child.join()
    if child.exitcode not in (0, -signal.SIGKILL):
        raise SystemExit(f"a training failed with exit code {child.exitcode}")
    return child.exitcode != 0


def compare(folder: Path, updates: int) -> None:
    found = differences(folder, updates)
    (folder / "verdict.json").write_text(json.dumps({"updates": updates, "differences": found}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--updates", type=int, default=24_000, help="of each training")
    parser.add_argument("--seconds", type=float, default=500.0)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(asked.folder.absolute() / "cache")
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # what the cache says of features of the processor, at every start
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
    import killable_training  # noqa: F401

    until, log = time.monotonic() + asked.seconds, asked.folder / "kills.jsonl"
    for number in range(10**6):
        folder = asked.folder / f"training-{number}"
        verdict, killed = folder / "verdict.json", folder / "killed"
        while not verdict.exists():
            kills = len(log.read_text().splitlines()) if log.exists() else 0
            if time.monotonic() > until:
                return report(asked.folder)
            if not (killed / "done").exists() and kills < asked.kills:
                hit = in_a_process(train, killed, number, asked.updates, rng=random.Random(kills), folder=killed)
                half = "second" if (killed / "changed").exists() else "first"
                if hit:
                    log.open("a").write(json.dumps({"kill": kills + 1, "training": number, "half": half}) + "\n")
                continue
            for name in ("killed", "whole"):
                if not (folder / name / "done").exists():
                    in_a_process(train, folder / name, number, asked.updates)
            in_a_process(compare, folder, asked.updates)
        enough = len(log.read_text().splitlines()) >= asked.kills
        if enough and not (asked.folder / f"training-{number + 1}").exists():
            return report(asked.folder)


def report(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "kills.jsonl").read_text().splitlines()]
    verdicts = {path.parent.name: json.loads(path.read_text()) for path in sorted(folder.glob("*/verdict.json"))}
    counts = {name: sum(name == f"training-{line['training']}" for line in lines) for name in verdicts}
    halves = {half: sum(line["half"] == half for line in lines) for half in ("first", "second")}
    print(f"kills: {len(lines)}, {halves['first']} with the first optimiser, {halves['second']} with the second")
    print(f"of these in trainings that have ended: {sum(counts.values())}")
    print(f"trainings that differ from one left alone: {sum(bool(found['differences']) for found in verdicts.values())}")
    for name, found in verdicts.items():
        source = "loader" if int(name.partition("-")[2]) % 2 else "function of the update"
        same = f"DIFFERENT: {', '.join(found['differences'])}" if found["differences"] else "the same to the last bit"
        print(f"  {name}: {found['updates']} updates, data from a {source}, {counts[name]} kills, {same}")


if __name__ == "__main__":
    print = functools.partial(print, flush=True)
    main()
