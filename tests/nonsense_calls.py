"""Every public callable with a valid call of it, every kind of nonsense, and what comes of putting one into the other.

`CALLS` has the valid calls. A new public function adds a line there, or to `EXEMPT` with the reason; a test sees to that.
"""

import contextlib
import importlib
import inspect
import io
import pathlib
import signal
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax._src import compiler

import saltus
from saltus import diagnostics, targets, testing, training

SECONDS = 60  # the longest that any call may take
MODULES = ("", "targets", "training", "testing", "diagnostics", "datasets")

# name: what makes it. Made anew for every call: some of them can be used up.
NONSENSE = {
    "None": lambda: None,
    "True": lambda: True,
    "minus one": lambda: -1,
    "zero": lambda: 0,
    "three": lambda: 3,
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "huge": lambda: 10**30,
    "complex": lambda: 1j,
    "word": lambda: "nonsense",
    "empty word": lambda: "",
    "NUL": lambda: "a\0b",
    "bytes": lambda: b"nonsense",
    "empty list": lambda: [],
    "numbers": lambda: [1, 2],
    "words": lambda: ["a", "b"],
    "ragged": lambda: [[1, 2], [3]],
    "list of None": lambda: [None],
    "tuple of lists": lambda: ([1], [2, 3]),
    "empty dict": lambda: {},
    "dict": lambda: {"a": 1},
    "dict by number": lambda: {1: "a"},
    "set": lambda: {1},
    "object": lambda: object(),
    "function": lambda: lambda: 0,
    "function of anything": lambda: lambda *args, **kwargs: None,
    "failing function": lambda: lambda *args: 1 / 0,
    "class": lambda: int,
    "module": lambda: pathlib,
    "exception": lambda: ValueError("x"),
    "range": lambda: range(3),
    "generator": lambda: (i for i in range(3)),
    "slice": lambda: slice(3),
    "Ellipsis": lambda: ...,
    "path": lambda: pathlib.Path("no/such/place"),
    "empty array": lambda: np.zeros(0),
    "scalar array": lambda: np.array(2.0),
    "matrix": lambda: np.arange(6.0).reshape(2, 3),
    "cube": lambda: np.zeros((2, 2, 2)),
    "NaN array": lambda: np.full(4, np.nan),
    "infinite array": lambda: np.full(4, np.inf),
    "array of words": lambda: np.array(["a", "b"]),
    "array of objects": lambda: np.array([None, {}], dtype=object),
    "dates": lambda: np.array(["2026-01-01"], "datetime64[D]"),
    "complex array": lambda: np.ones(4) * 1j,
    "bools": lambda: np.array([True, False, True, False]),
    "jax array": lambda: jnp.arange(4),
    "jax matrix": lambda: jnp.ones((2, 3)),
    "key": lambda: jax.random.key(0),
    "space": lambda: saltus.Binary(3),
    "target": lambda: TARGET,
    "kernel": lambda: saltus.UniformMH(1),
    "kernel class": lambda: saltus.NCG,
}


def _log_prob(s):
    return 0.3 * jnp.sum(s[1:] * s[:-1])


SPACE = saltus.Spin(4)
TARGET = saltus.Target(_log_prob, SPACE)
LEARNED = saltus.Target(lambda w, s: w * jnp.sum(s), saltus.Binary(3), jnp.asarray(0.1))
CODES = np.random.default_rng(0).integers(2, size=(2, 8, 4))
TALLY = diagnostics.Tally.empty(SPACE, 2).add(CODES)
MOMENTS = testing.exact_moments(TARGET)
DATA = np.random.default_rng(1).integers(2, size=(20, 3))
SERIES = np.random.default_rng(2).normal(size=(3, 50))
GIBBS = saltus.Gibbs()
REGRESSION = np.random.default_rng(3).normal(size=(9, 3)), np.random.default_rng(4).normal(size=9)
RUN = dict(num_draws=4, num_warmup=4, num_chains=2, thin=1, seed=0, initial=None, keep="draws", keep_warmup=False)
TRAIN = dict(
    num_updates=2, num_steps=1, batch_size=5, retune=False, seed=0, progress=False, penalty=None, average=None, trainable=None
)


def a_run():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return saltus.sample(TARGET, GIBBS, progress=False, **RUN)


H = 0.3 * (np.eye(4, k=1) + np.eye(4, k=-1))


