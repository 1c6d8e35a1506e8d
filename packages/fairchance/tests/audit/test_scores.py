"""Calibration and drift of recorded scores, against counts by hand and a known truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fairchance.audit import DecisionLog, calibration, drift
from fairchance.audit.rates import WHOLE, rate_of
from fairchance.errors import InputError


def logged(n=6000, *, rounds=4, hidden=False, seed=0):
    """Return a log whose score is P(good), unless something hidden decides and matters, too."""
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    better = rng.random(n) < 0.5
    good = rng.random(n) < score + np.where(better, 0.8, -0.8) * np.minimum(score, 1 - score)
    propensity = np.where(better, 1.0, 0.2) if hidden else np.full(n, 0.5)
    accepted = rng.random(n) < propensity
    outcome = np.where(accepted, good, np.nan)
    round_ = 1 + np.arange(n) * rounds // n
    return DecisionLog(accepted, propensity, outcome, score=score, round=round_)


def test_the_share_of_good_is_that_of_all_applicants_with_the_score():
    log = logged(hidden=True)
    bins = calibration(log, bins=5)
    assert [part.n_people for part in bins] == pytest.approx([1200] * 5, rel=0.1)
    frame = pd.DataFrame({"s": log.score, "y": log.outcome, "w": 1 / log.propensity})
    for part in bins:
        rows = frame[frame["s"].between(part.least, part.most)]
        known = rows.dropna()
        assert part.score == pytest.approx(rows["s"].mean())
        assert (part.n_accepted, part.n_outcomes) == (len(known), len(known))
        assert part.recorded == pytest.approx(known["y"].mean())
        assert part.good == pytest.approx(np.average(known["y"], weights=known["w"]))
        truth = part.score  # P(good | score) is the score
        assert part.low <= truth <= part.high
        assert part.low < part.good < part.high
    # The share as recorded is that of another population.
    assert bins[1].recorded > bins[1].high


def test_pending_rounds_and_missing_scores_are_left_out():
    log = logged()
    log.outcome[np.flatnonzero((log.round == 3) & log.known)[0]] = np.nan
    log.score[:10] = np.nan
    bins = calibration(log, bins=3)
    assert sum(part.n_people for part in bins) == 3000 - 10


def test_later_rounds_do_not_move_the_ranges():
    """All later applicants have the same score, and join the range that had it in round 1."""
    log = logged()
    first = calibration(log.select(log.round == 1), bins=5)
    log.score[log.round > 1] = np.median(log.score[log.round == 1])
    bins = calibration(log, bins=5)
    added = [part.n_people - before.n_people for part, before in zip(bins, first, strict=True)]
    assert added == [0, 0, 4500, 0, 0]
    assert [(part.least, part.most) for part in bins] == [(p.least, p.most) for p in first]


def test_a_small_first_round_has_no_empty_range():
    log = DecisionLog([True] * 3, [1.0] * 3, [1, 0, 1], score=[0.1, 0.2, 0.9])
    assert [part.n_people for part in calibration(log)] == [1, 1, 1]


def test_few_distinct_scores_make_fewer_ranges():
    log = DecisionLog([True] * 40, [1.0] * 40, [1, 0] * 20, score=[0.3] * 40)
    (only,) = calibration(log)
    assert (only.least, only.most, only.good) == (0.3, 0.3, 0.5)


def test_a_range_that_the_log_does_not_cover_has_no_share():
    score = np.repeat([0.2, 0.8], 200)
    accepted = score > 0.5
    outcome = np.where(accepted, 1.0, np.nan)
    outcome[200:220] = 0
    low, high = calibration(DecisionLog(accepted, accepted * 1.0, outcome, score=score), bins=2)
    assert np.isnan(low.good)
    assert (low.low, low.high) == (0.0, 1.0)
    assert high.good == pytest.approx(0.9)


def test_drift_by_round_equals_counts_by_hand():
    log = logged()
    log.outcome[(log.round == 4)] = np.nan
    frame = pd.DataFrame({"t": log.round, "s": log.score, "a": log.accepted, "y": log.outcome})
    rows = drift(log)
    assert [row.round for row in rows] == [1, 2, 3, 4]
    ends = np.quantile(frame["s"][frame["t"] == 1], np.arange(1, 10) / 10)
    for row, (_, here) in zip(rows, frame.groupby("t"), strict=True):
        assert (row.n_people, row.n_accepted) == (len(here), here["a"].sum())
        assert row.n_outcomes == here["y"].notna().sum()
        assert row.score == pytest.approx(here["s"].mean())
        assert row.accepted == pytest.approx(here["a"].mean())
        assert row.bad == pytest.approx(1 - here["y"].mean(), nan_ok=True)
        counts = np.histogram(here["s"], [-np.inf, *ends, np.inf])[0] + 0.5
        q, p = counts / counts.sum(), np.full(10, 0.1)
        if row.round > 1:
            assert row.stability == pytest.approx(((q - p) * np.log(q / p)).sum(), abs=1e-3)
    assert np.isnan([rows[0].stability, rows[3].bad]).all()
    n_bad = int((log.outcome[log.round == 1] == 0).sum())
    rate = rate_of(n_bad, rows[0].n_outcomes, WHOLE)
    assert (rows[0].bad_low, rows[0].bad_high) == (rate.low, rate.high)


def test_a_population_that_changes_is_seen():
    log = logged()
    log.score[log.round == 4] **= 3
    _, second, third, fourth = (row.stability for row in drift(log))
    assert max(second, third) < 0.1 < 0.25 < fourth


def test_scores_are_compared_within_one_ranking():
    """The applicants are alike in all rounds, and round 3 has a new ranking."""
    log = logged()
    log.score[log.round >= 3] **= 3
    assert max(row.stability for row in drift(log)[1:]) > 0.25
    log.ranking = np.where(log.round >= 3, 7, 2)
    rows = drift(log)
    assert [row.since for row in rows] == [1, 1, 3, 3]
    assert np.isnan([rows[0].stability, rows[2].stability]).all()
    assert max(rows[1].stability, rows[3].stability) < 0.1


@pytest.mark.parametrize("question", [calibration, drift])
def test_a_log_without_scores_is_refused(question):
    with pytest.raises(InputError):
        question(DecisionLog([True], [1.0], [1]))


def test_a_log_without_a_complete_round_is_refused():
    with pytest.raises(InputError):
        calibration(DecisionLog([True, True], [1.0, 1.0], [1, None], score=[0.5, 0.5]))
