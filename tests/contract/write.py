"""Write down the contract of a version: python tests/contract/write.py 0.1

names.json      every public name, and what it takes
commands.json   every command of the command line, and its options
files/          a checkpoint, a store, a run.nc and a trained model, and in expected.json what they hold

Only the version itself can write its contract; once it is released, the contract is never written again.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from commands import read_commands
from surface import read_names

import saltus

HERE = Path(__file__).parent
MODULES = [
    "saltus",
    *("saltus.datasets", "saltus.diagnostics", "saltus.extending", "saltus.random", "saltus.targets", "saltus.testing"),
    *("saltus.training", "saltus.training.models"),
]
EXAMPLES = {
    "saltus.Binary": "saltus.Binary(2)",
    "saltus.Categorical": "saltus.Categorical(2, 3)",
    "saltus.Clock": "saltus.Clock(2, 3)",
    "saltus.Ordinal": "saltus.Ordinal(2, [0.0, 1.0, 3.0])",
    "saltus.Space": "saltus.Space(2, [0.0, 1.0])",
    "saltus.Spin": "saltus.Spin(2)",
}
ONLY_NAMED = ("bench", "reproduce")  # commands whose options are free to change


def load(folder: Path, name: str) -> ModuleType:
    """A module of a contract, once: its folder is no package, and a kernel may be defined only once."""
    full = f"contract_{folder.name.replace('.', '_')}_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, folder / f"{name}.py")
        assert spec
        assert spec.loader
        sys.modules[full] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[full]


def write_lines(path: Path, data: dict[str, Any]) -> None:
    """JSON, a line for each entry."""
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items())
    path.write_text("{\n" + lines + "\n}\n")


def held(run: Any) -> dict[str, Any]:
    """What a run holds, as lists."""
    return {"s": run.posterior.s.values.tolist(), "lp": run.sample_stats.lp.values.tolist()}


def write_checkpoint(path: Path, target: Any) -> dict[str, Any]:
    """A run stopped by its time limit somewhere between its first draw and its last; what it would have drawn."""
    given = dict(num_draws=40, num_warmup=10, num_chains=2, seed=3, thin=4001, progress=False)
    whole = saltus.sample(target, saltus.UniformMH(1), **given)
    for hundredths in range(4, 400, 4):
        with contextlib.suppress(saltus.RunError):  # not a single draw
            settings = dict(checkpoint=path, overwrite=True, time_limit=hundredths / 100)
            part = saltus.sample(target, saltus.UniformMH(1), **given, **settings)
            if 4 <= part.posterior.sizes["draw"] <= 36:
                return {**held(whole), "draws_so_far": part.posterior.sizes["draw"]}
    raise RuntimeError("every time limit was too short or too long")


def write_trained(path: Path, targets: ModuleType) -> dict[str, Any]:
    import optax

    given = dict(num_updates=5, num_steps=2, batch_size=3, buffer_size=6, average=0.5, seed=0, progress=False)
    trained = saltus.training.pcd(targets.model(), targets.DATA, saltus.NCG(1.0), optimiser=optax.sgd(0.125), **given)
    trained.save(path)
    numbers = {"params": trained.params, "average": trained.average.params, "history": trained.history}
    lists = {what: {name: np.asarray(x).tolist() for name, x in numbers[what].items()} for what in numbers}
    return {**lists, "buffer": trained.buffer.tolist(), "kernel": repr(trained.kernel)}


def write_files(folder: Path, targets: ModuleType) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    given = dict(num_draws=20, num_warmup=10, num_chains=2, seed=1, thin=2, progress=False)
    expected = {"checkpoint": write_checkpoint(folder / "checkpoint", targets.binary)}
    stored = saltus.sample(targets.ordinal, saltus.NCG(0.5), **given, store=folder / "run.zarr", keep_warmup=True)
    expected["run.zarr"] = {**held(stored), "kernel": "NCG(step_size=0.5)"}
    run = saltus.sample(targets.binary, saltus.Gibbs("systematic"), **given)
    run.to_netcdf(folder / "run.nc", engine="h5netcdf")
    expected["run.nc"] = {**held(run), "kernel": "Gibbs(scan='systematic')"}
    expected["trained.npz"] = write_trained(folder / "trained.npz", targets)
    write_lines(folder / "expected.json", expected)


def main(version: str) -> None:
    if not saltus.__version__.startswith(f"{version}."):
        sys.exit(f"This is saltus {saltus.__version__}: it cannot write the contract of {version}.")
    folder = HERE / version
    write_lines(folder / "names.json", read_names(saltus, MODULES, EXAMPLES))
    write_lines(folder / "commands.json", read_commands(ONLY_NAMED))
    write_files(folder / "files", load(folder, "targets"))


if __name__ == "__main__":
    main(sys.argv[1])