def calls(folder):
    """{name: (callable, valid arguments)}; folder: an empty one to write into."""
    sample_options = dict(progress=False, time_limit=None, checkpoint=None, checkpoint_every=10.0, store=None, overwrite=False)
    train = dict(TRAIN, sampler=GIBBS, optimiser=optax.sgd(0.1), time_limit=None, checkpoint=None, checkpoint_every=10.0)
    train |= dict(stop_on_divergence=True, overwrite=False, change=None, callback=None, log=None, report_every=100)
    run = a_run()
    saltus.sample(TARGET, GIBBS, progress=False, **RUN, checkpoint=folder / "run.ckpt")
    training.pcd(LEARNED, DATA, **TRAIN, sampler=GIBBS, optimiser=optax.sgd(0.1), buffer_size=10, checkpoint=folder / "t.ckpt")
    edges, key = [(0, 1), (1, 2), (2, 3)], jax.random.key(0)
    return {
        "AVG": (saltus.AVG, dict(step_size=0.5, momentum=0.0, over_relaxed=False)),
        "Cycle": (saltus.Cycle, dict(parts=[GIBBS])),
        "Exchange": (saltus.Exchange, {}),
        "JumpProcess": (saltus.JumpProcess, dict(balance="sqrt")),
        "Mixture": (saltus.Mixture, dict(parts=[GIBBS], weights=[1.0])),
        "PAS": (saltus.PAS, dict(radius=2)),
        "SwendsenWang": (saltus.SwendsenWang, dict(coupling=None)),
        "TGS": (saltus.TGS, dict(weighting="even", size=5.0)),
        "Tempered": (saltus.Tempered, dict(kernel=GIBBS, ladder=[0.0, 0.5, 1.0], reference=None)),
        "find_ladder": (saltus.find_ladder, dict(target=TARGET, kernel=GIBBS, seed=0, initial=None, reference=None)),
        "log_z": (saltus.log_z, dict(target=TARGET, seed=0, kernel=GIBBS, num_ladders=8, num_steps=10)),
        "lattice_observables": (saltus.lattice_observables, dict(run=run, shape=(2, 2), periodic=True, distances=1)),
        "log_likelihood": (saltus.log_likelihood, dict(target=TARGET, data=np.ones((2, 4)), log_z=1.0, seed=0)),
        "optimise": (
            saltus.optimise,
            dict(target=TARGET, seconds=None, seed=0, steps=3, kernel=GIBBS, num_chains=2, initial=None),
        ),
        "observables": (saltus.observables, dict(run=run, functions={"sum": jnp.sum})),
        "report": (saltus.report, dict(run=run, path=folder / "report.html", overwrite=True)),
        "save": (saltus.save, dict(run=run, path=folder / "saved.nc", overwrite=True)),
        "citation": (saltus.citation, dict(run=run)),
        "status": (saltus.status, dict(path=folder / "run.ckpt")),
        "verify": (saltus.verify, dict(path=folder / "run.ckpt")),
        "GWG": (saltus.GWG, dict(radius=1)),
        "NCG": (saltus.NCG, dict(step_size=0.5, gradient_weight=0.5, penalty=1.0)),
        "PAVG": (saltus.PAVG, dict(step_size=0.5, preconditioner=np.eye(4), scale=1.0, momentum=0.0, over_relaxed=False)),
        "UniformMH": (saltus.UniformMH, dict(radius=1)),
        "BlockGibbs": (saltus.BlockGibbs, dict(shift=None)),
        "Gibbs": (saltus.Gibbs, dict(scan="random")),
        "Informed": (saltus.Informed, dict(kernel=saltus.NCG(0.5), differences="exact")),
        "Binary": (saltus.Binary, dict(d=3)),
        "Spin": (saltus.Spin, dict(d=3)),
        "Categorical": (saltus.Categorical, dict(d=3, k=3)),
        "Clock": (saltus.Clock, dict(d=3, k=3)),
        "Ordinal": (saltus.Ordinal, dict(d=3, values=[0.0, 1.0, 2.0])),
        "Product": (saltus.Product, dict(z=saltus.Binary(2), n=saltus.Ordinal(1, [0.0, 2.0]))),
        "Space": (saltus.Space, dict(num_sites=3, values=[0.0, 1.0], labels=[0, 1], description="mine")),
        "Dense": (saltus.Dense, dict(array=np.eye(4))),
        "Diagonal": (saltus.Diagonal, dict(entries=np.ones(4))),
        "LowRank": (saltus.LowRank, dict(diagonal=np.ones(4), factor=np.ones((4, 2)), weights=np.ones(2))),
        "Sparse": (saltus.Sparse, dict(edges=edges, weights=1.0, diagonal=0.0, size=4, copies=1)),
        "Graph": (saltus.Graph, dict(neighbours=[[1], [0, 2], [1]], colours=None)),
        "Graph.from_edges": (saltus.Graph.from_edges, dict(edges=edges, num_sites=4, colours=None)),
        "Quadratic": (_quadratic, dict(b=np.zeros(4), H=H, potentials=None, constant=0.0)),
        "Differences": (_differences, dict(fn=lambda params, s, codes: jnp.zeros((4, 2)), exact=False)),
        "Target": (
            saltus.Target,
            dict(log_prob=_log_prob, space=SPACE, params=None, differences="gradient", structure=None)
            | dict(names=None, initial=None, truth=None, verify=True),
        ),
        "Target.replace": (TARGET.replace, dict(differences="exact", names=None)),
        "Space.encode": (SPACE.encode, dict(x=np.ones(4))),
        "Space.show": (SPACE.show, dict(codes=np.zeros(4, int))),
        "Space.embed": (SPACE.embed, dict(codes=np.zeros(4, int))),
        "Space.check_codes": (SPACE.check_codes, dict(codes=np.zeros(4, int))),
        "Kernel.init": (saltus.UniformMH(1).init, dict(target=TARGET, codes=np.zeros(4, int), key=key)),
        "evaluate": (saltus.evaluate, dict(target=TARGET, codes=np.zeros(4, int))),
        "check": (
            saltus.check,
            dict(target=TARGET, seed=0, initial=None, num_states=2, num_moves=2, num_steps=2, small=True),
        ),
        "compare": (
            saltus.compare,
            dict(targets=TARGET, kernels=[GIBBS], num_chains=2, num_warmup=1, repeats=2, seconds=0.01, num_steps=16)
            | dict(most_rhat=1.05, seed=0, progress=False),
        ),
        "kernel_of": (saltus.kernel_of, dict(run=run)),
        "race_of": (saltus.race_of, dict(run=run)),
        "summary": (saltus.summary, dict(run=run, sites=3)),
        "open": (saltus.open, dict(path=folder / "nothing.zarr")),
        "resume": (
            saltus.resume,
            dict(path=folder / "run.ckpt", target=TARGET, num_draws=None, keep=None, progress=False)
            | dict(time_limit=None, checkpoint_every=10.0, store=None),
        ),
        "sample": (saltus.sample, dict(target=TARGET, sampler=GIBBS, adaptation="default", **RUN, **sample_options)),
        "tune": (
            saltus.tune,
            dict(target=TARGET, sampler="uniform_mh", seed=0, initial=None, adaptation="default", time_limit=None),
        ),
        "variable_selection": (
            saltus.variable_selection,
            dict(X=REGRESSION[0], y=REGRESSION[1], prior="g", model_prior="uniform", names=None, seed=0, progress=False)
            | dict(method="enumerate", prior_value=None, expected_size=None, max_size=None, forced=None, intercept=True)
            | dict(error=0.1, num_chains=2, max_steps=100, time_limit=None),
        ),
        "random.seeds": (saltus.random.seeds, dict(seed=0, num=3)),
        "targets.conv_ebm": (targets.conv_ebm, dict(params=None, width=2, seed=0)),
        "targets.conv_ebm_params": (targets.conv_ebm_params, dict(width=2, seed=0)),
        "targets.clock": (targets.clock, dict(shape_or_graph=(3, 3), num_states=3, coupling=0.3, field=0.0, periodic=True)),
        "targets.edwards_anderson": (
            targets.edwards_anderson,
            dict(shape=(3, 3), beta=1.0, disorder="gaussian", field=0.0, periodic=True, seed=0),
        ),
        "targets.ising": (targets.ising, dict(shape_or_graph=(3, 3), coupling=0.3, field=0.0, periodic=True)),
        "targets.lattice": (targets.lattice, dict(shape=(3, 3), periodic=True)),
        "targets.potts": (targets.potts, dict(shape_or_graph=(3, 3), num_states=3, coupling=0.3, field=0.0, periodic=True)),
        "targets.triangular": (targets.triangular, dict(shape=(3, 3), periodic=True)),
        "targets.kaufman_log_z": (targets.kaufman_log_z, dict(shape=(4, 4), coupling=0.3)),
        "targets.kaufman_edge_correlation": (targets.kaufman_edge_correlation, dict(shape=(4, 4), coupling=0.3)),
        "targets.polynomial_mixture": (targets.polynomial_mixture, dict(order=2, num_sites=3)),
        "targets.third_order": (
            targets.third_order,
            dict(alpha=0.1, shape=(3, 3), coupling=0.4, num_triples=5, seed=0, field=None, periodic=True, triples=None),
        ),
        "targets.sparse_regression": (
            targets.sparse_regression,
            dict(
                X=np.random.default_rng(0).normal(size=(10, 3)), y=np.arange(10.0), num_copies=2, num_appended=None, seed=0, g=None
            )
            | dict(penalty=0.001, inclusion=(0.001, 10.0), noise=(0.1, 0.1), appended_probability=0.001, differences="gradient"),
        ),
        "training.L1": (_l1, dict(weight=0.1, of=lambda w: w, symmetric=False, learning_rate=None)),
        "training.ais": (
            training.ais,
            dict(target=TARGET, kernel=GIBBS, num_temperatures=3, num_chains=2, seed=0, time_limit=None, samples=None, base=None),
        ),
        "training.cd": (training.cd, dict(target=LEARNED, data=DATA, **train)),
        "training.pcd": (
            training.pcd,
            dict(target=LEARNED, data=DATA, **train, buffer_size=10, buffer="uniform", visits="slices", reinitialise=0.0),
        ),
        "training.data_covariance": (training.data_covariance, dict(space=LEARNED.space, data=DATA)),
        "training.Energy": (training.Energy, dict(weight=0.1)),
        "training.history": (training.history, dict(path=folder / "t.ckpt")),
        "training.log_likelihood": (
            training.log_likelihood,
            dict(model=LEARNED, data=DATA, base=None, samples=None, num_temperatures=3, num_chains=4, seed=0),
        ),
        "training.mmd": (training.mmd, dict(x=DATA, y=DATA[:5])),
        "training.picture": (training.picture, dict(states=DATA, shape=(1, 3), path=None, columns=2, scale=1, overwrite=False)),
        "training.load": (training.load, dict(path=folder / "t.ckpt", target=LEARNED)),
        "training.tempered": (training.tempered, dict(target=TARGET, beta=0.5)),
        "testing.check_kernel": (
            testing.check_kernel,
            dict(kernel=saltus.UniformMH(1), target_or_space=saltus.Binary(2), seed=0, num_chains=None, battery=False),
        ),
        "testing.check_space": (testing.check_space, dict(space=saltus.Binary(2), seed=0)),
        "testing.enumerate_states": (testing.enumerate_states, dict(target_or_space=SPACE)),
        "testing.exact_moments": (testing.exact_moments, dict(target=TARGET)),
        "testing.quadratic": (testing.quadratic, dict(space=SPACE, seed=0, differences="gradient")),
        "testing.rugged": (testing.rugged, dict(space=SPACE, seed=0, differences="gradient")),
        "testing.stationary": (testing.stationary, dict(target=TARGET)),
        "testing.transition_matrix": (testing.transition_matrix, dict(kernel=saltus.UniformMH(1), target=TARGET, z=None)),
        "diagnostics.DistanceSeries": (diagnostics.DistanceSeries, dict(space=SPACE, reference=CODES[0, 0], capacity=64)),
        "diagnostics.DistanceSeries.add": (diagnostics.DistanceSeries(SPACE, CODES[0, 0]).add, dict(codes=CODES)),
        "diagnostics.Tally.empty": (diagnostics.Tally.empty, dict(space=SPACE, num_chains=2)),
        "diagnostics.Tally.add": (TALLY.add, dict(codes=CODES)),
        "diagnostics.acceptance_by_changes": (
            diagnostics.acceptance_by_changes,
            dict(changed_sites=np.array([1, 2, 3]), accepted=np.array([True, False, True])),
        ),
        "diagnostics.autocorrelation_time": (diagnostics.autocorrelation_time, dict(x=SERIES)),
        "diagnostics.ess": (diagnostics.ess, dict(x=SERIES)),
        "diagnostics.ess_of_chains": (diagnostics.ess_of_chains, dict(x=SERIES)),
        "diagnostics.split_rhat": (diagnostics.split_rhat, dict(x=SERIES)),
        "diagnostics.covariance_error": (diagnostics.covariance_error, dict(tally=TALLY, covariance=MOMENTS.covariance)),
        "diagnostics.distance": (diagnostics.distance, dict(space=SPACE, codes=CODES, reference=CODES[0, 0])),
        "diagnostics.distance_ess": (diagnostics.distance_ess, dict(codes_or_series=CODES, space=SPACE, reference=CODES[0, 0])),
        "diagnostics.jump": (diagnostics.jump, dict(space=SPACE, codes=CODES)),
        "diagnostics.marginal_error": (diagnostics.marginal_error, dict(tally=TALLY, means=MOMENTS.means, sites=None)),
        "diagnostics.marginal_kl": (diagnostics.marginal_kl, dict(tally=TALLY, marginals=MOMENTS.marginals, direction="p||q")),
        "diagnostics.mean_and_error": (diagnostics.mean_and_error, dict(per_chain=np.arange(4.0))),
        "diagnostics.never_moving": (diagnostics.never_moving, dict(codes=CODES)),
        "diagnostics.pairwise_error": (
            diagnostics.pairwise_error,
            dict(tally=TALLY, pair_table=MOMENTS.pair_table, domain="code", sites=None),
        ),
        "datasets.digits": (saltus.datasets.digits, dict(num_train=2, num_test=2, seed=0)),
        "datasets.load": (saltus.datasets.load, dict(name="digits", path=folder)),
    }


