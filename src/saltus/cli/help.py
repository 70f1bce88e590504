"""What stands below the options in the help of each command."""

CODES = """\
[bold]Exit codes[/]
  0    complete
  1    failed unexpectedly; --debug, anywhere on the line, shows the traceback
  2    bad input, or a run that cannot go on: the message says why
  3    ended early (--time-limit, Ctrl-C); the draws so far are kept
  130  interrupted before there was a draw to keep
"""
APP = f"""\
[bold]Example[/]
  saltus demo shows what it does. For a model of your own, write model.py:

    import jax.numpy as jnp, saltus
    def log_prob(s):  # spins, -1 or +1, that like their neighbours
        return 0.8 * jnp.sum(s[1:] * s[:-1])
    target = saltus.Target(log_prob, saltus.Spin(50))

  Draw from it, and look:

    saltus sample model.py:target -o run.nc
    saltus summary run.nc

{CODES}"""
SAMPLE = f"""\
[bold]Samplers[/] and their options
  auto                                   a race: the fastest here is used
  ncg          --step-size               all sites at once, by the gradient
  avg          --step-size               the same, by an auxiliary variable
  pavg         --step-size               the same, for correlated sites
               --preconditioner \\[--scale]
  gwg          \\[--radius]                one site a step, by the gradient
  gibbs        \\[--scan]                  exact conditionals, no gradient
  block-gibbs  \\[--shift]                 quadratic targets, always accepted
  uniform-mh   --radius                  a baseline that knows nothing

[bold]Examples[/]
  saltus sample model.py:target -o run.nc
  saltus sample model.py:target --sampler ncg --step-size 0.5 -o run.nc

  An hour at most, streamed to disk, and then on from there:

  saltus sample model.py:target --sampler gibbs --scan systematic \\
      --num-draws 100000 --time-limit 3600 --checkpoint run.ckpt -o run.zarr
  saltus resume run.ckpt model.py:target

{CODES}"""
RESUME = f"""\
[bold]Examples[/]
  saltus resume run.ckpt model.py:target -o run.nc
  saltus resume run.ckpt model.py:target --num-draws 5000 --overwrite -o run.nc

{CODES}"""
SUMMARY = """\
[bold]Examples[/]
  saltus summary run.nc
  saltus summary run.zarr --sites 50
"""
CHECK = """\
[bold]Examples[/]
  saltus check model.py:target
  saltus check model.py:target --initial start.npy --small

The exit code is 0 whatever the verdict, 2 where the input is bad.
"""
TUNE = """\
[bold]Examples[/]
  saltus tune model.py:target --sampler ncg
  saltus tune model.py:target --sampler pavg --plot curve.png

The last line printed is the saltus sample command that uses what was found.
"""
DEMO = """\
[bold]Examples[/]
  saltus demo
  saltus demo -o elsewhere --seed 1

It leaves run.nc, marginals.png and marginals.svg in the folder.
"""
BENCH = """\
[bold]Groups[/]
  steps        a step of each sampler / the bare gradient, 10x10 Ising
  network      the same on a network of 284 385 parameters; its gradient
  textbook     NCG as one would first write it in JAX / ours
  regression   a posterior by Cholesky factors / ours; accuracy; no hang
  thrml        two-colour sweeps of thrml / ours
  peers        effective draws per second: ours / thrml, numpyro, PyMC
  compile      seconds of compilation
  import       import saltus / import jax
  chains       1 to 10 000 chains
  lattices     10^4 to 10^6 sites of a lattice
  graphs       the same, as a list of edges
  low-rank     PAVG with a preconditioner of rank 32, to 10^6 sites
  values       50 to 5000 values per site
  differences  exact differences: brute force / closed form
  devices      two devices on two cores / one on one
  retuning     a training whose settings follow the model / one at fixed ones
  profile      where the time of a step goes (no goals)
  choices      why the code is written as it is (no goals)

  thrml, peers and retuning need: pip install 'saltus\\[bench]'

[bold]Examples[/]
  saltus bench steps textbook
  saltus bench -o results

[bold]Exit codes[/]
  0    every goal is met
  4    some goal is missed
"""
REPRODUCE = """\
[bold]Experiments[/]
  figure1      where GWG, NCG and PAVG propose to go
  proposals    the same of GWG, ordinal GWG and uniform MH
  targets2d    both ordinal mixtures in two dimensions
  ordinal      seven samplers on the mixtures in 20 dimensions
  regression   five samplers on the sparse regression; and what exact
               local models, saltus tune and auto add
  third-order  PAVG and AVG where PAVG's quadratic model is wrong

  table1       six samplers learn an Ising lattice; and retuned ones
  stepsize-sensitivity
               the same, with step sizes that are too small or too large
  lattice      true and learned couplings, and samples
  table2       five samplers learn in front of a convolutional network
  buffers      what their chains look like when training ends

  sampling     figure1 to third-order
  training     table1 to buffers
  all          all there are

  Figures need: pip install 'saltus\\[plots]', training 'saltus\\[ebm]'

[bold]Examples[/]
  saltus reproduce ordinal
  saltus reproduce sampling --seeds 5 --out elsewhere
  saltus reproduce training --workers 2

[bold]Exit codes[/]
  0    complete, whatever the verdicts
  2    bad input
  3    interrupted: the same command goes on
"""
