"""``fairchance plan --history`` against worlds whose truth is known, to which it has no access."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import fairchance as fc
from cli.lender_files import done

PROGRAM = """
[columns]
id = "id"
outcome = "outcome"
accepted = "accepted"
[outcomes]
good = "repaid"
bad = "default"
[classifier]
kind = "certified"
alpha = 0.1
utility = { good = 200, bad = -1000 }
"""
PEOPLE, ROUNDS, SEEDS = 500, 24, 5


def applicants(past, n, rng):
    """Return features, today's decisions and outcomes; about 40 % are accepted, 7 to 12 % bad."""
    income, debt = rng.lognormal(7.8, 0.5, n), rng.gamma(2.0, 3.0, n)
    years, late = rng.poisson(5, n), rng.poisson(0.8, n)
    age, area = rng.integers(21, 70, n), rng.choice(3, n)
    z = 0.9 * (np.log(income) - 7.8) / 0.5 - 0.7 * (debt - 6) / 4.2 + 0.4 * (years - 5) / 2.2
    z += -0.6 * (late - 0.8) / 0.9 + 0.3 * (area == 1)
    good = rng.random(n) < expit(1.4 + z + 0.5 * np.sin(age / 8))
    numbers = {"income": income.round(), "debt": debt.round(1), "years": years, "late": late}
    X = pd.DataFrame({**numbers, "age": age, "area": np.array(["n", "s", "w"])[area]})
    if past == "rule":
        today = z + 0.6 * rng.normal(size=n) > 0.42
    elif past == "human":
        today = z + 1.6 * rng.normal(size=n) > 0.9
    elif past == "cut":
        today = (income > 2300) & (late < 2)
    else:
        today = rng.random(n) < np.where(good, 0.55, 0.12)
    return X, today, good


def worth(accepted, good):
    return float(np.where(good, 200.0, -1000.0) @ accepted)


@cache
def added_in_truth(past, way):
    """Return what a start earns beyond today's policy in new lives, and what that policy earns."""
    added, today = [], []
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 7])
        X, accepted, good = applicants(past, 6000, rng)
        clf = fc.CertifiedClassifier(
            0.1,
            utility=fc.Revenue(200, 1000),
            horizon=ROUNDS,
            evidence="history" if "history" in way else "rounds",
            random_state=seed,
        ).fit(X, good, accepted=accepted)
        total = theirs = 0.0
        for t in range(ROUNDS):
            X, d, good = applicants(past, PEOPLE, rng)
            ramp = 0.05 if way == "ramp" and t < 12 else 1.0
            beside = {} if way.startswith("pilot") else {"incumbent": d, "ramp": ramp}
            batch = clf.decide(X, unlike_history=True, **beside)
            clf.observe(batch.ids[batch.accepted], good[batch.accepted])
            total, theirs = total + worth(batch.accepted, good), theirs + worth(d, good)
        added.append(total - theirs)
        today.append(theirs)
    return np.array(added), float(np.mean(today))


def loses(added):
    """Return whether a start loses money by more than noise."""
    return added.mean() < -2 * added.std(ddof=1) / np.sqrt(added.size)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
@pytest.mark.parametrize("past", ["rule", "human", "cut", "outcome"])
def test_the_recommended_start_does_not_lose_against_today_s_policy(past, tmp_path, monkeypatch):
    """Whatever the past selected on, of which the plan knows nothing."""
    monkeypatch.chdir(tmp_path)
    X, accepted, good = applicants(past, 6000, np.random.default_rng([1, 99]))
    outcome = np.where(good, "repaid", "default")
    X = X.assign(id=range(6000), accepted=np.where(accepted, "yes", "no"))
    X.assign(outcome=np.where(accepted, outcome, "")).to_csv("loans.csv", index=False)
    Path("program.toml").write_text(PROGRAM)
    words = ("plan", "--history", "loans.csv", "--config", "program.toml", "--people", PEOPLE)
    found = done(*words, "--rounds", ROUNDS, "--repetitions", 3)
    earns, starts = found["history"]["today_earns"], found["starts"]
    n = 3 * ROUNDS * PEOPLE
    spread = np.std(np.where(good, 200.0, -1000.0) * accepted)
    assert earns["file"] == pytest.approx(worth(accepted, good) / 6000)
    assert earns["plan"] == pytest.approx(earns["file"], abs=4 * spread / np.sqrt(n))
    added, today = added_in_truth(past, found["recommended"])
    assert not loses(added)
    ends = [one["added"] for one in starts if one["way"] == found["recommended"]]
    assert added.mean() > min(ends) - 0.02 * today  # what it may cost is not understated
    if past == "rule":  # where deciding alone used to be recommended
        assert loses(added_in_truth(past, "pilot")[0])
        assert all(one["added"] < 0 for one in starts if one["way"].startswith("pilot"))
