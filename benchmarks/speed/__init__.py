"""Speed as ratios measured in one run, each with its goal: `python -m benchmarks`."""
