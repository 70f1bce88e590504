"""`import saltus` brings nothing that a first sampler does not need."""

import subprocess
import sys

SLOW = ("xarray", "arviz_base", "arviz_stats", "rich", "matplotlib", "pandas", "scipy.stats", "saltus.testing", "saltus.targets")
SLOW += ("optax", "equinox", "saltus.training", "saltus.datasets")


def test_import_is_light_and_the_rest_is_there_when_used():
    code = f"""
import sys, saltus
slow = [name for name in {SLOW!r} if name in sys.modules]
assert not slow, slow
saltus.testing.check_space(saltus.Binary(2))
saltus.targets.ising((3, 3), 0.4)
try:
    saltus.nonsense
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "has no attribute 'nonsense'" in done.stdout
