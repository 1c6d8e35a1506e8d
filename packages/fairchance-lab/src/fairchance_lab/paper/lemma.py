"""The paper's lemma on cells: η_w is close to μ where outcomes are exploited.

Past decisions favoured some cells, so labelled rows over-represent them. η_w weights each cell by
all its applicants instead, and only sampling noise is left between η_w and μ, given EXPLOIT_t. A
run on a small domain with known μ shows it; the same rows without weights stay away from μ however
many there are. ``python -m fairchance_lab.paper.lemma`` prints the table of docs/experiments.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairchance.core.budget import FdrBudget
from fairchance.core.utility import Revenue
from fairchance.simulate.populations import FiniteDomain
from fairchance_lab.finite import FiniteClassifier, eta

__all__ = ["DOMAIN", "Distance", "distance_from_truth"]

DOMAIN = FiniteDomain(
    X=np.array([[0.0], [1.0], [2.0], [3.0]] * 2),
    group=np.repeat(["a", "b"], 4),
    mass=np.array([0.2, 0.15, 0.1, 0.1, 0.15, 0.1, 0.12, 0.08]),
    good=np.array([0.97, 0.9, 0.75, 0.55, 0.95, 0.92, 0.7, 0.85]),
)
_PAST = np.array([1, 1, 0, 0, 1, 0, 0, 0.0])
_BUDGET = FdrBudget(0.25, 0.2)


class Distance(NamedTuple):
    """How far the rows that f_t learns from are from μ on EXPLOIT_t, in total variation.

    Attributes
    ----------
    weighted
        Of η_w.
    unweighted
        Of the labelled rows as they are.
    known
        The share of all applicants whose cells are in EXPLOIT_t.
    """

    weighted: float
    unweighted: float
    known: float


def distance_from_truth(n_people: int, n_rounds: int = 20, seed: int = 0) -> Distance:
    """Run Algorithm 1 on the domain, and compare what it learns from with the truth.

    Examples
    --------
    >>> few, many = (distance_from_truth(n, n_rounds=10) for n in (100, 10_000))
    >>> many.weighted < 0.01 < few.weighted, many.unweighted > 0.05
    (True, True)
    """
    rng = np.random.default_rng(seed)
    classifier = FiniteClassifier(Revenue(200, 500), _BUDGET, random_state=seed)
    classifier.fit(None, None, domain=(DOMAIN.X, DOMAIN.group), past_policy=_PAST)
    for _ in range(n_rounds):
        people = DOMAIN.draw(n_people, rng)
        good = rng.random(n_people) < DOMAIN.probability_good(people)
        batch = classifier.decide(people.X, sensitive_features=people.group)
        classifier.observe(batch.ids[batch.accepted], good[batch.accepted].astype(int))
    known = classifier.policies_[-1].exploit & (classifier.counts_.outcomes > 0)
    truth = np.concatenate([DOMAIN.mass * DOMAIN.good, DOMAIN.mass * (1 - DOMAIN.good)])
    truth *= np.tile(known, 2) / DOMAIN.mass[known].sum()

    def away(weights: NDArray[np.float64]) -> float:
        return float(np.abs(weights - truth).sum()) / 2

    return Distance(
        away(np.concatenate(eta(classifier.counts_, known))),
        away(np.concatenate(eta(classifier.counts_, known, weights="none"))),
        float(DOMAIN.mass[known].sum()),
    )


def _main() -> None:
    print("| applicants a round | η_w | labelled rows, unweighted | known |")
    print("|---|---|---|---|")
    for n_people in (100, 1_000, 10_000, 100_000):
        runs = [distance_from_truth(n_people, seed=seed) for seed in range(5)]
        weighted, unweighted, known = np.mean(runs, axis=0)
        print(f"| {n_people:,} | {weighted:.4f} | {unweighted:.3f} | {known:.2f} |")


if __name__ == "__main__":
    _main()
