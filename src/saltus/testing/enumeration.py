"""Exact distributions and transition matrices of small problems, by enumeration in float64."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from .._compiling import program
from ..engine.arguments import read_space, read_target
from ..errors import CheckError
from ..kernels import begin
from ..spaces import Space
from ..target import Target
from .protocol import offers, protocol

MOST_STATES = 4096


def enumerate_states(target_or_space: Target | Space) -> jax.Array:
    """All codes, (k^d, d).

    target_or_space: either; small enough that all states can be listed.
    """
    space = target_or_space.space if isinstance(target_or_space, Target) else target_or_space
    return read_space(space).enumerate()


def stationary(target: Target) -> np.ndarray:
    """(k^d,) exact probabilities of `enumerate_states(target)`, in float64. States where f is NaN or +inf count as impossible."""
    read_target(target)
    with jax.enable_x64(True):
        wide = widen(target)
        f = np.array(jax.jit(lambda codes: jax.lax.map(wide.value, codes, batch_size=2**14))(enumerate_states(target)))
    return _softmax(f)


def transition_matrix(kernel: Any, target: Target, z: Any = None) -> np.ndarray:
    """K[a, b], the probability that one step from state a ends in state b, from the kernel's own proposal and ratio.

    Kernels with a continuous auxiliary variable (AVG, PAVG, BlockGibbs) have one matrix for each fixed value `z` of it,
    a vector of the size of space.ravel(s); it is reversible with respect to `Enumeration.conditional(z)`.

    kernel: an instance. target: small enough to enumerate.
    """
    if not isinstance(target, Target):
        raise CheckError(
            "Transitions need a target.", expected="saltus.Target", found=repr(target), hint="saltus.testing.rugged(space)"
        )
    if not (offers(kernel, "propose") and offers(kernel, "log_ratio")):
        raise CheckError(
            f"{kernel!r} has no enumerable transition matrix.",
            expected="a kernel that offers propose(target, x, noise) and log_ratio(target, x, y, noise)",
            hint="check_kernel still runs every instrument that needs `step` alone",
        )
    if offers(kernel, "noise") and not offers(kernel, "compose") and (z is None or not offers(kernel, "condition")):
        raise CheckError(
            f"A step of {kernel!r} depends on an auxiliary variable.",
            expected="z, and a kernel that offers condition(target, z, x)",
            hint="transition_matrix(kernel, target, z=...) for any vector z of the size of space.ravel(s)",
        )
    forget()
    with jax.enable_x64(True):
        return Enumeration(kernel, target).matrix(z)


def widen(tree: Any) -> Any:
    """The tree with its floats in float64; a target's structure is bound anew from the widened numbers."""

    def leaf(x: Any) -> Any:
        is_array = isinstance(x, (jax.Array, np.ndarray, np.generic))
        return jnp.asarray(np.asarray(x), jnp.float64) if is_array and jnp.issubdtype(x.dtype, jnp.floating) else x

    wide = jax.tree.map(leaf, tree)
    return wide.rebound() if isinstance(wide, Target) else wide


