"""CPU time of the constrained fit against scikit-learn's unconstrained one, in one run.

Run with ``python -m benchmarks fit``. Census-like and independent features are drawn, several times
each; real census data is used too if the environment variable ``SECONDLOOK_DATA`` names a folder
that holds ``acs_pa_ma_in_2024_persons.parquet``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from secondlook.core.fairness import SelectionRateParity
from secondlook.learners.logistic import ConstrainedLogistic

ROWS, FEATURES = (10_000, 50_000, 240_000), (10, 100)
TARGETS = {10: dict.fromkeys(ROWS, 1.0), 100: {10_000: 3.5, 50_000: 1.5, 240_000: 1.5}}
MAX_FDR, DIFFERENCE = 0.15, 0.05
CENSUS_FILE = "acs_pa_ma_in_2024_persons.parquet"
CENSUS_FEATURES = ("AGEP", "COW", "SCHL", "MAR", "OCCP", "WKHP", "SEX", "NATIVITY")

Data = tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.int8]]
Source = Callable[[int, int, np.random.Generator], Data]


def census_like(n_rows: int, n_features: int, rng: np.random.Generator) -> Data:
    """Standardised numbers and one-hot categories of uneven size, all correlated; two groups.

    The second group is 40 % of the people and lower in what the features have in common. Signal
    and shares are set so that, as on census incomes, the log-loss is about 0.36 and the expected
    FDR about 0.27 without constraints; holding the latter at 0.15 is then a strong demand.
    """
    group = (rng.random(n_rows) < 0.4).astype(np.int8)
    common = rng.normal(size=n_rows) - 0.5 * group
    numbers = rng.normal(size=(n_rows, max(n_features // 10, 3))) + 0.6 * common[:, None]
    effect = numbers @ rng.normal(scale=0.5, size=numbers.shape[1])
    columns, left = [numbers], n_features - numbers.shape[1]
    while left > 0:
        levels = min(left, int(rng.integers(3, 13)))
        cuts = np.sort(rng.normal(size=levels))
        level = np.searchsorted(cuts, rng.normal(size=n_rows) + 0.5 * common)
        columns.append((level[:, None] == np.arange(1, levels + 1)).astype(np.float64))
        worth = rng.normal(scale=0.5, size=levels + 1) + np.linspace(-1, 1, levels + 1)
        effect += worth[level]
        left -= levels
    margin = 2.8 * (effect - effect.mean()) / effect.std() - 0.5
    good = (rng.random(n_rows) < 1 / (1 + np.exp(-margin))).astype(np.int8)
    return np.hstack(columns), good, group


def independent(n_rows: int, n_features: int, rng: np.random.Generator) -> Data:
    """Independent Gaussian features: the easiest data for the reference, which needs few steps."""
    group = (rng.random(n_rows) < 0.4).astype(np.int8)
    X = rng.normal(size=(n_rows, n_features))
    margin = X @ rng.normal(scale=2.8 / np.sqrt(n_features), size=n_features) - 0.5 - 0.5 * group
    good = (rng.random(n_rows) < 1 / (1 + np.exp(-margin))).astype(np.int8)
    return X, good, group


def census(folder: Path) -> Source:
    """White and Black people of three states, incomes above 50,000; missing values are 0.

    Beyond its eight columns the features are different products of two to four of them.
    """
    # Needed only where there is such a file.
    from pyarrow import parquet  # noqa: PLC0415

    names = [*CENSUS_FEATURES, "RAC1P", "PINCP"]
    table = parquet.read_table(folder / CENSUS_FILE, columns=names)
    columns = np.column_stack([np.nan_to_num(table[n].to_numpy().astype(float)) for n in names])
    columns = columns[np.isin(columns[:, -2], (1, 2))]

    def draw(n_rows: int, n_features: int, rng: np.random.Generator) -> Data:
        rows = columns[rng.permutation(len(columns))[:n_rows]]
        X = _standardised(rows[:, :-2])
        factors: dict[tuple[int, ...], None] = {(i,): None for i in range(X.shape[1])}
        while len(factors) < n_features:
            drawn = rng.integers(X.shape[1], size=rng.integers(2, 5))
            factors[tuple(sorted(drawn.tolist()))] = None
        products = np.column_stack([X[:, list(chosen)].prod(axis=1) for chosen in factors])
        good = (rows[:, -1] > 50_000).astype(np.int8)
        return _standardised(products), good, (rows[:, -2] == 2).astype(np.int8)

    return draw


def _standardised(X: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray((X - X.mean(axis=0)) / X.std(axis=0))


def sources() -> dict[str, Source]:
    """All kinds of data there are here, by name."""
    found: dict[str, Source] = {"census-like": census_like, "independent": independent}
    folder = os.environ.get("SECONDLOOK_DATA")
    if folder and (Path(folder) / CENSUS_FILE).exists():
        found["census"] = census(Path(folder))
    return found


def cpu_time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(data: Data, repeat: int) -> dict[str, float]:
    """Medians over alternations, so that a busy machine slows all of them alike."""
    X, y, group = data
    X32 = X.astype(np.float32)
    constrained = ConstrainedLogistic(max_fdr=MAX_FDR, fairness=SelectionRateParity(DIFFERENCE))
    reference = LogisticRegression()
    work: dict[str, Callable[[], object]] = {
        "reference": lambda: reference.fit(X, y),
        "constrained": lambda: constrained.fit(X, y, sensitive_features=group),
        "float32": lambda: constrained.fit(X32, y, sensitive_features=group),
        "unconstrained": lambda: ConstrainedLogistic().fit(X, y),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    result = {"violation": 0.0}
    for _ in range(repeat):
        for name, run in work.items():
            times[name].append(cpu_time(run))
            if name in ("constrained", "float32"):
                result["violation"] = max(result["violation"], violation(constrained, data))
    result["seconds"], result["its"] = median(times["reference"]), float(reference.n_iter_[0])
    for name in ("constrained", "float32", "unconstrained"):
        result[name] = median(times[name]) / result["seconds"]
    return result


def violation(model: ConstrainedLogistic, data: Data) -> float:
    """Largest excess over a bound, recomputed in float64 from the fitted model."""
    X, y, group = data
    p = model.predict_proba(X)[:, 1]
    fdr = p[y == 0].sum() / p.sum()
    gap = abs(p[group == 0].mean() - p[group == 1].mean())
    return float(max(fdr - MAX_FDR, gap - DIFFERENCE, 0.0))


def main(repeat: int = 3, draws: int = 3) -> None:
    # The reference may stop at its default max_iter=100, which only favours it.
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("ratios of CPU time to scikit-learn's unconstrained LogisticRegression (float64, lbfgs):")
    print(f"medians over {draws} draws of the data, and for the constrained fit each of them")
    header = "  rows features  ref [s]  its  constrained  float32  unconstrained  target  violation"
    with threadpool_limits(1):
        for kind, source in sources().items():
            print(f"\n{kind}\n{header}  each")
            for n_features in FEATURES:
                for n_rows in ROWS:
                    found = []
                    for seed in range(draws):
                        data = source(n_rows, n_features, np.random.default_rng(seed))
                        found.append(measure(data, repeat))
                    print(line(n_rows, n_features, found), flush=True)


def line(n_rows: int, n_features: int, found: list[dict[str, float]]) -> str:
    r = {name: median(one[name] for one in found) for name in found[0]}
    worst = max(one["violation"] for one in found)
    return (
        f"{n_rows:6d} {n_features:8d} {r['seconds']:8.4f} {r['its']:4.0f} "
        f"{r['constrained']:12.2f} {r['float32']:8.2f} {r['unconstrained']:14.2f} "
        f"{TARGETS[n_features][n_rows]:7.1f} {worst:10.1e}  "
        + " ".join(f"{one['constrained']:.2f}" for one in found)
    )


if __name__ == "__main__":
    main()