def _quadratic(**arguments):
    return saltus.Target(_log_prob, SPACE, structure=saltus.Quadratic(**arguments))


def _differences(**arguments):
    return saltus.evaluate(saltus.Target(_log_prob, SPACE, differences=saltus.Differences(**arguments)), np.zeros(4, int))


def _l1(**arguments):
    quick = {n: v for n, v in TRAIN.items() if n != "penalty"}
    return training.pcd(LEARNED, DATA, GIBBS, optimiser=optax.sgd(0.1), buffer_size=10, penalty=training.L1(**arguments), **quick)


# Public names that are no calls of a person: what is returned, raised or derived from. Those of `saltus.extending` and
# `saltus.random` run inside jit, where nothing can be checked.
EXEMPT = {
    "errors and warnings": {name for name in saltus.__all__ if name.endswith(("Error", "Warning"))}
    | {"training.DivergenceWarning"},
    "results, filled by saltus": {
        "Info",
        "Point",
        "training.Likelihood",
        "training.LogZ",
        "training.Moment",
        "training.Trained",
        "testing.Moments",
        "testing.Report",
    }
    | {"diagnostics.AcceptanceBin", "diagnostics.Tally", "datasets.Images", "datasets.MaxCut", "datasets.Regression"},
    "a class to derive from": {"Kernel"},
    "needs blackjax: tests/bridges/test_mixed.py": {"mixed"},
    "made by variable_selection, or checked by scikit-learn when it is fitted": {"Selection", "SelectionRegressor"},
    "needs arviz: tests/bridges/test_arviz.py": {"to_inference_data"},
}


