"""
Late outcomes
=============

A bad loan is known to be bad months later than a good one is paid back, or earlier. If pending
loans are left out, or counted as good, the estimate of mistakes is wrong, and with it the
threshold.
"""

# %%
# Here a good loan is known before the next round and a bad one after six rounds. Three ways to
# run the same lender: to use each outcome as it comes, to wait until rounds are mature, and the
# certified method.

import altair as alt
import numpy as np

import fairchance as fc

LATE = 6


def applicants(rng, n):
    """Return the features of new applicants, and who repays."""
    X = rng.normal(size=(n, 2))
    return X, (rng.random(n) < 1 / (1 + np.exp(-1.3 - 1.5 * X[:, 0]))).astype(int)


def play(clf, name, n_rounds=20):
    """Run a classifier; return the true share of bad of the policy of each round."""
    rng = np.random.default_rng(0)
    X, repays = applicants(rng, 2000)
    clf.fit(X, repays, accepted=X[:, 0] > -0.5)
    judges, truth = applicants(np.random.default_rng(1), 20_000)
    bad_later, rows = [], []
    for t in range(1, n_rounds + 1):
        X, repays = applicants(rng, 1000)
        batch = clf.decide(X)
        good = batch.accepted & (repays == 1)
        clf.observe(batch.ids[good], repays[good])
        bad_later.append(batch.ids[batch.accepted & (repays == 0)])
        if t > LATE:
            clf.observe(ids := bad_later.pop(0), np.zeros(len(ids), int))
        chance = clf.acceptance_probability(judges)
        bad = float(np.average(1 - truth, weights=chance))
        rows.append({"round": t, "bad": bad, "method": name})
    return rows


lender = {"utility": fc.Revenue(gain=200, loss=500), "random_state": 0}
budget = {"budget": fc.FdrBudget(0.15)}
rows = [
    *play(fc.PartialFeedbackClassifier(**budget, **lender), "as it comes"),
    *play(fc.PartialFeedbackClassifier(**budget, maturity=8, **lender), "maturity=8"),
    *play(fc.CertifiedClassifier(alpha=0.15, patience=8, **lender), "certified"),
]

# %%
# The share of bad in the population under the policy of each round, and the bound:

lines = (
    alt.Chart(alt.InlineData(values=rows), width=460, height=260)
    .mark_line(point=True)
    .encode(
        x="round:O",
        y=alt.Y("bad:Q", title="bad among the accepted", axis={"format": "%"}),
        color=alt.Color("method:N", legend=alt.Legend(title=None, orient="bottom")),
    )
)
bound = alt.Chart().mark_rule(strokeDash=[5, 3]).encode(y=alt.datum(0.15))
chart = (lines + bound).properties(description="Bad among the accepted by round, with the bound")
