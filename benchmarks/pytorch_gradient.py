"""Value and gradient of the W5 network at 50 states: PyTorch's time over ours, and how far apart the gradients are.

pip install torch==2.13.0        (beside saltus; a CPU build will do)
python -m benchmarks.pytorch_gradient 2      threads of PyTorch
"""

import sys

import jax
import numpy as np
import torch

from .internals import LAYERS, SIDE
from .speed.clock import ratio, seconds_per_step
from .speed.loops import bare_loop
from .speed.references import plain_network
from .speed.workloads import WORKLOADS

CHAINS = 50


def torch_value():
    """f of (chains, d) states in {0, 1}, as one would write it in PyTorch, with the parameters of ours."""
    params = jax.tree.map(lambda p: torch.from_numpy(np.array(p)), plain_network().params)
    kernels = [layer["weights"].permute(3, 2, 0, 1).contiguous() for layer in params["net"][:-1]]
    last = params["net"][-1]

    def value(s):
        x = 2 * s - 1
        h = x.reshape(-1, 1, SIDE, SIDE)
        for kernel, layer, (_, _, stride, pad) in zip(kernels, params["net"][:-1], LAYERS, strict=True):
            h = torch.nn.functional.silu(torch.nn.functional.conv2d(h, kernel, layer["bias"], stride, pad))
        quadratic = (x * (x @ params["quadratic"].T + params["bias"])).sum(1)
        return quadratic + h.flatten(1) @ last["weights"][:, 0] + last["bias"][0]

    return value


def torch_gradient(value, s):
    s = s.detach().requires_grad_()
    f = value(s)
    f.sum().backward()
    return f.detach(), s.grad


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    target, value = WORKLOADS["W5"](), torch_value()
    codes = np.random.default_rng(0).integers(0, 2, (CHAINS, SIDE * SIDE)).astype(np.float32)
    ours = jax.vmap(jax.value_and_grad(target.log_prob_of))(codes)
    theirs = torch_gradient(value, torch.from_numpy(codes))
    apart = [float(np.abs(np.asarray(a) - b.numpy()).max()) for a, b in zip(ours, theirs, strict=True)]

    def steps(number):
        s, total = torch.from_numpy(codes), torch.zeros(CHAINS)
        for _ in range(number):
            f, g = torch_gradient(value, s)
            s, total = (g > 0).float(), total + f

    times = seconds_per_step({"torch": steps, "ours": bare_loop(target, CHAINS)})
    r = ratio(times["torch"], times["ours"])
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads / ours: {np.median(r):.3g} ({min(r):.3g} to {max(r):.3g})")
    print(f"ours {1e3 * np.median(times['ours']):.3g} ms, torch {1e3 * np.median(times['torch']):.3g} ms")
    print(f"largest differences: f {apart[0]:.2g}, gradient {apart[1]:.2g}")
