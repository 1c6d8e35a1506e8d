"""
Reject inference, and why not
=============================

*Reject inference* guesses the outcomes of rejected applicants with the model of the accepted
ones, and trains on the guesses. It cannot learn where the model is wrong, because nobody
contradicts it there.
"""

# %%
# Three in ten applicants have little income on paper. For them savings tell who repays; for the
# others income does. The past accepted those with an income above average.

import altair as alt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

rng = np.random.default_rng(0)


def applicants(n):
    """Return the features of new applicants, and whether they would repay."""
    little = rng.random(n) < 0.3
    income = np.where(little, rng.normal(-1.5, 0.4, n), rng.normal(0.6, 0.9, n))
    savings = rng.normal(size=n)
    log_odds = np.where(little, 1.4 + 2.5 * savings, 0.8 + 1.5 * income)
    return np.column_stack([income, savings]), rng.random(n) < 1 / (1 + np.exp(-log_odds))


def fit(X, y, weight):
    """Fit a logistic model with squares and products of the features."""
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))
    return model.fit(X, y, logisticregression__sample_weight=weight)


# %%
# Each year the lender accepts where at least 5 in 7 should repay. Then the model learns from all
# accepted so far and from the rejected, each of whom counts as good with the likelihood that the
# model of the year before gave.

X, repays = applicants(4000)
accepted = X[:, 0] > 0
seen, outcome = X[accepted], repays[accepted]
model, rows = fit(seen, outcome, np.ones(len(seen))), []
for year in range(1, 9):
    X, repays = applicants(4000)
    likely = model.predict_proba(X)[:, 1]
    accepted = likely >= 5 / 7
    for who, good in (("the model believes", likely), ("the truth", repays)):
        rows.append({"year": year, "good": float(good[~accepted].mean()), "who": who})
    seen, outcome = np.vstack([seen, X[accepted]]), np.append(outcome, repays[accepted])
    guess, one = likely[~accepted], np.ones((~accepted).sum())
    X_all = np.vstack([seen, X[~accepted], X[~accepted]])
    y_all = np.concatenate([outcome, one, 0 * one])
    model = fit(X_all, y_all, np.concatenate([np.ones(len(seen)), guess, 1 - guess]))

# %%
# How many of the rejected would have repaid? After eight years the model believes the same as in
# the first, and no report of accepted applicants can show that it is wrong.

chart = (
    alt.Chart(alt.InlineData(values=rows), width=460, height=260)
    .mark_line(point=True)
    .encode(
        x="year:O",
        y=alt.Y("good:Q", title="good among the rejected", axis={"format": "%"}),
        color=alt.Color("who:N", legend=alt.Legend(title=None, orient="bottom")),
    )
    .properties(description="Share of good applicants among the rejected, believed and true")
)

# %%
# Next: :doc:`what a few per cent of exploration change <plot_02_few_percent>`.
