"""A run over several devices or processes: python spread_out.py OUT.npz [STORE] [COORDINATOR PROCESS]."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import saltus


def target():
    """f is a sum of small integers: exact in float32, however the chains are divided."""
    return saltus.Target(lambda s: jnp.sum(s[1:] * s[:-1]), saltus.Spin(8))


def run(**settings):
    given = dict(num_draws=40, num_warmup=10, num_chains=6, seed=2, progress=True)  # six chains do not divide by four devices
    return saltus.sample(target(), saltus.NCG(2.0), **{**given, **settings})


if __name__ == "__main__":
    out, folder, *network = sys.argv[1:]
    if network:
        coordinator, process = network
        jax.distributed.initialize(coordinator, num_processes=2, process_id=int(process))
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    folder = Path(folder)
    memory = run(checkpoint=folder / "run.ckpt")
    stored = run(store=folder / "run.zarr", progress=False)
    mean = run(keep="mean", progress=False)
    longer = saltus.resume(folder / "run.ckpt", target(), num_draws=55, progress=False)
    raced = saltus.sample(target(), num_draws=40, num_warmup=200, num_chains=6, seed=2, progress=False)
    np.savez(
        out,
        memory=memory.posterior.s.values,
        stored=stored.posterior.s.values,
        mean=mean["statistics"]["mean"].values,
        longer=longer.posterior.s.values,
        raced=raced.posterior.s.values,
        start=raced["start"].s.values,
        step_size=getattr(saltus.kernel_of(raced), "step_size", 0.0),
        thin=raced.attrs["thin"],
        devices=len(jax.devices()),
    )
