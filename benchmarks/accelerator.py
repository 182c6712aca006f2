"""What an accelerator changes: agreement with double precision on the CPU, and throughput over batches.

`make gpu-check` runs it with an accelerator visible; without one it measures the CPU.
"""

from __future__ import annotations

import time

import numpy as np


def main() -> None:
    """Print, for float32 and float64, the largest relative difference from the CPU and traces a second."""
    import jax
    import jax.numpy as jnp

    import jaxpriv as jp

    n, batch = 48, 512
    i = np.arange(n)
    lengths = np.linspace(2.0, 8.0, batch)
    stack = np.exp(-((i[:, None] - i) ** 2) / (2 * lengths[:, None, None] ** 2)) + 1e-2 * np.eye(n)
    secret = jp.Secret([n // 2, n // 2 + 1], radius=1.0)

    def loss(covariance, noise):
        return jp.cip_loss(jp.GaussianPrior(covariance), secret, noise)

    def least(covariance, noise):
        return jp.least_loss(jp.GaussianPrior(covariance), secret, jnp.trace(noise))

    device = jax.devices()[0]
    cpu = jax.devices("cpu")[0]
    print(f"{device.platform} {device.device_kind}; {batch} priors of {n} points, a secret of two fixes")
    with jax.enable_x64(True):
        for name, function in (("loss", loss), ("loss and gradient", jax.grad(loss, argnums=1)), ("design", least)):
            run = jax.jit(jax.vmap(function, in_axes=(0, None)))
            exact = np.asarray(run(*(jax.device_put(x, cpu) for x in (stack, 0.1 * np.eye(n)))))
            for dtype in (np.float32, np.float64):
                arguments = [jax.device_put(x.astype(dtype), device) for x in (stack, 0.1 * np.eye(n))]
                found = np.asarray(jax.block_until_ready(run(*arguments)))
                start = time.perf_counter()
                for _ in range(5):
                    jax.block_until_ready(run(*arguments))
                rate = 5 * batch / (time.perf_counter() - start)
                error = np.max(np.abs(found - exact)) / np.max(np.abs(exact))
                print(f"{name:18s} {np.dtype(dtype).name}: difference {error:.1e}, {rate:,.0f} traces a second")


if __name__ == "__main__":
    main()
