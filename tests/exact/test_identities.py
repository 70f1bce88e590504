"""Identities and limits of the samplers: what must agree with what."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from grid import SPACES, THREE_SPACES, indefinite, low_rank, mostly, sparse

import saltus
from saltus.moves import Flips, Tables
from saltus.structure import SiteQuadratic
from saltus.testing import quadratic, rugged, stationary, transition_matrix
from saltus.testing.enumeration import Enumeration


@pytest.fixture(autouse=True)
def x64():
    with jax.enable_x64(True):
        yield


def points(kernel, target, num=6, seed=0):
    codes, init = jax.jit(jax.vmap(target.space.random))(jax.random.split(jax.random.key(seed), num)), jax.jit(kernel.init)
    return [init(target, c) for c in codes]


# ---- 8.3 the simplified ratio is the printed one -------------------------------------------------------------------


def printed_log_ratio(target, x, y, n, A, sigma, shift):
    """f' - f + Gaussian ratio + proposal ratio, with z = A s + n, written out naively."""
    f, g = target.log_prob_of, jax.grad(target.log_prob_of)
    s, t = (np.asarray(target.space.embed(p.codes)) for p in (x, y))
    values = np.asarray(target.space.values)
    z = A @ s + n

    def log_q(new, old):
        linear = np.asarray(g(jnp.asarray(old))) - sigma @ old + A.T @ z
        logits = linear[:, None] * values - shift / 2 * values**2
        return np.sum(linear * new - shift / 2 * new**2 - scipy.special.logsumexp(logits, axis=1))

    def log_normal(old):
        return -0.5 * np.sum((z - A @ old) ** 2)

    return float(f(jnp.asarray(t)) - f(jnp.asarray(s))) + log_normal(t) - log_normal(s) + log_q(s, t) - log_q(t, s)


def roots(sigma_eps):
    e, Q = np.linalg.eigh(sigma_eps)
    yield Q @ np.diag(np.sqrt(np.maximum(e, 0))) @ Q.T
    if e.min() > 1e-9:
        yield np.linalg.cholesky(sigma_eps).T


@pytest.mark.parametrize("space", [SPACES["binary"], SPACES["ordinal"]], ids=str)
@pytest.mark.parametrize("kind", mostly(["zero", "positive", "indefinite", "singular"], "indefinite", "singular"))
@pytest.mark.parametrize("eps", mostly({"0.001": 1e-3, "0.2": 0.2, "1000.0": 1000.0}, "0.001", "1000.0"))
def test_simplified_ratio_is_the_printed_one(space, kind, eps):
    A = indefinite(space)
    v = np.linalg.eigh(A)[1][:, :1]
    sigma = {"zero": 0 * A, "positive": A @ A.T + np.eye(len(A)), "indefinite": A, "singular": v @ v.T}[kind]
    kernel, target = saltus.PAVG(eps, sigma), rugged(space)
    shift = float(np.max(np.asarray(kernel.preconditioner.shift(kernel.scale, 2 / kernel.step_size))))
    assert shift == pytest.approx(max(0, -np.linalg.eigvalsh(sigma).min()) + 2 / eps, abs=1e-12)
    x, *others = points(kernel, target)
    for root in roots(sigma + shift * np.eye(len(sigma))):
        for y in others:
            n = np.random.default_rng(1).normal(size=len(sigma))
            used = float(kernel.log_ratio(target, x, y, jnp.asarray(root.T @ n)))
            assert used == pytest.approx(printed_log_ratio(target, x, y, n, root, sigma, shift), abs=1e-10, rel=1e-10)


# ---- 8.4 and 8.14: special cases of each other ---------------------------------------------------------------------


def run(kernel, target, codes, steps=5, seed=7):
    """Codes and acceptance of a few steps of many chains, all kernels with the same keys."""

    def one(x, key):
        x, info = jax.vmap(lambda k, x: kernel.step(k, target, x))(jax.random.split(key, len(codes)), x)
        return x, (x.codes, info.acceptance_rate)

    def walk(codes):
        start = jax.vmap(lambda c: kernel.init(target, c))(codes)
        return jax.lax.scan(one, start, jax.random.split(jax.random.key(seed), steps))[1]

    return jax.jit(walk)(codes)


