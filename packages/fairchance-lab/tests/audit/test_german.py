"""Ten policies on logs of German credit, whose outcomes are all known."""

from __future__ import annotations

import pytest
from benchmarks.audit import MEASURES, METHODS, SEED, SETTINGS, one
from scipy.stats import spearmanr

pytestmark = pytest.mark.long


@pytest.fixture(scope="module", params=METHODS)
def results(request):
    """Return three runs of a method: of each policy its evaluation and the truth."""
    return [one(SETTINGS["german"], request.param, seed) for seed in range(SEED, SEED + 3)]


@pytest.mark.parametrize("measure", MEASURES)
def test_intervals_hold_and_estimates_are_close_to_the_truth(results, measure):
    for run in results:
        assert len(run) == 10
        pairs = []
        for evaluation, right in run.values():
            row = evaluation.of(measure)
            assert row.low <= right[measure] <= row.high
            if evaluation.identified:
                error = row.estimates["self_normalised"].standard_error
                # Repeated rows make an applicant's outcomes alike, so errors are larger than that.
                assert row.value == pytest.approx(right[measure], abs=5 * error + 0.001)
                pairs.append((row.value, right[measure]))
        if len(pairs) > 2:
            assert spearmanr(*zip(*pairs, strict=True)).statistic > 0.9


def test_what_is_not_identified_has_no_value(results):
    """Algorithm 1 leaves regions without any chance of acceptance, the certified method hardly."""
    n_known = sum(evaluation.identified for run in results for evaluation, _ in run.values())
    assert n_known < 30
    for run in results:
        for evaluation, _ in run.values():
            row = evaluation.of("false_discovery_rate")
            assert (row.reason == "not_identified") == (not evaluation.identified)
            assert row.least < row.most or evaluation.identified
