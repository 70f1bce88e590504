"""The kept table of the gallery, tests/full_output/models.txt: models agree with their references or are refused by name."""

from collections import Counter

from benchmarks.gallery_of_models.__main__ import OUTPUT, cases

CASES = {case.name: case for case in cases()}
ROWS = [row.split(" | ") for row in OUTPUT.read_text().splitlines()[3:]]


def test_every_line_is_of_a_model_that_is_there_and_has_the_outcome_it_should():
    for name, _, outcome, *_ in ROWS:
        wanted = "refused, as it should be" if CASES[name].refused else "agrees"
        assert outcome.partition(":")[0] == wanted, name


def test_most_of_them_run_and_no_reason_to_refuse_is_frequent():
    refused = Counter(reason.split("' ")[-1] for name, *_ in ROWS if (reason := CASES[name].refused))
    assert len({name for name, *_ in ROWS}) == len(ROWS) >= 25
    assert len(ROWS) - refused.total() >= 18
    assert max(refused.values()) <= 3
