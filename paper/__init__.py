"""The paper's experiments, re-run with saltus: `python -m paper table1`, from the root of the repository.

experiment.py   what an experiment is; experiments.py lists all of them
sampling/       figure 1, the ordinal mixtures, the regression, third-order terms
learning/       Tables 1 and 2, step-size sensitivity, the lattice, the buffers
report/         how results are judged, drawn and written as a page
folder.py       where results are kept: a file for every cell, and one of rounded numbers for every experiment
job.py          measure what is missing, draw, write the page; pool.py does so in several processes
"""

from .job import make_page, reproduce

__all__ = ["make_page", "reproduce"]
