"""
An exploration strategy of your own
===================================

A strategy says how exploration is spread over the applicants whom nobody knows yet. It is a
function of features, score and group, and returns a positive number per applicant.
"""

# %%
# Outcomes near a score of one half say most about where the threshold should be. This strategy
# prefers them, and gives everybody else a smaller chance.

import altair as alt
import numpy as np

import fairchance as fc


def near_the_middle(X, score, group):
    """Return how often to explore an applicant, relative to others."""
    return 0.01 + (score * (1 - score)) ** 2


rng = np.random.default_rng(0)
X = rng.normal(size=(1750, 2))
repays = (rng.random(1750) < 1 / (1 + np.exp(-1 - 1.5 * X[:, 0] - X[:, 1]))).astype(int)

rows = []
for name, strategy in (
    ("near the middle", near_the_middle),
    ("ScoreWeighted()", fc.ScoreWeighted()),
    ("Uniform()", fc.Uniform()),
):
    clf = fc.PartialFeedbackClassifier(
        strategy=strategy, first_round="learned", budget=fc.FdrBudget(0.3), random_state=0
    )
    clf.fit(X[:1500], repays[:1500], accepted=X[:1500, 0] > 0.5)
    batch = clf.decide(X[1500:])
    unknown = batch.region == "explore"
    for score, chance in zip(batch.score[unknown], batch.propensity[unknown], strict=True):
        rows.append({"score": float(score), "chance": float(chance), "strategy": name})

# %%
# The chance of each applicant in the explore region. ``batch.propensity`` has it for every
# decision.

chart = (
    alt.Chart(alt.InlineData(values=rows), width=460, height=260)
    .mark_circle(size=24)
    .encode(
        x=alt.X("score:Q", title="likelihood of repaying"),
        y=alt.Y("chance:Q", title="chance to be explored", axis={"format": "%"}),
        color=alt.Color("strategy:N", legend=alt.Legend(orient="bottom")),
    )
    .properties(description="Chance to be explored by score, for three strategies")
)

# %%
# To save a classifier with a strategy of your own, or to put it on a ledger, make it `a dataclass
# <../extensions.html#a-strategy-of-your-own>`__.