def chains(space, num=64):
    return jax.jit(jax.vmap(space.random))(jax.random.split(jax.random.key(5), num))


@pytest.mark.parametrize("space", mostly(SPACES, "ordinal"))
def test_pavg_without_a_preconditioner_is_avg(space):
    target, codes = rugged(space), chains(space)
    expected, rates = run(saltus.AVG(0.6), target, codes)
    n = space.size
    for sigma in (np.zeros((n, n)), saltus.Diagonal(np.zeros(n))):
        used, used_rates = run(saltus.PAVG(0.6, sigma), target, codes)
        np.testing.assert_array_equal(used, expected)
        np.testing.assert_allclose(used_rates, rates, atol=1e-12)


def off_site(H, space):
    m = space.size // space.num_sites
    return np.where(np.kron(np.eye(space.num_sites), np.ones((m, m))) > 0, 0, H)


@pytest.mark.parametrize("space", mostly(SPACES, "binary", "one-hot"))
def test_pavg_accepts_every_move_of_a_quadratic_target(space):
    target = quadratic(space)
    H = np.asarray(target.params["H"])
    for differences, sigma in (("gradient", H), ("exact", off_site(H, space))):
        informed = target.replace(differences=differences)
        every = Enumeration(saltus.PAVG(0.5, sigma), informed)
        z = every.auxiliaries(jax.random.key(1), 1)[0]
        assert np.abs(every.tables(every.noise_at(z))["log_ratio"]).max() < 1e-12
    twice = Enumeration(saltus.PAVG(0.5, H), target.replace(differences="exact"))
    z = twice.auxiliaries(jax.random.key(1), 1)[0]
    assert np.abs(twice.tables(twice.noise_at(z))["log_ratio"]).max() > 0.1  # on-site curvature counted twice


@pytest.mark.parametrize("space", mostly(SPACES, "ordinal", "one-hot"))
def test_pavg_with_the_hessian_is_block_gibbs(space):
    target = quadratic(space, differences="exact")
    coupling = target.find(SiteQuadratic).coupling  # the same root, so that the same normals give the same noise
    codes = chains(space)
    expected, _ = run(saltus.BlockGibbs(float(coupling.least) + 2 / 0.5), target, codes)
    used, rates = run(saltus.PAVG(0.5, coupling), target, codes)
    np.testing.assert_array_equal(used, expected)
    np.testing.assert_allclose(rates, 1, atol=1e-9)


# ---- 8.5 coordinates -------------------------------------------------------------------------------------------------


def binary_twin(spin_target):
    """The same distribution on {0, 1}: f_bin(s) = f_spin(2s - 1)."""

    def log_prob(params, s):
        return spin_target.log_prob(params, 2 * s - 1)

    return saltus.Target(log_prob, saltus.Binary(spin_target.space.num_sites), spin_target.params)


@pytest.mark.parametrize("kind", mostly(["NCG", "AVG", "PAVG", "PAVG-covariance", "GWG"], "NCG", "PAVG-covariance"))
def test_spin_and_binary_chains_are_the_same(kind):
    spin = rugged(saltus.Spin(4))
    binary, codes, M = binary_twin(spin), chains(spin.space), indefinite(spin.space)
    eps = 0.3
    pairs = {
        "NCG": (saltus.NCG(4 * eps), saltus.NCG(eps)),
        "AVG": (saltus.AVG(4 * eps), saltus.AVG(eps)),
        "PAVG": (saltus.PAVG(4 * eps, M), saltus.PAVG(eps, 4 * M)),
        # M a covariance: M_spin = 4 M_bin, and then γ_spin = γ_bin / 16
        "PAVG-covariance": (saltus.PAVG(4 * eps, 4 * M, scale=0.5), saltus.PAVG(eps, M, scale=8.0)),
        "GWG": (saltus.GWG(), saltus.GWG()),
    }
    (a, rate_a), (b, rate_b) = run(pairs[kind][0], spin, codes), run(pairs[kind][1], binary, codes)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(rate_a, rate_b, atol=1e-12)