@program(once=True)
def _points(kernel: Any, target: Target, codes: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
    """(states, f, log-weights) at all codes."""

    def one(codes: jax.Array) -> tuple[Any, jax.Array, jax.Array]:
        x = begin(kernel, target, codes, jax.random.key(0))
        return x, target.value(codes), getattr(kernel, "log_weight", lambda _: jnp.zeros(()))(x)

    return jax.vmap(one)(codes)


@program(once=True)
def _noises(kernel: Any, target: Target, z: jax.Array, points: Any) -> jax.Array:
    return jax.vmap(lambda x: kernel.condition(target, z, x))(points)


@program(once=True)
def _auxiliaries(kernel: Any, target: Target, keys: jax.Array) -> jax.Array:
    def one(key: jax.Array) -> jax.Array:
        state_key, noise_key = jax.random.split(key)
        x = kernel.init(target, target.space.random(state_key))
        u = kernel.noise(noise_key, target)
        return u - kernel.condition(target, jnp.zeros_like(u), x)

    return jax.vmap(one)(keys)


@program(once=True)
def _tables(kernel: Any, target: Target, points: Any, noise: Any) -> dict[str, jax.Array]:
    """What the kernel offers of log_q, log_definition and log_ratio, for all pairs of states."""

    def pair(x: Any, u: Any, y: Any) -> dict[str, jax.Array]:
        found = {}
        if offers(kernel, "propose"):
            proposal = kernel.propose(target, x, u)
            if hasattr(proposal, "draw") or not hasattr(proposal, "log_prob"):
                return {}  # an auxiliary path, or no density: it cannot be enumerated
            found["log_q"] = proposal.log_prob(y.codes)
        if offers(kernel, "log_definition"):
            found["log_definition"] = kernel.log_definition(target, x, y.codes, u)
        if offers(kernel, "log_ratio"):
            found["log_ratio"] = kernel.log_ratio(target, x, y, u)
        return found

    return jax.lax.map(lambda row: jax.vmap(lambda y: pair(row[0], row[1], y))(points), (points, noise))


class Enumeration:
    """A kernel on every state of a small target, in float64. To be made and used where x64 is enabled."""

    def __init__(self, kernel: Any, target: Target):
        self.kernel, self.target = widen(protocol(kernel)), widen(target)
        self.codes = enumerate_states(target)
        if len(self.codes) > MOST_STATES:
            found = f"{len(self.codes)} states"
            raise CheckError(
                f"{target.space} is too large to enumerate transitions.", expected=f"at most {MOST_STATES}", found=found
            )
        self.points, self.f, self.log_weight = _points(self.kernel, self.target, self.codes)

    @property
    def possible(self) -> np.ndarray:
        """(N,) states of positive probability."""
        return np.isfinite(np.asarray(self.f))

    def stationary(self) -> np.ndarray:
        """(N,) what the kernel leaves invariant: p, or p exp(-log_weight) where it weighs its draws."""
        return _softmax(np.asarray(self.f) - np.asarray(self.log_weight))

    @property
    def continuous(self) -> bool:
        """The kernel draws an auxiliary variable that cannot be enumerated."""
        return offers(self.kernel, "noise") and not offers(self.kernel, "compose")

    def auxiliaries(self, key: jax.Array, num: int) -> jax.Array:
        """Typical values of z: u + Ms for random states s."""
        return _auxiliaries(self.kernel, self.target, jax.random.split(key, num))

    def noise_at(self, z: Any) -> jax.Array:
        """(N, n) the noise at every state for a fixed auxiliary."""
        return _noises(self.kernel, self.target, jnp.asarray(z), self.points)

    def noises(self, zs: Any = ()) -> list:
        """All settings of the noise to look at: each block of a finite kernel, the given z, or none."""
        if offers(self.kernel, "compose"):
            return [jnp.broadcast_to(b, (len(self.codes), *b.shape)) for b in self.kernel.blocks(self.target)]
        return [self.noise_at(z) for z in zs] if self.continuous else [None]

    def tables(self, noise: Any) -> dict[str, np.ndarray]:
        """log_q, log_definition (normalised here) and log_ratio for all pairs of states, where the kernel offers them.

        No chain leaves a state of probability zero, since none is ever there: its rows say that it stays.
        """
        found = {name: np.array(table) for name, table in _tables(self.kernel, self.target, self.points, noise).items()}
        for name in {"log_q", "log_definition"} & set(found):
            found[name][~self.possible] = np.where(np.eye(len(self.codes), dtype=bool), 0, -np.inf)[~self.possible]
        if "log_definition" in found:
            finite = found["log_definition"][np.isfinite(found["log_definition"])]
            found["size"] = np.abs(finite).max(initial=0)  # of the equation's terms: what its rounding is relative to
            found["log_definition"] -= scipy.special.logsumexp(found["log_definition"], axis=1, keepdims=True)
        return found

    def matrix(self, z: Any = None) -> np.ndarray:
        """The transition matrix, at fixed z where the kernel is continuous."""
        matrices = [self.matrix_from(self.tables(noise)) for noise in self.noises([z])]
        return self.kernel.compose(matrices) if offers(self.kernel, "compose") else matrices[0]

    def acceptance(self, tables: dict[str, np.ndarray]) -> np.ndarray:
        """(N, N) the probability that a proposal is taken; NaN, and states of -inf or +inf, are refused."""
        log_ratio = tables["log_ratio"]
        return np.where(self.possible & ~np.isnan(log_ratio), np.exp(np.minimum(log_ratio, 0)), 0)

    def matrix_from(self, tables: dict[str, np.ndarray]) -> np.ndarray:
        K = np.exp(tables["log_q"]) * self.acceptance(tables)
        np.fill_diagonal(K, 0)
        np.fill_diagonal(K, 1 - K.sum(1))
        return K

    def conditional(self, z: Any) -> np.ndarray:
        r"""p(s | z) ∝ exp(f(s) + ½ s·(z + u(s))), u(s) = condition(z, s) = z - Ms: what a step at fixed z leaves invariant.

        It follows from u ~ N(0, M): log p(z | s) = -½ uᵀM⁻¹u = z·s - ½ sᵀMs + const.
        """
        pull = np.asarray(z) + np.asarray(self.noise_at(z))
        return _softmax(np.asarray(self.f) + 0.5 * np.sum(self.embedded() * pull, axis=1))

    def embedded(self) -> np.ndarray:
        """(N, n) the states as log_prob sees them, ravelled."""
        return np.asarray(embedded(self.target.space, self.codes))


def forget() -> None:
    """Compile anew, with the methods that kernels have now."""
    for each in (_points, _noises, _auxiliaries, _tables):
        each.forget()


@program(once=True, static_argnums=0)
def embedded(space: Space, codes: jax.Array) -> jax.Array:
    """(..., n) what log_prob sees at codes (..., d), ravelled."""
    return space.ravel(space.embed(codes))


def _softmax(f: np.ndarray) -> np.ndarray:
    f[~(f < np.inf)] = -np.inf
    return np.exp(f - scipy.special.logsumexp(f))
