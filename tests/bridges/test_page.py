"""Every block of docs/bridges.md runs, in order, in a fresh process."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_blocks_run():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/bridges.md").read_text(), flags=re.DOTALL)
    code = "\n".join(blocks)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
