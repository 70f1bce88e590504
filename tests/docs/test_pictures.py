"""Pictures that are drawn from the code show the code as it is."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "docs"))
import _rooms


def test_the_picture_of_the_rooms_is_that_of_the_rooms():
    assert _rooms.OUT.read_text() == _rooms.picture(), "python docs/_rooms.py draws it again"
