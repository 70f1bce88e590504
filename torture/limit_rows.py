"""Time limits: kept, and never nothing."""

from __future__ import annotations

import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import monitoring

import saltus

if TYPE_CHECKING:
    from .trials import Trial

SECONDS = (0.1, 1.0, 5.0, 20.0, 60.0)


def cheap() -> saltus.Target:
    return saltus.Target(lambda s: 0.1 * jnp.sum(s[1:] * s[:-1]), saltus.Spin(20))


def dear() -> saltus.Target:
    """About 20 ms an evaluation."""

    def log_prob(s):
        return jax.lax.fori_loop(0, 2_000_000, lambda _, x: 0.999999 * x, 0.1 * jnp.sum(s))

    return saltus.Target(log_prob, saltus.Spin(6), differences="exact")


def slow_to_compile() -> saltus.Target:
    def log_prob(s):
        for i in range(300):
            s = jnp.sin(s + 0.01 * i)
        return jnp.sum(s)

    return saltus.Target(log_prob, saltus.Spin(10))


def calls(target: saltus.Target, place: Path) -> dict[str, Callable[[float], Any]]:
    """name -> a call of far more than a minute, under a limit."""
    learned = saltus.Target(lambda w, s: w * target.log_prob(s), target.space, jnp.asarray(1.0))
    data = target.space.show(np.zeros((20, target.space.num_sites), int))
    train = {"optimiser": optax.sgd(0.01), "num_updates": 10**6, "batch_size": 10, "buffer_size": 20, "progress": False}
    draws = {"num_draws": 10**5, "thin": 10, "progress": False}

    def resumed(seconds: float) -> Any:
        return saltus.resume(place, target, num_draws=10**5, progress=False, time_limit=seconds)

    return {
        "auto": lambda t: saltus.sample(target, **draws, time_limit=t),
        "tuned": lambda t: saltus.sample(target, saltus.NCG, **draws, time_limit=t),
        "resume": resumed,
        "tune": lambda t: saltus.tune(target, saltus.AVG, time_limit=t),
        "pcd": lambda t: saltus.training.pcd(learned, data, time_limit=t, **train),
        "ais": lambda t: saltus.training.ais(target, saltus.NCG(1.0), num_temperatures=10**5, num_chains=4, time_limit=t),
    }


def limits(root: Path, quick: bool) -> list[Trial]:
    """Overshoot at most a second, a step, and what was being compiled when the time was over; and never nothing."""
    grid = [
        (make, what, t)
        for t in (SECONDS[:2] if quick else SECONDS)
        for make in (cheap, dear, slow_to_compile)
        for what in calls(cheap(), root)
    ]
    return [partial(limited, root, *each) for each in grid]


def limited(root: Path, make: Callable[[], saltus.Target], what: str, seconds: float) -> Counter:
    target, place = make(), root / "c"
    if what == "resume":
        saltus.sample(target, saltus.NCG(1.0), num_draws=2, num_warmup=1, thin=1, progress=False, checkpoint=place, overwrite=True)
        jax.clear_caches()
    compiled: list[tuple[float, float]] = []  # (when it ended, how long it took)
    monitoring.register_event_duration_secs_listener(
        lambda event, t, **_: compiled.append((time.monotonic(), t)) if "/jax/core/compile" in event else None
    )
    spent: list[float] = []  # seconds of the processor, when time was up: others on this machine do not count
    alarm = threading.Timer(seconds, lambda: spent.append(time.process_time()))
    began = time.monotonic()
    alarm.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = calls(target, place)[what](seconds)
    over = min(time.monotonic() - began - seconds, time.process_time() - spent[0] if spent else 0.0)
    alarm.cancel()
    monitoring.clear_event_listeners()
    compiling = sum(min(t, max(ended - began - seconds, 0.0)) for ended, t in compiled)  # after the time was over
    nothing = not _amount(what, found)
    late = over > max(1.0, _longest_step(make)) + compiling
    if nothing or late:
        told = f"over by {over:.2f} s of work, {compiling:.2f} s of them compiling"
        print(f"{make.__name__} {what} limit {seconds}: {told}{', and nothing returned' if nothing else ''}", flush=True)
    return Counter(["wrong" if nothing or late else "kept"])


def _longest_step(make: Callable[[], saltus.Target]) -> float:
    """Seconds: the dear target evaluates all neighbours of four chains."""
    return 4.0 if make is dear else 0.0


def _amount(what: str, found: Any) -> int:
    if what in ("auto", "tuned", "resume"):
        return found["posterior"].sizes["draw"]
    if what == "pcd":
        return len(found.history["jump"])
    return bool(found.kernel) if what == "tune" else bool(np.isfinite(found.log_z))
