"""A block of discrete sites for `numpyro.infer.MCMC` and `numpyro.infer.Gibbs`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from numpyro.infer.mcmc import MCMCKernel

from ..._record import changed
from ...engine.samplers import check_kernel_fits
from ...errors import KernelError, TargetError
from ...kernels import Gibbs, Kernel
from ...local import Differences
from ...structure import Graph
from ...structure.terms import find_terms
from ...target import Target
from ..discrete_sites import Sites
from ..models import Discrete
from .density import Arguments, Density
from .sites import sites_of, traced


class DiscreteState(NamedTuple):
    """z: {site: value}. x: the state of the saltus kernel. rng_key: for the next step."""

    z: dict[str, jax.Array]
    x: Any
    rng_key: jax.Array


class DiscreteKernel(MCMCKernel):
    """The discrete sites of a model, by a kernel of saltus: for a model without continuous sites, or as a block of Gibbs.

        kernel = Gibbs([(DiscreteKernel(model), discrete_latent_sites), (NUTS(model), None)])
        MCMC(kernel, num_warmup=500, num_samples=1000, num_chains=4, chain_method=jax.vmap)

    model: a NumPyro model, the same that the other blocks have.
    kernel: a kernel such as `saltus.NCG(0.5)`; None: Gibbs sweeps, by colours where it is found which sites interact.
    chain_method: "vectorized" of numpyro is for its own kernels; `jax.vmap` runs all chains at once.
    """

    sample_field = "z"

    def __init__(self, model: Callable, kernel: Kernel | None = None):
        if not callable(model):
            raise TargetError("`model` is not a function.", expected="a NumPyro model", found=repr(model))
        if kernel is not None and not isinstance(kernel, Kernel):
            raise KernelError("`kernel` is not a kernel.", expected="such as saltus.NCG(0.5), or None", found=repr(kernel))
        self._model, self._kernel = model, kernel
        self._made: tuple[Sites, Target, Kernel] | None = None

    @property
    def model(self) -> Callable:
        return self._model

    def init(self, rng_key: Any, num_warmup: int, init_params: Any, model_args: tuple, model_kwargs: Any) -> DiscreteState:
        kwargs = dict(model_kwargs or {})
        own, key = jax.random.split(rng_key)
        traces = [traced(self._model, model_args, kwargs, k) for k in (key, jax.random.key(1), jax.random.key(2))]
        sites = sites_of(traces)
        if sites.continuous:
            raise TargetError(
                "DiscreteKernel samples discrete sites only.",
                expected="a model without continuous latent sites, or a block of numpyro.infer.Gibbs",
                found=", ".join(name for name, _ in sites.continuous),
                hint="numpyro.infer.Gibbs([(DiscreteKernel(model), discrete_latent_sites), (NUTS(model), None)])",
            )
        arguments, data = Arguments.split(model_args, kwargs)
        template = _template(self._model, sites, arguments, data)
        kernel = self._kernel or Gibbs.first(template)
        check_kernel_fits(kernel, template)
        self._made = (sites, template, kernel)
        start = {site.name: traces[0][site.name]["value"] for site in sites.discrete} | dict(init_params or {})
        z = {site.name: jnp.asarray(start[site.name]).astype(site.dtype) for site in sites.discrete}
        here = self._target(model_args, kwargs)
        return DiscreteState(z, kernel.init(here, sites.encode(z).astype(here.space.code_dtype)), own)

    def _ready(self) -> tuple[Sites, Target, Kernel]:
        if self._made is None:
            raise KernelError("DiscreteKernel has not begun.", expected="init before sample", found="no state yet")
        return self._made

    def _target(self, model_args: tuple, model_kwargs: Any) -> Target:
        """The template with the arguments and conditioning values as they are now."""
        _, template, _ = self._ready()
        _, data = Arguments.split(model_args, dict(model_kwargs or {}))
        return changed(template, params=data)

    def sample(self, state: DiscreteState, model_args: tuple, model_kwargs: Any) -> DiscreteState:
        sites, _, kernel = self._ready()
        key, own = jax.random.split(state.rng_key)
        x, _ = kernel.step(own, self._target(model_args, model_kwargs), state.x)
        values = sites.values(sites.space.embed(kernel.draw(x)), as_float=False)
        z = {site.name: values[site.name].astype(site.dtype) for site in sites.discrete}
        return DiscreteState(z, x, key)

    def refresh(self, state: DiscreteState, model_args: tuple, model_kwargs: Any) -> DiscreteState:
        """f and the local model anew, for other arguments or other values of the other blocks."""
        _, _, kernel = self._ready()
        return state._replace(x=kernel.refresh(self._target(model_args, model_kwargs), state.x))

    def wrap_model(self, wrapper: Callable) -> DiscreteKernel:
        wrapped = copy.copy(self)
        wrapped._model, wrapped._made = wrapper(self._model), None
        return wrapped

    def get_constrain_fn(self, model_args: tuple, model_kwargs: Any) -> Callable:
        return lambda z: z

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}


def _template(model: Callable, sites: Sites, arguments: Arguments, data: tuple) -> Target:
    """The target at data of zeros: what is found in the log-density holds for all data of these shapes."""
    f = Discrete(Density(model, sites, arguments, False))
    with jax.ensure_compile_time_eval():
        nothing = tuple(jnp.zeros(jnp.shape(x), jnp.result_type(x)) for x in data)
        plain = Target(f, sites.space, nothing, differences="exact", verify=False)
        graph = plain.find(Graph)
        terms = find_terms(f, sites.space, nothing) if graph is not None else None
        chosen: Any = "exact" if terms is None else Differences(terms, exact=True)
        return Target(f, sites.space, nothing, differences=chosen, structure=graph, verify=False)
