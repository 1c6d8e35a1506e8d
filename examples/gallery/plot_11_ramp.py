"""
Shadow mode, ramp, full control
===============================

A process decides today. The program starts beside it: it watches, then decides on some
applicants, then on all. Each application has a coin, so that 10 % is a part of 50 %.
"""

import altair as alt
import numpy as np

import fairchance as fc

rng = np.random.default_rng(3)


def applicants(n):
    """Return features, decisions of a process that sees an interview, too, and who repays."""
    X, interview = rng.normal(size=(n, 2)), rng.normal(size=n)
    repays = rng.random(n) < 1 / (1 + np.exp(-1.5 - 1.5 * X[:, 0] - interview))
    return X, X[:, 0] + 0.5 * interview > 1, repays.astype(int)


X, today, repays = applicants(5000)
clf = fc.CertifiedClassifier(alpha=0.15, utility=fc.Revenue(gain=200, loss=500), random_state=0)
clf.fit(X, repays, accepted=today)

rows = []
for ramp in (0, 0, 0.1, 0.1, 0.5, 0.5, 1, 1, 1, 1, 1, 1):
    X, today, repays = applicants(600)
    batch = clf.decide(X, incumbent=today, ramp=ramp)
    clf.observe(batch.ids[batch.accepted], repays[batch.accepted])
    record = clf.rounds_[-1]
    kinds = {
        "by both": (batch.accepted & today).sum(),
        "by the program alone": (batch.accepted & ~today).sum(),
        "by today's process, not the program": (~batch.accepted & today).sum(),
    }
    print(f"round {record.round}, r = {ramp}: {record.status}")
    for kind, count in kinds.items():
        rows.append({"round": f"{record.round}: r = {ramp}", "kind": kind, "n": int(count)})

# %%
# Who is accepted. In shadow mode nothing changes. Then the program adds applicants whom today's
# process rejects, and at the end a certified policy of its own decides alone.

chart = (
    alt.Chart(alt.InlineData(values=rows), width=460, height=260)
    .mark_bar()
    .encode(
        x=alt.X("round:O", sort=None, title=None),
        y=alt.Y("n:Q", title="accepted of 600"),
        color=alt.Color("kind:N", sort=None, legend=alt.Legend(title=None, orient="bottom")),
    )
    .properties(description="Applicants accepted by whom, in each round of the ramp")
)
