"""The documents: the example runs, the numbers are right, the links lead somewhere, the words are sober."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats

import jaxpriv as jp
from jaxpriv.certificates.scalars import gaussian_epsilon


ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Written apart, so that this file does not hold them itself.
BANNED = tuple(" ".join(words) for words in (("provably", "private"), ("guaranteed", "anonymous")))


def rows(document: str, columns: int) -> list[list[str]]:
    """The rows of the first table with so many columns whose first column is a number."""
    lines = (ROOT / document).read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if len(row) == columns and re.fullmatch(r"[0-9.]+", row[0])]


def number(text: str) -> float:
    return float(re.search(r"\d[\d.]*", text.replace("ε′ =", "")).group())


def rounded_up(shown: str, exact: float) -> bool:
    """Whether a decimal numeral is the value rounded up in its last digit."""
    value = number(shown)
    digits = len(re.search(r"\d(?:\.(\d+))?\D*$", shown).group(1) or "")
    return exact <= value < exact + 10.0**-digits


def tail(mu: float, delta: float) -> float:
    """The size that a normal variable of mean μ²/2 and variance μ² exceeds with probability δ."""

    def excess(value: float) -> float:
        return stats.norm.sf(value, mu**2 / 2, mu) + stats.norm.cdf(-value, mu**2 / 2, mu) - delta

    return optimize.brentq(excess, 0.0, mu**2 + 10 * mu, xtol=1e-14)


@pytest.mark.parametrize(("document", "columns", "count"), [("README.md", 3, 4), ("docs/claims.md", 5, 6)])
def test_table_of_epsilon(document, columns, count):
    table = rows(document, columns)
    assert len(table) == count
    for row in table:
        epsilon = float(row[0])
        mu = math.sqrt(epsilon)  # order 2
        assert rounded_up(row[1], 100 * stats.norm.cdf(mu / 2)), row
        assert rounded_up(row[2], math.exp(tail(mu, 0.01))), row
        if columns == 5:
            assert rounded_up(row[3], gaussian_epsilon(epsilon, 0.01)), row
            assert rounded_up(row[4], math.exp(epsilon) / 0.01), row


def test_example_of_the_readme(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    first, even, left, *_ = capsys.readouterr().out.splitlines()
    epsilon, cost, gap = (float(word) for word in first.split())
    assert 0.5 * (1 - 1e-6) < epsilon <= 0.5 and gap < 1e-6
    # What the text says: 12.4 for the same power spread evenly, ±206 m, 125 m root mean square instead of 965 m.
    assert f"{float(even):.1f}" == "12.4"
    assert f"{float(left):.0f}" == "206"
    assert f"{math.sqrt(cost / 60):.0f}" == "125"
    independent = jp.baselines.smallest_uniform(names["prior"], names["secret"], 0.5)
    assert f"{float(independent.floor_sd):.0f}" == "965"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(document):
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = document.parent / path if path else document
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, target


def test_banned_words_are_nowhere():
    kinds = {".py", ".md", ".toml", ".cff", ".html", ".txt", ".json"}
    folders = [ROOT / name for name in ("jaxpriv", "docs", "tests", "benchmarks", "examples")]
    files = [file for folder in folders for file in folder.rglob("*") if file.suffix in kinds]
    files += [file for file in ROOT.iterdir() if file.suffix in kinds]
    assert len(files) > 50
    for file in files:
        text = " ".join(file.read_text(encoding="utf-8").lower().split())
        assert not [words for words in BANNED if words in text], file


def loss(prior: np.ndarray, noise: np.ndarray, secret: int) -> float:
    """1/P − 1/Σ of one coordinate, P its posterior variance."""
    known = prior[secret] @ np.linalg.solve(prior + noise, prior[secret])
    return known / (prior[secret, secret] * (prior[secret, secret] - known))


def smooth_prior(length: float, nugget: float) -> np.ndarray:
    lags = np.subtract.outer(np.arange(50), np.arange(50))
    return np.exp(-(lags**2) / (2 * length**2)) + nugget * np.eye(50)


def least_noise(prior: np.ndarray, secret: int) -> np.ndarray:
    """The noise of total power 1 with the least loss for one coordinate (Theorem 7 of docs/design.md)."""
    line = np.linalg.solve(prior + np.eye(len(prior)), prior[:, secret])
    return np.outer(line, line) / (line @ line)


def test_releases_that_combine():
    """The examples of docs/sharp_edges.md, to the digits shown there."""
    hidden, noise = 1e4, 0.01
    # The secret, its sum with the hidden part, the hidden part; the secret itself is not published.
    prior = np.array([[1, 1, 0], [1, 1 + hidden, hidden], [0, hidden, hidden]])
    unseen = 1e12
    assert loss(prior, np.diag([unseen, noise, unseen]), 0) == pytest.approx(1e-4, rel=1e-3)
    assert loss(prior, np.diag([unseen, unseen, noise]), 0) == pytest.approx(0.0, abs=1e-9)
    assert loss(prior, np.diag([unseen, noise, noise]), 0) == pytest.approx(50.0, rel=1e-5)

    prior, floor = smooth_prior(6.1, 1e-4), 1e-8 * np.eye(50)
    first, second = least_noise(prior, 24) + floor, least_noise(prior, 30) + floor
    both = np.linalg.inv(np.linalg.inv(first) + np.linalg.inv(second))
    assert loss(prior, first, 24) == pytest.approx(7.7, abs=0.05)
    assert loss(prior, second, 24) == pytest.approx(133, abs=0.5)
    assert loss(prior, both, 24) == pytest.approx(1.6e8, abs=0.05e8)


def test_table_of_robustness():
    """The rows of docs/sharp_edges.md that have a closed form."""
    size, middle = 50, 24
    assumed = smooth_prior(6.1, 1e-6)
    noises = {
        "optimum for the assumed prior": least_noise(assumed, middle),
        "shaped like the prior": assumed / np.trace(assumed),
        "independent, same power": np.eye(size) / size,
    }
    text = (ROOT / "docs/sharp_edges.md").read_text(encoding="utf-8")
    for name, noise in noises.items():
        (cells,) = re.findall(rf"^\| {name} \|(.*)\|$", text, re.MULTILINE)
        for shown, factor in zip(cells.replace("*", "").split("|"), (0.5, 1.0, 1.5), strict=True):
            true = smooth_prior(6.1 * factor, 1e-6)
            # A floor of a millionth of the mean noise power, as in the published experiment.
            known = true[middle] @ np.linalg.solve(true + noise + 1e-6 / size * np.eye(size), true[middle])
            # Two digits are shown; half a unit in the last.
            assert 2 * math.sqrt(true[middle, middle] - known) == pytest.approx(float(shown), abs=0.0051), name
