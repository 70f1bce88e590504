"""check_kernel on random kernels, spaces, targets, settings and seeds, all of them right: counts false alarms.

python -m benchmarks.false_alarms [checks=500] [minutes=inf] [file=benchmarks/false_alarms.jsonl]

Every check runs every instrument with its default number of chains; one in 50 has the battery too. Ten checks in a row have
one sampler on one space and in one precision, and so share what is compiled; target, settings and seed are their own.
Appends one line a check and goes on where it was stopped; at the end writes tests/full_output/false_alarms.txt.
"""

import importlib
import json
import pathlib
import re
import sys
import time

import jax
import numpy as np
import scipy.stats

import saltus
from saltus.testing import check_kernel, quadratic, rugged

# Nothing is changed between checks here: what is compiled for one serves the next.
importlib.import_module("saltus.testing.check_kernel").forget_programs = lambda: None
ROOT = pathlib.Path(__file__).parents[1]
TOGETHER = 10  # checks that share what is compiled


def random_space(rng):
    """Of at most about 250 states."""
    numbers = np.cumsum(rng.uniform(0.2, 1.2, size=int(rng.integers(3, 7)))) - 2
    return [
        lambda: saltus.Binary(int(rng.integers(2, 7))),
        lambda: saltus.Spin(int(rng.integers(2, 7))),
        lambda: saltus.Ordinal(int(rng.integers(1, 4)), numbers),
        lambda: saltus.Ordinal(1, range(int(rng.integers(20, 110)))),
        lambda: saltus.Categorical(int(rng.integers(1, 4)), int(rng.integers(3, 6))),
        lambda: saltus.Clock(int(rng.integers(1, 4)), int(rng.integers(3, 7))),
        lambda: saltus.Product(a=saltus.Binary(int(rng.integers(1, 4))), b=saltus.Categorical(1, 3)),
    ][rng.integers(7)]()


def random_kernel(rng, space, which, scan):
    """Sampler number `which` with a random setting."""
    step_size = float(space.unit * 10 ** rng.uniform(-0.7, 0.7))
    A = rng.normal(size=(space.size, space.size)) / space.unit
    return [
        lambda: saltus.NCG(step_size, gradient_weight=float(rng.uniform(0.3, 1.2))),
        lambda: saltus.AVG(step_size),
        lambda: saltus.PAVG(step_size, (A + A.T) / 2, scale=float(rng.normal())),
        lambda: saltus.PAVG(step_size, saltus.Diagonal(rng.normal(size=space.size) / space.unit)),
        lambda: saltus.GWG(radius=int(rng.integers(1, 4))),
        lambda: saltus.Gibbs(scan),
        lambda: saltus.UniformMH(min(int(rng.integers(1, 4)), saltus.UniformMH(1).largest_radius(space))),
        lambda: saltus.BlockGibbs(),
    ][which]()


def one(number):
    """A line about check `number`: everything about it follows from the number."""
    family, rng = np.random.default_rng([20261118, number // TOGETHER]), np.random.default_rng([20261118, number, 1])
    space, scan = random_space(family), ["random", "systematic"][family.integers(2)]
    which = (number // TOGETHER) % (8 - isinstance(space, saltus.Product))
    differences = ["gradient", "gradient", "exact"][family.integers(3)]
    make = quadratic if which == 7 or (family.random() < 0.2 and not isinstance(space, saltus.Product)) else rugged
    wide, battery = bool(family.random() < 0.2), number % 50 == 0
    kernel = random_kernel(rng, space, which, scan)
    target = make(space, seed=int(rng.integers(1000)), differences=differences)
    line = {"check": number, "kernel": repr(kernel), "target": f"{make.__name__} {differences} {space}", "x64": wide}
    began, worked = time.time(), time.process_time()
    try:
        with jax.enable_x64(wide):
            report = check_kernel(kernel, target, seed=int(rng.integers(2**31)), battery=battery)
        line |= {"failed": [], "warnings": list(report.warnings), "p": p_values(report), "ran": list(dict.fromkeys(report.ran))}
    except saltus.CheckError as error:
        line |= {"failed": [str(error)]}
    except Exception as error:
        line |= {"failed": [f"{type(error).__name__}: {error}"]}
    return line | {"battery": battery, "seconds": round(time.time() - began, 1), "cpu": round(time.process_time() - worked, 1)}


def p_values(report):
    """{test: its p-value} as the report prints them."""
    found = {}
    for finding in report.findings:
        value = re.search(r"p = (\S+) \(fails", finding.text)
        if value:
            when = re.search(r"exact draws, (\d step|on average)?", finding.text)
            found[f"{finding.instrument} {when.group(1) or 'late' if when else ''}".strip()] = float(value.group(1))
    return found


def main(checks=500, minutes=np.inf, file=ROOT / "benchmarks" / "false_alarms.jsonl"):
    file, stop = pathlib.Path(file), time.time() + 60 * float(minutes)
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {line["check"] for line in lines}
    for number in range(int(checks)):
        if number in done:
            continue
        if time.time() > stop:
            break
        if number % TOGETHER == 0:
            jax.clear_caches()
        lines.append(one(number))
        with file.open("a") as out:
            out.write(json.dumps(lines[-1]) + "\n")
        failed = sum(bool(line["failed"]) for line in lines)
        print(f"{len(lines)} checks, {failed} FAILED, the last {lines[-1]['seconds']} s: {lines[-1]['kernel']}", flush=True)
    write_down(lines)


def write_down(lines):
    """What tests/full_output keeps."""
    failed = [line for line in lines if line["failed"]]
    kinds = sorted({line["kernel"].split("(")[0] for line in lines})
    counts = ", ".join(f"{kind} {sum(line['kernel'].startswith(kind + '(') for line in lines)}" for kind in kinds)
    text = [
        f"{len(lines)} checks of built-in kernels ({counts}) on {len({line['target'] for line in lines})} spaces",
        f"{sum(line['battery'] for line in lines)} with the battery, {sum(line['x64'] for line in lines)} in float64;"
        f" all with the default number of chains; {sum(line['cpu'] for line in lines):.0f} s of CPU",
        f"FAILED: {len(failed)}",
        *(f"check {line['check']}: {line['target']}\n{line['failed'][0]}" for line in failed),
        "p-values: number, smallest, share below 0.01, 0.1 and 0.5, and of uniformity (Kolmogorov and Smirnov);",
        "those of proposal and noise are Bonferroni's for several tests, and so too large",
        *_distributions(lines),
    ]
    folder = ROOT / "tests" / "full_output"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "false_alarms.txt").write_text("\n".join(text) + "\n")
    print("\n".join(text))


def _distributions(lines):
    for test in sorted({name for line in lines for name in line.get("p", {})}):
        p = np.array([line["p"][test] for line in lines if test in line.get("p", {})])
        shares = " ".join(f"{np.mean(p < level):6.3f}" for level in (0.01, 0.1, 0.5))
        yield f"  {test:<28} {len(p):4d} {p.min():8.2g} {shares} {scipy.stats.kstest(p, 'uniform').pvalue:8.2g}"


if __name__ == "__main__":
    main(*sys.argv[1:])
