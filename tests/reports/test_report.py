"""`saltus.report` writes one page for any run: nothing fetched, names shown as text, small, and never a crash."""

import html.parser
import re
import time

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import saltus
from saltus.cli import main
from saltus.reporting import report_pictures as pictures
from saltus.reporting.report import page
from saltus.reporting.report_looked import MOST_DRAWS, look

pytest.importorskip("jinja2")
pytestmark = pytest.mark.filterwarnings("ignore::saltus.ConvergenceWarning")

HOSTILE = [
    "<script>alert(1)</script>",
    "</style></script><img src=x onerror=alert(2)>",
    "\"double\" 'single' & <b>bold</b>",
    "\u202ereversed",
    "\x1b[31mred",
    "x" * 5000,
    "{{ 7 * 7 }} {% raise %}",
    "\ud800 lone",
]
CHAIN = saltus.Target(lambda s: 0.2 * jnp.sum(s[1:] * s[:-1]), saltus.Binary(8), names=HOSTILE)
WEIGHTS = jnp.array(np.random.default_rng(0).normal(size=(20, 4)), jnp.float32)
LABELS = saltus.Target(lambda s: jnp.sum(WEIGHTS * s), saltus.Categorical(20, 4))


def draw(target=CHAIN, kernel=None, **settings):
    settings = {"num_draws": 100, "num_warmup": 20, "thin": 1, "seed": 1, "progress": False, **settings}
    return saltus.sample(target, kernel or saltus.NCG(0.5), **settings)


@pytest.fixture(scope="module")
def run():
    return draw()


