"""What a log says about groups: recorded, corrected and bounded."""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter

import numpy as np
import pytest

from fairchance.audit import DecisionLog, evaluate, groups, take_up
from fairchance.audit.bounds import cover, fdr_bounds, round_starts
from fairchance.audit.evaluate import gap_between
from fairchance.audit.groups import tpr_bounds
from fairchance.audit.rates import group_error, rate_of
from fairchance.core.metrics import exact_interval
from fairchance.errors import InputError
from methods.certified.known_truth import rngs, too_many

CELLS = np.arange(4)
BAD = np.array([0.1, 0.2, 0.4, 0.7])  # P(bad) in each cell
SHARES = {"a": np.array([0.25, 0.25, 0.25, 0.25]), "b": np.array([0.1, 0.2, 0.3, 0.4])}
SIZE = (3, 1)  # of even and of odd rounds, relative to each other
TAKES = (0.7, 0.4)  # P(takes the loan if accepted) of good and of bad applicants
# P(accepted) in each cell; later rounds accept fewer.
CHANCES = {"a": np.array([0.9, 0.9, 0.8, 0.5]), "b": np.array([0.9, 0.7, 0.3, 0.1])}


def policy(group, t):
    return CHANCES[group] * 0.9**t


def draw(
    rng,
    *,
    n=120,
    rounds=3,
    shares=SHARES,
    ignore_propensity=False,
    fixed_size=False,
    takes=(1, 1),
    **more,
):
    """Return a log of a population whose rates are known.

    With ``fixed_size``, each round accepts a fixed number of each group's applicants in a cell, or
    one more.
    """
    parts = []
    for t, (group, share) in itertools.product(range(1, rounds + 1), shares.items()):
        size = n * SIZE[t % 2]
        cell = rng.choice(CELLS, size, p=share)
        p = policy(group, t)[cell]
        coin = rng.random(size)
        if fixed_size:
            for each in CELLS:
                here = np.flatnonzero(cell == each)
                coin[here] = (rng.permutation(here.size) + rng.random()) / max(here.size, 1)
        parts.append((np.full(size, group), np.full(size, t), cell, p, coin < p))
    group, round_, cell, p, accepted = (np.concatenate(part) for part in zip(*parts, strict=True))
    good = rng.random(p.size) >= BAD[cell]
    loans = takes[0] * (1 - BAD), takes[1] * BAD
    will = rng.random(p.size) < np.where(good, *takes)
    if fixed_size:
        more["drawn"] = p < 1
    return DecisionLog(
        accepted,
        np.full(p.size, accepted.mean()) if ignore_propensity else p,
        np.where(accepted & will, good, np.nan),
        not_taken=accepted & ~will,
        X=cell[:, None].astype(float),
        sensitive_features=group,
        round=round_,
        score=(loans[0] / sum(loans))[cell],
        **more,
    )


def truth(group, rounds, share=None, takes=(1, 1)):
    """Return the true rates of a group over some rounds."""
    share = SHARES[group] if share is None else share
    sizes = [SIZE[t % 2] for t in range(1, rounds + 1)]
    policies = [policy(group, t) for t in range(1, rounds + 1)]
    p = np.average(policies, axis=0, weights=sizes)
    good, bad = takes[0] * (1 - BAD), takes[1] * BAD
    return {
        "selection_rate": p @ share,
        "false_discovery_rate": (p * bad) @ share / ((p * (good + bad)) @ share),
        "bad_rate": bad @ share / ((good + bad) @ share),
        "true_positive_rate": (p * good) @ share / (good @ share),
        "calibration": 0.0,
    }


