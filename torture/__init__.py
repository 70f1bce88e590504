"""What a run has to survive. `python -m torture` (`make torture`) row by row; outputs are kept in torture/results."""
