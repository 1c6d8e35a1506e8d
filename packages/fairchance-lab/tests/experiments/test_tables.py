"""Tables compared with loops over rows, and noise floors with simulated groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from experiments.known_results import from_counts, make_results
from fairchance.errors import InputError
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.all_tables import overview
from fairchance_lab.experiments.results import COUNTS, KEYS
from fairchance_lab.paper.published import METRICS as PRINTED
from fairchance_lab.paper.published import paper_data, published_table


def rows_of(results):
    """Return {(setting, method, repetition, round): {group: counts}} by a loop over rows."""
    rows = {}
    for i in range(len(results)):
        key = tuple(results.columns[name][i] for name in KEYS[:4])
        counts = {name: int(results.columns[name][i]) for name in COUNTS}
        rows.setdefault(key, {})[results.columns["group"][i]] = counts
    return rows


# Part and whole of each rate from a group's counts; p and q name the batch.
PARTS = {
    "true_positive_rate": (lambda c, q: c[q + "accepted_good"], lambda c, p, q: c[q + "good"]),
    "false_positive_rate": (
        lambda c, q: c[q + "accepted"] - c[q + "accepted_good"],
        lambda c, p, q: c[p] - c[q + "good"],
    ),
    "false_discovery_rate": (
        lambda c, q: c[q + "accepted"] - c[q + "accepted_good"],
        lambda c, p, q: c[q + "accepted"],
    ),
    "false_omission_rate": (
        lambda c, q: c[q + "good"] - c[q + "accepted_good"],
        lambda c, p, q: c[p] - c[q + "accepted"],
    ),
}


def by_hand(groups, alpha, nxt=False):
    """Return all metrics of a round from its groups' counts, in plain Python."""
    p = "n_next" if nxt else "n_people"
    q = "n_next_" if nxt else "n_"
    people, accepted, accepted_good = (
        sum(counts[name] for counts in groups.values())
        for name in (p, q + "accepted", q + "accepted_good")
    )
    nan = math.nan
    rates = [counts[q + "accepted"] / counts[p] for counts in groups.values() if counts[p]]
    known = [counts for counts in groups.values() if counts[q + "good"]]
    tprs = [counts[q + "accepted_good"] / counts[q + "good"] for counts in known]
    bad = accepted - accepted_good
    metrics = {
        "revenue": (200 * accepted_good - 500 * bad) / 1000 if people else nan,
        "fdr": bad / accepted if accepted else nan,
        "above_alpha": float(bool(accepted) and bad / accepted > alpha) if people else nan,
        "nobody_accepted": float(not accepted) if people else nan,
        "selection_rate_difference": max(rates) - min(rates) if len(rates) > 1 else nan,
        "true_positive_rate_difference": max(tprs) - min(tprs) if len(tprs) > 1 else nan,
    }
    for name, (part, whole) in PARTS.items():
        shares = [(part(c, q), whole(c, p, q)) for c in groups.values()]
        known = [a / b for a, b in shares if b]
        apart = len(known) > 1
        metrics[f"{name}_difference"] = max(known) - min(known) if apart else nan
        metrics[f"{name}_ratio"] = min(known) / max(known) if apart and max(known) else nan
    tpr, fpr = (f"{kind}_positive_rate" for kind in ("true", "false"))
    differences = [metrics[f"{name}_difference"] for name in (tpr, fpr)]
    metrics["equalized_odds_difference"] = nan if nan in differences else max(differences)
    if not nxt:
        explored = sum(counts["n_explored"] for counts in groups.values())
        fine = sum(counts["n_explored_good"] for counts in groups.values())
        region = sum(counts["n_exploit_region"] for counts in groups.values())
        metrics |= {
            "explored_share": explored / people if people else nan,
            "explored_fdr": (explored - fine) / explored if explored else nan,
            "exploited_fdr": 1 - (accepted_good - fine) / (accepted - explored)
            if accepted > explored
            else nan,
            "exploit_share": region / people if people else nan,
        }
    return metrics


@pytest.fixture(params=["ab", "abcd"])
def results(rng, request):
    return make_results(rng, groups=request.param, alphas=(0.1, 0.15))


@pytest.mark.parametrize("next_batch", [False, True])
def test_metrics_of_rounds_equal_a_loop_over_rows(results, next_batch):
    names = by_hand(next(iter(rows_of(results).values())), 0.15, next_batch)
    got = {name: tables.per_round(results, name, next_batch=next_batch) for name in names}
    for (setting, method, repetition, round), groups in rows_of(results).items():
        s = results.settings.index(setting)
        alpha, at = results.alphas[s], (s, results.methods.index(method), repetition, round - 1)
        for metric, expected in by_hand(groups, alpha, next_batch).items():
            assert got[metric][at] == pytest.approx(expected, nan_ok=True), (metric, at)


