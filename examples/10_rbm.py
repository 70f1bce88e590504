"""A restricted Boltzmann machine learns digits."""

import matplotlib.pyplot as plt
import optax

import saltus

data = saltus.datasets.digits(num_train=500, num_test=100, seed=0)
rbm = saltus.training.models.rbm(saltus.Binary(256), num_hidden=32, data=data.train)
trained = saltus.training.pcd(
    rbm,
    data.train,
    saltus.GWG(),
    optimiser=optax.adam(2e-3),
    num_updates=150,
    num_steps=5,
    buffer_size=100,
    buffer="data",
    progress=False,
)
print(trained)

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
saltus.plot.images(data.train, (16, 16), axes=axes[0])
saltus.plot.images(trained.buffer, (16, 16), axes=axes[1])
axes[0].set_title("data")
axes[1].set_title("the model's chains")
plt.show()
