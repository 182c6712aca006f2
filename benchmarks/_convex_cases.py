"""The problems of the comparison with convex solvers, and one function for each way to solve them.

Every case answers the same question: the noise of total power at most `budget` whose largest loss is least. Each
returns seconds, the loss of the matrix it found, recomputed from that matrix in NumPy and charged for any excess over
the budget, and where it has one a lower bound.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.measure import timed


PROBLEMS = ("basic", "compound", "three secrets", "all points")
SHARE = 0.02  # noise power a point, as a share of the prior variance
ADAM_STEPS = 3000


class Problem(NamedTuple):
    """Prior covariance (n, n) of unit variance, the positions of every secret, and the budget tr G."""

    covariance: np.ndarray
    secrets: list[list[int]]
    budget: float


def problem(name: str, n: int) -> Problem:
    """RBF of length scale 6 points with a nugget of 1e-4."""
    lag = np.subtract.outer(np.arange(n), np.arange(n))
    covariance = np.exp(-(lag**2) / (2 * 6.0**2)) + 1e-4 * np.eye(n)
    middle = n // 2
    secrets = {
        "basic": [[middle]],
        "compound": [[middle, middle + 1]],
        "three secrets": [[n // 5], [middle], [4 * n // 5]],
        "all points": [[i] for i in range(n)],
    }
    return Problem(covariance, secrets[name], SHARE * n)


def parts(task: Problem, secret: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """H (n, k), exactly the identity on the secret, and C (n, n), exactly zero there."""
    cross = task.covariance[:, secret]
    variance = cross[secret]
    regression = np.linalg.solve(variance, cross.T).T
    residual = task.covariance - regression @ variance @ regression.T
    regression[secret] = np.eye(len(secret))
    residual[secret] = residual[:, secret] = 0.0
    return regression, residual


def score(task: Problem, noise: np.ndarray) -> float:
    """The largest loss λ_max(Hᵀ(C + G)⁻¹H), times the excess over the budget where there is one."""
    losses = []
    for secret in task.secrets:
        regression, residual = parts(task, secret)
        try:
            root = np.linalg.cholesky(residual + noise)
        except np.linalg.LinAlgError:
            return float("inf")
        losses.append(np.linalg.norm(np.linalg.solve(root, regression), 2) ** 2)
    return float(max(losses)) * max(1.0, float(np.trace(noise)) / task.budget)


def ours_compiled(name: str, n: int) -> dict[str, Any]:
    """The compiled JAX functions, warm: from a covariance on the device to the noise covariance."""
    import jax
    import jax.numpy as jnp

    import jaxpriv as jp

    task = problem(name, n)
    with jax.enable_x64(True):
        covariance = jnp.asarray(task.covariance)
        if name in ("basic", "compound"):
            secret = jp.Secret(task.secrets[0], radius=1.0)
            solve = jax.jit(lambda c: jp.least_loss_noise(jp.GaussianPrior(c), secret, task.budget))
            used = "least_loss_noise"
        elif name == "three secrets":
            from jaxpriv.designs.majorant.budget import clip_budget

            at = jnp.asarray([secret[0] for secret in task.secrets])

            @jax.jit
            def solve(c):
                stack = jp.inference_stack(
                    c[None], [0] * len(at), c[:, at].T[:, :, None], c[at, at][:, None, None], jnp.ones(len(at))
                )
                found = clip_budget(stack, task.budget, tolerance=1e-6)
                return found.factor @ found.factor.T

            used = "clip_budget"
        else:
            solve = jax.jit(lambda c: jp.prior_shaped_noise(c, n / task.budget, 1.0 + 1e-4))
            # Σ/(t v) of loss t = n/b at every point has trace b.
            used = "prior_shaped_noise"
        noise, timing = timed(lambda: solve(covariance))
    return {"used": used, "loss": score(task, np.asarray(noise)), **timing.as_dict()}


def ours_certified(name: str, n: int) -> dict[str, Any]:
    """`jp.design`, warm: the host verb with its certificate and its verified lower bound, without a noise floor."""
    import jaxpriv as jp

    task = problem(name, n)
    prior = jp.GaussianPrior(task.covariance)
    wanted = (
        jp.EveryPoint(radius=1.0)
        if name == "all points"
        else [jp.Secret(secret, radius=1.0) for secret in task.secrets]
    )
    found, timing = timed(lambda: jp.design(prior, wanted, budget=task.budget, floor_sd=0.0))
    # At order 2 the loss in nats is that in inverse variances times the number of times in the secret.
    lower = found.lower_bound / len(task.secrets[0])
    return {
        "used": f"design ({found.stats['method']})",
        "loss": score(task, np.asarray(found.mechanism.covariance)),
        "lower": lower,
        "gap": found.gap,
        **timing.as_dict(),
    }


def solver(name: str, n: int, which: str, most: float) -> dict[str, Any]:
    """A convex solver through CVXPY on the exact program, at most `most` seconds: its own time, and CVXPY's besides."""
    import cvxpy as cp

    from jaxpriv.convex.joint import joint_budget
    from jaxpriv.convex.majorant import least_scale

    own: list[float] = []
    solve = cp.Problem.solve

    def recorded(self, *args, **kwargs):
        result = solve(self, *args, **kwargs)
        stats = self.solver_stats
        own.append(float(stats.solve_time or 0.0) + float(stats.setup_time or 0.0))
        return result

    cp.Problem.solve = recorded
    options: dict[str, dict[str, Any]] = {
        "CLARABEL": {"time_limit": most},
        "SCS": {"eps_abs": 1e-8, "eps_rel": 1e-8, "max_iters": 1_000_000, "time_limit_secs": most},
        "CVXOPT": {},
    }
    task = problem(name, n)
    start = time.perf_counter()
    if name in ("basic", "compound"):
        found = joint_budget(
            task.covariance, task.secrets[0], task.budget, solver=which, options=options[which], n_max=10**6
        )
    else:
        constants, slopes = [], []
        for secret in task.secrets:
            regression, residual = parts(task, secret)
            constants.append(-residual)
            slopes.append(regression @ regression.T)
        found = least_scale(constants, slopes, task.budget, solver=which, options=options[which], n_max=10**6)
    wall = time.perf_counter() - start
    seconds = own[-1] if own and own[-1] > 0.0 else wall
    return {
        "used": f"CVXPY, {which}",
        "loss": score(task, found.covariance),
        "seconds": seconds,
        "compilation_seconds": max(wall - seconds, 0.0),
        "solver_status": found.status,
    }