def test_rates_by_group_and_cumulative_revenue(results):
    shares = tables.per_round(results, "selection_rate")
    tprs = tables.per_round(results, "true_positive_rate")
    so_far, total = tables.per_round(results, "cumulative_revenue"), {}
    for (setting, method, repetition, round), groups in rows_of(results).items():
        s = results.settings.index(setting)
        alpha, at = results.alphas[s], (s, results.methods.index(method), repetition, round - 1)
        total[at[:3]] = total.get(at[:3], 0) + by_hand(groups, alpha)["revenue"]
        assert so_far[at] == pytest.approx(total[at[:3]])
        for g, counts in enumerate(groups.values()):
            rate = counts["n_accepted"] / counts["n_people"] if counts["n_people"] else math.nan
            tpr = counts["n_accepted_good"] / counts["n_good"] if counts["n_good"] else math.nan
            assert shares[at][g] == pytest.approx(rate, nan_ok=True)
            assert tprs[at][g] == pytest.approx(tpr, nan_ok=True)


@pytest.mark.parametrize("metric", ["revenue", "fdr", "true_positive_rate_difference"])
def test_summary_has_means_and_intervals_over_repetitions(results, metric):
    summary = tables.summary(results, metric)
    late = tables.summary(results, f"late_{metric}")
    n_late, rows = tables.late_rounds(results), rows_of(results)
    assert n_late == 2
    for a, alpha in enumerate(results.alphas):
        for m, method in enumerate(results.methods):
            rounds = [
                [
                    by_hand(rows[results.settings[a], method, r, t + 1], alpha)[metric]
                    for t in range(results.shape[3])
                ]
                for r in range(results.shape[2])
            ]
            means = [np.nanmean(row) for row in rounds]
            estimate = summary.estimate[a, m]
            assert estimate.mean == pytest.approx(np.mean(means))
            assert estimate.standard_error == pytest.approx(stats.sem(means))
            interval = stats.t.interval(0.95, 4, loc=np.mean(means), scale=stats.sem(means))
            assert (estimate.low, estimate.high) == pytest.approx(interval)
            assert summary.pooled_sd[a, m] == pytest.approx(np.nanstd(rounds))
            last = [row[-n_late:] for row in rounds]
            known = [np.nanmean(row) for row in last if np.isfinite(row).any()]
            assert late.estimate.mean[a, m] == pytest.approx(np.mean(known))


@pytest.mark.parametrize("first", [0, 1], ids=["all rounds", "without round 1"])
@pytest.mark.parametrize("metric", ["fdr", "selection_rate_difference", "explored_fdr"])
def test_pooled_metrics_use_counts_summed_over_rounds(results, metric, first):
    name = f"pooled_{'later_' * first}{metric}"
    got, rows = tables.per_repetition(results, name), rows_of(results)
    for a, alpha in enumerate(results.alphas):
        for m, method in enumerate(results.methods):
            for r in range(results.shape[2]):
                summed = {g: dict.fromkeys(COUNTS, 0) for g in results.groups}
                for t in range(first, results.shape[3]):
                    for g, counts in rows[results.settings[a], method, r, t + 1].items():
                        summed[g] = {k: summed[g][k] + counts[k] for k in COUNTS}
                assert got[a, m, r] == pytest.approx(by_hand(summed, alpha)[metric], nan_ok=True)
    assert np.isnan(tables.summary(results, name).pooled_sd).all()


def test_the_overview_shows_round_1_apart_and_rounds_that_accept_no_one(results):
    row = overview(results, 0).rows[0]
    accepted, good = (
        results.count(name)[0, 0].sum(axis=-1) for name in ("n_accepted", "n_accepted_good")
    )
    by_repetition = 1 - good[:, 1:].sum(axis=1) / accepted[:, 1:].sum(axis=1)
    assert row["pooled_later_fdr"] == pytest.approx(by_repetition.mean())
    assert row["pooled_later_fdr"] != pytest.approx(row["pooled_fdr"])
    assert row["nobody_accepted"] == pytest.approx((accepted == 0).mean())


def test_absolute_revenue(results):
    signed = tables.per_round(results, "revenue")
    assert (signed < 0).any()
    assert (signed > 0).any()
    got = tables.per_repetition(results, "revenue", absolute_revenue=True)
    assert got == pytest.approx(np.abs(signed).mean(axis=3))
    assert tables.per_round(results, "fdr", absolute_revenue=True) == pytest.approx(
        tables.per_round(results, "fdr"), nan_ok=True
    )


def test_paired_differences_are_within_repetitions(results):
    values = tables.per_repetition(results, "revenue")
    gap = values[1, 0] - values[1, 1]
    got = tables.paired(results, "revenue", "plain", "no-exploration")[1]
    assert got.mean == pytest.approx(gap.mean())
    low, high = stats.t.interval(0.95, len(gap) - 1, gap.mean(), stats.sem(gap))
    assert (got.low, got.high) == pytest.approx((low, high))


