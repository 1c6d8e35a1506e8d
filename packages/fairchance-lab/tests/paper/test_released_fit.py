"""Deviations B of the released code: the fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import expit

from fairchance.core.fairness import EqualizedOdds, SelectionRateParity
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.simulate.run import run
from fairchance_lab.paper.released import logistic
from fairchance_lab.paper.released.classifier import build_released
from fairchance_lab.paper.released.logistic import ReleasedLogistic
from paper.released_worlds import lender_setup, on, released


@pytest.fixture(scope="module")
def credit():
    """Rows with outcomes and two groups; the smaller group is much better."""
    rng = np.random.default_rng(2)
    group = (rng.random(600) < 0.25).astype(int)
    X = np.column_stack([rng.normal(size=600) + 1.2 * group, rng.normal(size=600), group])
    y = (rng.random(600) < expit(0.3 + 1.3 * X[:, 0] - 0.7 * X[:, 1])).astype(np.int8)
    return X, y, group


def problem_of(X, y, hard):
    rows = np.column_stack([X, np.ones(len(X))])
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    return logistic._Problem(rows, y.astype(float), weight / weight.sum(), 0.01, hard)


@pytest.mark.parametrize("hard", [True, False])
def test_gradient_of_the_loss(credit, rng, hard):
    X, y, _ = credit
    problem = problem_of(X, y, hard)
    for scale in (0.1, 1.0, 20.0):
        at = rng.normal(size=4) * scale
        assert check_grad(problem.loss, problem.gradient, at) < 1e-5
        v, w = problem.X @ at, problem.weight
        by_hand = w @ np.logaddexp(0, np.where(y == 1, -v, v)) + 0.005 * at[:-1] @ at[:-1]
        assert problem.loss(at) == pytest.approx(by_hand)


def test_derivatives_of_soft_constraints(credit, rng):
    X, y, _ = credit
    constraint = problem_of(X, y, hard=False).least(rng.normal(size=600) / 600, 0.1)
    for _ in range(3):
        assert check_grad(constraint["fun"], constraint["jac"], rng.normal(size=4)) < 1e-6


def test_b3_has_derivatives_of_another_function(credit, rng):
    X, y, _ = credit
    problem, share = problem_of(X, y, hard=True), rng.normal(size=600)
    constraint = problem.least(share, 0.25)
    at = rng.normal(size=4)
    decided = problem.X @ at > 0
    assert constraint["fun"](at) == pytest.approx(share[decided].sum() + 0.25)
    for axis in np.eye(4):
        assert constraint["fun"](at + 1e-9 * axis) == constraint["fun"](at)
    assert np.abs(constraint["jac"](at)).max() > 0.1


def rates(model, X, y, group):
    """Return the expected FDR, and the gap of expected selection rates, small minus large group."""
    p = model.predict_proba(X)[:, 1]
    return p[y == 0].sum() / p.sum(), p[group == 1].mean() - p[group == 0].mean()


def test_soft_constraints_give_our_own_fit(credit):
    X, y, group = credit
    for options in (
        {},
        {"max_fdr": 0.2},
        {"fairness": SelectionRateParity(0.05)},
        {"fairness": SelectionRateParity(0.1), "max_fdr": 0.25},
    ):
        easy = {"hard": False, "random_start": False, "one_sided": False}
        theirs = ReleasedLogistic(l2=1e-4, **easy, **options)
        theirs.fit(X, y, sensitive_features=group)
        ours = ConstrainedLogistic(l2=1e-4, **options).fit(X, y, sensitive_features=group)
        assert theirs.predict_proba(X) == pytest.approx(ours.predict_proba(X), abs=5e-3), options
        fdr, gap = rates(theirs, X, y, group)
        assert fdr <= options.get("max_fdr", 1) + 1e-4
        assert abs(gap) <= getattr(options.get("fairness"), "difference", 1) + 1e-4


def test_b3_breaks_the_expected_constraint(credit):
    X, y, _ = credit
    hard = ReleasedLogistic(max_fdr=0.15, random_start=False, hard=True).fit(X, y)
    soft = ReleasedLogistic(max_fdr=0.15, random_start=False, hard=False).fit(X, y)
    fdr = [
        float(expit(X @ model.coef_[0] + model.intercept_)[y == 0].sum()) for model in (hard, soft)
    ]
    total = [float(expit(X @ model.coef_[0] + model.intercept_).sum()) for model in (hard, soft)]
    assert fdr[0] / total[0] > 0.16
    assert fdr[1] / total[1] <= 0.15 + 1e-4


def test_b4_starts_at_one_random_point(credit, monkeypatch):
    X, y, _ = credit
    starts = []

    def watched(loss, start, **options):
        starts.append(start)
        return real(loss, start, **options)

    real = logistic.minimize
    monkeypatch.setattr(logistic, "minimize", watched)
    models = [ReleasedLogistic(random_state=seed, random_start=True) for seed in (0, 1)]
    for model in (*models, models[0], ReleasedLogistic(random_start=False)):
        model.fit(X, y)
    assert len(starts) == 4
    for start in starts[:3]:
        assert np.all((start >= 0) & (start <= 1))
    assert len({start.tobytes() for start in starts}) == 4
    assert not starts[3].any()


def test_b4_with_b3_depends_on_the_seed(credit):
    X, y, _ = credit
    ends = [ReleasedLogistic(max_fdr=0.1, random_state=seed).fit(X, y).coef_ for seed in (0, 1)]
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


def test_b6_constrains_one_side_only(credit):
    X, y, group = credit
    soft = {"hard": False, "random_start": False, "fairness": SelectionRateParity(0.05)}
    soft["minority"] = 1
    for flip, free, held in ((False, 0.15, 0.05), (True, -0.05, -0.05)):
        features, outcome = (-X, 1 - y) if flip else (X, y)
        single = ReleasedLogistic(one_sided=True, **soft)
        both = ReleasedLogistic(one_sided=False, **soft)
        gaps = [
            rates(model.fit(features, outcome, sensitive_features=group), features, outcome, group)
            for model in (single, both)
        ]
        assert gaps[1][1] == pytest.approx(held, abs=1e-3)
        assert gaps[0][1] > free if not flip else gaps[0][1] == pytest.approx(free, abs=1e-3)


@pytest.fixture
def fitted_rows(monkeypatch):
    """Return the weights of the rows of each fit of f_t."""
    weights = []

    def watched(self, X, y, sample_weight=None, **arguments):
        weights.append(sample_weight)
        return real(self, X, y, sample_weight, **arguments)

    real = ConstrainedLogistic.fit
    monkeypatch.setattr(ConstrainedLogistic, "fit", watched)
    return weights


def test_b7_uses_no_weights_and_all_rows(fitted_rows):
    compared = dict.fromkeys((False, True), 0)
    for switches in ((), ("B7",)):
        fitted_rows.clear()
        world, setup = lender_setup()
        method = build_released("plain", setup, on(*switches), {})
        for number, result in enumerate(run(method, world), start=1):
            known = method.n_outcomes_ - int(result.decided.accepted.sum())
            if number == 1:
                continue  # uses f_0
            weight, record = fitted_rows[-1], method.rounds_[-1]
            used = np.count_nonzero(weight)
            equal = np.ptp(weight[weight > 0]) < 1e-12
            if switches:
                assert equal
                assert weight.max() == pytest.approx(1)
            else:
                assert not equal
            if not record.calibrated:
                compared[bool(switches)] += 1
                assert (used + record.n_outcomes == known) == bool(switches)
            assert (record.effective_sample_size == pytest.approx(record.n_outcomes)) == equal
    assert all(compared.values())


def test_b9_always_cuts_at_a_half():
    accepted = []
    for loss in (500.0, 5.0):
        method, decided = released("both-fair", "B9", loss=loss)
        assert {cut for record in method.rounds_ for cut in record.thresholds} == {0.5}
        for decisions, _ in decided:
            assert np.array_equal(
                decisions.accepted & decisions.exploit, decisions.exploit & (decisions.score >= 0.5)
            )
        accepted.append([decisions.accepted.tolist() for decisions, _ in decided])
    assert accepted[0] == accepted[1]
    plain, _ = released("both-fair")
    assert {cut for record in plain.rounds_[1:] for cut in record.thresholds} != {0.5}


@pytest.mark.parametrize("fairness", [EqualizedOdds(0.1), SelectionRateParity(ratio=0.8)])
def test_other_constraints_are_refused(credit, fairness):
    X, y, group = credit
    with pytest.raises(InputError, match="selection rates"):
        ReleasedLogistic(fairness=fairness).fit(X, y, sensitive_features=group)
