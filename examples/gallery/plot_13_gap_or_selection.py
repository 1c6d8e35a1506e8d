"""
A gap between groups: real, or selection?
=========================================

A report of accepted applicants finds that both groups default equally often. It does not follow
that both are equally risky, nor that both are accepted alike.
"""

# %%
# A bank asks more of the south. Below the cut it accepts 15 % by coins.

import numpy as np

import fairchance as fc
from fairchance.audit import DecisionLog, groups

rng, n = np.random.default_rng(0), 20_000
income = rng.gamma(4, 600, n)
region = rng.choice(["north", "south"], n, p=[0.7, 0.3])
repays = rng.random(n) < 1 / (1 + np.exp(0.4 - income / 1300))
cut = np.where(region == "south", 3600, 2200)
chance = np.where(income > cut, 1.0, 0.15)
accepted = rng.random(n) < chance
outcome = np.where(accepted, np.where(repays, "good", "bad"), None)
log = DecisionLog(
    accepted, chance, outcome, sensitive_features=region, round=1 + np.arange(n) // 2000
)
audit = groups(log)
for finding in audit.findings:
    print(finding)

# %%
# Each rate three ways: as recorded, corrected by the probabilities, and with bounds that assume
# nothing.

chart = fc.plot.group_audit(audit).properties(description="Rates of both groups three ways")
