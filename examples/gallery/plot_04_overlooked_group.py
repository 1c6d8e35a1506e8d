"""
A group that the past overlooked
================================

The past accepted hardly anybody from the country, where people repay as often as in town. A
certified program finds these applicants, although nobody named the group, and keeps the bound.
"""

# %%
# In town income tells who repays, in the country savings do. Three in ten come from the country.

import altair as alt
import numpy as np
import pandas as pd

import fairchance as fc

rng = np.random.default_rng(1)


def applicants(n):
    """Return the table of new applicants, whom the past would accept, and who repays."""
    country = rng.random(n) < 0.3
    table = pd.DataFrame({"income": rng.normal(size=n), "savings": rng.normal(size=n)})
    table["area"] = np.where(country, "country", "town")
    key = np.where(country, table["savings"], table["income"])
    repays = rng.random(n) < 1 / (1 + np.exp(-1.4 - 1.8 * key))
    past = (table["income"] > 0) & (~country | (rng.random(n) < 0.02))
    return table, past.to_numpy(), repays.astype(int)


# %%
# Of the good applicants of each area, how many does the past accept, and how many does the
# program?

people, past, repays = applicants(3000)
clf = fc.CertifiedClassifier(alpha=0.15, utility=fc.Revenue(gain=200, loss=500), random_state=0)
clf.fit(people, repays, accepted=past)
rows = []
for t in range(1, 16):
    people, past, repays = applicants(1200)
    batch = clf.decide(people)
    clf.observe(batch.ids[batch.accepted], repays[batch.accepted])
    for area in ("town", "country"):
        good = (people["area"] == area) & (repays == 1)
        for who, accepted in (("the past", past), ("the program", batch.accepted)):
            rows.append(
                {"round": t, "area": area, "by": who, "share": float(accepted[good].mean())}
            )

print("certified rounds:", sum(record.status == "certified" for record in clf.rounds_), "of 15")

# %%
# The first rounds are pilots and accept few. Then certificates reach further, in both areas
# alike.

chart = (
    alt.Chart(alt.InlineData(values=rows), width=460, height=260)
    .mark_line(point=True)
    .encode(
        x="round:O",
        y=alt.Y("share:Q", title="accepted of the good applicants", axis={"format": "%"}),
        color=alt.Color("area:N", legend=alt.Legend(title=None, orient="bottom")),
        strokeDash=alt.StrokeDash(
            "by:N",
            scale=alt.Scale(domain=["the program", "the past"], range=[[1, 0], [4, 3]]),
            legend=alt.Legend(title=None, orient="bottom"),
        ),
    )
    .properties(description="Share of the good applicants accepted, by area and round")
)
