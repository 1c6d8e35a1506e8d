"""
What another bound would earn
=============================

Should at most 10 % of the accepted be bad, or 20 %? The outcomes of a certified run say what
other bounds would earn, and up to which of them a policy is certified already.
"""

import numpy as np

import fairchance as fc

rng = np.random.default_rng(0)


def applicants(n):
    """Return the features of new applicants, and who repays."""
    X = rng.normal(size=(n, 2))
    return X, (rng.random(n) < 1 / (1 + np.exp(-1.3 - 1.5 * X[:, 0]))).astype(int)


X, repays = applicants(2000)
clf = fc.CertifiedClassifier(alpha=0.15, utility=fc.Revenue(gain=200, loss=500), random_state=0)
clf.fit(X, repays, accepted=X[:, 0] > 0)
for _ in range(12):
    X, repays = applicants(1000)
    batch = clf.decide(X)
    clf.observe(batch.ids[batch.accepted], repays[batch.accepted])

# %%
# Decisions rest on α = 15 % only. Each certified point holds by itself with confidence 90 %, not
# all together.

chart = fc.plot.curve(clf).properties(description="Earned per applicant by bound on mistakes")
