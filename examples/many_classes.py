"""Insurance claims: refuse, pay in full or pay in part; only paid claims reveal their class.

    python examples/many_classes.py

A claim is honest, sloppy or a fraud. The old rule refused all claims from the country, which are no
less honest than claims from town. At most 20 % of paid claims may be mistakes: a claim paid in full
that is not honest, or a claim paid in part that is a fraud. The table shows the decisions of a
round, the mistakes, and the share of claims from the country that were paid.
"""

from __future__ import annotations

import numpy as np

from fairchance import FdrBudget, GroupShare
from fairchance_lab.many_classes import ManyClassClassifier

CLASSES = np.array(["fraud", "honest", "sloppy"])
WORTH = {
    "refuse": {"fraud": 0, "honest": -1, "sloppy": 0},
    "pay": {"fraud": -10, "honest": 5, "sloppy": -2},
    "part": {"fraud": -5, "honest": 1, "sloppy": 2},
}


def claims(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw claims: features (complete papers, an odd story, the country), classes and places."""
    country = rng.random(n) < 0.4
    papers, oddness = rng.normal(size=n), rng.normal(size=n)
    # In the country, an odd story is a weaker sign of fraud.
    fraud = -1.5 + np.where(country, 0.7, 1.8) * oddness
    honest = 1.0 + 1.5 * papers
    odds = np.column_stack([fraud, honest, np.zeros(n)])
    outcome = CLASSES[(odds + rng.gumbel(size=odds.shape)).argmax(axis=1)]
    X = np.column_stack([papers, oddness, country, country * oddness])
    return X, outcome, np.where(country, "country", "town")


def main() -> None:
    """Run 24 rounds and print every third round."""
    rng = np.random.default_rng(7)
    classifier = ManyClassClassifier(
        utility=WORTH,
        observed=("pay", "part"),
        good={"pay": ("honest",), "part": ("honest", "sloppy")},
        budget=FdrBudget(alpha=0.2, exploit=0.12),
        strategy=GroupShare(),
        random_state=0,
    )
    X, outcome, place = claims(2000, rng)
    paid_before = (place == "town") & (X[:, 0] > -0.5)
    classifier.fit(X, outcome, accepted=paid_before, sensitive_features=place)

    paid_in_country = []
    for _ in range(24):
        X, outcome, place = claims(1000, rng)
        batch = classifier.decide(X, sensitive_features=place)
        classifier.observe(batch.ids[batch.accepted], outcome[batch.accepted])
        paid_in_country.append(batch.accepted[place == "country"].mean())

    print("round  refuse   pay  part  explored | mistakes: pay  part | paid in the country")
    for record, country in list(zip(classifier.rounds_, paid_in_country, strict=True))[2::3]:
        decided, wrong = record.decided, record.error_share
        print(
            f"{record.round:5d}  {decided['refuse']:6d} {decided['pay']:5d} {decided['part']:5d}  "
            f"{record.n_explored:8d} |          {wrong['pay']:4.0%}  {wrong['part']:4.0%} "
            f"| {country:19.0%}"
        )


if __name__ == "__main__":
    main()
