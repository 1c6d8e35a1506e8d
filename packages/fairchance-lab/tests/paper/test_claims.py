"""Claims against simulated runs in which they are true, and in which nothing is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from experiments.known_results import from_counts
from fairchance_lab.experiments.all_tables import against, all_tables, claims_examined
from fairchance_lab.paper.claims import examine

METHODS = ("plain", "explore-fair", "no-exploration")
GROWS, WITHOUT, WHY, FASTER, RAISES, BELOW, VARIES = (
    "TPR of a grows from rounds 2 to 5 to the last 4",
    "TPR of a grows without exploration from rounds 2 to 5 to the last 4",
    "TPR of a grows because of exploration",
    "fairness collects more outcomes of a in rounds 2 to 6",
    "fairness raises revenue",
    "FDR is below α after round 1",
    "revenue varies more at α = 0.3 than at 0.1",
)


def simulated(
    rng, rate=0.3, bad=0.15, explored=0.3, methods=METHODS, alphas=(0.15,), size=(12, 13), b=True
):
    """Return a run in which group a is accepted at a rate that may depend on anything.

    ``rate`` and ``explored`` broadcast to (alpha, method, repetition, round). Repetitions differ
    in their level, which all methods share. ``bad`` is the share of bad among the accepted. Group b
    is accepted like a and has nobody good, so that a is the least served; without ``b`` it has good
    people and nobody of it is accepted, so that the rates of a are the differences.
    """
    shape = (len(alphas), len(methods), *size)
    level = rng.uniform(0.7, 1.3, (1, 1, size[0], 1))
    good = rng.binomial(300, 0.5, shape)
    accepted_good = rng.binomial(good, np.clip(np.broadcast_to(rate, shape) * level, 0, 1))
    accepted = accepted_good + rng.negative_binomial(np.maximum(accepted_good, 1), 1 - bad)
    parts = {
        "n_people": np.full(shape, 900),
        "n_good": good,
        "n_accepted": accepted,
        "n_accepted_good": accepted_good,
        "n_explored": rng.binomial(accepted, np.broadcast_to(explored, shape)),
    }
    counts = {name: np.stack([part, part], -1) for name, part in parts.items()}
    for name in ("n_good",) if b else ("n_accepted", "n_accepted_good", "n_explored"):
        counts[name][..., 1] = 0
    return from_counts(counts, methods, "ab", alphas, focus="a")


def verdicts(results):
    return {(row.claim, row.measured): row.verdict for row in examine(results)}


def seen(results, claim, words=""):
    return {v for (c, m), v in verdicts(results).items() if c == claim and words in m}


def per_method(*values):
    return np.array(values)[None, :, None, None]


RISING = np.linspace(0.1, 0.4, 13)


def test_growth_by_the_schedule_alone_is_not_due_to_exploration(rng):
    results = simulated(rng, RISING)
    assert seen(results, GROWS) == {"holds"}
    assert seen(results, WITHOUT) == {"holds"}
    assert seen(results, WHY) == {"not seen"}


def test_growth_because_of_exploration(rng):
    rates = np.stack([RISING, RISING, np.full(13, 0.1)])[None, :, None, :]
    results = simulated(rng, rates)
    assert seen(results, WHY) == {"holds"}
    assert seen(results, WITHOUT) == {"not seen"}
    assert seen(simulated(rng, rates[..., ::-1]), GROWS) == {"opposite"}


def test_round_1_is_no_growth(rng):
    rate = np.r_[1.0, np.full(12, 0.3)]
    assert seen(simulated(rng, rate), GROWS) == {"not seen"}


def test_collection_counts_accepted_and_explored_separately(rng):
    results = simulated(rng, 0.2, explored=per_method(0.1, 0.5, 0.1))
    assert seen(results, FASTER, "explored") == {"holds"}
    assert seen(results, FASTER, "accepted") == {"not seen"}
    more = simulated(rng, per_method(0.2, 0.4, 0.2), bad=0.05)
    assert seen(more, FASTER, "accepted") == {"holds"}
    assert seen(more, RAISES) == {"holds"}
    assert seen(simulated(rng, per_method(0.4, 0.2, 0.2), bad=0.05), RAISES) == {"opposite"}


def test_fair_exploitation_is_ahead_early_and_overtaken_late(rng):
    claim = "fairness raises the TPR of a early, and is overtaken late"
    methods = ("plain", "exploit-fair")
    rates = np.stack([RISING, RISING[::-1]])[None, :, None, :]
    assert seen(simulated(rng, rates, methods=methods), claim) == {"holds"}
    assert seen(simulated(rng, rates[:, ::-1], methods=methods), claim) == {"opposite"}
    assert seen(simulated(rng, methods=methods), claim) == {"not seen"}


def test_revenue_against_the_papers_other_methods(rng):
    methods = ("plain", "opt-offline", "fair-clf", "kilbertus-icml")
    rates = per_method(0.3, 0.4, 0.2, 0.4)
    results = simulated(rng, rates, bad=0.05, methods=methods)
    assert seen(results, "revenue is below that of OPT-OFFLINE") == {"holds"}
    ahead = "revenue is above that of other methods"
    assert seen(results, ahead, "fair-clf") == {"holds"}
    assert seen(results, ahead, "kilbertus") == {"opposite"}


def test_other_methods_stagnate_if_they_grow_less(rng):
    claim = "TPR of a stagnates with other methods"
    rates = np.stack([RISING, np.full(13, 0.2), RISING])[None, :, None, :]
    results = simulated(rng, rates, methods=("plain", "fair-clf", "kilbertus-icml"))
    assert seen(results, claim, "fair-clf") == {"holds"}
    assert seen(results, claim, "kilbertus-icml") == {"not seen"}


@pytest.mark.parametrize(
    ("least", "rates"), [("exploit-fair", "selection rates"), ("both-fair", "true positive rates")]
)
def test_the_smallest_difference_between_groups(rng, least, rates):
    methods = ("plain", "exploit-fair", "both-fair")
    claim = f"{least} has the smallest difference of {rates}"
    level = [0.4 if name != least else 0.2 for name in methods]
    counts = simulated(rng, per_method(*level), methods=methods, b=False)
    assert seen(counts, claim) == {"holds"}
    level = [0.3 if name != least else 0.5 for name in methods]
    counts = simulated(rng, per_method(*level), methods=methods, b=False)
    assert seen(counts, claim) == {"opposite"}


@pytest.mark.parametrize(("bad", "verdict"), [(0.05, "holds"), (0.3, "opposite")])
def test_fdr_against_alpha(rng, bad, verdict):
    assert seen(simulated(rng, bad=bad), BELOW) == {verdict}


def test_fdr_in_every_round(rng):
    every, bad = "FDR is below α in every round after the first", np.full(13, 0.05)
    assert seen(simulated(rng, bad=bad), every) == {"holds"}
    bad[[0, 6]] = 0.5, 0.4
    results = simulated(rng, bad=bad)
    assert seen(results, "FDR is below α in round 1") == {"opposite"}
    assert seen(results, every) == seen(results, every, "worst of 12 rounds: round 7")
    assert seen(results, every) == {"opposite"}
    (row,) = (row for row in examine(results) if row.claim == every and "plain" in row.measured)
    assert np.isnan([row.effect_low, row.effect_high]).all()  # of a round that was chosen


def test_variance_over_rounds_and_over_repetitions(rng):
    """A rate that jumps from round to round, and one that differs between repetitions."""
    jumps = np.ones((2, 1, 1, 13)) * 0.25
    jumps[1, ..., ::2] = 0.45
    over_rounds = simulated(rng, jumps, 0.05, methods=("plain",), alphas=(0.1, 0.3))
    assert seen(over_rounds, VARIES, "round to round") == {"holds"}
    assert seen(over_rounds, VARIES, "√accepted") == {"holds"}
    flipped = simulated(rng, jumps[::-1], 0.05, methods=("plain",), alphas=(0.1, 0.3))
    assert seen(flipped, VARIES, "round to round") == {"opposite"}
    apart = np.ones((2, 1, 12, 1)) * 0.3
    apart[1, 0, :, 0] = np.tile([0.1, 0.6], 6)
    over_runs = simulated(rng, apart, 0.05, methods=("plain",), alphas=(0.1, 0.3))
    assert seen(over_runs, VARIES, "of repetitions") == {"holds"}
    apart[1, 0, :, 0] = 0.3
    apart[1, 0, 0, 0] = 0.9  # one outlier
    one = simulated(rng, apart, 0.05, methods=("plain",), alphas=(0.1, 0.3))
    assert seen(one, VARIES, "of repetitions") == {"not seen"}
    assert not [row for row in examine(simulated(rng)) if "varies" in row.claim]  # one bound


def test_a_trend_is_not_variance(rng):
    trend = np.stack([np.full(13, 0.25), RISING])[:, None, None, :]
    results = simulated(rng, trend, 0.05, methods=("plain",), alphas=(0.1, 0.3), size=(30, 13))
    rows = [row for row in examine(results) if "round to round" in row.measured]
    assert abs(rows[0].effect) < 0.3  # thousands; the trend alone has a spread of 2.8


def test_false_alarms_are_as_rare_as_stated():
    """Nothing is true in these runs, whose FDR is exactly α.

    Each test errs in 5 % of them, and all rows of a claim together in 5 % at most.
    """
    rng = np.random.default_rng(20)
    runs = [
        examine(simulated(rng, alphas=(0.15, 0.3), methods=("plain", "explore-fair")))
        for _ in range(150)
    ]
    for rows in zip(*runs, strict=True):
        alarms = sum(row.p <= 0.05 for row in rows)
        test = stats.binomtest(alarms, len(rows), 0.05, alternative="greater")
        assert test.pvalue > 1e-4, rows[0].measured
    for claim in {row.claim for row in runs[0]}:
        verdicts = [{row.verdict for row in rows if row.claim == claim} for rows in runs]
        wrong = sum(found != {"not seen"} for found in verdicts)
        test = stats.binomtest(wrong, len(runs), 0.05, alternative="greater")
        assert test.pvalue > 1e-4, claim


def test_nothing_is_tested_if_repetitions_share_their_people(rng):
    results = simulated(rng)
    results.about["experiment"] |= {"switches": ["A9"], "published": "german_gender"}
    assert examine(results) == claims_examined(results) == []


@pytest.mark.parametrize("n", [3, 8, 12])
def test_a_difference_has_one_p_value(rng, n):
    results = simulated(rng, per_method(0.3, 0.31, 0.3), size=(n, 13))
    (row,) = (row for row in examine(results) if row.claim == RAISES)
    paired = next(r for r in against(results, "plain", 0).rows if r["method"] == "explore-fair")
    assert paired["metric"] == "revenue"
    assert row.effect == pytest.approx(paired["difference"])
    assert row.p == pytest.approx(paired["p"])
    assert np.isnan(paired["repetitions_needed"]) == (n < 5)


def test_tables_of_the_papers_experiments_only(rng):
    results = simulated(rng)
    assert claims_examined(results) == []
    results.about["experiment"]["published"] = "german_gender"
    (table,) = claims_examined(results)
    assert len(table.rows) == len(examine(results))
    assert all(
        row["effect_low"] < row["effect"] < row["effect_high"]
        for row in table.rows
        if "worst" not in row["measured"]
    )
    assert table.name in {made.name for made in all_tables(results)}


@pytest.mark.parametrize("n", [1, 3, 5])
def test_too_few_repetitions_give_no_verdict(rng, n):
    """No sign flips of 5 differences have a p-value below .0625."""
    results = simulated(rng, RISING, bad=0.4, size=(n, 13))
    assert set(verdicts(results).values()) == {"too few repetitions"}


def test_failed_repetitions_are_left_out(rng):
    results = simulated(rng, RISING)
    failed = (results.columns["method"] == "plain") & (results.columns["repetition"] == 3)
    for name in results.columns:
        if name.startswith("n_"):
            results.columns[name] = np.where(failed, 0, results.columns[name])
    for row in examine(results):
        assert row.repetitions == 12 - ("plain" in row.measured)
