"""Policies of every kind with applicants in a table, and what one call decides on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairchance import CertifiedClassifier, PartialFeedbackClassifier
from fairchance.core.decisions import Decisions
from fairchance.methods.policy import Policy
from mixed_tables import applicants

N = 400
PIPELINE = make_pipeline(StandardScaler(), LogisticRegression())
CASES: dict[str, dict[str, Any]] = {
    "certified, aware": {"group_mode": "aware"},
    "certified, blind": {"group_mode": "blind"},
    "certified, audit": {"group_mode": "audit"},
    "certified, per group": {"certify": "per_group"},
    "certified, beside the lender": {"incumbent": True, "ramp": 0.6, "group_mode": "blind"},
    "certified, per group, persons": {"certify": "per_group", "persons": True, "ramp": 0.6},
    "certified, own estimator": {"learner": PIPELINE, "numbers": True},
    "coins, aware": {"exploration": "coins", "group_mode": "aware"},
    "coins, blind": {"exploration": "coins", "group_mode": "blind"},
    "coins, audit": {"exploration": "coins", "group_mode": "audit"},
    "coins, beside the lender": {"exploration": "coins", "incumbent": True, "ramp": 0.6},
}


@dataclass(frozen=True)
class Case:
    """A policy, applicants as an Arrow table, and what one call decides on them."""

    policy: Policy
    table: pa.Table
    whole: Decisions


def people(seed: int, *, numbers: bool) -> tuple[Any, Any, Any]:
    """Return features, outcomes and groups of applicants."""
    rng = np.random.default_rng(seed)
    frame, good, _ = applicants(rng, N)
    features = ["income"] if numbers else ["job", "age", "owner", "since", "income"]
    return frame[features], good, rng.choice(["f", "m"], N)


@cache
def case(name: str) -> Case:
    """Return a case by its name."""
    options = dict(CASES[name])
    numbers, persons = options.pop("numbers", False), options.pop("persons", False)
    beside, ramp = options.pop("incumbent", False) or "ramp" in options, options.pop("ramp", 1.0)
    make = PartialFeedbackClassifier if "exploration" in options else CertifiedClassifier
    X, good, group = people(0, numbers=numbers)
    rng = np.random.default_rng(1)
    accepted = good | (rng.random(N) < 0.5)
    classifier = make(random_state=5, **options)
    given = {"persons": np.arange(N) // 2} if persons else {}
    classifier.fit(X, good, accepted=accepted, sensitive_features=group, **given)
    policy = classifier.open_round(N, incumbent=beside, ramp=ramp)
    X, _, group = people(2, numbers=numbers)
    lender = {"incumbent": rng.random(N) < 0.5} if beside else {}
    given = lender | ({"persons": np.arange(N) // 3} if persons else {})
    if make is CertifiedClassifier and not beside:
        given["barred"] = rng.random(N) < 0.1
    ids = np.arange(N) + 10_000
    table = pa.table({"loan": ids, "sex": group, **given, **X.to_dict("series")})
    named = {role: role for role in given}
    policy = policy.for_table(ids="loan", groups="sex", **named)
    return Case(policy, table, policy.decide(X, ids=ids, sensitive_features=group, **given))


def check_decided(case: Case, decided: pa.Table, prefix: str = "") -> None:
    """Assert that an engine decided as the one call did; its rows may have any order."""
    decided = decided.sort_by("loan")
    assert decided["loan"].to_pylist() == case.whole.ids.tolist()
    for name in ("accepted", "exploit"):
        assert decided[prefix + name].to_pylist() == getattr(case.whole, name).tolist()
    for name in ("propensity", "score"):
        one, other = decided[prefix + name].to_numpy(), getattr(case.whole, name)
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert set(decided[prefix + "round"].to_pylist()) == {case.whole.round}
    assert set(decided[prefix + "policy"].to_pylist()) == {case.policy.key}


def expired(case: Case) -> Policy:
    """Return the policy of a case after its time."""
    return replace(case.policy, expires="2020-01-31T00:00:00+00:00")


def of_other_version(case: Case) -> Policy:
    """Return the policy of a case as another version of fairchance made it."""
    return replace(case.policy, versions={**case.policy.versions, "fairchance": "0.0.9"})
