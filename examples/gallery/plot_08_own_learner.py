"""
A model of your own
===================

Any scikit-learn classifier can rank the applicants. The certificate does not depend on it: with
a bad model less is certified, and the bound holds all the same.
"""

# %%
# Three learners: the default, which knows that the history selected people; a logistic
# regression; and one that has learned nothing.

import altair as alt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

import fairchance as fc


class Guess(ClassifierMixin, BaseEstimator):
    """Rank applicants by the noise in their last column."""

    def fit(self, X, y, sample_weight=None):
        """Learn which labels there are."""
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        """Return likelihoods that say nothing."""
        good = 1 / (1 + np.exp(-np.asarray(X)[:, -1]))
        return np.column_stack([1 - good, good])


def applicants(rng, n):
    """Return features, of which the last is noise, and who repays."""
    X = rng.normal(size=(n, 3))
    useful = 1.8 * X[:, 0] - 1.2 * np.abs(X[:, 1])
    return X, (rng.random(n) < 1 / (1 + np.exp(-1.8 - useful))).astype(int)


learners = {"default": None, "logistic": LogisticRegression(), "guess": Guess()}
judges, truth = applicants(np.random.default_rng(1), 20_000)
rows = []
for name, learner in learners.items():
    rng = np.random.default_rng(0)
    X, repays = applicants(rng, 2000)
    clf = fc.CertifiedClassifier(
        alpha=0.15, utility=fc.Revenue(gain=200, loss=500), learner=learner, random_state=0
    )
    clf.fit(X, repays, accepted=X[:, 0] > 0)
    for t in range(1, 16):
        X, repays = applicants(rng, 1000)
        batch = clf.decide(X)
        clf.observe(batch.ids[batch.accepted], repays[batch.accepted])
        chance = clf.acceptance_probability(judges)
        row = {"learner": name, "round": t, "accepted": float(batch.accepted.mean())}
        row["status"] = clf.rounds_[-1].status
        rows.append(row | {"bad": float(np.average(1 - truth, weights=chance))})

# %%
# The share of bad among all whom the policy of the round would accept. Certified rounds are below
# 15 %; nothing is certified on a guess, since two fifths of everybody are bad: its pilots accept
# hardly anybody.

base = alt.Chart(alt.InlineData(values=rows), width=460, height=260).encode(
    x="round:O",
    y=alt.Y("bad:Q", title="bad among the accepted", axis={"format": "%"}),
    color=alt.Color("learner:N", sort=list(learners)),
)
points = base.mark_point(filled=True, size=60, opacity=1).encode(shape="status:N")
bound = alt.Chart().mark_rule(strokeDash=[5, 3]).encode(y=alt.datum(0.15))
chart = (base.mark_line() + points + bound).properties(
    description="Bad among the accepted by round, for three learners, with the bound"
)
