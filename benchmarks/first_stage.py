"""Is the first stage of Table 2 stable? NCG's acceptance and ||J|| / 16 at its end, on USPS (SALTUS_DATA) or synthetic digits.

python -m benchmarks.first_stage 4 1000 1 0 1      width, updates, pace of the network, seeds: as in docs/deviations.md
python -m benchmarks.first_stage 4 500 0.1 0 1 2   as the quick scale is now
"""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from paper.learning import images_pcd
from paper.settings import SCALES
from saltus import RunError

if __name__ == "__main__":
    width, updates, pace, seeds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), map(int, sys.argv[4:])
    quick = SCALES["quick"].training
    settings = replace(quick, network=replace(quick.network, width=width, first_updates=updates, pace=pace))
    for seed in seeds:
        try:
            found, _ = images_pcd.first_stages(seed, settings, Path(tempfile.mkdtemp()))
        except RunError as diverged:
            found = str(diverged).splitlines()[2].strip()
        print(f"seed {seed}: {found}", flush=True)
