"""What was found when saltus 0.1 was used for real: every line of it has tests, and here is which."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
# The numbers are those of the list of findings: 1 is data lost or wrong, 2 limits and verdicts that mislead.
FINDINGS = {
    "1.1 folders of others beside a run are deleted": ["files/test_store.py::test_neighbours_are_left_alone"],
    "1.2 a resumed copy destroys the original": [
        "files/test_resume.py::test_a_copy_goes_on_by_itself",
        "files/test_resume.py::test_a_copied_checkpoint_leaves_the_store_of_another_alone",
        "files/test_resume.py::test_a_store_with_fewer_rows_than_the_state_counts_is_refused",
    ],
    "1.3 a store has no integrity": [
        "files/test_ours.py::test_a_missing_chunk_is_an_error_that_says_what_is_safe",
        "files/test_ours.py::test_every_chunk_and_every_metadata_file_has_a_checksum",
        "files/test_ours.py::test_data_is_synced_before_what_counts_it",
    ],
    "1.4 two processes write at once": [
        "files/test_ours.py::test_a_second_writer_is_told_who_the_first_is",
        "files/test_ours.py::test_a_killed_process_holds_nothing",
        "files/test_ours.py::test_what_was_opened_does_not_change_under_its_reader",
    ],
    "1.5 a path in a stranger's file is followed": ["files/test_strangers.py::test_a_path_in_a_file_is_not_followed"],
    "1.6 zip bombs and nonsense in headers": [
        "files/test_strangers.py::test_nothing_is_unpacked",
        "files/test_strangers.py::test_a_header_has_a_bounded_size",
        "files/test_strangers.py::test_nonsense_with_right_checksums_is_refused",
    ],
    "1.7 terminal escapes are printed": [
        "files/test_strangers.py::test_what_a_file_says_is_escaped",
        "files/test_strangers.py::test_what_a_model_says_is_escaped",
        "files/test_strangers.py::test_names_of_sites_are_escaped",
    ],
    "1.8 9 MB are lost for every new log_prob": ["house/test_leaks.py::test_two_hundred_fresh_functions_leave_nothing_behind"],
    "1.9 stdout closed": ["house/test_nonsense.py::test_a_closed_stdout_is_no_failure"],
    "1.9 SIGTERM saves nothing": ["runs/test_limits.py::test_an_interrupt_while_choosing_leaves_a_draw"],
    "1.9 store deleted while running": [
        "files/test_ours.py::test_a_store_that_is_deleted_while_it_is_written_to_is_said_to_be_gone"
    ],
    "1.9 names of 250 bytes": [
        "files/test_ours.py::test_any_name_will_do",
        "files/test_ours.py::test_a_name_that_is_too_long_is_refused",
    ],
    "1.9 links": ["files/test_ours.py::test_a_link_to_an_empty_folder_stays_a_link"],
    "1.9 a store ended before its first draw": ["files/test_resume.py::test_a_time_limit_in_the_warm_up_returns_its_states"],
    "1.9 a full disk": ["files/test_resume.py::test_a_disk_that_fills_up_loses_nothing_already_written"],
    "1.9 +inf is not counted with exact differences": [
        "runs/test_undefined.py::test_bad_states_are_never_entered_and_the_rest_moves"
    ],
    "1.10 raw errors from nonsense": ["house/test_nonsense.py::test_nonsense_is_refused_before_anything_is_compiled"],
    "2.1 a limit returns nothing": [
        "runs/test_run_bad_input.py::test_no_time_limit_is_too_short_for_a_draw",
        "runs/test_limits.py::test_annealing_in_no_time_has_one_temperature",
        "runs/test_limits.py::test_tuning_in_no_time_warns",
    ],
    "2.2 ESS ignores chains that disagree": ["reports/test_summary.py::test_effective_draws_respect_chains_that_disagree"],
    "2.3 modes, labels, points, stuck chains": [
        "reports/test_verdict.py::test_two_modes_are_called_two_modes",
        "reports/test_verdict.py::test_permuted_labels_are_called_label_switching",
        "reports/test_verdict.py::test_a_posterior_that_is_a_point_is_no_alarm",
        "reports/test_verdict.py::test_steps_that_are_too_small_are_to_be_larger",
    ],
    "2.6 the same seed couples runs": ["reports/test_verdict.py::test_seeds_of_independent_streams"],
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_its_tests_are_there(finding):
    for test in FINDINGS[finding]:
        file, _, name = test.partition("::")
        found = [node.name for node in ast.walk(ast.parse((TESTS / file).read_text())) if isinstance(node, ast.FunctionDef)]
        assert name in found, f"{finding}: {test}"
    assert re.match(r"[12]\.\d+ ", finding)
