"""The claim that f is quadratic, and the same bound to a space."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._fusion import total
from .._record import as_float, changed, default_float, is_concrete, record
from ..errors import TargetError
from ..preconditioners import Preconditioner, Shifted, Sparse, symmetric
from ..spaces import Space


@record
class Quadratic:
    r"""f(s) = constant + sum_i φ_i(s_i) + b·s + ½ sᵀHs, with s ravelled: b (n,), H (n, n) or `Sparse`, φ (d, k) tables.

    potentials: the tables φ; none unless given.
    """

    b: Any
    H: Any
    potentials: Any = None
    constant: Any = 0.0

    def bind(self, space: Space) -> SiteQuadratic:
        """Move the on-site part of H and b into site potentials: f = constant + sum_i φ_i(s_i) + ½ sᵀ(H off-site)s."""
        if not hasattr(space, "values"):  # sites of a product have no table in common
            raise TargetError(
                "Quadratic does not know products of spaces yet.",
                expected="a space whose sites all have the same values",
                found=str(space),
                hint="leave the structure out: every sampler but BlockGibbs works without it",
            )
        d, k, n = space.num_sites, space.num_values, space.size
        b = _fitting(self.b, "b", (n,)).reshape(d, -1)
        values = jnp.asarray(space.values.reshape(k, -1), default_float())
        on_site, coupling = _split(self.H, d, n)
        linear = jnp.matmul(b, values.T, precision="highest")
        potentials = linear + 0.5 * jnp.einsum("kl,dlm,km->dk", values, on_site, values, precision="highest")
        if self.potentials is not None:
            potentials = potentials + _fitting(self.potentials, "potentials", (d, k))
        return SiteQuadratic(potentials, coupling, _fitting(self.constant, "constant", ()))


@record
class BoundQuadratic:
    """A quadratic f on its space: potentials φ (d, k), and a coupling H without on-site part, to multiply by."""

    potentials: jax.Array
    coupling: Preconditioner
    constant: jax.Array

    def bind(self, space: Space) -> BoundQuadratic:
        """It is bound already."""
        return self

    def scaled(self, beta: Any) -> Any:
        """That of β f."""
        return type(self)(beta * self.potentials, self.coupling.scaled(beta), beta * self.constant)

    def value(self, space: Space, codes: jax.Array, Hs: jax.Array) -> jax.Array:
        s = space.ravel(space.embed(codes))
        if self.potentials.shape[1] == 2:  # a choice, not a gather
            chosen = jnp.where(codes == 0, self.potentials[:, 0], self.potentials[:, 1])
        else:
            chosen = jnp.take_along_axis(self.potentials, codes[:, None], axis=1)[:, 0]
        return self.constant + total(chosen + 0.5 * space.per_site(s * Hs))


@record
class SiteQuadratic(BoundQuadratic):
    """One whose coupling is a preconditioner with noise of its own."""


def _fitting(given: Any, name: str, shape: tuple[int, ...]) -> jax.Array:
    array = as_float(given, name, TargetError)
    if array.shape not in ((), shape):
        raise TargetError(f"`{name}` does not fit the space.", expected=f"a number, or shape {shape}", found=f"shape {array.shape}")
    return jnp.broadcast_to(array, shape)


def _split(H: Any, d: int, n: int) -> tuple[jax.Array, Preconditioner]:
    """(d, m, m) blocks of H that couple a site to itself, and the rest."""
    m = n // d
    if isinstance(H, Sparse):
        if H.size != n:
            raise TargetError("`H` does not fit the space.", expected=f"size {n}", found=f"size {H.size}")
        edges = H.edges.edges
        if is_concrete(edges) and (np.diff(np.asarray(edges) * H.copies // m, axis=1) == 0).any():
            raise TargetError("H couples a site to itself.", expected="edges between sites", hint="put it into `potentials`")
        blocks = jax.vmap(jnp.diag)(H.diagonal.reshape(d, m))
        return blocks, changed(H, diagonal=jnp.zeros_like(H.diagonal))
    H = as_float(H, "H", TargetError)
    if H.shape != (n, n):
        raise TargetError("`H` does not fit the space.", expected=f"shape ({n}, {n})", found=f"shape {H.shape}")
    H = symmetric(H, "`H`", TargetError)
    same = jnp.asarray(np.kron(np.eye(d, dtype=bool), np.ones((m, m), bool)))
    blocks = H.reshape(d, m, d, m)[np.arange(d), :, np.arange(d), :]
    return blocks, Shifted(jnp.where(same, 0, H))
