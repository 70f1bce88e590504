"""Which experiments there are: the name that people type, and the module that runs it."""

SAMPLING = {
    "figure1": "figure1",
    "proposals": "proposals",
    "targets2d": "targets2d",
    "ordinal": "ordinal",
    "regression": "regression",
    "third-order": "third_order",
}
LEARNING = {
    "table1": "table1",
    "stepsize-sensitivity": "stepsize_sensitivity",
    "lattice": "couplings",
    "table2": "table2",
    "buffers": "buffers",
}
EXPERIMENTS = SAMPLING | LEARNING
GROUPS = {"sampling": tuple(SAMPLING), "training": tuple(LEARNING), "all": tuple(EXPERIMENTS)}