@pytest.mark.parametrize("kind", ["NCG", "AVG"])
def test_two_categories_are_a_binary_site_at_half_the_step(kind):
    space = saltus.Categorical(3, 2)
    one_hot = rugged(space)

    def as_binary(params, s):
        return one_hot.log_prob(params, jnp.stack([1 - s, s], axis=1))

    binary = saltus.Target(as_binary, saltus.Binary(3), one_hot.params)
    kernel = getattr(saltus, kind)
    wide, narrow = Enumeration(kernel(0.8), one_hot), Enumeration(kernel(0.4), binary)
    noise = jax.random.normal(jax.random.key(0), (8, 3, 2)) if kind == "AVG" else None
    difference = None if noise is None else noise[..., 1] - noise[..., 0]
    a = wide.tables(None if noise is None else noise.reshape(8, -1))
    b = narrow.tables(difference)
    np.testing.assert_allclose(a["log_q"], b["log_q"], atol=1e-12)
    np.testing.assert_allclose(a["log_ratio"], b["log_ratio"], atol=1e-12)


def test_flips_are_tables_of_two_values():
    codes = jnp.array([0, 1, 1, 0], jnp.int32)
    scores = jnp.array([0.3, -2.0, 5.0, -jnp.inf])
    flips = Flips(codes, scores)
    columns = jnp.stack([jnp.where(codes == 0, 0, scores), jnp.where(codes == 1, 0, scores)])
    tables = Tables(codes, columns)
    for new in saltus.Binary(4).enumerate():
        np.testing.assert_allclose(flips.log_prob(new), tables.log_prob(new), atol=1e-14)
        finite = Flips(codes, jnp.array([0.3, -2.0, 5.0, -1.0]))
        seen = finite.recentre(new)
        np.testing.assert_allclose(seen.at(codes), -finite.at(new), atol=1e-14)


# ---- 8.6 limits -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", mostly(SPACES, "ordinal", "one-hot"))
@pytest.mark.parametrize("kind", mostly(["NCG", "AVG", "PAVG"], "NCG", "AVG"))
def test_a_tiny_step_never_moves_and_a_huge_one_forgets_the_distance(space, kind):
    target = rugged(space)
    make = {"NCG": saltus.NCG, "AVG": saltus.AVG, "PAVG": lambda eps: saltus.PAVG(eps, 0 * indefinite(space))}[kind]
    codes, rates = run(make(1e-6), target, chains(space))
    assert (np.asarray(codes) == np.asarray(codes[0])).all()
    np.testing.assert_allclose(rates, 1)
    kernel = make(1e9)
    x = points(kernel, target)[0]
    noise = None if kind == "NCG" else jnp.zeros(space.size)
    proposal = kernel.propose(target, x, noise)
    g = jax.grad(target.log_prob_of)(space.embed(x.codes)).reshape(space.num_sites, -1)
    weight = 0.5 if kind == "NCG" else 1.0
    scores = weight * g @ jnp.asarray(space.values.reshape(space.num_values, -1)).T
    sites = jnp.arange(space.num_sites)
    for new in space.enumerate()[::7]:
        expected = jnp.sum(jax.nn.log_softmax(scores, axis=1)[sites, new])
        np.testing.assert_allclose(proposal.log_prob(new), expected, atol=1e-6)