class Page(html.parser.HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles; nesting is checked."""

    VOID = ("meta", "link", "img", "input", "br")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def sections(self):
        return [a["id"] for tag, a in self.tags if tag == "h2"]


def read(run):
    """The page of a run, after what every page must hold to."""
    text = page(run)
    found = Page(text)
    assert len(text.encode()) < 3e6
    assert not re.search(r"\bnan\b", found.text)
    assert not [a for _, a in found.tags if any(str(a.get(n, "")).startswith(("http", "//")) for n in ("src", "href"))]
    assert sum(tag == "script" for tag, _ in found.tags) == 1
    ids = [a["id"] for _, a in found.tags if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for tag, a in found.tags if tag == "a" and a["href"].startswith("#")}
    assert targets <= set(ids)
    return found


def test_what_a_report_holds(run):
    found = read(run)
    sections = ["doubts", "choice", "traces", "ranks", "marginals", "worth", "acceptance", "settings", "again"]
    assert found.sections() == sections
    s = saltus.summary(run)
    assert f"Verdict: {s.verdict}" in found.text
    for doubt in s.doubts:
        assert " ".join(pictures.cut(doubt, 2000).split()) in found.text
    assert f"jax {run.attrs['jax_version']}" in found.text
    assert "saltus.kernel_of(run)" in found.text
    names = [pictures.cut(row.name, 120) for row in s.table]  # the worst first
    places = [found.text.index(" ".join(name.split()), found.text.index("the worst first")) for name in names]
    assert places == sorted(places)


def test_hostile_names_are_text(run):
    found = read(run)
    assert "<script>alert(1)</script>" in found.text
    assert "{{ 7 * 7 }}" in found.text
    assert "49" not in [word for word in found.text.split() if word == "49"]
    raw = page(run)
    assert "\x1b" not in raw
    assert "\u202e" not in raw
    assert "\\x1b[31mred" in found.text
    assert "x" * 300 not in raw
    assert not [a for tag, a in found.tags if tag in ("b", "img") or any(name.startswith("on") for name in a)]


def incomplete(run):
    cut = run.copy()
    cut.attrs.update(complete=0, incomplete_because="time limit")
    return cut


def undefined(run):
    groups = {name: group.to_dataset() for name, group in run.children.items()}
    lp = groups["sample_stats"]["lp"].values.copy()
    lp[0, 3], lp[1, 5] = np.nan, np.inf
    groups["sample_stats"] = groups["sample_stats"].assign(lp=(("chain", "draw"), lp))
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(run.attrs)
    return tree


def empty(run):
    groups = {name: group.to_dataset() for name, group in run.children.items() if name not in ("posterior", "sample_stats")}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update({**run.attrs, "complete": 0})
    return tree


ODD = {
    "incomplete": (incomplete, ["INCOMPLETE|The run is incomplete"]),
    "undefined": (undefined, ["2 draws not finite", "Verdict: undefined"]),
    "empty": (empty, ["Verdict: too few draws"]),
    "single chain": (lambda run: draw(num_chains=1), ["One chain"]),
    "two draws": (lambda run: draw(num_draws=2), ["too few"]),
    "labels": (lambda run: draw(LABELS, saltus.GWG()), ["how often a site has each label"]),
    "statistics": (lambda run: draw(keep=("mean", "covariance")), ["kept instead of draws"]),
    "observables": (lambda run: draw(keep={"m": jnp.mean, "pair": lambda s: s[:2]}), ["pair\\[1\\]"]),
    "constant": (
        lambda run: draw(saltus.Target(lambda s: 500.0 * jnp.sum(s), saltus.Binary(5)), saltus.Gibbs(), num_warmup=200),
        ["Verdict: point mass"],
    ),
    "ordinal": (lambda run: draw(saltus.targets.polynomial_mixture(2, 3), saltus.NCG(0.1)), ["s: values"]),
    "weighted": (lambda run: draw(saltus.targets.ising((3, 3), 0.3), saltus.TGS()), ["carry weights"]),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_runs_render(run, case):
    make, words = ODD[case]
    found = read(make(run))
    for pattern in words:
        assert re.search(pattern, found.text), found.text[:2000]


def test_a_tempered_run_shows_its_ladder():
    kernel = saltus.Tempered(saltus.Gibbs("coloured"), [0.0, 0.3, 0.7, 1.0])
    run = draw(saltus.targets.ising((3, 3), 0.3), kernel)
    assert len(run.attrs["swap_rejection"]) == 3
    assert run.attrs["round_trips"] > 0
    found = read(run)
    assert f"{run.attrs['round_trips']} round trips in 480 steps" in found.text  # 4 chains, 120 steps each
    assert "0, 0.3, 0.7, 1" in found.text


def test_a_product_space():
    """One variable for each part, numbers and labels."""
    parts = saltus.Product(z=saltus.Binary(3), colour=saltus.Categorical(2, 3))
    target = saltus.Target(lambda s: 0.3 * jnp.sum(s["z"]) + jnp.sum(s["colour"][:, 0]) * s["z"][0], parts)
    found = read(draw(target, saltus.Gibbs(), thin=5))
    assert "z: how often a site is 1" in found.text
    assert "colour: how often a site has each label" in found.text
    assert "z[0]" in found.text
    assert "Product(" in found.text


def many(run, chains, draws, sites):
    """A run of that many draws, made of few numbers that are repeated: broadcast, not stored."""
    rng = np.random.default_rng(0)
    few = rng.integers(2, size=(chains, 1000, sites), dtype=np.int8)
    s = np.tile(few, (1, draws // 1000, 1))
    stats = {}
    for name, x in run["sample_stats"].data_vars.items():
        stats[name] = (("chain", "draw"), np.tile(rng.choice(x.values.ravel(), size=(chains, 1000)), (1, draws // 1000)))
    groups = {"posterior": xr.Dataset({"s": (("chain", "draw", "site"), s)}), "sample_stats": xr.Dataset(stats)}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update({**run.attrs, "num_draws": draws, "num_chains": chains})
    return tree


def test_a_long_run_is_read_in_part_and_says_so(run):
    long = many(run, 4, 2_500_000, 2)  # 10^7 draws
    seen = look(long)
    assert seen.lp.shape == (4, 25_000)
    assert seen.lp.size <= MOST_DRAWS
    assert seen.judged.num_draws == 2_500_000
    before = time.process_time()
    found = read(long)
    assert time.process_time() - before < 10
    assert "one draw in 100: 25000 of 2500000 draws a chain" in found.text


@pytest.mark.parametrize(("chains", "draws", "sites"), [(2000, 1000, 2), (2, 1000, 30_000)])
def test_wide_runs_are_read_in_part(run, chains, draws, sites):
    found = read(many(run, chains, draws, sites))
    assert "This page was made from part of the run" in found.text or chains * draws <= MOST_DRAWS


def test_files(run, tmp_path):
    path = tmp_path / "report.html"
    assert saltus.report(run, path) == path
    first = path.read_bytes()
    with pytest.raises(saltus.StorageError, match="exists already"):
        saltus.report(run, path)
    assert path.read_bytes() == first
    saltus.report(run, str(path), overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(saltus.StorageError, match="not a page"):
        saltus.report(run, tmp_path / "report.txt")
    with pytest.raises(saltus.StorageError, match="cannot be written there"):
        saltus.report(run, tmp_path / "no" / "report.html")
    with pytest.raises(saltus.SaltusError, match="not a run"):
        saltus.report(run.posterior, tmp_path / "other.html")


def test_the_command(run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    saltus.save(draw(LABELS, saltus.GWG()), "run.nc")
    assert main(["report", "run.nc", "-o", "report.html"]) == 0
    assert "written to report.html" in capsys.readouterr().out
    assert "saltus.open('run.nc')" in Page((tmp_path / "report.html").read_text()).text
    assert main(["report", "run.nc", "-o", "report.html"]) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert main(["report", "run.nc", "--overwrite", "-o", "report.html"]) == 0


def test_the_lines_that_reproduce_it_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    target = saltus.targets.ising((3, 3), 0.3)
    run = draw(target, saltus.Gibbs(), thin=3, initial=np.ones((4, 9), int))
    saltus.save(run, "run.nc")
    text = read(saltus.open("run.nc"))
    lines = "".join(word for word in text.words if "saltus.kernel_of" in word)
    space = {"target": target}
    exec(lines, space)
    np.testing.assert_array_equal(space["again"].posterior.s, run.posterior.s)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3e-7, 5e-7), (1e9, 1e9 + 1), (5, 5), (-1e300, 1e300)])
def test_ticks_lie_within(low, high):
    frame = pictures.Frame((low, high), (low, high))
    ticks = pictures._ticks(*frame.x)
    assert 1 <= len(ticks) <= 12
    assert all(frame.x[0] - 1e-9 * abs(low) <= t <= frame.x[1] + 1e-9 * abs(high) for t in ticks)
    assert len({pictures._short(t) for t in ticks}) >= 1


def test_a_map_has_a_cell_for_each_site():
    image, width = pictures.site_map(np.linspace(0, 1, 12), 0, 1, "twelve")
    assert width == 4
    assert "data:image/png;base64," in image
    assert len(pictures.site_map(np.zeros(10**6), 0, 1, "many")[0]) < 1e6
