"""
A drift alarm
=============

A certificate is about applicants like those before. When the economy turns, the monitor
compares the last rounds with earlier ones and drops certificates that outcomes contradict.
"""

# %%
# After round 14 everybody's odds of repaying fall.

import warnings

import numpy as np

import fairchance as fc

rng = np.random.default_rng(0)


def applicants(n, turn):
    """Return the features of new applicants, and who repays."""
    X = rng.normal(size=(n, 2))
    log_odds = 1.3 + 1.5 * X[:, 0] - (0.9 if turn else 0.0)
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


X, repays = applicants(3000, turn=False)
clf = fc.CertifiedClassifier(alpha=0.15, utility=fc.Revenue(gain=200, loss=500), random_state=0)
clf.fit(X, repays, accepted=X[:, 0] > 0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", fc.errors.LearningWarning)
    for t in range(1, 27):
        X, repays = applicants(1000, turn=t > 14)
        batch = clf.decide(X)
        clf.observe(batch.ids[batch.accepted], repays[batch.accepted])

for record in clf.rounds_[13:20]:
    print(record.round, record.status, [note.code for note in record.notes], record.restart_reason)

# %%
# The line shows the share of bad among the accepted of each round, the colours what it was
# promised. After the alarm testing begins again, with the part of δ that was kept for this.

chart = fc.plot.rounds(clf).properties(description="Accepted and bad in each round, with the alarm")
