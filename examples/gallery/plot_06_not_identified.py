"""
"Not identified": what a record cannot say
==========================================

How would another rule have done on past decisions? If the record holds the probability of each
acceptance, it can be estimated, unless the rule accepts applicants of whom hardly anybody was
ever accepted. Then there is no number, only bounds.
"""

# %%
# A bank accepts from a score of 0.8 on and one in ten of those between 0.65 and 0.8, by coins.

import altair as alt
import numpy as np

from fairchance.audit import DecisionLog, evaluate

rng, n = np.random.default_rng(0), 20_000
X = rng.normal(size=(n, 2))
score = 1 / (1 + np.exp(-1.2 - 1.6 * X[:, 0]))
repays = rng.random(n) < 1 / (1 + np.exp(-1.2 - 1.6 * X[:, 0] - 0.5 * X[:, 1]))
chance = np.where(score >= 0.8, 1.0, np.where(score >= 0.65, 0.1, 0.0))
accepted = rng.random(n) < chance
outcome = np.where(accepted, np.where(repays, "good", "bad"), None)
log = DecisionLog(accepted, chance, outcome, score=score, round=1 + np.arange(n) // 2000)

# %%
# Rules that accept from other scores on. From 0.65 downwards they accept applicants about whom
# the record is silent.

rows = []
for cut in (0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5):
    found = evaluate(log, f"score >= {cut}", alpha=0.2)
    bad = found.of("false_discovery_rate")
    row = {"cut": cut, "truth": float(1 - repays[score >= cut].mean())}
    row["answer"] = "not identified" if np.isnan(bad.value) else "estimated"
    rows.append(row | {"value": bad.value, "low": bad.low, "high": bad.high})
print(found.verdict())

# %%
# Bars are intervals that hold at all times; dots are estimates, and crosses the truth, which only
# a simulation knows. Where nothing is identified the bar reaches from "all the others are good"
# to "all the others are bad", with room for chance.

base = alt.Chart(alt.InlineData(values=rows), width=460, height=260).encode(
    x=alt.X("cut:O", title="accept from this score on")
)
bars = base.mark_bar(width=10, opacity=0.5).encode(
    y=alt.Y("low:Q", title="bad among the accepted", axis={"format": "%"}),
    y2="high:Q",
    color=alt.Color("answer:N", legend=alt.Legend(title=None, orient="bottom")),
)
dots = base.mark_circle(size=60, color="black").encode(y="value:Q")
crosses = base.mark_point(shape="cross", size=60, color="#d55e00", filled=True).encode(y="truth:Q")
chart = (bars + dots + crosses).properties(
    description="Bad among the accepted by cut-off: estimate, interval and truth"
)
