"""The three stages behind Table 2: learn a convolutional model of digits, sample it, learn its quadratic part J again."""

from __future__ import annotations

import dataclasses
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import saltus
from saltus import datasets, training

from ..settings import Training

SIDE = 16
STEP_SIZES = {"ncg": 0.2, "avg": 0.08, "pavg": 0.08}
_WATCHED = 200  # chains that the check after the first stage looks at, and steps of each
_ACCEPTED, _NORM = (0.5, 1.0), (0.05, 1.0)  # a healthy first stage: about 0.8 and 0.2; a diverged one 0 and 3.3


def images(settings: Training) -> tuple[str, np.ndarray]:
    """(name, binary images): USPS, or synthetic digits where the scale allows them and there is no file."""
    if settings.network.images == "any" and not os.environ.get("SALTUS_DATA"):
        return "synthetic digits", datasets.digits(settings.network.rows, 0).train
    found: Any = datasets.load("usps")
    return "USPS", found.train


def kernel(sampler: str, bits: np.ndarray) -> saltus.Kernel:
    if sampler == "pavg":
        return saltus.PAVG(STEP_SIZES[sampler], training.data_covariance(saltus.Binary(bits.shape[1]), bits))
    plain: dict[str, Any] = {"gwg": saltus.GWG, "gibbs": saltus.Gibbs, "ncg": saltus.NCG, "avg": saltus.AVG}
    return plain[sampler](*([STEP_SIZES[sampler]] if sampler in STEP_SIZES else []))


def couplings(params: Any) -> np.ndarray:
    G = np.asarray(params["quadratic"], np.float64)
    return (G + G.T) / 2


def _quadratic(params: Any) -> Any:
    return params["quadratic"]


@cache
def _first_optimiser(pace: float) -> Any:
    """Adam with decay of the network's weights, and with `pace` times the learning rate for them."""
    import optax

    net = {"quadratic": False, "bias": False, "net": True}
    return optax.chain(optax.adamw(3e-4, eps=1e-7, weight_decay=1e-4, mask=net), optax.masked(optax.scale(pace), net))


@cache
def _last_optimiser() -> Any:
    import optax

    return optax.adam(3e-4, eps=1e-7)


def _learn(target: saltus.Target, bits: np.ndarray, sampler: str, num_steps: int, settings: Training, **more: Any) -> Any:
    return training.pcd(
        target,
        bits,
        kernel(sampler, bits),
        num_steps=num_steps,
        buffer_size=settings.buffer,
        buffer="marginals",
        penalty=training.L1(0.01, of=_quadratic, symmetric=True),
        retune="paper" if sampler == "pavg" else None,
        stop_on_divergence=False,
        progress=False,
        **more,
    )


def model_file(folder: Path, seed: int) -> Path:
    return folder / "models" / f"table2-seed{seed}.npz"


def first_stages(seed: int, settings: Training, folder: Path) -> tuple[dict[str, Any], training.Trained]:
    """(data and health, the model with its samples), saved for the third stage once it is seen to be sane."""
    (name, bits), network, file = images(settings), settings.network, model_file(folder, seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    params = training.models.conv_ebm_params(network.width, seed)
    params["bias"] = params["bias"] + np.log(bits.mean(0) + 0.01).astype(np.float32)
    model = training.models.conv_ebm(params)
    more = {"optimiser": _first_optimiser(network.pace), "num_updates": network.first_updates, "seed": seed}
    found = _learn(model, bits, network.sampler, network.num_steps, settings, **more, checkpoint=file.with_suffix(""))
    found = dataclasses.replace(found, buffer=_refreshed(found, network.refresh, seed))
    sane = health(found, seed)
    check_model(**sane, first=name)
    found.save(file, overwrite=True)
    return {"data": name, **sane}, found


def _refreshed(found: training.Trained, steps: int, seed: int) -> np.ndarray:
    """The chains after some more steps of NCG on the model as it is at the end."""
    if not steps:
        return found.buffer
    return _sampled(found, found.buffer, steps - 1, 1, seed).posterior["s"].values[:, -1]


def _sampled(found: training.Trained, start: np.ndarray, warmup: int, draws: int, seed: int) -> Any:
    length: dict[str, Any] = {"num_draws": draws, "num_warmup": warmup, "num_chains": len(start), "thin": 1}
    return saltus.sample(found.target, saltus.NCG(STEP_SIZES["ncg"]), initial=start, seed=seed, progress=False, **length)


def health(found: training.Trained, seed: int) -> dict[str, float]:
    """How often NCG is accepted on the model, and ||J*||_F / 16."""
    run = _sampled(found, found.buffer[:_WATCHED], 0, _WATCHED, seed)
    accepted = float(run.sample_stats["acceptance_rate"].values.mean())
    return {"acceptance": accepted, "norm": float(np.linalg.norm(couplings(found.params)) / SIDE)}


def check_model(acceptance: float, norm: float, first: str) -> None:
    """RunError where the first stage has diverged: all that comes after it would be meaningless."""
    if _ACCEPTED[0] <= acceptance <= _ACCEPTED[1] and _NORM[0] <= norm <= _NORM[1]:
        return
    raise saltus.RunError(
        f"The first stage of Table 2 has not learned {first}, and the others would be meaningless.",
        expected=f"NCG accepted {_ACCEPTED[0]:g} or more of the time (about 0.8), ||J|| / 16 from {_NORM[0]:g} to {_NORM[1]:g}",
        found=f"acceptance {acceptance:.3g}, ||J|| / 16 = {norm:.3g}",
        hint="another seed, or in settings.py a slower network (Network.pace), or more steps an update (num_steps)",
    )


def relearn(sampler: str, num_steps: int, seed: int, settings: Training, folder: Path) -> tuple[Any, training.Trained]:
    """(the model, the third stage): J from small noise, the network and the bias as they are."""
    file = model_file(folder, seed)
    if not file.exists():
        raise saltus.RunError(
            "The model of Table 2 is missing.",
            expected=f"{file}",
            found="no such file",
            hint="its results are there without it: choose another folder with --out",
        )
    truth = training.load(file, training.models.conv_ebm(width=settings.network.width))
    noise = 0.01 * np.random.default_rng([seed, SIDE]).normal(size=(SIDE**2, SIDE**2)).astype(np.float32)
    target = truth.target.replace(params={**truth.params, "quadratic": truth.params["quadratic"] * 0 + noise})
    more = {"optimiser": _last_optimiser(), "num_updates": settings.network.updates, "seed": seed}
    only_quadratic = {"quadratic": True, "bias": False, "net": False}
    return truth, _learn(target, truth.buffer, sampler, num_steps, settings, **more, trainable=only_quadratic)
