"""Two modes: tempering crosses where no single chain does."""

import matplotlib.pyplot as plt

import saltus

target = saltus.targets.ising((8, 8), coupling=0.6)  # ordered: nearly all up, or nearly all down
settings = dict(num_draws=400, num_warmup=100, num_chains=4, thin=1, seed=0, progress=False)
plain = saltus.sample(target, saltus.Gibbs("coloured"), **settings)
ladder = [0.0, 0.3, 0.5, 0.6, 0.68, 0.76, 0.85, 1.0]  # saltus.find_ladder(target, kernel) finds one
tempered = saltus.sample(target, saltus.Tempered(saltus.Gibbs("coloured"), ladder), **settings)
print(tempered.attrs["round_trips"], "round trips")

figure, axes = plt.subplots(2, 1, figsize=(6.4, 4), sharex=True, layout="constrained")
for ax, (name, run) in zip(axes, {"Gibbs alone": plain, "Gibbs, tempered": tempered}.items(), strict=True):
    ax.plot(run.posterior["s"].mean("site").values.T, linewidth=0.7)
    ax.set(title=name, ylabel="magnetisation", ylim=(-1.05, 1.05))
axes[1].set_xlabel("draw")
plt.show()
