"""How a policy would have done: intervals that hold at all times, properties, hidden selection."""

from __future__ import annotations

import importlib
import itertools
import math
from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier

from audit.cells import (
    BAD,
    GROUP,
    MASS,
    POLICY,
    SELECTIVE,
    TAKES,
    UTILITY,
    adaptive,
    coins,
    drawn,
    play,
    rngs,
    selective,
    together,
    too_rarely,
    truth,
)
from fairchance import PositiveRate, Utility
from fairchance.audit import Challenger, DecisionLog, added_profit, evaluate, groups
from fairchance.audit.bounds import Bets
from fairchance.audit.estimates import MEASURES, estimators, named, row_sums, standard_error
from fairchance.audit.evaluate import _hidden_range
from fairchance.errors import InputError

SEEDS = st.integers(0, 2**32 - 1)
SIZES = [150] * 5
RUNS = [40, pytest.param(2000, marks=pytest.mark.long)]
FEW_RUNS = [14, pytest.param(2000, marks=pytest.mark.long)]  # for tests with many looks

_module = importlib.import_module("fairchance.audit.evaluate")  # its name is that of a function


@pytest.fixture
def no_model(monkeypatch):
    """Leave out the model of the doubly robust estimate, which no interval uses."""
    monkeypatch.setattr(_module, "fit_bad", lambda log, *_: np.full(len(log), 0.5))


# Coverage. An interval must hold at every look in 95 % of runs, by an exact binomial test with a
# false alarm in 10,000. Each test has a control that must fail it.


def missed(result, right, group=""):
    """Return the measures whose interval does not hold the true value."""
    rows = [result.of(name, group) for name in MEASURES]
    return {row.measure for row in rows if not row.low <= right[row.measure] <= row.high}


def in_how_many(seed, runs, run):
    """Return in how many runs each measure was missed; ``run`` returns the measures missed."""
    counts = dict.fromkeys(MEASURES, 0)
    for rng in rngs(seed, runs):
        for measure in run(rng):
            counts[measure] += 1
    return counts


class FixedPolicy:
    """A policy that accepts each cell with a probability, in every round."""

    rounds_ = (SimpleNamespace(round=0),)

    def __init__(self, logged, pi=POLICY):
        logged.log.X = np.asarray(pi, float)[logged.cell][:, None]

    def acceptance_probability(self, X, sensitive_features=None):
        return X[:, 0]


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize(
    ("logging", "design"),
    [(selective, coins), (adaptive, coins), (adaptive, drawn), (selective, together)],
)
def test_intervals_of_a_fixed_policy_hold(logging, design, runs):
    """At the last look they lie within those of all earlier ones (see below), so it is enough."""

    def run(rng):
        logged = play(rng, SIZES, logging, design)
        return missed(evaluate(logged.log, FixedPolicy(logged), utility=UTILITY), truth())

    counts = in_how_many(11, runs, run)
    assert not any(too_rarely(n, runs) for n in counts.values()), counts


@pytest.mark.usefixtures("no_model")
def test_the_interval_of_a_fixed_policy_only_shrinks():
    for rng, design in zip(rngs(12, 6), [coins, drawn] * 3, strict=True):
        logged = play(rng, SIZES, adaptive, design)
        last = dict.fromkeys(MEASURES, (-math.inf, math.inf))
        for look in range(1, 6):
            result = evaluate(*at_look(logged, look), utility=UTILITY)
            for measure in MEASURES:
                row, (low, high) = result.of(measure), last[measure]
                assert low <= row.low <= row.high <= high
                last[measure] = row.low, row.high


def at_look(logged, look):
    """Return the log after a round, and the fixed policy on it."""
    policy = FixedPolicy(logged)
    return logged.log.select(logged.log.round <= look), policy


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("control", ["propensities ignored", "draws taken for coins"])
def test_intervals_without_the_right_probabilities_do_not_hold(control):
    def run(rng):
        logged = play(rng, 2 * SIZES, design=together if control.startswith("draws") else coins)
        log, policy = logged.log, FixedPolicy(logged)
        if control.startswith("draws"):
            log.drawn[:] = False
        else:
            log.propensity = np.full(len(log), log.accepted.mean())
        return missed(evaluate(log, policy, utility=UTILITY), truth())

    counts = in_how_many(13, 40, run)
    assert too_rarely(counts["false_discovery_rate"], 40), counts
    assert too_rarely(counts["profit"], 40), counts