def test_ncg_on_a_fine_grid_is_mala():
    """Proposal mean s + εg/2 and variance ε."""
    space = saltus.Ordinal(1, np.linspace(-8, 8, 3201))
    target = saltus.Target(lambda s: -0.5 * jnp.sum((s - 1.0) ** 2), space)
    eps = 0.05
    kernel = saltus.NCG(eps)
    x = kernel.init(target, jnp.array([1700], jnp.int32))
    values, s = np.asarray(space.values), float(space.embed(x.codes)[0])
    moves = kernel.propose(target, x).moves
    q = np.exp(np.asarray(jax.vmap(lambda c: moves.log_prob(c[None]))(jnp.arange(3201, dtype=jnp.int32))))
    mean = np.sum(q * values)
    assert mean == pytest.approx(s + eps * (1 - s) / 2, abs=1e-6)
    assert np.sum(q * (values - mean) ** 2) == pytest.approx(eps, rel=1e-4)


# ---- 8.7 and 8.14: boundaries, roots of Σ ---------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1, 5])
def test_extreme_radii_are_exact_with_mass_at_both_ends(radius):
    space = saltus.Ordinal(2, range(6))
    target = saltus.Target(lambda s: jnp.sum((s - 2.5) ** 2) * 0.3 + 0.2 * s[0] * s[1] / 5, space)
    p = stationary(target)
    assert p[0] + p[-1] > 0.1
    for kernel in (saltus.GWG(radius), saltus.UniformMH(radius)):
        np.testing.assert_allclose(p @ transition_matrix(kernel, target), p, atol=1e-12)


@pytest.mark.parametrize("space", THREE_SPACES)
@pytest.mark.parametrize("form", ["Dense", "Diagonal", "LowRank", "Sparse"])
@pytest.mark.parametrize("scale", [1.0, -0.7])
def test_every_form_of_sigma_colours_its_noise_right(space, form, scale):
    """AᵀA = γΣ + diag(d), by applying the linear map to the identity; and the same ΣΔ as the matrix written out."""
    M = {
        "Dense": lambda: saltus.Dense(indefinite(space)),
        "Diagonal": lambda: saltus.Diagonal(np.random.default_rng(0).normal(size=space.size)),
        "LowRank": lambda: low_rank(space),
        "Sparse": lambda: sparse(space),
    }[form]()
    gamma, slack = jnp.asarray(scale), jnp.asarray(0.4)
    A = jax.vmap(lambda n: M.colour(n, gamma, slack))(jnp.eye(M.num_normals))
    shift = np.broadcast_to(np.asarray(M.shift(gamma, slack)), (space.size,))
    written = np.asarray(M.matrix())
    np.testing.assert_allclose(written, written.T, atol=1e-12)
    np.testing.assert_allclose(A.T @ A, scale * written + np.diag(shift), atol=1e-12)
    assert np.linalg.eigvalsh(scale * written + np.diag(shift)).min() >= 0.4 - 1e-9
    v = np.random.default_rng(1).normal(size=space.size)
    np.testing.assert_allclose(M.matvec(jnp.asarray(v)), written @ v, atol=1e-12)
    assert (shift >= 0.4).all()


def test_forms_of_the_same_sigma_agree():
    edges, weights, diagonal = [(0, 1), (1, 2), (0, 3)], [0.5, -0.8, 0.3], [0.2, -0.1, 0.0, 1.5]
    S = np.diag(diagonal).astype(float)
    for (i, j), w in zip(edges, weights, strict=True):
        S[i, j] = S[j, i] = w
    e, V = np.linalg.eigh(S)
    for form in (saltus.Dense(S), saltus.Sparse(edges, weights, diagonal), saltus.LowRank(np.zeros(4), V, e)):
        np.testing.assert_allclose(form.matrix(), S, atol=1e-12)
    copies = saltus.Sparse(edges, weights, np.repeat(diagonal, 3), copies=3)
    np.testing.assert_allclose(copies.matrix(), np.kron(S, np.eye(3)), atol=1e-12)


def test_a_hub_does_not_pad_every_site():
    d = 1000
    star = saltus.Sparse([(0, i) for i in range(1, d)], 1.0, size=d)
    assert sum(edge.size for edge, *_ in star.edges.buckets) < 4 * d
    v = np.arange(d, dtype=float)
    expected = np.concatenate([[v[1:].sum()], np.zeros(d - 1)])
    np.testing.assert_allclose(star.matvec(jnp.asarray(v)), expected)