def test_values_by_hand():
    log = DecisionLog(
        accepted=[1, 1, 1, 1, 0, 0],
        propensity=[1.0, 0.5, 0.5, 0.25, 0.25, 0.0001],
        outcome=[1, 1, 0, 0, np.nan, np.nan],
        score=[0.9, 0.8, 0.5, 0.4, 0.3, 0.1],
    )
    audit = groups(log)
    assert audit.of("selection_rate").recorded == audit.of("selection_rate").corrected == 4 / 6
    assert audit.of("false_discovery_rate").corrected == 0.5
    assert audit.of("calibration").recorded == pytest.approx(2.6 / 4 - 0.5)
    # The last applicant was hardly ever accepted, so nothing is said about all of them.
    for name in ("bad_rate", "true_positive_rate", "calibration"):
        assert math.isnan(audit.of(name).corrected)
        assert audit.of(name).reason == "not_identified"
    covered = groups(log.select(np.arange(5)))
    # Weights are 1, 2, 2, 4; the last two are bad.
    assert covered.of("bad_rate").recorded == 0.5
    assert covered.of("bad_rate").corrected == pytest.approx(6 / 9)
    assert covered.of("true_positive_rate").corrected == pytest.approx(2 / 3)
    assert covered.of("calibration").corrected == pytest.approx(2.9 / 5 - 3 / 9)


def brute_force_ranges(log):
    """Return the least and the largest value of each measure over all outcomes not known.

    If the log has loans that are not taken, those not known may be such loans too.
    """
    unknown = np.flatnonzero(np.isnan(log.outcome) & ~log.not_taken)
    found, states = {}, [0.0, 1.0] + [math.nan] * bool(log.not_taken.any())
    for filled in itertools.product(states, repeat=unknown.size):
        good = log.outcome.copy()
        good[unknown] = filled
        t = ~np.isnan(good)
        a = log.accepted & t
        values = {
            "selection_rate": log.accepted.mean(),
            "false_discovery_rate": 1 - good[a].mean() if a.any() else math.nan,
            "bad_rate": 1 - good[t].mean() if t.any() else math.nan,
            "true_positive_rate": good[a].sum() / good[t].sum() if good[t].any() else math.nan,
            "calibration": (log.score - good)[t].mean() if t.any() else math.nan,
        }
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    return {name: (np.nanmin(values), np.nanmax(values)) for name, values in found.items()}


@pytest.mark.parametrize("accepted", [[1, 1, 1, 1, 0, 0, 0], [1] * 7, [1, 1, 0, 0, 0, 0, 0]])
@pytest.mark.parametrize("outcome", [[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, np.nan, np.nan]])
def test_bounds_without_assumptions_are_those_of_all_possible_outcomes(accepted, outcome):
    a = np.array(accepted, bool)
    outcome = np.where(a, np.append(outcome, [np.nan] * 3), np.nan)
    log = DecisionLog(a, np.where(a, 0.5, 0.3), outcome, score=np.linspace(0.1, 0.9, 7))
    audit = groups(log, pending="worst")
    for name, ends in brute_force_ranges(log).items():
        row = audit.of(name)
        assert (row.least, row.most) == pytest.approx(ends), name


@pytest.mark.parametrize("accepted", [[1, 1, 1, 1, 0, 0, 0], [1] * 7, [1, 1, 0, 0, 0, 0, 0]])
@pytest.mark.parametrize("outcome", [[1, 0, 1], [0, 0, 0], [1, np.nan, np.nan]])
def test_bounds_without_assumptions_let_unknown_applicants_take_no_loan(accepted, outcome):
    a, not_taken = np.array(accepted, bool), np.arange(7) == 0
    outcome = np.where(a, [np.nan, *outcome, *[np.nan] * 3], np.nan)
    score = np.linspace(0.1, 0.9, 7)
    log = DecisionLog(a, np.where(a, 0.5, 0.3), outcome, not_taken=not_taken, score=score)
    audit, all_ends = groups(log, pending="worst"), brute_force_ranges(log)
    least, most = all_ends.pop("calibration")
    row = audit.of("calibration")  # the ends of scores and of outcomes need not go together
    assert row.least <= least + 1e-12 <= most <= row.most + 1e-12
    for name, ends in all_ends.items():
        row = audit.of(name)
        assert (row.least, row.most) == pytest.approx(ends), name