def test_a_normal_interval_does_not_hold_at_all_looks():
    """Estimates with twice their standard error after each of 20 rounds: what many people do."""

    def run(rng):
        logged, found = play(rng, [30] * 20), set()
        terms, _ = row_sums(logged.log, POLICY[logged.cell], logged.bad, None)
        for look, measure in itertools.product(range(1, 21), MEASURES[1:]):
            some, estimate = terms[: 30 * look], estimators(UTILITY)[measure, "self_normalised"]
            off = estimate(named(some.sum(axis=0))) - truth()[measure]
            if abs(off) > 1.96 * standard_error(estimate, some):
                found.add(measure)
        return found

    counts = in_how_many(14, 120, run)
    assert all(too_rarely(counts[measure], 120) for measure in MEASURES[1:]), counts


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize(
    "utility",
    [
        PositiveRate(),
        Utility(accept_good=-1.0, accept_bad=2.0),
        Utility(accept_good=3.0, accept_bad=1.0),
        Utility(reject_good=2.0, reject_bad=1.0),
    ],
)
def test_profit_intervals_hold_for_odd_utilities(utility, runs):
    right = truth(utility=utility)

    def run(rng):
        logged = play(rng, SIZES)
        return missed(evaluate(logged.log, FixedPolicy(logged), utility=utility), right)

    n = in_how_many(15, runs // 2, run)["profit"]
    assert not too_rarely(n, runs // 2), n


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("runs", RUNS)
def test_intervals_of_groups_hold_together(runs):
    def run(rng, ignore=False):
        logged = play(rng, SIZES, groups=True)
        log, policy = logged.log, FixedPolicy(logged)
        if ignore:
            log.propensity = np.full(len(log), log.accepted.mean())
        result = evaluate(log, policy, utility=UTILITY)
        return set().union(*(missed(result, truth(group=z), z) for z in "AB"))

    counts = in_how_many(16, runs, run)
    assert not any(too_rarely(n, runs) for n in counts.values()), counts
    control = in_how_many(16, 30, partial(run, ignore=True))
    assert too_rarely(control["false_discovery_rate"], 30), control


# Loans that are not taken.


def take_up_run(rng, design=coins, control="", sizes=SIZES):
    """Return what is missed if good applicants take loans more often than bad ones."""
    logged = play(rng, sizes, adaptive, design, takes=TAKES)
    log, policy = logged.log, FixedPolicy(logged)
    if control == "not taken is good":
        log.outcome[log.not_taken], log.not_taken[:] = 1.0, False
    elif control == "bad is not taken":
        late = (log.outcome == 0) & (rng.random(len(log)) < 0.7)
        log.outcome[late], log.not_taken[late] = np.nan, True
    return missed(evaluate(log, policy, utility=UTILITY), truth(takes=TAKES))


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("design", [coins, drawn])
def test_intervals_hold_if_good_applicants_take_loans_more_often(design, runs):
    counts = in_how_many(20, runs, partial(take_up_run, design=design))
    assert not any(too_rarely(n, runs) for n in counts.values()), counts


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("control", ["not taken is good", "bad is not taken"])
def test_intervals_do_not_hold_if_loans_that_are_not_taken_are_told_wrongly(control):
    counts = in_how_many(20, 20, partial(take_up_run, control=control, sizes=[600] * 5))
    assert too_rarely(counts["false_discovery_rate"], 20), counts
    assert too_rarely(counts["profit"], 20), counts


def test_what_is_not_covered_may_be_taken_or_not():
    """By hand: two of four loans are taken, one of them is bad; a fifth applicant is unknown."""
    log = DecisionLog(
        [1, 1, 1, 1, 0], [1, 1, 1, 1, 0], ["good", "bad", "not_taken", "not_taken", None]
    )
    result = evaluate(log, np.ones(5), utility=Utility(accept_good=3.0, accept_bad=-2.0))
    fdr, profit = result.of("false_discovery_rate"), result.of("profit")
    assert (fdr.reason, profit.reason) == ("not_identified",) * 2
    assert (fdr.least, fdr.most) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (profit.least, profit.most) == (pytest.approx(-1 / 5), pytest.approx(4 / 5))
    covered = evaluate(log.select(np.arange(4)), np.ones(4), utility=UTILITY)
    assert covered.of("selection_rate").value == 1.0
    assert covered.of("false_discovery_rate").value == 0.5
    assert covered.of("profit").value == -1 / 4
    assert covered.diagnostics.effective_sample_size == pytest.approx(2)


# The lender's own process.

KNOWS = (0.8, 0.3)  # P(d = 1) of good and of bad applicants: it knows more than the log
RAMPS = (0.0, 0.3, 1.0)  # by round


def beside_incumbent(rng, n=200, takes=TAKES):
    """Return a log of rounds with a growing ramp, and what is true of d and of the program."""
    logged = play(rng, [n] * len(RAMPS), takes=takes)
    log, bad = logged.log, logged.bad
    d = (rng.random(len(log)) < np.where(bad, KNOWS[1], KNOWS[0])).astype(float)
    ramp = np.array(RAMPS)[log.round - 1]
    p = (1 - ramp) * d + ramp * log.propensity
    accepted = rng.random(len(log)) < p
    log = DecisionLog(
        accepted,
        p,
        np.where(accepted & logged.takes, 1.0 - bad, np.nan),
        not_taken=accepted & ~logged.takes,
        incumbent=d,
        round=log.round,
    )
    right = {}
    for name, chance in (("incumbent", KNOWS), ("program", (SELECTIVE, SELECTIVE))):
        chosen = MASS @ ((1 - BAD) * chance[0]), MASS @ (BAD * chance[1])
        loans = chosen[0] * takes[0], chosen[1] * takes[1]
        earned = UTILITY.gain_good * loans[0] + UTILITY.gain_bad * loans[1]
        right[name] = dict(zip(MEASURES, (sum(chosen), loans[1] / sum(loans), earned), strict=True))
    profits = (right[name]["profit"] for name in ("program", "incumbent"))
    return log, right["incumbent"], np.mean(RAMPS) * np.subtract(*profits)


@pytest.mark.parametrize("runs", RUNS)
def test_intervals_of_the_incumbent_and_of_what_is_added_to_it_hold(runs):
    """Exact binomial; in the control the ramp is left out of the probabilities."""
    wrong, control = np.zeros(2), np.zeros(2)
    for k, rng in enumerate(rngs(21, runs)):
        log, right, added = beside_incumbent(rng)
        found = added_profit(log, utility=UTILITY)
        wrong[0] += bool(missed(evaluate(log, "incumbent", utility=UTILITY), right))
        wrong[1] += not found.low <= added <= found.high
        if k < 20:
            log, right, added = beside_incumbent(rng, n=1500)
            known = (log.propensity > 0) & (log.propensity < 1)
            log.propensity[known] = log.propensity[known].mean()
            found = added_profit(log, utility=UTILITY)
            control[0] += bool(missed(evaluate(log, "incumbent", utility=UTILITY), right))
            control[1] += not found.low <= added <= found.high
    # Three measures share a run, each with an error of 5 %.
    assert not too_rarely(wrong[0], runs, 0.15)
    assert not too_rarely(wrong[1], runs)
    assert too_rarely(control[0], 20, 0.15), control
    assert too_rarely(control[1], 20), control


def test_what_is_added_to_the_incumbent_is_a_difference_of_profits():
    rng = np.random.default_rng(0)
    log, _, _ = beside_incumbent(rng, n=800)
    found = added_profit(log, utility=UTILITY)
    both = evaluate(log, {"d": "incumbent", "ours": log.propensity}, utility=UTILITY)
    d, ours = (both[name].of("profit") for name in ("d", "ours"))
    expected = ours.estimates["ips"].value - d.estimates["ips"].value
    assert found.value == pytest.approx(expected)
    assert found.high - found.low < (ours.high - ours.low) + (d.high - d.low)
    same = log.select(log.round == 1)  # in shadow mode nothing is added, and that is certain
    found = added_profit(same, utility=UTILITY)
    assert found.value == found.estimates["ips"].standard_error == 0
    assert found.high - found.low < 0.15
    # Four applicants, of whom the incumbent alone would have accepted one.
    log = DecisionLog([1, 1, 1, 0], [1, 1, 1, 0], [1, 0, 1, None], incumbent=[1, 0, 1, 1])
    found = added_profit(log, utility=UTILITY)
    assert (found.reason, found.least, found.most) == ("not_identified", -3 / 4, 0)
    for incumbent in (None, [1, None, 1, 1]):
        log = DecisionLog([1, 1, 1, 0], [1, 1, 1, 0], [1, 0, 1, None], incumbent=incumbent)
        with pytest.raises(InputError, match="incumbent"):
            evaluate(log, "incumbent")


# Policies that change.


def wider(round, _n_bad, _n_accepted):
    """Return scores of a model that prefers cell 0 at first, and then rates all alike."""
    return np.array([0.9, 0.2, 0.2, 0.2]) if round <= 2 else np.full(4, 0.9)


def learned(_round, n_bad, n_accepted):
    """Return scores that follow the outcomes so far."""
    return 1 - (n_bad + 0.2) / (n_accepted + 1)


def changing_run(rng, sizes, score, design=coins, *, rule="score >= 0.6", as_feature=False):
    """Return the measures that were missed at any look, by a rule on a recorded score.

    ``as_feature`` is the control: a feature's meaning does not change between rounds.
    """
    logged, found = play(rng, sizes, adaptive, design, score), set()
    log = logged.log
    if as_feature:
        log.X, rule = log.score[:, None], rule.replace("score", "x0")
    for look in range(1, len(sizes) + 1):
        if not log.known[log.round <= look].any():
            continue  # there is nothing to evaluate
        result = evaluate(log.select(log.round <= look), rule, utility=UTILITY)
        pi = (logged.scores[:look] >= 0.6).astype(float)
        found |= missed(result, truth(pi, sizes=sizes[:look]))
    return found


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("runs", FEW_RUNS)
@pytest.mark.parametrize(
    ("score", "design"), [(wider, coins), (learned, coins), (wider, drawn), (wider, together)]
)
def test_intervals_of_a_changing_policy_hold_at_all_looks(score, design, runs):
    counts = in_how_many(17, runs, lambda rng: changing_run(rng, [200] * 4, score, design))
    assert not any(too_rarely(n, runs) for n in counts.values()), counts


@pytest.mark.usefixtures("no_model")
def test_a_changing_policy_that_is_taken_for_a_fixed_one_is_missed():
    counts = in_how_many(
        17, 30, partial(changing_run, sizes=[200] * 4, score=wider, as_feature=True)
    )
    assert too_rarely(counts["selection_rate"], 30), counts
    assert too_rarely(counts["false_discovery_rate"], 30), counts


def drawn_as_coins(p, cell, rng):
    """Return coins that the log takes for draws of fixed size."""
    return rng.random(p.size) < p, p, np.ones(p.size, bool)


def small_then_large(rng):
    """Return what is missed if the policy accepts the worst in large rounds, the best in others."""
    sizes = [3, 60] * 150

    def score(round, _n_bad, _n_accepted):
        return np.array([0.9, 0.0, 0.0, 0.0]) if round % 2 else np.array([0.0, 0.0, 0.9, 0.9])

    logged = play(rng, sizes, lambda *_: np.full(4, 0.5), drawn_as_coins, score)
    pi = (logged.scores >= 0.6).astype(float)
    result = evaluate(logged.log, "score >= 0.6", utility=UTILITY)
    return missed(result, truth(pi, sizes=sizes))


@pytest.mark.usefixtures("no_model")
def test_rounds_of_draws_count_by_their_size(monkeypatch):
    assert not any(in_how_many(18, 10, small_then_large).values())
    original = Bets.of

    def alike(*args, changes=False, **options):
        """Bet on means of rounds, as if all were of one size."""
        return original(*args, **options)

    monkeypatch.setattr(Bets, "of", staticmethod(alike))
    control = in_how_many(18, 10, small_then_large)
    assert too_rarely(control["false_discovery_rate"], 10), control


# Outcomes that come late or never.


def late_run(rng, pending, *, drop=False):
    """Return what was missed at any look, if bad outcomes take two rounds and some never come.

    ``drop`` is the control: applicants without an outcome are left out.
    """
    logged, found = play(rng, SIZES, lambda *_: np.full(4, 0.8)), set()
    log, policy = logged.log, FixedPolicy(logged)
    gone = log.accepted & logged.bad & (rng.random(len(log)) < 0.3)
    for look in range(1, len(SIZES) + 1):
        rows = np.flatnonzero(log.round <= look)
        waiting = log.accepted & logged.bad & (log.round + 2 > look)
        outcome = np.where(waiting | gone, np.nan, log.outcome)
        if drop:
            rows = rows[~(waiting | gone)[rows]]
        columns = log.accepted, log.propensity, outcome
        known = DecisionLog(
            *(column[rows] for column in columns),
            round=log.round[rows],
            withdrawn=(gone & ~waiting)[rows],
            X=log.X[rows],
        )
        if pending == "worst" or known.last_complete_round >= known.round.min():
            result = evaluate(known, policy, utility=UTILITY, pending=pending)
            found |= missed(result, truth())
    return found


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("runs", FEW_RUNS)
@pytest.mark.parametrize("pending", ["worst", "cut"])
def test_intervals_hold_at_all_looks_while_outcomes_are_pending(pending, runs):
    counts = in_how_many(19, runs, partial(late_run, pending=pending))
    assert not any(too_rarely(n, runs) for n in counts.values()), counts


@pytest.mark.usefixtures("no_model")
def test_intervals_that_leave_out_pending_outcomes_do_not_hold():
    counts = in_how_many(19, 30, partial(late_run, pending="cut", drop=True))
    assert too_rarely(counts["false_discovery_rate"], 30), counts
    assert too_rarely(counts["profit"], 30), counts


def contradiction(rng):
    """Return a log of a policy that is good for years and then bad."""
    accepted, bad = np.ones(2000, bool), rng.random(2000) < np.repeat([0.05, 0.6], 1000)
    rounds = np.repeat([1, 2], 1000)
    return DecisionLog(accepted, np.ones(2000), 1.0 - bad, round=rounds, X=bad[:, None])


def test_rounds_that_contradict_each_other_give_no_interval(rng):
    """No rate is right for both."""
    log = contradiction(rng)
    for measure in ("false_discovery_rate", "profit"):
        row = evaluate(log, "x0 >= 0").of(measure)
        assert row.reason == "contradiction"
        assert math.isnan(row.low)
        assert math.isnan(row.high)
        assert not math.isnan(row.value)
    # As a policy that may change, it has a mean over both rounds.
    changing = evaluate(log, np.ones(2000)).of("false_discovery_rate")
    assert changing.low < 0.325 < changing.high


# Properties.


def random_log(rng, n=120, **columns):
    """Return a log of three rounds, and the probabilities of a policy."""
    p = rng.choice([0.02, 0.2, 0.5, 0.9, 1.0], size=n)
    accepted = rng.random(n) < p
    if not accepted.any():
        accepted[np.argmax(p)] = True
    outcome = np.where(accepted, rng.random(n) < 0.7, np.nan)
    columns = {"round": np.sort(rng.integers(1, 4, n))} | columns
    pi = rng.choice([0.0, 0.3, 1.0], size=n)
    return DecisionLog(accepted, p, outcome, **columns), pi


def numbers(result):
    """Return every number about all applicants."""
    rows = [result.of(measure) for measure in MEASURES]
    ends = [(row.value, row.low, row.high, row.least, row.most) for row in rows]
    estimates = [(e.value, e.standard_error) for row in rows for e in row.estimates.values()]
    return np.concatenate([*ends, *estimates])


@given(SEEDS)
def test_the_order_of_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    log, pi = random_log(rng)
    order = rng.permutation(len(log))
    one, other = evaluate(log, pi), evaluate(log.select(order), pi[order])
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-9, atol=1e-9)


@given(SEEDS)
def test_more_rounds_do_not_change_estimates(seed):
    """Rounds are when one could look; a fixed policy's interval is the better for more of them."""
    rng = np.random.default_rng(seed)
    log, pi = random_log(rng, X=np.zeros((120, 1)))
    finer = log.select(np.arange(len(log)))
    finer.round = 10 * log.round + np.repeat(np.arange(4), 30)
    finer.X = log.X = pi[:, None]
    log_result, finer_result = (evaluate(x, "x0 >= 0.3") for x in (log, finer))
    for measure in MEASURES:
        one, other = log_result.of(measure), finer_result.of(measure)
        for name in ("ips", "self_normalised"):
            if name in one.estimates:
                assert one.estimates[name] == pytest.approx(other.estimates[name], nan_ok=True)
        if not (math.isnan(one.low) or math.isnan(other.low)):
            assert one.low <= other.low + 1e-9
            assert other.high <= one.high + 1e-9


@given(SEEDS, st.floats(-3, 3).filter(lambda factor: abs(factor) > 0.01))
def test_profit_and_its_interval_scale_with_the_utility(seed, factor):
    rng = np.random.default_rng(seed)
    (log, pi), gains = random_log(rng), rng.normal(size=2)
    one, other = (
        evaluate(log, pi, utility=Utility(accept_good=c * gains[0], accept_bad=c * gains[1]))
        for c in (1.0, factor)
    )
    a, b = one.of("profit"), other.of("profit")
    assert b.value == pytest.approx(factor * a.value, nan_ok=True)
    for name, estimate in a.estimates.items():
        assert b.estimates[name].value == pytest.approx(factor * estimate.value, nan_ok=True)
    for ends in ((a.low, a.high), (a.least, a.most)):
        expected = sorted(factor * end for end in ends)
        found = (b.low, b.high) if ends == (a.low, a.high) else (b.least, b.most)
        assert found == pytest.approx(tuple(expected), abs=1e-4 * abs(factor))
    assert other.of("false_discovery_rate").low == one.of("false_discovery_rate").low


@given(SEEDS)
def test_good_and_bad_exchanged_mirror_the_rate(seed):
    rng = np.random.default_rng(seed)
    log, pi = random_log(rng)
    mirrored = DecisionLog(log.accepted, log.propensity, 1 - log.outcome, round=log.round)
    words = np.where(log.known, np.where(log.outcome == 1, "good", "bad"), "")
    named_log = DecisionLog(log.accepted, log.propensity, words, round=log.round)
    rate, other, same = (
        evaluate(x, pi).of("false_discovery_rate") for x in (log, mirrored, named_log)
    )
    assert (same.value, same.low, same.high) == pytest.approx(
        (rate.value, rate.low, rate.high), nan_ok=True
    )
    assert other.value == pytest.approx(1 - rate.value, nan_ok=True)
    assert (1 - other.high, 1 - other.low) == pytest.approx((rate.low, rate.high), abs=1e-5)
    assert (1 - other.most, 1 - other.least) == pytest.approx((rate.least, rate.most))


@given(SEEDS)
def test_values_lie_between_the_best_and_the_worst_case(seed):
    rng = np.random.default_rng(seed)
    log, pi = random_log(rng)
    if seed % 2:  # a few are hardly covered
        log.propensity = np.where(rng.random(len(log)) < 0.05, 0.003, log.propensity)
    result = evaluate(log, pi, utility=Utility(accept_good=1.0, accept_bad=rng.normal()))
    for measure in MEASURES:
        row = result.of(measure)
        if not math.isnan(row.value):
            assert row.least <= row.value <= row.most
        if measure != "selection_rate" and not result.identified:
            assert (math.isnan(row.value), row.reason) == (True, "not_identified")
            assert row.least < row.most


@given(SEEDS)
def test_the_logged_policy_has_the_recorded_rate(seed):
    log, _ = random_log(np.random.default_rng(seed))
    result = evaluate(log, log.propensity)
    recorded = 1 - np.nanmean(log.outcome)
    assert result.of("false_discovery_rate").value == pytest.approx(recorded)
    assert result.diagnostics.effective_sample_size == pytest.approx(log.accepted.sum())
    assert result.diagnostics.largest_weight == 1.0
    # Its own FDR is that of a mean of 0 and 1 among the accepted, whatever p is.
    assert result.of("selection_rate").value == pytest.approx(log.propensity.mean())


def test_a_policy_that_accepts_none_earns_nothing_and_has_no_rate(rng):
    log, _ = random_log(rng)
    result = evaluate(log, np.zeros(len(log)))
    assert result.of("selection_rate").value == result.of("profit").value == 0.0
    assert (result.of("profit").least, result.of("profit").most) == (0.0, 0.0)
    rate = result.of("false_discovery_rate")
    assert math.isnan(rate.value)
    assert math.isnan(rate.high)
    assert (rate.reason, result.verdict_code) == ("accepts_none", "unknown")


def test_outcomes_of_rejected_applicants_are_refused():
    with pytest.raises(InputError, match="row 1"):
        DecisionLog([True, False], [0.5, 0.5], [1, 1])


def test_a_policy_that_the_log_does_not_cover_is_not_identified():
    """The log accepted the first half only; the policy accepts all. 20 of 100 known are bad."""
    half = np.repeat([True, False], 100)
    outcome = np.where(half, np.arange(200) % 5 > 0, np.nan)
    log = DecisionLog(half, half.astype(float), outcome)
    result = evaluate(log, np.ones(200), utility=UTILITY)
    rate, profit = result.of("false_discovery_rate"), result.of("profit")
    assert not result.identified
    assert math.isnan(rate.value)
    assert (rate.least, rate.most) == pytest.approx((0.1, 0.6))
    assert (profit.least, profit.most) == pytest.approx((0.4 - 2 * 0.6, 0.9 - 2 * 0.1))
    # Even the interval at all times leaves open what nobody saw.
    assert rate.low < 0.1
    assert rate.high > 0.6
    assert rate.possible == (rate.low, rate.high)


def test_outcomes_that_will_never_be_known_count_as_the_worst_case():
    outcome = np.repeat([1.0, 0.0, np.nan], [60, 20, 20])
    never = np.isnan(outcome)
    log = DecisionLog(np.ones(100, bool), np.ones(100), outcome, withdrawn=never)
    row = evaluate(log, np.ones(100)).of("false_discovery_rate")
    assert row.value == pytest.approx(0.4)
    sure = DecisionLog(np.ones(100, bool), np.ones(100), np.nan_to_num(outcome))
    best = DecisionLog(np.ones(100, bool), np.ones(100), np.where(never, 1.0, outcome))
    assert row.high == evaluate(sure, np.ones(100)).of("false_discovery_rate").high
    assert row.low == evaluate(best, np.ones(100)).of("false_discovery_rate").low


def test_several_policies_share_the_error(rng):
    log, pi = random_log(rng)
    both = evaluate(log, {"one": pi, "other": 1 - pi})
    alone = evaluate(log, pi, confidence=0.975)
    for measure in MEASURES:
        one, other = both["one"].of(measure), alone.of(measure)
        assert (one.low, one.high) == (other.low, other.high)
    assert both["one"].of("profit").low < evaluate(log, pi).of("profit").low


# Hidden selection.


@given(SEEDS, st.floats(1, 6))
def test_hidden_selection_can_do_what_a_search_over_all_weights_finds(seed, gamma):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    pi, p, bad = rng.uniform(0.1, 1, n), rng.uniform(0.05, 1, n), rng.random(n) < 0.5
    odds = p / (1 - p + 1e-300)
    # The true probability of each: odds at both ends of what Γ allows, and some in between.
    rates = []
    for factors in itertools.product([1 / gamma, 1.0, gamma], repeat=n):
        true_odds = odds * np.array(factors)
        weight = pi * (1 + true_odds) / true_odds
        rates.append(weight @ bad / weight.sum())
    low, high = _hidden_range(pi, p, bad, gamma)
    assert (low, high) == pytest.approx((min(rates), max(rates)))
    plain = pi / p
    assert _hidden_range(pi, p, bad, 1.0) == pytest.approx((plain @ bad / plain.sum(),) * 2)
    wider = _hidden_range(pi, p, bad, gamma + 0.5)
    assert wider[0] <= low + 1e-12
    assert wider[1] >= high - 1e-12


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_gamma_is_where_the_finding_turns(alpha, rng):
    log, pi = random_log(rng, 400, estimated=True)
    log.propensity = np.maximum(log.propensity, 0.06)  # less would cover nobody
    result = evaluate(log, pi, alpha=alpha)
    found, rate = result.sensitivity, result.of("false_discovery_rate").value
    keeps = rate <= alpha
    assert found.keeps == keeps
    assert 1 < found.gamma < math.inf
    rows = log.accepted & (pi > 0)
    bad = log.outcome[rows] == 0
    low, high = _hidden_range(pi[rows], log.propensity[rows], bad, found.gamma)
    assert (high if keeps else low) == pytest.approx(alpha)
    assert found.ranges[1.0] == pytest.approx((rate, rate))
    # Probabilities that were only estimated allow no interval.
    assert math.isnan(result.of("profit").low)


# What is said about groups, and if there is nothing to say.


def group_log(rng, n=400, small=5):
    """Return a log of three groups; the policy accepts none of B, and C is small."""
    group = np.array(["A"] * (n // 2) + ["B"] * (n // 2 - small) + ["C"] * small)
    accepted = rng.random(n) < 0.5
    outcome = np.where(accepted, rng.random(n) < 0.8, np.nan)
    log = DecisionLog(accepted, np.full(n, 0.5), outcome, sensitive_features=group)
    return log, (group != "B").astype(float)


def test_a_group_that_the_policy_rejects_is_not_too_small(rng):
    log, pi = group_log(rng)
    result = evaluate(log, pi)
    rejected = result.of("selection_rate", "B")
    assert (rejected.value, rejected.reason, rejected.n_outcomes) == (0.0, "", 0)
    assert rejected.low <= 0.0 < rejected.high
    assert result.of("profit", "B").value == 0.0
    assert result.of("false_discovery_rate", "B").reason == "accepts_none"
    gap = next(gap for gap in result.gaps if gap.measure == "selection_rate")
    assert (gap.difference, gap.ratio) == (1.0, 0.0)
    for measure in MEASURES:
        small = result.of(measure, "C")
        assert small.reason == "too_few_people"
        assert math.isnan(small.value)
        assert math.isnan(small.high)


def test_a_group_with_few_outcomes_has_a_selection_rate_only(rng):
    log, pi = group_log(rng, small=15)
    result = evaluate(log, pi)
    assert result.of("selection_rate", "C").value == 1.0
    few = result.of("profit", "C")
    assert few.n_outcomes < 10
    assert few.reason == "too_few_outcomes"


def test_a_log_without_a_complete_round_has_intervals_only(rng):
    accepted = rng.random(300) < 0.5
    outcome = np.where(accepted, rng.random(300) < 0.8, np.nan)
    outcome[np.flatnonzero(accepted)[0]] = np.nan  # pending
    log = DecisionLog(accepted, np.full(300, 0.5), outcome)
    with pytest.raises(InputError, match="round 1"):
        evaluate(log, np.ones(300))
    result = evaluate(log, np.ones(300), pending="worst")
    for measure in MEASURES:
        row = result.of(measure)
        assert math.isnan(row.value)
        assert math.isnan(row.most)
        assert row.low < row.high
        assert row.reason == "no_complete_round"
    assert len(result.to_frame("pandas")) == 3


def test_rounds_are_numbered_from_1():
    """A challenger that has seen no round says trained_through=0, so round 0 would be left out."""
    with pytest.raises(InputError, match="got 0"):
        DecisionLog([True, True], [0.5, 0.5], [1, 0], round=[0, 1])


def test_what_is_not_covered_ranges_from_all_good_to_all_bad():
    """Half of a policy's acceptances have p = 0.001; those few who were accepted prove nothing."""
    p = np.repeat([1.0, 0.001], 5000)
    accepted = np.repeat([True, False], 5000)
    bad = np.arange(10_000) % 10 == 0
    accepted[5000:5005], bad[5000:5005] = True, True
    log = DecisionLog(accepted, p, np.where(accepted, ~bad, np.nan))
    row = evaluate(log, np.ones(10_000)).of("false_discovery_rate")
    assert (math.isnan(row.value), row.reason) == (True, "not_identified")
    # Covered: 5,000 of whom 500 are bad.
    assert (row.least, row.most) == pytest.approx((0.05, 0.55))


def test_many_outcomes_of_applicants_with_small_chances_cover_them(rng):
    """Of 100,000 applicants with p = 0.01 about 1,000 were accepted, which is enough."""
    p = np.repeat([1.0, 0.01], [20_000, 100_000])
    accepted, bad = rng.random(p.size) < p, rng.random(p.size) < np.where(p == 1, 0.1, 0.3)
    log = DecisionLog(accepted, p, np.where(accepted, ~bad, np.nan))
    result = evaluate(log, np.ones(p.size))
    assert result.identified
    assert result.of("false_discovery_rate").value == pytest.approx(bad.mean(), abs=0.04)


def test_estimated_probabilities_do_not_cover_whom_a_strict_rule_never_accepted(rng):
    """The past accepted from x = 0.3 on; people below are bad, and no model can know it."""
    x = rng.normal(size=6000)
    accepted, bad = x > 0.3, rng.random(6000) < np.where(x > 0.3, 0.05, 0.8)
    log = DecisionLog(accepted, None, np.where(accepted, ~bad, np.nan), X=x[:, None])
    result = evaluate(log, "x0 >= -1", alpha=0.15)
    rate = result.of("false_discovery_rate")
    assert not result.identified
    assert rate.least < bad[x >= -1].mean() < rate.most
    assert result.sensitivity is None  # there is no finding to overturn


def test_verdicts_about_a_bound(rng):
    log = DecisionLog(np.ones(400), np.ones(400), np.arange(400) % 10 > 0)  # 10 % are bad

    def verdict(alpha, log=log):
        return evaluate(log, np.ones(len(log)), alpha=alpha).verdict_code

    assert [verdict(alpha) for alpha in (0.02, 0.1, 0.3, None)] == [
        *("broken", "open", "kept", "unknown")
    ]
    assert evaluate(contradiction(rng), "x0 >= 0", alpha=0.15).verdict_code == "unknown"


def erased(logged, rng):
    """Return the log after 40 % of the defaulted had their features and groups erased."""
    log = logged.log
    gone = (log.outcome == 0) & (rng.random(len(log)) < 0.4)
    return DecisionLog(
        log.accepted,
        log.propensity,
        log.outcome,
        X=log.X,
        sensitive_features=GROUP[logged.cell],
        round=log.round,
        erased=gone,
    )


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("runs", FEW_RUNS)
def test_intervals_hold_if_the_defaulted_are_erased(runs):
    """A rule on features, for all and by group, and the audit of groups."""
    kept, left_out = Counter(), Counter()
    for rng in rngs(41, runs):
        logged = play(rng, 3 * SIZES)
        policy = FixedPolicy(logged)
        log = erased(logged, rng)
        result, audit = evaluate(log, policy, utility=UTILITY), groups(log)
        assert "erased_worst" in result.assumptions
        assert "erased_worst" in audit.assumptions
        for name in ("", "A", "B"):
            kept.update((one, name) for one in missed(result, truth(group=name or None), name))
            mass = MASS if not name else MASS * (name == GROUP) / MASS[name == GROUP].sum()
            rows = {
                "selection_rate": mass @ SELECTIVE,
                "false_discovery_rate": mass @ (SELECTIVE * BAD) / (mass @ SELECTIVE),
                "bad_rate": mass @ BAD,
                "true_positive_rate": mass @ (SELECTIVE * (1 - BAD)) / (mass @ (1 - BAD)),
            }
            for one, right in rows.items():
                row = audit.of(one, name)
                kept["groups", one, name] += not row.low <= right <= row.high
        # The control leaves them out, as if they had never applied.
        before = log.select(~log.erased)
        left_out.update(missed(evaluate(before, policy, utility=UTILITY), truth()))
        right = truth(SELECTIVE)["false_discovery_rate"]
        row = groups(before).of("false_discovery_rate")
        left_out["groups"] += not row.low <= right <= row.high
    assert not any(too_rarely(n, runs) for n in kept.values()), kept
    assert too_rarely(left_out["false_discovery_rate"], runs), left_out
    assert too_rarely(left_out["groups"], runs), left_out


@pytest.mark.usefixtures("no_model")
def test_a_challenger_is_judged_on_outcomes_that_it_has_not_seen(rng):
    """Nothing predicts the outcome: a forest knows the 30 % bad that it has learned by heart."""
    n = 2400
    X, outcome = rng.normal(size=(n, 3)), (rng.random(n) > 0.3).astype(float)
    log = DecisionLog(np.ones(n, bool), np.ones(n), outcome, X=X, round=1 + np.arange(n) // 600)
    early = log.round <= 2
    forest = RandomForestClassifier(20, random_state=0).fit(X[early], outcome[early])
    with pytest.raises(TypeError, match="trained_through"):
        Challenger(forest)
    for seen in (-2, 1.5, True, None):
        with pytest.raises(InputError, match="trained_through"):
            Challenger(forest, trained_through=seen)
    judged = evaluate(log, Challenger(forest, trained_through=2), alpha=0.15)
    assert (judged.first_round, judged.verdict_code) == (3, "broken")
    assert judged.of("false_discovery_rate").low <= 0.3 <= judged.of("false_discovery_rate").high
    by_heart = evaluate(log.select(early), Challenger(forest, trained_through=0), alpha=0.15)
    assert by_heart.verdict_code == "kept"


def test_policies_that_cannot_be_read():
    dates = pd.DataFrame({"d": pd.date_range("2030-01-01", periods=40), "a": ["x", "y"] * 20})
    accepted = np.arange(40) % 2 == 0
    log = DecisionLog(accepted, np.full(40, 0.5), np.where(accepted, 1.0, np.nan), X=dates)
    for policy, words in (
        ("d >= 2020", "'d'"),
        ("a == x", "text cannot be compared"),
        ("a >= 1", "'a'"),
        ("score >= 3 and d < 5", "one comparison"),
        ("d >= 1e400", "1e400"),
        (np.where(accepted, 1.0, np.nan), "nan in row 1"),
    ):
        with pytest.raises(InputError, match=words):
            evaluate(log, policy)
    for options in ({"utility": {"good": 1}}, {"alpha": 15}):
        with pytest.raises(InputError, match=next(iter(options))):
            evaluate(log, np.ones(40), **options)
