"""Paired tests against scipy, definitions and simulation, with their false alarms counted."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from experiments.known_results import from_counts, judged_results, make_results, with_failures
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.all_tables import against
from fairchance_lab.experiments.comparison import ceiling_shares, compared
from fairchance_lab.experiments.paired_tests import holm, paired_p, power, repetitions_needed

METHODS = ("plain", "both-fair", "fair-clf", "no-exploration")


def test_holm_of_a_worked_example():
    """Holm (1979): .01 · 4, then max(·, .02 · 3), max(·, .03 · 2), max(·, .9 · 1)."""
    assert holm([0.9, 0.02, 0.01, 0.03]) == pytest.approx([0.9, 0.06, 0.04, 0.06])
    assert holm([0.5, 0.6]) == pytest.approx([1.0, 1.0])
    unknown = holm([np.nan, 0.03])
    assert np.isnan(unknown[0])
    assert unknown[1] == 0.03  # an unknown p-value is no test
    assert holm([]).size == 0


def test_holm_is_the_closure_of_bonferroni(rng):
    """A hypothesis falls if Bonferroni rejects each intersection of hypotheses it is part of."""
    for m in range(1, 7):
        p = np.round(rng.random(m) ** 3, 2)  # with ties
        for i, corrected in enumerate(holm(p)):
            with_i = (s for k in range(1, m + 1) for s in combinations(range(m), k) if i in s)
            expected = max(min(1.0, len(s) * p[list(s)].min()) for s in with_i)
            assert corrected == pytest.approx(expected)


def test_p_values_equal_those_of_scipy(rng):
    for n in (2, 5, 9, 30):
        a, b = rng.normal(0.3, 1, n), rng.normal(0, 1, n)
        d = np.append(a - b, np.nan)
        flipped = stats.permutation_test(
            (a - b,), np.mean, permutation_type="samples", n_resamples=2**14, vectorized=True
        ).pvalue
        test = stats.ttest_rel(a, b).pvalue if n >= 10 else flipped
        assert paired_p(d) == paired_p(a - b) == pytest.approx(test)
    assert paired_p([0.0, 0.0]) == paired_p([0.0] * 20) == 1
    assert paired_p([0.5] * 20) == 2 / 2**20
    assert paired_p([2.0] * 5) == 2 / 2**5
    assert np.isnan(paired_p([1.0]))


def test_power_equals_a_simulation():
    rng = np.random.default_rng(0)
    for n, effect in ((3, 2.0), (10, 1.0), (34, 0.5), (34, -0.2)):
        d = rng.normal(effect, 1, (20_000, n))
        seen = int((stats.ttest_1samp(d, 0, axis=1).pvalue <= 0.05).sum())
        assert stats.binomtest(seen, len(d), power(n, effect)).pvalue > 1e-3, (n, effect)
    assert power(10**5, 0.0) == pytest.approx(0.05)


@pytest.mark.parametrize("effect", [5.0, 1.0, 0.5, 0.2, -0.05])
def test_repetitions_needed_are_the_fewest(effect):
    n = int(repetitions_needed(effect * 3, 3.0))
    assert power(n, effect) >= 0.8
    assert n == 2 or power(n - 1, effect) < 0.8
    by_normal = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 / effect**2
    assert n > by_normal  # a control: the formula without t promises too much


def test_repetitions_needed_at_the_ends():
    assert repetitions_needed(1.0, 0.0) == 2
    assert repetitions_needed(1e-9, 1.0) == np.inf
    assert np.isnan(repetitions_needed(0.0, 1.0))
    assert np.isnan(repetitions_needed(1.0, np.nan))


def null_results(rng, n):
    """Return results of methods that are equal on average, in repetitions that differ."""
    shape = (1, len(METHODS), n, 4, 1)
    good = rng.poisson(40 + 20 * rng.random((1, 1, n, 1, 1)), shape)
    bad = rng.poisson(8, shape)
    people = np.full(shape, 500)
    counts = {"n_people": people, "n_good": people // 2}
    return from_counts(counts | {"n_accepted": good + bad, "n_accepted_good": good}, METHODS, "a")


@pytest.mark.parametrize("n", [9, 15])
def test_any_false_alarm_in_the_table_is_rare(n):
    """Without correction, false alarms are too many: a control of the test itself."""
    rng, runs = np.random.default_rng(n), 100
    any_corrected = any_raw = 0
    for _ in range(runs):
        rows = against(null_results(rng, n), "plain", 0).rows
        assert {row["test"] for row in rows} == {"t" if n >= 10 else "sign-flip"}
        any_corrected += min(row["p_holm"] for row in rows) <= 0.05
        any_raw += min(row["p"] for row in rows) <= 0.05
    assert stats.binomtest(any_corrected, runs, 0.05, alternative="greater").pvalue > 1e-3
    assert stats.binomtest(any_raw, runs, 0.05, alternative="greater").pvalue < 1e-3


def test_table_of_differences(rng):
    results = make_results(rng, METHODS, size=(12, 8), n=300, alphas=(0.1, 0.15))
    table = against(results, "fair-clf", 1)
    assert len(table.rows) == 3 * 3
    p = {}
    for metric, name in (("revenue", "revenue"), ("late_revenue", "late"), ("pooled_fdr", "FDR")):
        values = tables.per_repetition(results, metric)[1]
        for method in ("plain", "both-fair", "no-exploration"):
            d = values[METHODS.index(method)] - values[2]
            (row,) = (row for row in table.rows if (row["method"], row["metric"]) == (method, name))
            interval = stats.t.interval(0.95, 11, d.mean(), d.std(ddof=1) / np.sqrt(12))
            assert (row["difference_low"], row["difference_high"]) == pytest.approx(interval)
            assert row["difference"] == pytest.approx(d.mean())
            assert row["p"] == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
            needed = repetitions_needed(d.mean(), d.std(ddof=1))
            assert row["repetitions_needed"] == pytest.approx(needed, abs=1, nan_ok=True)
            p[method, name] = row["p"]
    assert [row["p_holm"] for row in table.rows] == holm([row["p"] for row in table.rows]).tolist()


def test_repetitions_that_failed_are_left_out_of_the_pairs(rng):
    whole = make_results(rng, METHODS, size=(12, 4), n=300)
    row = against(with_failures(whole, "both-fair", (0, 5)), "plain", 0).rows[0]
    d = np.diff(tables.per_repetition(whole, "revenue")[0, :2], axis=0)[0]
    assert row["difference"] == pytest.approx(np.delete(d, [0, 5]).mean())
    assert row["failed_repetitions"] == 2


def test_equal_methods_do_not_differ_by_rounding(rng):
    results = judged_results(rng, size=(12, 6))
    shares = ceiling_shares(results, 0)
    for i, row in enumerate(compared(results)):
        assert shares[i].mean() == pytest.approx(row.earned["whole"].share)
    accepted = results.columns["p_accepted_good"]
    ours, theirs = (results.columns["method"] == name for name in ("plain", "ceiling"))
    for name in ("p_accepted", "p_accepted_good"):
        results.columns[name][ours] = results.columns[name][theirs] * (1 + 1e-14)
    rows = {row["metric"]: row for row in against(results, "ceiling", 0).rows[::2]}
    assert accepted is results.columns["p_accepted_good"]
    assert (rows["share"]["difference"], rows["share"]["p"]) == (0.0, 1.0)
