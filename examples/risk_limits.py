"""Limit exploration by age, by predicted risk and by the amount lent in a round.

    python examples/risk_limits.py

Applicants ask for loans of different amounts. Applicants under 21 and applicants with a predicted
risk above 0.7 are not explored, and the loans explored in a round never sum to more than 40,000.
The record counts the applicants that the limits exclude; exploration is not promised for them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairchance import GroupShare, PartialFeedbackClassifier, Revenue
from fairchance.core.limits import Below, Limited

EXPOSURE = 40_000


def applicants(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return features, groups and outcomes of applicants for a loan."""
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
    """Decide ten batches and print the effect of the limits."""
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
        first_round="learned",  # so that the risk is 1 - P(repays) from round 1 on
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
    for note in classifier.rounds_[0].notes:
        print(f"\nRound 1, {note.code}: {dict(note.facts)}")
    never = classifier.never_explored(people, sensitive_features=group)
    print(f"\n{never.sum()} of the last 1000 applicants cannot be explored under these limits.")
    return table


if __name__ == "__main__":
    main()