def test_round_exactly_at_alpha_is_not_above():
    counts = dict.fromkeys(("n_people", "n_good", "n_accepted"), np.full((1, 1, 1, 1, 2), 10))
    counts["n_accepted_good"] = np.array([8, 9]).reshape(1, 1, 1, 1, 2)  # 3 of 20 are bad
    assert tables.per_round(from_counts(counts, ["plain"], "ab"), "above_alpha").item() == 0


def test_one_repetition_has_no_interval(rng):
    estimate = tables.summary(make_results(rng, size=(1, 4)), "revenue").estimate
    assert np.isfinite(estimate.mean).all()
    assert np.isnan(estimate.standard_error).all()
    assert np.isnan(estimate.low).all()


def test_least_served_group():
    counts = {name: np.full((1, 1, 1, 2, 3), 10) for name in ("n_people", "n_good", "n_accepted")}
    counts["n_accepted_good"] = np.broadcast_to([7, 2, 5], (1, 1, 1, 2, 3))
    assert tables.least_served(from_counts(counts, ["plain"], "abc")) == "b"


@pytest.mark.parametrize("rate", ["selection_rate", "true_positive_rate"])
@pytest.mark.parametrize("sizes", [(400, 60), (300, 80, 150, 60)])
def test_noise_floor_equals_a_simulation_with_equal_rates(rng, rate, sizes):
    shape = (1, 1, 60, 40, len(sizes))
    n = np.broadcast_to(sizes, shape)
    chosen = rng.binomial(n, 0.3)
    whole, part = (
        ("n_people", "n_accepted") if rate == "selection_rate" else ("n_good", "n_accepted_good")
    )
    counts = {"n_people": n, "n_good": n, "n_accepted": chosen} | {whole: n, part: chosen}
    results = from_counts(counts, ["plain"], [str(i) for i in range(len(sizes))])
    floor = tables.noise_floor(results, rate)
    gap = tables.summary(results, f"{rate}_difference")
    assert abs(floor.mean() - gap.estimate.mean.item()) < 4 * gap.estimate.standard_error.item()
    # Control: groups with rates that differ by 0.1 are well above the floor.
    counts[part] = rng.binomial(n, 0.3 + 0.1 * (np.arange(len(sizes)) == 0))
    apart = from_counts(counts, ["plain"], [str(i) for i in range(len(sizes))])
    gap = tables.summary(apart, f"{rate}_difference")
    floor = tables.noise_floor(apart, rate)
    assert gap.estimate.mean.item() - floor.mean() > 4 * gap.estimate.standard_error.item()


def test_noise_floor_of_two_groups_has_a_closed_form():
    counts = {"n_people": np.array([100, 25]).reshape(1, 1, 1, 1, 2)}
    counts |= {"n_good": counts["n_people"], "n_accepted_good": counts["n_people"] * 0}
    counts["n_accepted"] = np.array([20, 5]).reshape(1, 1, 1, 1, 2)
    floor = tables.noise_floor(from_counts(counts, ["plain"], "ab"), "selection_rate")
    expected = math.sqrt(2 / math.pi) * math.sqrt(0.2 * 0.8 * (1 / 100 + 1 / 25))
    assert floor.item() == pytest.approx(expected)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_empty_groups_do_not_change_the_noise_floor(n_groups):
    sizes = [40, 0, 60][:n_groups]
    counts = {"n_people": np.array(sizes).reshape(1, 1, 1, 1, -1)}
    counts |= {"n_good": counts["n_people"], "n_accepted_good": counts["n_people"] // 2}
    counts["n_accepted"] = counts["n_people"] // 2
    floor = tables.noise_floor(from_counts(counts, ["plain"], "abc"[:n_groups]), "selection_rate")
    expected = math.sqrt(2 / math.pi) * math.sqrt(0.25 * (1 / 40 + 1 / 60))
    assert floor.item() == pytest.approx(expected if n_groups == 3 else math.nan, 0.05, nan_ok=True)


def test_unknown_metrics_are_rejected(rng):
    results = make_results(rng)
    with pytest.raises(InputError, match=r"metric.* revenue, .*'profit'"):
        tables.per_round(results, "profit")
    with pytest.raises(InputError, match="explored_share"):
        tables.per_round(results, "explored_share", next_batch=True)


@pytest.mark.parametrize("key", ["german_gender", "adult_race", "adult_gender"])
def test_published_tables_are_complete(key):
    table = published_table(key)
    assert len(table) == 9
    assert {"plain", "exploit-fair", "explore-fair", "both-fair", "opt-offline"} < set(table)
    assert all(set(row) == set(PRINTED) for row in table.values())
    assert all(number.bracket > 0 for row in table.values() for number in row.values())


def test_published_numbers():
    assert published_table("adult_race")["opt-offline"]["true_positive_rate_difference"] == (
        0.12,
        0.08,
    )
    assert published_table("adult_gender")["yang"]["revenue"].mean == -45.3
    assert paper_data("german_gender") == "german"
    with pytest.raises(InputError, match="'compas'"):
        published_table("compas")
