"""Programs with a random life: pending and withdrawn outcomes, overrides, erasures, new groups."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import fairchance as fc
from fairchance.ledger.program import Program


def random_program(url, seed):
    """Return a program with few applicants; the seed decides on its method and on its life."""
    rng = np.random.default_rng([29, seed])
    learner, alpha = LogisticRegression(), (0.02, 0.4)[seed % 4 // 2]
    options = {"learner": learner, "random_state": seed, "utility": fc.Revenue(200, 300)}
    if seed % 2:
        classifier = fc.CertifiedClassifier(alpha=alpha, horizon=6, **options)
    else:
        budget = fc.FdrBudget(alpha=alpha)
        classifier = fc.PartialFeedbackClassifier(budget=budget, group_mode="audit", **options)
    attributes = ["sex", "age"][: 1 + seed % 3 % 2]
    X, y, groups = _applicants(rng, 200, attributes, ["a", "b", "c"])
    beside = seed % 4 < 2  # the lender's own process
    about = {"not_taken_within": "2 rounds", "ramp": 0.7} if beside else None
    program = Program.create(url, classifier, X, y, sensitive_features=groups, about=about)
    known, n = (0.3, 1.0, 0.0)[seed // 2 % 3], (80, 400)[seed // 2 % 2]
    for t in range(3):
        names = ["a", "b"] if t == 0 else ["a", "b", "c"]  # c appears later
        X, y, groups = _applicants(rng, n, attributes, names)
        if seed % 3 == 0:  # the world turns bad
            y[rng.random(n) < 0.6] = 0
        ids = np.arange(1000 * (t + 1), 1000 * (t + 1) + n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by_lender = {"incumbent": X[:, 0] > 0, "barred": X[:, 0] < -2} if beside else {}
            decided = program.decide(
                X, sensitive_features=groups, ids=ids, unlike_history=True, **by_lender
            )
            _live(program, rng, decided, dict(zip(ids.tolist(), y.tolist(), strict=True)), known)
    return program


def _applicants(rng, n, attributes, names):
    X = rng.normal(size=(n, 2))
    groups = pd.DataFrame({name: rng.choice(names, n) for name in attributes})
    shift = np.where(groups[attributes[0]] == "b", 1.0, 0.0)
    X[:, 0] -= shift
    return X, (X[:, 0] + rng.normal(size=n) > -0.6).astype(int), groups


def _live(program, rng, decided, outcome, known):
    """Override, observe, withdraw and erase some applicants of a round."""
    yes = rng.permutation(decided.ids[decided.accepted]).tolist()
    no = rng.permutation(decided.ids[~decided.accepted]).tolist()
    program.override(yes[:3], False, "fraud")
    program.undo_override(yes[:2], "none after all")
    program.override(no[:3], True, "has a guarantor")
    seen = [one for one in [*yes[:2], *yes[3:], *no[:2]] if rng.random() < known]
    if seen:
        program.observe(seen, [outcome[one] for one in seen], unlike_expected=True)
    pending = [one for one in yes[3:] if one not in seen]
    if pending[:2] and rng.random() < 0.5:
        program.withdraw(pending[:2])
    if program.about and pending[2:]:
        program.not_taken(pending[2:4])
    program.erase([*yes[4:6], *no[3:5]], "asked for it", early=True)
