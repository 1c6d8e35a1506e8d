"""
A method of your own
====================

Anything with ``decide`` and ``observe`` is a method. Put it into a file, name its function, and
compare it with others: the same applicants, the same history, and outcomes of the accepted
only.
"""

# %%
# The file ``own_method.py`` has a class ``Greedy``, which accepts where its model of all outcomes
# so far expects a gain (:doc:`all of it <../paper/own-method>`). The world: a past that accepted
# nobody of group B.

from contextlib import chdir

import fairchance_lab as lab

world = {
    "data": "lender",
    "n_history": 2000,
    "n_batch": 800,
    "n_rounds": 10,
    "past": [{"rule": "policy"}, {"rule": "group", "group": "B", "rate": 0.0}],
}
methods = ["own_method:greedy", "certified", "explore-fair", "ceiling"]
with chdir(".."):  # where own_method.py is
    results = lab.compare({"methods": methods, "world": world, "repetitions": 3})
results

# %%
# What each method earns, and whether it keeps the bound. The linear model is right in this world,
# and reaches group B because it has learned nothing against it. It does well, and promises
# nothing.

chart = lab.plot.compare(results).properties(description="Earned and mistakes of four methods")
