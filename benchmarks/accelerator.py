"""What an accelerator changes: agreement with double precision on the CPU, and throughput over batches.

`make gpu-check` runs it with an accelerator visible; without one it measures the CPU. Losses, gradients and designs of
compiled functions in both precisions, then whole batches (`design_batch`, one prior and six priors each), certified.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np


POINTS, BATCH = 48, 512


def covariances() -> np.ndarray:
    """Squared-exponential priors of many length scales, (BATCH, POINTS, POINTS), of unit variance."""
    i = np.arange(POINTS)
    lengths = np.linspace(2.0, 8.0, BATCH)
    square = (i[:, None] - i) ** 2
    return np.exp(-square / (2 * lengths[:, None, None] ** 2)) + 1e-2 * np.eye(POINTS)


def compiled(device: Any, cpu: Any) -> None:
    """Losses, gradients and least losses of a batch in float32 (products at the highest precision) and float64."""
    import jax
    import jax.numpy as jnp

    import jaxpriv as jp

    stack = covariances()
    secret = jp.Secret([POINTS // 2, POINTS // 2 + 1], radius=1.0)

    def loss(covariance, noise):
        return jp.cip_loss(jp.GaussianPrior(covariance), secret, noise)

    def least(covariance, noise):
        return jp.least_loss(jp.GaussianPrior(covariance), secret, jnp.trace(noise))

    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        for name, function in (("loss", loss), ("loss and gradient", jax.grad(loss, argnums=1)), ("design", least)):
            run = jax.jit(jax.vmap(function, in_axes=(0, None)))
            exact = np.asarray(run(*(jax.device_put(x, cpu) for x in (stack, 0.1 * np.eye(POINTS)))))
            for dtype in (np.float32, np.float64):
                arguments = [jax.device_put(x.astype(dtype), device) for x in (stack, 0.1 * np.eye(POINTS))]
                found = np.asarray(jax.block_until_ready(run(*arguments)))
                start = time.perf_counter()
                for _ in range(5):
                    jax.block_until_ready(run(*arguments))
                rate = 5 * BATCH / (time.perf_counter() - start)
                error = np.max(np.abs(found - exact)) / np.max(np.abs(exact))
                print(f"{name:18s} {np.dtype(dtype).name}: difference {error:.1e}, {rate:,.0f} traces a second")


def batches(device: Any, cpu: Any) -> None:
    """Whole batches in double precision: designed on the device, certified on the host."""
    import jaxpriv as jp
    from jaxpriv.designs.batch.verb import design_batch

    stack = covariances()
    scaled = np.stack([stack[: BATCH // 2], stack[BATCH // 2 :], 1.5 * stack[: BATCH // 2]], axis=1)
    secret = jp.Secret([POINTS // 2], radius=1.0)
    for name, priors in (("one prior", stack), ("three priors", scaled)):
        for goal in ({"budget": 5.0}, {"epsilon": 1.0}):
            kind = next(iter(goal))
            read = (lambda batch: batch.epsilon) if kind == "budget" else (lambda batch: batch.cost)
            exact = read(design_batch(priors, secret, **goal, devices=[cpu]))
            design_batch(priors, secret, **goal, devices=[device])
            start = time.perf_counter()
            batch = design_batch(priors, secret, **goal, devices=[device])
            rate = len(batch) / (time.perf_counter() - start)
            error = np.max(np.abs(read(batch) / exact - 1.0))
            print(
                f"{name:12s} {kind:8s} float64: difference {error:.1e}, largest certified gap {np.max(batch.gap):.1e}, "
                f"{rate:,.0f} certified designs a second"
            )


def main() -> None:
    """Print the largest relative differences from the CPU, and traces a second."""
    import jax

    device, cpu = jax.devices()[0], jax.devices("cpu")[0]
    print(f"{device.platform} {device.device_kind}; {BATCH} priors of {POINTS} points")
    compiled(device, cpu)
    batches(device, cpu)


if __name__ == "__main__":
    main()