def tpr_bets(monkeypatch, p, good, drawn, *, accepted=True):
    """Return (U, V, worst) of one applicant for every gambler: those above, and those below."""
    made, passed = {}, []

    class Recorder:
        @staticmethod
        def of(u, v, rounds, worst, **_):
            made[len(made)] = (u[0], v[0], worst)
            return len(made) - 1

    module = sys.modules[tpr_bounds.__module__]
    monkeypatch.setattr(module, "Bets", Recorder)
    monkeypatch.setattr(module, "upper_bound", lambda bets, *_, **__: passed.append(bets) or 0.0)
    columns = (np.array([value]) for value in (accepted, p, float(good), drawn))
    tpr_bounds(*columns, np.array([0, 1]), 0.1, changes=False)
    below, above = passed
    return [made[at] for at in above], [made[at] for at in below]


@pytest.mark.parametrize("p", [0.02, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("drawn", [False, True])
def test_bets_on_the_true_positive_rate_are_fair(monkeypatch, p, drawn):
    """E[b·U − V] ≤ (b − p)·P(good) above and (b − (1 − p))·P(good) below, and no bet ruins."""
    cases = [tpr_bets(monkeypatch, p, math.nan, drawn, accepted=False)]
    cases += [tpr_bets(monkeypatch, p, good, drawn) for good in (1, 0, math.nan)]
    for side, rate in enumerate((p, 1 - p)):
        of_gamblers = list(zip(*(case[side] for case in cases), strict=True))
        assert len(of_gamblers) == (6 if drawn else 3)
        for bets, b in itertools.product(of_gamblers, np.linspace(0, 0.999, 12)):
            rejected, good, bad, unknown = (b * u - v for u, v, _ in bets)
            most, slope = bets[0][2]
            assert min(rejected, good, bad, unknown) >= slope * b - most - 1e-12
            assert all(v * slope <= u * most + 1e-12 for u, v, _ in bets)
            assert unknown <= min(good, bad) + 1e-12
            for share in (0.0, 0.3, 1.0):
                mean = (1 - p) * rejected + p * (share * good + (1 - share) * bad)
                assert mean <= (b - rate) * share + 1e-12


@pytest.mark.parametrize("takes", [(1, 1), TAKES])
def test_corrected_values_are_right_and_recorded_ones_are_not(takes):
    runs, found = 150, {}
    for rng in rngs(3, runs):
        # Without intervals, which take time.
        log = draw(rng, n=400, rounds=2, estimated=True, takes=takes)
        for row in groups(log).measured:
            found.setdefault((row.measure, row.group), []).append((row.recorded, row.corrected))
    for group in "ab":
        for name, value in truth(group, 2, takes=takes).items():
            recorded, corrected = np.array(found[name, group]).T
            error = corrected.std() / math.sqrt(runs)
            # A ratio has a bias of order 1/n, far below the spread of one run.
            assert abs(corrected.mean() - value) < 4 * error + 0.1 * corrected.std(), name
            if name == "bad_rate":
                assert abs(recorded.mean() - value) > 20 * recorded.std() / math.sqrt(runs)


def wrong_bounds(rng, error=0.1, **options):
    """Return whether bounds of group b's bad_rate and TPR are wrong after two rounds."""
    log = draw(rng, rounds=2, shares={"b": SHARES["b"]}, **options)
    decided, rounds = (log.accepted, log.propensity), round_starts(log.round)
    covered = cover(np.ones(len(log)), log.propensity, log.accepted, log.drawn)
    bad = 1 - np.nan_to_num(log.outcome)
    found = {
        "bad_rate": fdr_bounds(covered, bad, bad, rounds, error, changes=False),
        "true_positive_rate": tpr_bounds(
            *decided, log.outcome, log.drawn, rounds, error, changes=True
        ),
    }
    true = truth("b", 2)
    return np.array([not low <= true[name] <= high for name, (low, high) in found.items()])


def test_bounds_are_seldom_wrong_and_those_that_ignore_propensities_often():
    """Exact binomial; a false alarm of this test has probability 0.001 for each measure."""
    for count in sum(wrong_bounds(rng) for rng in rngs(5, 200)):
        assert not too_many(count, 200, 0.1)
    for count in sum(wrong_bounds(rng, n=1000, ignore_propensity=True) for rng in rngs(7, 10)):
        assert too_many(count, 10, 0.1)


def wrong_with_take_up(rng, control="", **options):
    """Return which intervals of the groups are wrong if the good take loans more often."""
    log = draw(rng, takes=TAKES, rounds=2, **options)
    if control == "not taken is good":
        log.outcome[log.not_taken], log.not_taken[:] = 1.0, False
    elif control == "bad is not taken":
        late = (log.outcome == 0) & (rng.random(len(log)) < 0.7)
        log.outcome[late], log.not_taken[late] = np.nan, True
    audit = groups(log, confidence=0.9)
    return {
        name
        for group in SHARES
        for name, value in truth(group, 2, takes=TAKES).items()
        if not audit.of(name, group).low <= value <= audit.of(name, group).high
    }


@pytest.mark.parametrize("runs", [30, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("fixed_size", [False, True])
def test_measures_are_about_applicants_who_would_take_the_loan(runs, fixed_size):
    """Exact binomial; a false alarm of this test has probability 0.001 for each measure."""
    counts = Counter()
    for rng in rngs(10, runs):
        counts.update(wrong_with_take_up(rng, fixed_size=fixed_size))
    assert not any(too_many(count, runs, 0.1) for count in counts.values()), counts


@pytest.mark.parametrize("control", ["not taken is good", "bad is not taken"])
def test_measures_are_wrong_if_loans_that_are_not_taken_are_told_wrongly(control):
    counts = Counter()
    for rng in rngs(11, 10):
        counts.update(wrong_with_take_up(rng, control, n=1500))
    for name in ("false_discovery_rate", "bad_rate", "calibration"):
        assert too_many(counts[name], 10, 0.1), counts


def test_take_up_by_region_group_and_round():
    state = np.array(["good", "not_taken", "bad", None, "withdrawn", "not_taken", "good", None])
    accepted = np.array([1, 1, 1, 1, 1, 1, 1, 0], bool)
    log = DecisionLog(
        accepted,
        np.where(accepted, 0.5, 0.2),
        state,
        exploit=[1, 1, 1, 0, 0, 0, 0, 0],
        erased=[0, 0, 0, 0, 0, 1, 0, 0],
        sensitive_features=["f", "f", "m", "m", "f", "", "m", "m"],
        round=[1, 1, 1, 1, 2, 2, 2, 2],
    )
    found = {(row.attribute, row.group): row.rate for row in take_up(log)}
    counted = {key: (rate.count, rate.n, rate.missing) for key, rate in found.items()}
    attribute = log.groups[0].attribute
    assert counted == {
        ("", ""): (4, 6, 1),
        ("region", "exploit"): (2, 3, 0),
        ("region", "explore"): (2, 3, 1),
        (attribute, "f"): (1, 2, 1),
        (attribute, "m"): (3, 3, 0),
        ("round", "1"): (3, 4, 0),
        ("round", "2"): (1, 2, 1),
    }
    # An erased applicant who took no loan may be of any group, and all intervals hold together.
    error = group_error(1 - 0.95, 1, 3)
    assert found[attribute, "m"] == rate_of(3, 3, error, erased=(0, 1))
    assert found["", ""] == rate_of(4, 6, (1 - 0.95) / 2, missing=1)


@pytest.mark.parametrize("runs", [50, pytest.param(150, marks=pytest.mark.long)])
def test_rates_of_decisions_are_seldom_wrong_at_any_look_and_exact_intervals_often(runs):
    """Exact binomial; a false alarm of this test has probability 0.001 for each measure."""
    names = ("selection_rate", "false_discovery_rate")
    wrong = {(kind, name): 0 for kind in ("ours", "exact") for name in names}
    for rng in rngs(9, runs):
        log = draw(rng, n=20, rounds=15, estimated=True)  # without the others, which take time
        missed = set()
        for t in range(1, 16):
            audit = groups(log.select(log.round <= t), confidence=0.9)
            for name, group in itertools.product(names, SHARES):
                rate, true = audit.of(name, group).rate, truth(group, t)[name]
                exact = exact_interval(rate.count, rate.n, confidence=1 - 0.1 / 2)
                for kind, (low, high) in (("ours", (rate.low, rate.high)), ("exact", exact)):
                    if not low <= true <= high:
                        missed.add((kind, name))
        for key in missed:
            wrong[key] += 1
    for (kind, name), count in wrong.items():
        assert too_many(count, runs, 0.1) == (kind == "exact"), (kind, name, count)


@pytest.mark.long
@pytest.mark.parametrize(("runs", "fixed_size"), [(2000, False), (500, True)])
def test_intervals_of_all_groups_are_seldom_wrong(runs, fixed_size):
    """Exact binomial; a false alarm of this test has probability 0.001 for each measure."""
    names = ("selection_rate", "false_discovery_rate", "bad_rate", "true_positive_rate")
    counts = dict.fromkeys(names, 0)
    for rng in rngs(6, runs):
        log = draw(rng, n=120, rounds=5, fixed_size=fixed_size)
        wrong = set()
        for t in (2, 5):
            audit = groups(log.select(log.round <= t), confidence=0.9)
            for name, group in itertools.product(names, SHARES):
                row = audit.of(name, group)
                if not row.low <= truth(group, t)[name] <= row.high:
                    wrong.add(name)
        for name in wrong:
            counts[name] += 1
    for name, count in counts.items():
        assert not too_many(count, runs, 0.1), name


def test_groups_that_are_alike_are_seldom_called_different():
    """Recorded rates differ, as group b is selected harder; applicants do not."""
    runs, answers = 20, []
    alike = {"a": SHARES["a"], "b": SHARES["a"]}
    for rng in rngs(8, runs):
        audit = groups(draw(rng, n=2500, rounds=1, shares=alike))
        answers += [each.answer for each in audit.findings if each.measure == "bad_rate"]
    assert not too_many(answers.count("real"), runs, 0.05)
    assert answers.count("selection") > runs / 2


def test_groups_that_differ_are_found_out():
    audit = groups(draw(np.random.default_rng(0), n=4000))
    by_name = {each.measure: each for each in audit.findings}
    assert by_name["bad_rate"].answer == "real"
    assert by_name["bad_rate"].corrected.difference == pytest.approx(0.11, abs=0.03)
    assert (by_name["bad_rate"].higher.group, by_name["bad_rate"].lower.group) == ("b", "a")
    assert math.isnan(by_name["true_positive_rate"].recorded)
    assert str(by_name["bad_rate"]) in audit.verdict()


@pytest.mark.parametrize(("b_first", "order"), [(False, 1), (True, 0)])
def test_intervals_share_the_error_among_groups_by_their_first_rounds(b_first, order):
    log = draw(np.random.default_rng(1), n=300)
    if b_first:  # group a appears in round 2
        log = log.select((log.groups[0].codes == 1) | (log.round > 1))
    audit, part = groups(log, confidence=0.9), group_error(0.1, order)
    some = log.select(log.groups[0].codes == 1)
    parts = some.accepted, some.propensity, some.outcome, some.drawn, round_starts(some.round)
    row = audit.of("true_positive_rate", "b")
    assert (row.low, row.high) == tpr_bounds(*parts, part, changes=True)
    assert audit.of("selection_rate", "b").rate == rate_of(some.accepted.sum(), len(some), part)
    n_bad = int((some.outcome == 0).sum())
    assert audit.of("false_discovery_rate", "b").rate == rate_of(n_bad, some.known.sum(), part)
    n_bad = int((log.outcome == 0).sum())
    assert audit.of("false_discovery_rate").rate == rate_of(n_bad, log.known.sum(), 0.1 / 2)


def test_a_gap_in_mistakes_is_real_only_if_missing_outcomes_cannot_close_it():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 600)
    outcome = (rng.random(1200) < np.where(group == "a", 0.95, 0.7)).astype(float)

    def answers(outcome):
        log = DecisionLog(np.ones(1200), np.ones(1200), outcome, sensitive_features=group)
        return {each.measure: each.answer for each in groups(log, pending="worst").findings}

    assert answers(outcome)["false_discovery_rate"] == "real"
    assert answers(outcome)["selection_rate"] == "open"
    outcome[200:600] = np.nan  # group a might be as bad
    assert answers(outcome)["false_discovery_rate"] == "open"


def test_draws_of_fixed_size_have_wider_intervals():
    coins, drawn = (
        groups(draw(np.random.default_rng(1), n=200, drawn=np.full(2000, of_fixed_size)))
        for of_fixed_size in (False, True)
    )
    for name in ("bad_rate", "true_positive_rate"):
        one, other = coins.of(name), drawn.of(name)
        assert one.corrected == other.corrected
        assert other.high - other.low > one.high - one.low


def test_pending_outcomes():
    log = draw(np.random.default_rng(2), n=300)
    last = (log.round == 3) & log.accepted
    later = DecisionLog(
        log.accepted,
        log.propensity,
        np.where(last, np.nan, log.outcome),
        sensitive_features=log.sensitive_features,
        round=log.round,
    )
    cut, worst = groups(later), groups(later, pending="worst")
    whole = groups(log.select(log.round < 3))
    for name in ("bad_rate", "true_positive_rate"):
        row, other, same = (audit.of(name, "b") for audit in (cut, worst, whole))
        assert (row.corrected, row.low, row.high) == (same.corrected, same.low, same.high)
        assert row.corrected == other.corrected
    known = groups(log)
    assert worst.of("true_positive_rate").low < known.of("true_positive_rate").low
    assert worst.of("true_positive_rate").high > known.of("true_positive_rate").high
    # The decisions themselves are all there, and pending outcomes are missing ones.
    for audit in (cut, worst):
        assert audit.of("selection_rate").rate == known.of("selection_rate").rate
        rate = audit.of("false_discovery_rate").rate
        assert (rate.n, rate.missing) == (whole.of("bad_rate").n_outcomes, last.sum())
        assert rate.least < rate.low < rate.high < rate.most


def test_small_groups_no_groups_and_erased_ones():
    rng = np.random.default_rng(3)
    n = 300
    group = np.repeat(["a", "b", "c"], [200, 99, 1])
    p = np.where(group == "b", 0.03, 0.8)
    accepted = rng.random(n) < p
    outcome = np.where(accepted, rng.random(n) < 0.8, np.nan)
    audit = groups(DecisionLog(accepted, p, outcome, sensitive_features=group))
    one = audit.of("bad_rate", "c")
    assert (one.reason, one.n_people) == ("too_few_outcomes", 1)
    assert np.isnan([one.recorded, one.corrected, one.low, one.least]).all()
    few = audit.of("bad_rate", "b")
    assert few.n_outcomes < 10
    assert few.reason == "too_few_outcomes"
    assert math.isnan(few.recorded)
    rate = audit.of("selection_rate", "c").rate  # as other reports show it, however small
    assert (rate.n, rate.high > 0.9) == (1, True)

    erased = np.arange(n) < 50
    half = groups(DecisionLog(accepted, p, outcome, sensitive_features=group, erased=erased))
    assert half.of("bad_rate").n_people == n
    assert half.of("bad_rate", "a").n_people == 150
    none = groups(DecisionLog(accepted, p, outcome))
    assert none.findings == ()
    assert {row.group for row in none.measured} == {""}


def test_what_estimated_probabilities_correct_has_no_interval():
    audit = groups(draw(np.random.default_rng(4), estimated=True))
    corrected = [row for row in audit.measured if row.rate is None]
    assert np.isnan([(row.low, row.high) for row in corrected]).all()
    answers = {each.measure: each.answer for each in audit.findings}
    assert answers["bad_rate"] == answers["true_positive_rate"] == "open"
    assert "estimated" in audit.assumptions


def test_rounds_that_contradict_each_other_have_no_interval():
    rng = np.random.default_rng(9)
    n, t = 4000, np.repeat([1, 2], 2000)
    accepted = rng.random(n) < 0.8
    outcome = np.where(accepted, rng.random(n) < np.where(t == 1, 0.9, 0.4), np.nan)
    group = rng.choice(["a", "b"], n)
    audit = groups(
        DecisionLog(accepted, np.full(n, 0.8), outcome, round=t, sensitive_features=group)
    )
    row = audit.of("bad_rate", "a")
    assert np.isnan([row.low, row.high]).all()
    assert row.reason == "contradiction"
    assert {each.answer for each in audit.findings} == {"open"}


def test_certain_decisions_identify_only_the_accepted():
    rng = np.random.default_rng(5)
    accepted = rng.random(400) < 0.5
    outcome = np.where(accepted, rng.random(400) < 0.8, np.nan)
    audit = groups(DecisionLog(accepted, accepted.astype(float), outcome))
    row = audit.of("bad_rate")
    assert math.isnan(row.corrected)
    assert (row.low, row.high) == pytest.approx((row.least, row.most), abs=0.12)
    assert row.reason == "not_identified"
    assert audit.of("false_discovery_rate").corrected == pytest.approx(1 - np.nanmean(outcome))


def test_gaps_of_calibration_are_in_points():
    """Scores of group b are far too low."""
    log = draw(np.random.default_rng(6), n=3000)
    log.score[log.groups[0].codes == 1] -= 0.3
    audit = groups(log)
    (finding,) = (each for each in audit.findings if each.measure == "calibration")
    assert finding.answer == "real"
    assert "points" in str(finding)
    assert "%" not in str(finding)


def test_scores_that_are_missing_or_no_likelihoods():
    log = draw(np.random.default_rng(6), n=300)
    log.score[log.round == 2] = np.nan
    scored = groups(log.select(log.round != 2)).of("calibration")
    row = groups(log).of("calibration")
    for name in ("recorded", "corrected", "low", "high", "least", "most"):
        assert getattr(row, name) == pytest.approx(getattr(scored, name))
    log.score *= 800
    assert "calibration" not in {each.measure for each in groups(log).measured}


def test_a_table_a_page_and_bad_input():
    log = draw(np.random.default_rng(7))
    audit = groups(log)
    table = audit.to_frame("pandas")
    assert len(table) == 5 * 3
    assert {"measure", "group", "recorded", "corrected", "low", "least", "reason"} <= {*table}
    assert "bad among all applicants, b" in audit._repr_html_()
    with pytest.raises(InputError, match=r"1\.5"):
        groups(log, confidence=1.5)
    with pytest.raises(InputError, match="'later'"):
        groups(log, pending="later")
    with pytest.raises(InputError):
        groups(DecisionLog([0], [0.5], [np.nan]))
    with pytest.raises(InputError, match="'z'"):
        audit.of("bad_rate", "z")


def test_a_gap_has_an_interval_only_if_groups_have_one():
    nothing = (math.nan, math.nan)
    gap = gap_between("sex", "bad_rate", [0.1, 0.4, math.nan], [nothing] * 3)
    assert (gap.difference, gap.ratio) == pytest.approx((0.3, 0.25))
    ends = [gap.difference_low, gap.difference_high, gap.ratio_low, gap.ratio_high]
    assert np.isnan(ends).all()
    assert gap_between("sex", "bad_rate", [0.1, math.nan], [(0.0, 1.0), nothing]) is None
    for gap in evaluate(draw(np.random.default_rng(0), n=50, estimated=True), np.ones(500)).gaps:
        assert math.isnan(gap.difference_low)
        assert math.isnan(gap.ratio_high)
