"""Commands that left the library name their successors, whatever they are given, and do nothing else."""

import pytest

pytest.importorskip("cyclopts")

from saltus.cli import main


@pytest.mark.parametrize(
    ("words", "successors"),
    [
        (["reproduce"], ["make reproduce", "python -m paper"]),
        (
            ["reproduce", "table1", "--seeds", "3", "--k", "1,5", "-o", "a folder", "--nonsense"],
            ["python -m paper table1 --seeds 3 --k 1,5 -o 'a folder' --nonsense"],
        ),
        (["bench"], ["make bench", "python -m benchmarks"]),
        (["bench", "steps", "textbook", "--again", "-o", "out"], ["python -m benchmarks steps textbook --again -o out"]),
    ],
)
def test_a_moved_command_names_its_successor(words, successors, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "DeprecationWarning" in told.err
    assert "next release" in told.err
    for successor in successors:
        assert successor in told.err
    assert not list(tmp_path.iterdir())
