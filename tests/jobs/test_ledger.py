"""What a ledger says of all releases about a person: the joint formula in many digits, under every prior on record."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

import jaxpriv as jp
from jaxpriv.jobs.ledger import joint as ledger_joint
from jaxpriv.jobs.ledger.far import correlation, with_far_releases
from jaxpriv.jobs.ledger.joint import joint_losses
from jaxpriv.jobs.ledger.protect import check_limit
from jaxpriv.jobs.ledger.records import LedgerRelease, LedgerSecret
from jaxpriv.jobs.prior_choice import KERNELS, PriorChoice


SMOOTH, ROUGH = PriorChoice("rbf", 20.0, 50.0, 2.0), PriorChoice("matern12", 40.0, 30.0, 1.0)
US = 10**6


def _release(draw, times, mechanisms, secrets, priors=((SMOOTH,), (SMOOTH,)), content=b"a", number=0, order=2.0):
    """`times` and those of secrets in seconds; a secret is a tuple of fixes, or a number between fixes."""
    listed = tuple(
        LedgerSecret(str(one), tuple(int(at * US) for at in one), False, 20.0, 1.0)
        if isinstance(one, tuple)
        else LedgerSecret(str(one), (int(one * US),), True, 20.0, 1.0)
        for one in secrets
    )
    return LedgerRelease(
        number, draw, "published", "", content, draw.encode(), np.array(times) * US, mechanisms, priors, listed, order
    )


def _mechanisms(rng, n, floor=2.0):
    return tuple(jp.GaussianMechanism(10.0 * rng.standard_normal((n, min(n, 2))), floor) for _ in (0, 1))


def _square_root_free_loss(covariance, cross, own, noise):
    """λ_max(P⁻¹ − S⁻¹) of one coordinate, with 300 bits."""
    ctx.prec = 300
    total = arb_mat(np.asarray(covariance).tolist()) + noise
    known = (arb_mat(cross.T.tolist()) * total.solve(arb_mat(cross.tolist())))[0, 0]
    own = arb(float(own[0, 0]))
    return known / (own * (own - known))


def _brute_force(releases, secret, of_content, prior, axis, apart):
    """The loss of one secret from all releases, every fix of each one a row of its own."""
    times = np.concatenate([one.time_us for one in releases]) / US
    contents = np.concatenate([[one.content] * len(one.time_us) for one in releases])
    kernel = prior.process_prior(times)
    gap = times[:, None] - times[None, :]
    same = (gap == 0) & ((contents[:, None] == contents[None, :]) | (not apart))
    # The kernel of two rows, and the error of the fix where both are of one recording.
    origin = times - times.min()
    covariance = np.array(prior.process_prior(origin).covariance) - prior.nugget_m**2 * np.eye(len(times))
    covariance += prior.nugget_m**2 * same
    at = secret.time_us[0] / US - times.min()
    cross, own = (np.array(one) for one in prior.process_prior(origin).joint_at(at))
    if not secret.between:
        mine = (times == secret.time_us[0] / US) & ((contents == of_content) | (not apart))
        cross = cross + prior.nugget_m**2 * mine[:, None]
        own = own + prior.nugget_m**2
    noise = arb_mat(len(times), len(times))
    start = 0
    for one in releases:
        mechanism, n = one.mechanisms[axis], len(one.time_us)
        factor = arb_mat(np.asarray(mechanism.factor).tolist())
        block = factor * factor.transpose()
        for a in range(n):
            for b in range(n):
                noise[start + a, start + b] = block[a, b] + (arb(float(mechanism.floor_sd)) ** 2 if a == b else 0)
        start += n
    assert kernel.size == len(times)
    return float(_square_root_free_loss(covariance, cross, own, noise))


def _truth(releases, secret, release, order):
    best = 0.0
    for axis in (0, 1):
        priors = {
            prior
            for other in releases
            for prior in other.priors[axis]
            if any(one == secret for one in other.secrets) and (secret.between or other.content == release.content)
        }
        for prior in priors:
            for apart in (False, True):
                best = max(best, _brute_force(releases, secret, release.content, prior, axis, apart))
    return order / 2 * 20.0**2 * best


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_random_ledgers_are_the_joint_formula(seed):
    """Overlapping times, two recordings, several priors, a secret between fixes, equal instants."""
    rng = np.random.default_rng(seed)
    releases = []
    for i in range(3):
        times = np.sort(rng.choice(np.arange(0, 80, 10), size=4, replace=False))
        content = [b"a", b"b"][int(rng.integers(2))]
        priors = tuple((SMOOTH, ROUGH)[: int(rng.integers(1, 3))] for _ in (0, 1))
        secrets = [(float(rng.choice(times)),), float(times[0]) + 3.0]
        releases.append(_release(f"draw {i}", times, _mechanisms(rng, 4), secrets, priors, content, i + 1))
    found = joint_losses(releases)
    expected = {}
    for release in releases:
        for secret in release.secrets:
            key = (secret.label, b"" if secret.between else release.content)
            expected[key] = _truth(releases, secret, release, 2.0)
    assert len(found.secrets) == len(expected)
    # Certified from above, and no more than 1e-9 above: kernels computed for another origin of time differ by 1e-14,
    # which stacking of equal recordings enlarges.
    assert sorted(one.together for one in found.secrets) == pytest.approx(sorted(expected.values()), rel=1e-9)
    assert found.epsilon == max(one.together for one in found.secrets)
    # The order of records is irrelevant, to the last bit.
    for order in (releases[::-1], [releases[1], releases[2], releases[0]]):
        again = joint_losses(order)
        assert sorted(one.together for one in again.secrets) == sorted(one.together for one in found.secrets)


def test_a_secret_is_judged_under_the_priors_that_were_named_with_it(rng):
    wide = PriorChoice("rbf", 20.0, 5000.0, 2.0)
    first = _release("1", [0, 10, 20], _mechanisms(rng, 3), [(10.0,)], number=1)
    second = _release("2", [0, 10, 20], _mechanisms(rng, 3), [(20.0,)], ((wide,), (wide,)), number=2)
    found = {one.label: one.together for one in joint_losses([first, second]).secrets}
    only = _release("2", [0, 10, 20], second.mechanisms, [(20.0,)], number=2)
    alike = {one.label: one.together for one in joint_losses([first, only]).secrets}
    assert found["(10.0,)"] == alike["(10.0,)"]
    assert found["(20.0,)"] != alike["(20.0,)"]
    assert [(one.release, one.label) for one in joint_losses([second, first]).secrets] == [
        (1, "(10.0,)"),
        (2, "(20.0,)"),
    ]


def test_two_recordings_at_one_instant(rng):
    """Of the two readings of equal instants the worse one counts."""
    releases = [
        _release("1", [0, 10, 20], _mechanisms(rng, 3), [(10.0,)], content=b"a", number=1),
        _release("2", [0, 10, 20], _mechanisms(rng, 3), [(10.0,)], content=b"b", number=2),
    ]
    found = joint_losses(releases)
    assert [(one.release, one.label) for one in found.secrets] == [(1, "(10.0,)"), (2, "(10.0,)")]
    for one, release in zip(found.secrets, releases, strict=True):
        secret, content = release.secrets[0], release.content
        both = [
            400.0 * max(_brute_force(releases, secret, content, SMOOTH, axis, apart) for axis in (0, 1))
            for apart in (False, True)
        ]
        assert one.together == pytest.approx(max(both), rel=1e-9)
        assert both[0] != pytest.approx(both[1], rel=1e-3)


def test_two_least_noise_designs_are_refused():
    """Each hides what the other publishes: 50 fixes, RBF of length 6.1, the noise for fix 24 and that for fix 30."""
    prior = PriorChoice("rbf", 6.1, 1.0, 1e-3)
    times = np.arange(50)
    process = prior.process_prior(times.astype(float))
    releases = []
    for i, at in enumerate((24, 30)):
        made = jp.design(process, jp.Secret([at], 1.0), budget=1.0, floor_sd=1e-4)
        secret = LedgerSecret(f"fix {at}", (at * US,), False, 1.0, made.epsilon)
        releases.append(
            LedgerRelease(
                i + 1, str(i), "published", "", b"a", str(i).encode(), times * US,
                (made.mechanism, made.mechanism), ((prior,), (prior,)), (secret,),
            )
        )  # fmt: skip
    alone = [one.secrets[0].alone for one in releases]
    assert max(alone) < 20
    joint = joint_losses(releases)
    assert joint.epsilon > 1e3 * sum(alone)
    check_limit(joint_losses(releases[:1]), 20.0, releases[0], [])
    with pytest.raises(
        jp.InfeasibleError, match=r"together with the 1 earlier .* fix .* the limit is 20; .*repeat its"
    ):
        check_limit(joint, 20.0, releases[1], releases[:1])


def test_equal_releases_are_one_with_the_mean_noise(rng):
    mechanisms = _mechanisms(rng, 4)
    times, secret = [0, 10, 20, 30], [(20.0,)]
    three = joint_losses([_release(str(i), times, mechanisms, secret, number=i + 1) for i in range(3)])
    third = tuple(
        jp.GaussianMechanism(np.asarray(one.factor) / math.sqrt(3), float(one.floor_sd) / math.sqrt(3))
        for one in mechanisms
    )
    assert three.epsilon == pytest.approx(joint_losses([_release("x", times, third, secret)]).epsilon, rel=1e-9)


def test_secrets_of_several_fixes_and_the_order(rng):
    releases = [
        _release("1", [0, 10, 20], _mechanisms(rng, 3), [(0.0, 10.0)], number=1, order=3.0),
        _release("2", [20, 30], _mechanisms(rng, 2), [(20.0,)], number=2, content=b"b"),
    ]
    together = {one.label: one.together for one in joint_losses(releases).secrets}
    process = SMOOTH.process_prior(np.array([0.0, 10.0, 20.0, 30.0]))
    expected = max(
        jp.certify_releases(
            process, jp.Secret([0, 1], 20.0), [one.mechanisms[axis] for one in releases], 3.0,
            positions=[[0, 1, 2], [2, 3]],
        ).epsilon
        for axis in (0, 1)
    )  # fmt: skip
    assert together["(0.0, 10.0)"] >= expected * (1 - 1e-12)


@pytest.mark.parametrize("kernel", [one for one in KERNELS if one != "periodic"])
def test_correlation_is_the_kernels(kernel):
    prior = PriorChoice(kernel, 25.0, 3.0, 0.0)
    for gap in (0.0, 1.0, 30.0, 300.0):
        exact = float(prior.process_prior(np.array([0.0, gap])).covariance[0, 1]) / 9.0
        assert exact <= correlation(prior, gap) <= exact * (1 + 1e-8) + 1e-299
    assert correlation(prior, 1e9) < 1e-290
    assert correlation(PriorChoice("periodic", 25.0, 3.0, 0.0, 86400.0), 1e9) == 1.0


@pytest.mark.parametrize("prior", [SMOOTH, ROUGH, PriorChoice("matern32", 30.0, 40.0, 1.0)])
@pytest.mark.parametrize("secrets", [[(10.0,)], [13.0], [(0.0, 10.0)]])
def test_what_far_releases_add_is_bounded(rng, prior, secrets, monkeypatch):
    """Against stacking everything, where the correlation is small but shows."""
    gap = {"rbf": 110, "matern12": 420, "matern32": 230}[prior.kernel]
    releases = [
        _release("1", [0, 10, 20], _mechanisms(rng, 3, 40.0), secrets, ((prior,), (prior,)), number=1),
        _release("2", [gap, gap + 10], _mechanisms(rng, 2, 40.0), [(float(gap),)], ((prior,), (prior,)), b"b", 2),
    ]
    exact = joint_losses(releases).secrets[0].together
    alone = joint_losses(releases[:1]).secrets[0].together
    monkeypatch.setattr(ledger_joint, "CORRELATED", 1e-4)
    bound = joint_losses(releases).secrets[0].together
    assert alone < exact <= bound < 3 * alone
    secret = releases[0].secrets[0]
    assert with_far_releases(1.0, prior, secret, 1.0, releases[:1], releases[1:], 0) == math.inf
    assert with_far_releases(1.0, prior, secret, 1e9, releases[:1], releases[1:], 0) == pytest.approx(1.0, abs=1e-15)


def test_several_fixes_without_a_nugget_are_never_taken_apart(rng):
    bare = PriorChoice("matern12", 10.0, 50.0, 0.0)
    releases = [
        _release("1", [0, 10], _mechanisms(rng, 2), [(0.0, 10.0)], ((bare,), (bare,)), number=1),
        _release("2", [10**6, 10**6 + 9], _mechanisms(rng, 2), [(1e6,)], ((bare,), (bare,)), b"b", 2),
    ]
    assert all(math.isfinite(one.together) for one in joint_losses(releases).secrets)


def test_certificates_are_computed_once(rng, monkeypatch):
    near = [_release(str(i), [0, 10, 20], _mechanisms(rng, 3), [(10.0,)], number=i + 1) for i in range(2)]
    first = joint_losses(near)
    assert len(first.certified) == 2
    monkeypatch.setattr(ledger_joint, "certify_releases", None)  # would raise
    assert joint_losses(near, first.certified).secrets == first.secrets
    assert joint_losses(near, first.certified).certified == {}


def test_too_many_fixes_at_once(rng, monkeypatch):
    monkeypatch.setattr(ledger_joint, "MAX_STACKED", 5)
    near = [_release(str(i), [0, 10, 20], _mechanisms(rng, 3), [(10.0,)], number=i + 1) for i in range(2)]
    with pytest.raises(jp.InfeasibleError, match="2 releases of this person with 6 fixes hang together"):
        joint_losses(near)


def test_no_finite_joint_loss_is_refused(rng):
    exact = tuple(jp.GaussianMechanism(np.zeros((3, 0)), 0.0) for _ in (0, 1))
    release = _release("1", [0, 10, 20], exact, [(10.0,)])
    with pytest.raises(jp.CertificateError, match="no finite joint epsilon"):
        check_limit(joint_losses([release]), None, release, [])
