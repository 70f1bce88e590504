"""The paper's experiments, re-run: `saltus reproduce`. One file per figure; cells.py keeps results, job.py runs them."""

from .job import reproduce

__all__ = ["reproduce"]
