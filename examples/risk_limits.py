"""Exploration within limits: whom it may not touch, how risky, and how much money a round.

    python examples/risk_limits.py

Applicants ask for loans of different amounts. Nobody under 21 is explored, nobody whose predicted
risk is above 0.7, and the loans explored in a round never sum to more than 40,000. The record says
how many people that leaves out, and of whom it is therefore not promised that they are explored.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from secondlook import GroupShare, PartialFeedbackClassifier, Revenue
from secondlook.core.limits import Below, Limited

EXPOSURE = 40_000


def applicants(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return features, groups and outcomes of people who ask for a loan."""
    group = np.where(rng.random(n) < 0.3, "B", "A")
    people = pd.DataFrame(
        {
            "income": rng.normal(size=n) - 0.3 * (group == "B"),
            "debt": rng.normal(size=n),
            "age": rng.integers(18, 75, n),
            "amount": rng.integers(5, 60, n) * 100,
        }
    )
    odds = 1.3 + 1.5 * people["income"] - 0.8 * people["debt"]
    repays = (rng.random(n) < 1 / (1 + np.exp(-odds.to_numpy()))).astype(int)
    return people, group, repays


def main() -> pd.DataFrame:
    """Decide ten batches and print what the limits did."""
    rng = np.random.default_rng(0)
    people, group, repays = applicants(2000, rng)
    classifier = PartialFeedbackClassifier(
        utility=Revenue(gain=200, loss=500),
        strategy=Limited(
            GroupShare(),
            max_risk=0.7,
            exclude=Below("age", 21),
            exposure=EXPOSURE,
            amount="amount",
        ),
        first_round="learned",  # so that risk is one minus the chance to repay from round 1 on
        random_state=0,
    ).fit(people, repays, accepted=people["income"] > 0, sensitive_features=group)
    lent = []
    for _ in range(10):
        people, group, repays = applicants(1000, rng)
        batch = classifier.decide(people, sensitive_features=group)
        classifier.observe(batch.ids[batch.accepted], repays[batch.accepted])
        lent.append(int(people["amount"][batch.explored].sum()))
    columns = ["round", "n_people", "n_exploit_region", "n_explored", "n_unreachable"]
    table = pd.DataFrame(classifier.rounds_)[columns].assign(lent_to_explored=lent)
    print(table.to_string(index=False))
    print(f"\nRound 1: {classifier.rounds_[0].note}")
    never = classifier.never_explored(people, sensitive_features=group)
    print(f"\n{never.sum()} of the last 1000 applicants can not be explored as things stand.")
    return table


if __name__ == "__main__":
    main()