# Arguments that no person gives.
UNTRIED = {("Space.encode", "name"), ("Space.check_codes", "name")}  # what the states are called in a message


def untried(valid):
    """(callable, argument) of every argument that no valid call names: nonsense is never tried for it."""
    found = set()
    for name, (call, arguments) in valid.items():
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        own = {p.name for p in inspect.signature(call).parameters.values() if p.kind in kinds}
        found |= {(name, argument) for argument in own - set(arguments)}
    return found - UNTRIED


def public_callables():
    """Names as in `calls`."""
    found = set()
    for module in MODULES:
        home = importlib.import_module(f"saltus.{module}".rstrip("."))
        found |= {f"{module}.{name}".lstrip(".") for name in home.__all__ if callable(getattr(home, name))}
    return found


class Compiled(BaseException):
    """Something had to be compiled: this is not for the quick test."""


class Hang(BaseException):
    """It took longer than SECONDS."""


@contextlib.contextmanager
def nothing_compiled():
    """Inside, whatever has to be compiled raises Compiled."""

    def refuse(*args, **kwargs):
        raise Compiled

    before, compiler.compile_or_get_cached = compiler.compile_or_get_cached, refuse
    try:
        yield
    finally:
        compiler.compile_or_get_cached = before


@contextlib.contextmanager
def no_longer():
    def ring(*args):
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def compiled_values():
    """{kind: value} of JAX's own kinds, which cannot be made where nothing is compiled, and are never used up."""
    return {kind: NONSENSE[kind]() for kind in ("jax array", "jax matrix", "key")}


def outcome(call, arguments):
    """refused, accepted, compiles; or the raw error in words."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            with no_longer():
                call(**arguments)
            return "accepted"
        except saltus.SaltusError:
            return "refused"
        except Compiled:
            return "compiles"
        except Hang:
            return f"no end after {SECONDS} s"
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:80]}"


def one_by_one(call, valid, made):
    """(argument, kind of nonsense, outcome) of every argument and kind; made: values that had to be compiled, made before."""
    for argument in valid:
        for kind, make in NONSENSE.items():
            yield argument, kind, outcome(call, {**valid, argument: made.get(kind) if kind in made else make()})
