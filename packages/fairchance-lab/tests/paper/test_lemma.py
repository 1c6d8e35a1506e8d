"""The lemma: η_w comes close to μ on EXPLOIT_t, and labelled rows without weights do not."""

from __future__ import annotations

import numpy as np

from fairchance_lab.paper.lemma import distance_from_truth


def test_eta_is_close_to_the_truth_where_outcomes_are_exploited():
    """Sixteen times as many applicants divide the distance by four, up to chance."""
    few, many = (
        np.mean([distance_from_truth(n, 10, seed) for seed in range(5)], axis=0)
        for n in (500, 8_000)
    )
    assert many[0] < 0.5 * few[0] < 0.05
    assert many[1] > 10 * many[0]  # the control: rows without weights
    assert abs(many[1] - few[1]) < 0.5 * few[1]


def test_it_holds_while_part_of_the_domain_is_unknown():
    early = distance_from_truth(8_000, n_rounds=3)
    assert early.known < 1
    assert early.weighted < 0.02
