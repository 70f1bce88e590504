"""How fast saltus is. Run from the root of the repository.

python -m benchmarks                      speed as ratios with goals (`make bench`); the groups are in speed/
python -m benchmarks.race                 does sampler="auto" pick well? (`make bench-race`)
python benchmarks/first_sample.py         what a newcomer waits for (`make bench-first`)
python benchmarks/memory.py               memory of a run that streams to disk (`make bench-memory`)
python -m benchmarks.first_stage          is the first stage of Table 2 stable?
python -m benchmarks.pytorch_gradient     a gradient beside PyTorch's
"""
