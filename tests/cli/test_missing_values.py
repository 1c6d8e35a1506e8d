"""Features that are missing: refused, or filled in by ``missing = "impute"``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import CERTIFIED, PROGRAM, done, people
from secondlook.errors import InputError
from secondlook.learners.logistic import ConstrainedLogistic
from secondlook.ledger import Program, verify
from secondlook.ledger.config_classifiers import build_classifier

IMPUTE = 'seed = 3\nmissing = "impute"'
PARTIAL = {"kind": "partial-feedback", "seed": 0, "missing": "impute"}


def with_gaps(n, start, seed=0, text=True):
    """Return people of whom some lack debt and some a region; debt is missing for the bad."""
    found, rng = people(n, start, seed), np.random.default_rng([seed, start, 1])
    found["region"] = rng.choice(["north", "south"], n)
    found.loc[rng.random(n) < 0.1, "region"] = None
    bad = (found["outcome"] == "default") & (rng.random(n) < 0.7)
    found.loc[bad, "debt"] = np.nan
    return found if text else found.drop(columns="region")


def filled(X, medians, columns):
    """Return numbers with medians in the gaps, and a column of gaps for some of them."""
    gaps = np.isnan(X)
    return np.column_stack([np.where(gaps, medians, X), gaps[:, columns]])


def by_hand(learned, asked, columns, y, extra=None):
    """Return scores of a logistic model of columns that were filled and scaled here."""
    medians = np.nanmedian(learned, axis=0)
    A, B = filled(learned, medians, columns), filled(asked, medians, columns)
    mean, scale = A.mean(axis=0), A.std(axis=0)
    A, B = (A - mean) / scale, (B - mean) / scale
    if extra is not None:
        A, B = np.column_stack([extra[0], A]), np.column_stack([extra[1], B])
    return ConstrainedLogistic().fit(A, y).predict_proba(B)[:, 1]


def test_numbers_are_filled_by_the_median_and_marked():
    rng = np.random.default_rng(0)
    X, y = rng.lognormal(size=(400, 3)), rng.random(400) < 0.6
    X[rng.random(400) < 0.2, 1] = np.nan
    new = rng.lognormal(size=(50, 3))
    new[:20, 1], new[10:30, 2] = np.nan, np.nan  # the last has no gap where it was learned
    model = build_classifier(PARTIAL, {}, (), ("a", "b", "c")).learner.fit(X, y)
    expected = by_hand(X, new, [1], y)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], expected, atol=1e-6)
    unmarked = by_hand(X, new, [], y)
    assert np.abs(expected - unmarked).max() > 1e-3


def test_a_missing_text_is_a_value_of_its_own():
    found = with_gaps(400, 0)
    y = (found["outcome"] == "repaid").to_numpy()
    X, new = found[["income", "debt", "region"]], with_gaps(60, 1000)[["income", "debt", "region"]]
    model = build_classifier(PARTIAL, {}, ("region",), ("income", "debt")).learner.fit(X, y)
    codes = [
        np.column_stack([one["region"] == "north", one["region"] == "south", one["region"].isna()])
        for one in (X, new)
    ]
    numbers = [one[["income", "debt"]].to_numpy() for one in (X, new)]
    expected = by_hand(*numbers, [1], y, codes)
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], expected, atol=1e-6)


@pytest.mark.parametrize(
    "kind", [pytest.param("partial-feedback", marks=pytest.mark.long), "certified"]
)
def test_a_program_that_fills_gaps_in_decides_proves_itself_and_learns_from_them(
    tmp_path, monkeypatch, kind
):
    monkeypatch.chdir(tmp_path)
    url, text = f"sqlite:///{tmp_path}/lender.db", kind == "partial-feedback"
    config = (PROGRAM if text else CERTIFIED).replace("seed = 3", IMPUTE)
    (tmp_path / "program.toml").write_text(config)
    past = with_gaps(300, 0, text=text)
    past.loc[past["income"] < -0.3, "outcome"] = ""
    past.to_csv("history.csv", index=False)
    told = done("init", "--ledger", url, "--config", "program.toml", "history.csv")
    assert (told["people"], told["refused"]) == (300, 0)
    for t in (1, 2):
        new = with_gaps(80, 1000 * t, text=text).set_index("id", drop=False)
        new.drop(columns="outcome").to_csv("applicants.csv", index=False)
        told = done("decide", "applicants.csv", "-o", "decisions.csv", "--ledger", url)
        assert (told["people"], told["refused"]["rows"]) == (80, 0)
        decided = pd.read_csv("decisions.csv", index_col="id")
        yes = decided.index[decided["decision"] == "accept"]
        new.loc[yes, ["id", "outcome"]].to_csv("outcomes.csv", index=False)
        done("observe", "outcomes.csv", "--ledger", url)
    program = Program.open(url)
    found = program.verify(relearn=True)
    assert (found.ok, found.n_decisions, found.n_learned_again) == (True, 160, 160)
    assert verify(program.ledger).ok
    gone = new["debt"].isna()
    told = decided["reasons"].fillna("")
    assert told[gone].str.contains("missing debt").any()
    assert not told[~gone].str.contains("missing debt").any()
    assert decided["score"][gone].mean() < decided["score"][~gone].mean() - 0.02


@pytest.mark.parametrize(
    ("more", "texts"),
    [({"missing": "impute"}, ()), ({}, ("region",)), ({"learner": "gradient-boosting"}, ())],
)
def test_a_fit_under_constraints_has_nothing_before_it(more, texts):
    """The first round that learns would fail otherwise, long after the program began."""
    settings = {"kind": "partial-feedback", "seed": 0, "constrain_fit": True}
    assert build_classifier(settings, {}, (), ("income",)).constrain_fit
    with pytest.raises(InputError, match="constrain_fit = true needs the logistic learner on numb"):
        build_classifier(settings | {"learner": "logistic"} | more, {}, texts, ("income",))


def test_filling_in_is_the_logistic_learners():
    with pytest.raises(InputError, match="goes with learner = 'logistic', got 'gradient-boosting'"):
        build_classifier({**PARTIAL, "learner": "gradient-boosting"}, {})
