"""
Certify today's policy from its history
=======================================

Two lenders have decided by a score for years and kept every application. Can they prove today
that at most 15 % of the accepted turn out bad, and accept more? It depends on how much they
have seen.
"""

# %%
# One lender is careful, the other accepts twice as many. Both know the outcomes of the accepted
# only.

import altair as alt
import numpy as np

import fairchance as fc

rng = np.random.default_rng(3)


def applicants(n, cut):
    """Return features, today's decisions, and outcomes, of which those of the accepted are seen."""
    X = rng.normal(size=(n, 3))
    repays = rng.random(n) < 1 / (1 + np.exp(-1.6 - 1.4 * X[:, 0] - 0.8 * X[:, 1]))
    return X, X[:, 0] + 0.3 * X[:, 1] > cut, repays.astype(int)


# %%
# ``evidence="history"`` ranks applicants by a random half of the history and tests on the other
# half: today's policy, and today's policy with the best of its rejections. What it needs is a
# history of everybody who applied.

rows = []
for name, cut in (("careful", 0.5), ("bold", -0.3)):
    for size in (1000, 3000, 9000):
        clf = fc.CertifiedClassifier(
            alpha=0.15, utility=fc.Revenue(200, 500), evidence="history", random_state=0
        )
        X, today, repays = applicants(size, cut)
        clf.fit(X, repays, accepted=today)
        X, today, repays = applicants(1000, cut)
        batch = clf.decide(X, incumbent=today)
        row = {"lender": f"{name} lender", "history": f"{size:,}", "status": clf.rounds_[0].status}
        print(row, f"{batch.accepted.sum()} accepted, {today.sum()} today")
        rows.append(row | {"accepted": int(batch.accepted.sum()), "today": int(today.sum())})

# %%
# The first round, before any decision of our own. A pilot accepts whom today's policy accepts
# (black line) and explores some others; it promises nothing. A certified round keeps the bound,
# with confidence 90 %.

base = alt.Chart(alt.InlineData(values=rows), width=200, height=220).encode(
    x=alt.X("history:O", sort=None, title="applicants in the history")
)
bars = base.mark_bar().encode(
    y=alt.Y("accepted:Q", title="accepted of 1,000"),
    color=alt.Color("status:N", legend=alt.Legend(title=None, orient="bottom")),
)
lines = base.mark_tick(color="black", thickness=3, width=30).encode(y="today:Q")
chart = (bars + lines).facet(column=alt.Column("lender:N", sort=None, title=None))
chart = chart.properties(description="Accepted in the first round, certified or not, by history")
