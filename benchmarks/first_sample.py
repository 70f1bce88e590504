"""What a newcomer gets: `saltus.sample(target, seed=0)` in a fresh process, on the paper's targets and the 10x10 Ising model.

    python benchmarks/first_sample.py           all of them
    python benchmarks/first_sample.py poly2     one, in this process

Seconds are those of the call, compilation included, `import saltus` not. agree: the largest R-hat of the energy and of the
distance; race: its share of all evaluations.
"""

import subprocess
import sys
import time

TARGETS = ("ising", "poly2", "regression", "poly4")


def measure(name):
    import saltus

    target = {
        "ising": lambda: saltus.targets.ising((10, 10), 0.4),
        "poly2": lambda: saltus.targets.polynomial_mixture(2, 20),
        "poly4": lambda: saltus.targets.polynomial_mixture(4, 20),
        "regression": saltus.targets.sparse_regression,
    }[name]()
    began = time.perf_counter()
    run = saltus.sample(target, seed=0, progress=False)
    seconds, told, a = time.perf_counter() - began, saltus.summary(run), run.attrs
    made = (a["num_warmup"] + a["num_draws"] * a["thin"]) * a["num_chains"] * max(a["evaluations_per_step"], 1)
    share = a["race_evaluations"] / (a["race_evaluations"] + made)
    worst, ess = max(told.rhat.values()), min(told.ess.values())
    print(f"{name:<12}{seconds:>6.1f} s   {a['sampler']:<34}agree {worst:.3f}   ESS {ess:<6.0f}thin {a['thin']:<6}race {share:.0%}")


if __name__ == "__main__":
    for each in TARGETS if len(sys.argv) == 1 else ():
        subprocess.run([sys.executable, __file__, each], check=True)
    for each in sys.argv[1:]:
        measure(each)