def adam(name: str, n: int) -> dict[str, Any]:
    """Adam on a Cholesky factor scaled to the budget, the largest loss as it is: what one would write first."""
    import jax
    import jax.numpy as jnp
    import optax

    task = problem(name, n)
    with jax.enable_x64(True):
        # With one size of secrets the losses are one batch.
        both = [parts(task, secret) for secret in task.secrets]
        regressions = jnp.asarray(np.array([one[0] for one in both]))
        residuals = jnp.asarray(np.array([one[1] for one in both]))
        optimiser = optax.adam(optax.cosine_decay_schedule(0.02, ADAM_STEPS))

        def noise_of(free):
            factor = jnp.tril(free)
            return task.budget * factor @ factor.T / jnp.sum(factor**2)

        def loss(free):
            noise = noise_of(free)

            def one(pair):
                regression, residual = pair
                root = jnp.linalg.cholesky(residual + noise)
                whitened = jax.scipy.linalg.solve_triangular(root, regression, lower=True)
                return jnp.linalg.eigvalsh(whitened.T @ whitened)[-1]

            return jnp.log(jnp.max(jax.lax.map(one, (regressions, residuals))))

        @jax.jit
        def run(free):
            def step(carry, _):
                free, state = carry
                updates, state = optimiser.update(jax.grad(loss)(free), state)
                return (optax.apply_updates(free, updates), state), None

            (free, _), _ = jax.lax.scan(step, (free, optimiser.init(free)), length=ADAM_STEPS)
            return noise_of(free)

        compiled_in = time.perf_counter()
        compiled = run.lower(jnp.eye(n)).compile()
        start = time.perf_counter()
        noise = np.asarray(jax.block_until_ready(compiled(jnp.eye(n))))
        end = time.perf_counter()
    return {
        "used": f"Adam, {ADAM_STEPS} steps",
        "loss": score(task, noise),
        "seconds": end - start,
        "compilation_seconds": start - compiled_in,
    }
