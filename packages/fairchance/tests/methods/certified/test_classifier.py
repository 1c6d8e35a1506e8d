"""CertifiedClassifier: options, refusals, cold starts, groups and withdrawn outcomes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import fairchance as fc
from fairchance import CertifiedClassifier, EqualGroups, Limited, OutcomeNoise, Uniform
from fairchance.errors import InputError, LearningWarning, UnknownIdError
from fairchance.methods.certified.evidence import DriftMonitor, values
from fairchance.simulate.people import People
from fairchance.simulate.populations import draw_applicants
from methods.certified.known_truth import (
    ALPHA,
    DELTA,
    QUICK,
    UTILITY,
    Flat,
    Slope,
    deployed_fdr,
    play,
    playing,
    rngs,
    start,
    too_many,
)


@pytest.fixture
def classifier(rng):
    return start(Slope(), rng, random_state=0)


@pytest.fixture
def batch(rng):
    return draw_applicants(Slope(), 100, rng)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0),
        ("alpha", 1.0),
        ("alpha", "0.1"),
        ("alpha", float("nan")),
        ("delta", 0.0),
        ("delta", 1.5),
        ("floor", -0.01),
        ("floor", 0.2),
        ("monitor", 0.6),
        ("monitor", None),
        ("horizon", 0),
        ("horizon", 2.5),
        ("patience", 0),
        ("maturity", None),
        ("ranks", "group"),
        ("certify", "none"),
        ("utility", "accuracy"),
        ("noise", 0.1),
    ],
)
def test_options_out_of_range_are_refused(rng, name, value):
    with pytest.raises(InputError, match=rf"{name}.*{re.escape(repr(value))}"):
        start(Slope(), rng, **{name: value})


def test_an_id_is_decided_on_once(classifier, batch):
    X = batch.people.X
    classifier.decide(X, ids=np.arange(1000, 1100))
    with pytest.raises(
        InputError,
        match=r"2.*3.*1000",
    ):
        classifier.decide(X[:3], ids=[1000, 1099, 5000])
    assert len(classifier.rounds_) == 1
    assert classifier.decide(X[:3], ids=[5000, 5001, 5002]).round == 2  # nothing was recorded


def test_outcomes_of_unknown_or_rejected_applicants_are_refused(classifier, batch):
    decided = classifier.decide(batch.people.X, ids=np.arange(1000, 1100))
    rejected = decided.ids[~decided.accepted]
    taken = decided.ids[decided.accepted]
    for ids, message in (
        ([taken[0], rejected[0]], f"{rejected[0]}"),
        ([taken[0], 9999], "1.*2.*9999"),
    ):
        with pytest.raises(UnknownIdError, match=message):
            classifier.observe(ids, [1, 1])
    with pytest.raises(InputError, match=f"{taken[0]}"):
        classifier.observe([taken[0], taken[0]], [0, 1])
    assert classifier._engines[0].n_known == 0
    classifier.observe([taken[0], taken[0]], [1, 1]).observe([taken[0]], [1])
    assert classifier._engines[0].n_known == 1
    classifier.observe([], [])


def test_outcomes_of_the_history_are_refused_after_fit(batch):
    accepted = np.arange(100) % 2 == 0
    classifier = CertifiedClassifier().fit(
        batch.people.X, batch.outcome, accepted=accepted, ids=np.arange(100)
    )
    with pytest.raises(UnknownIdError, match=r"1.*0"):
        classifier.observe([0], [1])
    with pytest.raises(UnknownIdError):
        classifier.observe([1], [1])
    with pytest.raises(InputError, match="7"):
        classifier.decide(batch.people.X[:1], ids=[7])


def test_a_history_without_rejections_warns(batch):
    X, y = batch.people.X, batch.outcome
    with pytest.warns(LearningWarning):
        classifier = CertifiedClassifier(random_state=0).fit(X, y)
    assert classifier.decide(X).round == 1
    learner = HistGradientBoostingClassifier(max_iter=5)
    CertifiedClassifier(learner=learner).fit(X, y)  # which has nothing to learn of selection


def test_a_failed_fit_leaves_everything_as_it_was(classifier, batch):
    X = batch.people.X
    classifier.decide(X)
    with pytest.raises(ValueError, match=r".+"):
        classifier.fit(X, np.full(100, 2.5))
    assert len(classifier.rounds_) == 1
    assert classifier.decide(X).round == 2


def test_an_unknown_horizon(rng):
    classifier = start(Slope(), rng, horizon=None, learner=QUICK)
    policies = play(classifier, Slope(), rng, n=150, rounds=100, truth=False)
    (engine,) = classifier._engines
    assert policies[-1].certified
    assert [ladder.frozen for ladder in engine.ladders] == sorted(
        ladder.frozen for ladder in engine.ladders
    )
    assert len(engine.ladders) == 7  # 1, 4, 8, 16, 24, then 40 and 80
    assert engine.delta_spent < 0.1


def test_small_and_uneven_batches(rng):
    classifier = start(Slope(), rng)
    for n in (1, 3, 200, 1, 50):
        people = draw_applicants(Slope(), n, rng)
        decided = classifier.decide(people.people.X)
        assert np.all((decided.propensity >= 0) & (decided.propensity <= 1))
        classifier.observe(decided.ids[decided.accepted], people.outcome[decided.accepted])
    assert len(classifier.rounds_) == 5


def test_accepts_is_false_before_the_first_round(classifier, batch):
    assert not classifier.accepts(batch.people.X).any()
    decided = classifier.decide(batch.people.X)
    assert np.array_equal(classifier.accepts(batch.people.X), decided.exploit)
    assert np.all(decided.propensity[decided.exploit] == 1)


@pytest.mark.filterwarnings("ignore:No applicant of the history was rejected")
@pytest.mark.filterwarnings("ignore:All accepted applicants of the history are good")
@parametrize_with_checks(
    [
        CertifiedClassifier(),
        CertifiedClassifier(ranks="within_group", floor=0.01, horizon=10),
        CertifiedClassifier(certify="per_group"),
        CertifiedClassifier(learner=HistGradientBoostingClassifier(max_iter=20)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("how", ["late", "withdrawn"])
def test_with_noise_a_missing_outcome_counts_like_a_recorded_bad_one(how):
    """Flat at an FDR of .18; all outcomes recorded as bad go missing. Nothing may be certified."""
    noise = OutcomeNoise(bad_as_good=0.3)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        classifier = start(Flat(0.18), rng, noise=noise, patience=1, monitor=0.0, horizon=20)
        for _ in range(20):
            batch = draw_applicants(Flat(0.18), 600, rng)
            decided = classifier.decide(batch.people.X)
            assert not decided.certified
            ids, outcome = decided.ids[decided.accepted], batch.outcome[decided.accepted]
            recorded = (outcome == 1) | (rng.random(ids.size) < noise.bad_as_good)
            classifier.observe(ids[recorded], np.ones(recorded.sum(), int))
            if how == "withdrawn":
                classifier.withdraw(ids[~recorded])


def test_late_bad_outcomes_do_not_widen_the_pilot():
    """Estimates rest on rounds that are in the tests, as the tests do."""
    rng = np.random.default_rng(0)
    population = Slope(-0.5, 1.0)
    classifier = start(population, rng, maturity=4, patience=5, horizon=20)
    waiting = []
    for t in range(14):
        batch = draw_applicants(population, 600, rng)
        decided = classifier.decide(batch.people.X)
        ids, outcome = decided.ids[decided.accepted], batch.outcome[decided.accepted]
        classifier.observe(ids[outcome == 1], outcome[outcome == 1])
        waiting.append((ids[outcome == 0], outcome[outcome == 0]))
        if t >= 4:
            classifier.observe(*waiting[t - 4])
        assert classifier.rounds_[-1].share <= 0.105


def test_estimates_are_unbiased_if_batches_differ_in_size():
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        classifier = start(Slope(), rng, horizon=20, learner=QUICK)
        applicants = Slope().whole_population()
        bad = 1 - Slope().probability_good(applicants)
        for n in [4000] * 4 + [250] * 12:
            batch = draw_applicants(Slope(), n, rng)
            decided = classifier.decide(batch.people.X)
            ids = decided.ids[decided.accepted]
            classifier.observe(ids, batch.outcome[decided.accepted])
        p = classifier.acceptance_probability(applicants.X)
        errors.append(classifier.rounds_[-1].estimated_fdr - p @ bad / p.sum())
    assert abs(np.mean(errors)) < 0.02


def test_options_that_the_promise_rests_on_are_fixed(rng):
    classifier = start(Slope(), rng)
    X = draw_applicants(Slope(), 100, rng).people.X
    classifier.decide(X)
    for name, value in (("alpha", 0.02), ("delta", 0.01), ("floor", 0.05), ("horizon", 5)):
        before = getattr(classifier, name)
        classifier.set_params(**{name: value})
        with pytest.raises(InputError, match=name):
            classifier.decide(X)
        classifier.set_params(**{name: before})
    assert classifier.decide(X).round == 2


def test_a_failed_round_does_not_move_the_pilot(rng):
    broken = []

    def moody(X, score, group):
        return np.zeros(score.size) if broken else np.ones(score.size)

    classifier = start(Slope(3.0), rng, strategy=moody, floor=0.01)
    batch = draw_applicants(Slope(3.0), 600, rng)
    decided = classifier.decide(batch.people.X)
    classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
    before = classifier._engines[0].stage.pilot.share
    broken.append(True)
    for _ in range(3):
        with pytest.raises(InputError):
            classifier.decide(batch.people.X)
    assert classifier._engines[0].stage.pilot.share == before
    broken.clear()
    assert classifier.decide(batch.people.X).round == 2


def test_a_strategy_that_compares_applicants_is_refused(rng):
    def by_rank(X, score, group):
        return 1.0 + np.argsort(np.argsort(score))

    classifier = start(Slope(), rng, strategy=by_rank, floor=0.01)
    with pytest.raises(InputError):
        classifier.decide(draw_applicants(Slope(), 50, rng).people.X)


def test_options_that_do_not_go_together_are_refused(rng):
    X, y = rng.normal(size=(60, 1)), np.arange(60) % 2
    some = np.arange(60) % 3 > 0
    with pytest.raises(InputError):
        CertifiedClassifier(certify="per_group", floor=0.01, strategy=EqualGroups()).fit(
            X, y, accepted=some, sensitive_features=np.arange(60) % 2
        )
    with pytest.raises(InputError, match=r"max_risk=0\.3"):
        CertifiedClassifier(strategy=Limited(Uniform(), max_risk=0.3)).fit(
            X, None, accepted=np.zeros(60)
        )


def cold(population, rng, **options):
    """Return a classifier fitted to a history without outcomes."""
    people = draw_applicants(population, 50, rng).people
    options = {"alpha": ALPHA, "delta": DELTA, "utility": UTILITY, "horizon": 39} | options
    options.setdefault("random_state", int(rng.integers(2**31)))
    with pytest.warns(LearningWarning):
        return CertifiedClassifier(**options).fit(people.X, None, accepted=np.zeros(50))


def test_the_first_cold_round_accepts_all_applicants_alike(rng):
    classifier = cold(Slope(), rng)
    batch = draw_applicants(Slope(), 600, rng)
    decided = classifier.decide(batch.people.X)
    assert np.unique(decided.propensity).size == 1
    assert decided.propensity[0] == pytest.approx(classifier.rounds_[0].share, abs=0.01)
    assert classifier.rounds_[0].status == "pilot"
    assert np.all(classifier.predict_proba(batch.people.X) == 0.5)


def test_ratios_of_a_cold_ladder_are_bounded(rng):
    """All rungs accept at random, so that ratios are those of their rates."""
    classifier = cold(Slope(), rng, floor=0.0)
    X = draw_applicants(Slope(), 600, rng).people.X
    classifier.decide(X)
    (ladder,) = classifier._engines[0].ladders
    rates = ladder.policies(ladder.locate(X[:1], np.zeros(1, np.intp)))[0]
    assert np.all(np.diff(rates) > 0)
    assert rates[0] < 0.1 < 0.9 < rates[-1] <= 1
    for rung in (0, 12, 40):
        bounds = ladder.ratio_bounds(rung)
        ratio = np.maximum(1, rates / rates[rung])
        for cap, bound in zip((4, 8), bounds, strict=True):
            assert bound[ratio <= cap] == pytest.approx(ratio[ratio <= cap])
            assert np.all(bound[ratio > cap] == cap + 1)


@pytest.mark.parametrize("learner", [None, DecisionTreeClassifier(max_depth=2, random_state=0)])
def test_a_cold_start_learns_a_ranking_and_certifies(learner, rng):
    classifier = cold(Slope(), rng, learner=learner)
    policies = play(classifier, Slope(), rng, truth=False)
    assert not policies[0].certified
    assert policies[-1].certified
    assert deployed_fdr(classifier, Slope()) <= ALPHA
    X = np.array([[-2.0], [2.0]])
    assert np.diff(classifier.predict_proba(X)[:, 1])[0] > 0.2


@pytest.mark.parametrize(
    ("runs", "rounds", "learner"),
    [(20, 15, QUICK), pytest.param(60, 39, None, marks=pytest.mark.long)],
)
def test_cold_null_runs_are_seldom_certified(runs, rounds, learner):
    certified = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        classifier = cold(Flat(), rng, learner=learner)
        policies = playing(classifier, Flat(), rng, rounds=rounds, truth=False)
        certified += any(policy.certified for policy in policies)
    assert not too_many(certified, runs, DELTA)


def test_random_acceptance_is_certified_if_almost_all_are_good(rng):
    population = Flat(0.05)
    classifier = cold(population, rng)
    assert any(policy.certified for policy in play(classifier, population, rng, truth=False))


def test_outcomes_of_one_kind_teach_no_ranking(rng):
    """A model of bad outcomes only cannot rank, so no ladder is spent on it."""
    classifier = cold(Slope(), rng)
    for _ in range(8):
        decided = classifier.decide(rng.normal(size=(600, 1)))
        classifier.observe(decided.ids[decided.accepted], np.zeros(decided.accepted.sum()))
    assert len(classifier._engines[0].ladders) == 1
    assert classifier.rounds_[-1].n_accepted > 0


def test_a_history_with_good_outcomes_only_ranks_by_its_rejections(rng):
    X = rng.normal(size=(600, 2))
    good = X[:, 0] > 0
    with pytest.warns(LearningWarning):
        classifier = CertifiedClassifier(random_state=0).fit(X, good, accepted=good)
    ranks = classifier.predict_proba(X)[:, 1]
    assert ranks[good].mean() > ranks[~good].mean() + 0.3
    assert classifier.classes_.tolist() == [False, True]


@pytest.mark.parametrize("outcome", [0, 1])
def test_a_history_of_one_outcome_and_no_rejection_starts_cold(rng, outcome):
    population = Slope()
    past = draw_applicants(population, 300, rng).people.X
    with pytest.warns(LearningWarning):
        classifier = CertifiedClassifier(horizon=10, random_state=0).fit(
            past, np.full(300, outcome)
        )
    policies = play(classifier, population, rng, n=300, rounds=6, truth=False)
    assert len(policies) == 6
    assert len(np.unique(classifier.predict_proba(past)[:, 1])) > 1


def test_one_word_for_outcomes_does_not_tell_the_other(rng):
    X = rng.normal(size=(40, 2))
    with pytest.raises(InputError, match=r"'paid'.*0.*1"):
        CertifiedClassifier().fit(X, np.full(40, "paid"))


def test_a_cold_start_can_be_saved_and_loaded(rng, tmp_path):
    classifier = cold(Slope(), rng)
    play(classifier, Slope(), rng, rounds=2, truth=False)
    fc.save(classifier, tmp_path / "cold.zip")
    again = fc.load(tmp_path / "cold.zip")
    X = rng.normal(size=(500, 1))
    assert np.array_equal(classifier.decide(X).propensity, again.decide(X).propensity)


def test_labels_without_outcomes_in_the_history(rng):
    X = rng.normal(size=(20, 1))
    with pytest.raises(InputError, match=r"pos_label.*0.*1"):
        CertifiedClassifier(pos_label="paid").fit(X, None, accepted=np.zeros(20))
    with pytest.raises(ValueError, match="y is None"):
        CertifiedClassifier().fit(X, None)
    with pytest.raises(InputError, match="20"):
        fc.PartialFeedbackClassifier().fit(X, np.zeros(20), accepted=np.zeros(20))


def decide_one_batch(seed=0):
    rng = np.random.default_rng(seed)
    classifier = start(Slope(), rng, random_state=0)
    batch = draw_applicants(Slope(), 600, rng)
    found = classifier.decide(batch.people.X)
    return classifier, found.ids[found.accepted], batch.outcome[found.accepted]


def wealth(classifier):
    return classifier._engines[0].ladders[0].wealth.log


def test_withdrawn_applicants_count_as_bad_and_teach_nothing():
    classifier, ids, outcome = decide_one_batch()
    gone = np.arange(ids.size) % 5 == 0
    classifier.observe(ids[~gone], outcome[~gone])
    assert not wealth(classifier).any()  # the round is not complete
    classifier.withdraw(ids[gone])
    as_bad, _, _ = decide_one_batch()
    as_bad.observe(ids, np.where(gone, 0, outcome))
    assert wealth(classifier) == pytest.approx(wealth(as_bad), abs=1e-12)
    assert wealth(classifier).any()
    assert classifier._engines[0].n_known == (~gone).sum()
    assert as_bad._engines[0].n_known == ids.size


def test_a_withdrawal_stays_unless_corrected():
    classifier, ids, outcome = decide_one_batch()
    classifier.withdraw(ids[:2]).withdraw(ids[:2])
    with pytest.raises(InputError):
        classifier.observe(ids[:1], outcome[:1])
    classifier.correct(ids[:1], outcome[:1])
    assert classifier._engines[0].n_known == 1
    classifier.observe(ids[2:], outcome[2:])
    with pytest.raises(InputError):
        classifier.withdraw(ids[3:4])


def test_only_accepted_applicants_can_be_withdrawn():
    classifier, ids, _ = decide_one_batch()
    rejected = np.setdiff1d(np.arange(600, 1200), ids)
    with pytest.raises(UnknownIdError):
        classifier.withdraw(rejected[:1])
    with pytest.raises(UnknownIdError):
        classifier.withdraw([10**6])
    assert classifier.withdraw([]) is classifier


@pytest.mark.parametrize("p", [0.0, -0.1, 1.2, np.nan])
def test_an_impossible_propensity_is_refused(p):
    pi, logged, accepted = np.full((3, 2), 0.5), np.array([0.5, p, 0.5]), np.ones(3, bool)
    with pytest.raises(InputError, match=r"\(0, 1\]"):
        values(pi, logged, accepted, accepted, ALPHA, 4.0)
    accepted[1] = False
    if p == 0:  # no policy could accept this applicant, and none did
        assert values(pi, logged, accepted, accepted, ALPHA, 4.0)[1] == pytest.approx(-0.425)


def test_a_learner_that_refuses_empty_batches_works(rng):
    X = rng.normal(size=(400, 1))
    y = (rng.random(400) < 0.8).astype(int)
    learner = HistGradientBoostingClassifier(max_iter=5)
    classifier = CertifiedClassifier(learner=learner, random_state=0)
    assert len(classifier.fit(X, y, accepted=X[:, 0] > -1).decide(X)) == 400


def test_a_tiny_first_batch_does_not_make_the_pilot_generous(rng):
    classifier = start(Slope(), rng, random_state=0)
    classifier.decide(rng.normal(size=(1, 1)))
    assert classifier.decide(rng.normal(size=(2000, 1))).accepted.mean() < 0.4


def test_drift_is_noticed_when_patience_ends_while_deciding(rng):
    classifier = start(Slope(), rng, patience=1, random_state=0)
    play(classifier, Slope(), rng, n=300, rounds=10)
    assert classifier.rounds_[-1].status == "certified"
    for _ in range(12):  # no outcome arrives, so all count as bad
        batch = classifier.decide(rng.normal(size=(300, 1)))
    assert classifier._engines[0].stage.restarts > 0
    assert not batch.certified


def test_the_monitor_works_for_large_alpha():
    monitor = DriftMonitor(0.6)
    monitor.add(np.array([True] * 90 + [False] * 10))
    assert monitor.log_wealth() > np.log(20)


def test_corrections_restart_once_and_not_again_while_nothing_is_tested(rng):
    classifier = start(Slope(), rng, random_state=0)
    ids = []
    for _ in range(3):
        X = rng.normal(size=(300, 1))
        batch = classifier.decide(X)
        taken = batch.ids[batch.accepted]
        classifier.observe(taken, np.ones(taken.size, int))
        ids.extend(taken.tolist())
    with pytest.warns(LearningWarning):
        classifier.correct(ids[:1], [0])
    for name in ids[1:10]:  # and warnings are errors here
        classifier.correct([name], [0])
    assert classifier._engines[0].stage.restarts == 1


def test_each_group_is_scored_by_its_own_model(rng):
    """The score helps one group and harms the other: each model learns its own slope."""
    X = rng.normal(size=(4000, 1))
    group = rng.choice(["A", "B"], 4000)
    slope = np.where(group == "A", 2.0, -2.0)
    good = (rng.random(4000) < 1 / (1 + np.exp(-1 - slope * X[:, 0]))).astype(int)
    accepted = rng.random(4000) < 0.7
    classifier = CertifiedClassifier(certify="per_group", random_state=0)
    classifier.fit(X, good, accepted=accepted, sensitive_features=group)
    decided = classifier.decide(X, sensitive_features=group)
    likely = classifier.predict_proba(X, sensitive_features=group)[:, 1]
    for name, sign in (("A", 1), ("B", -1)):
        chosen = group == name
        for score in (decided.score, likely, decided.propensity):
            assert sign * np.corrcoef(score[chosen], X[chosen, 0])[0, 1] > 0.3


@pytest.mark.parametrize("missing", ["A", "B"])
def test_a_group_may_be_missing_from_a_batch(rng, missing):
    X = rng.normal(size=(600, 1))
    group = np.where(np.arange(600) % 2 == 0, "A", "B")
    good = (rng.random(600) < 0.8).astype(int)
    classifier = CertifiedClassifier(certify="per_group", random_state=0)
    classifier.fit(X, good, accepted=X[:, 0] > -0.5, sensitive_features=group)
    there = group != missing
    assert len(classifier.decide(X[there], sensitive_features=group[there])) == 300
    assert classifier.decide(X, sensitive_features=group).accepted.mean() < 0.6


GROUP_BATCH, GROUP_ROUNDS = 800, 20


@dataclass(frozen=True)
class TwoGroups:
    """x ~ N(0, 1) in A and N(−gap, 1) in B; worse by ``bias`` in B at the same x."""

    gap: float = 0.8
    bias: float = 0.0
    features = ("x",)
    groups = ("A", "B")

    def draw(self, n, rng):
        in_b = rng.random(n) < 0.4
        return People((rng.normal(size=n) - self.gap * in_b)[:, None], np.where(in_b, "B", "A"))

    def probability_good(self, people):
        return expit(1.2 + 2 * people.X[:, 0] - self.bias * (people.group == "B"))

    def of_group(self, name, n=4000):
        x = norm.ppf((np.arange(n) + 0.5) / n) - self.gap * (name == "B")
        return People(x[:, None], np.full(n, name))


def choice_of(classifier, name):
    """Return the policy of the last round for a group."""
    return classifier._choices["AB".index(name) if len(classifier._choices) > 1 else 0]


def policy_of(classifier, population, name):
    """Return the probabilities of a group's applicants in the last round, and P(good)."""
    people, choice = population.of_group(name), choice_of(classifier, name)
    standing = choice.ladder.locate(people.X, np.full(len(people), "AB".index(name)))
    return choice.ladder.policy(standing, choice.rung), population.probability_good(people)


def breaks_the_bound(classifier, population, name):
    """Return whether a certified policy makes too many mistakes in a group."""
    if not choice_of(classifier, name).certified:
        return False
    pi, good = policy_of(classifier, population, name)
    return pi @ (1 - good) / pi.sum() > ALPHA


def play_groups(classifier, population, rng, n_rounds=GROUP_ROUNDS):
    for _ in range(n_rounds):
        batch = draw_applicants(population, GROUP_BATCH, rng)
        decided = classifier.decide(batch.people.X, sensitive_features=batch.people.group)
        classifier.observe(decided.ids[decided.accepted], batch.outcome[decided.accepted])
        yield decided, batch


def test_ranks_within_groups_give_equal_rates():
    population = TwoGroups()
    gaps = {}
    for ranks in ("within_group", "overall"):
        for rng in rngs(41, 2):
            classifier = start(population, rng, ranks=ranks, horizon=GROUP_ROUNDS, learner=QUICK)
            for _ in play_groups(classifier, population, rng):
                rates = [policy_of(classifier, population, name)[0].mean() for name in "AB"]
                gaps.setdefault(ranks, []).append((rates[0] - rates[1]) / max(rates))
    assert np.abs(gaps["within_group"]).max() <= 0.2
    assert np.abs(gaps["within_group"]).mean() <= 0.07
    assert np.mean(gaps["overall"]) >= 0.3  # the control


def test_each_group_keeps_its_own_bound():
    """Group B is worse at the same x, and one certificate for all does not protect it."""
    population = TwoGroups(gap=0.3, bias=0.8)
    violating = {"per_group": 0, "overall": 0}
    n_certified = 0
    for certify in violating:
        for rng in rngs(42, 4):
            classifier = start(
                population, rng, certify=certify, horizon=GROUP_ROUNDS, learner=QUICK
            )
            broken = False
            for decided, _ in play_groups(classifier, population, rng):
                broken |= any(breaks_the_bound(classifier, population, name) for name in "AB")
                if broken:
                    break
                if certify == "per_group":
                    reports = classifier.rounds_[-2:]
                    assert [report.group for report in reports] == ["A", "B"]
                    assert {report.round for report in reports} == {decided.round}
                    every = all(report.status == "certified" for report in reports)
                    assert decided.certified == every
                    n_certified += every
            violating[certify] += broken
    assert n_certified > 10
    assert violating["per_group"] == 0
    assert violating["overall"] >= 3  # the control


def test_groups_share_delta():
    rng = np.random.default_rng(0)
    classifier = start(TwoGroups(), rng, certify="per_group", delta=0.1, monitor=0.04)
    assert [engine.rules.delta for engine in classifier._engines] == [0.05, 0.05]
    assert [engine.rules.monitor for engine in classifier._engines] == [0.02, 0.02]


@pytest.mark.parametrize("floor", [0.003, 0.05])
@pytest.mark.parametrize("options", [{}, {"ranks": "within_group"}, {"certify": "per_group"}])
def test_every_applicant_has_the_floor(floor, options):
    population, rng = TwoGroups(), np.random.default_rng(1)
    classifier = start(population, rng, floor=floor, learner=QUICK, **options)
    least = []
    for decided, _ in play_groups(classifier, population, rng, 6):
        least.append(decided.propensity.min())
        assert decided.propensity.max() == 1
    assert floor <= min(least) <= 1.1 * floor + 1e-3  # wide soft edges reach everyone
    rng = np.random.default_rng(1)
    classifier = start(population, rng, **options)
    assert next(play_groups(classifier, population, rng))[0].propensity.min() < floor


def test_per_group_with_one_group_equals_overall():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 1))
    y = (rng.random(400) < expit(1 + 2 * X[:, 0])).astype(int)
    accepted = rng.random(400) < 0.7
    together = []
    for certify in ("overall", "per_group"):
        classifier = start(TwoGroups(), rng, certify=certify, random_state=2)
        classifier.fit(X, y, accepted=accepted)
        together.append(classifier.decide(X).propensity)
    assert np.array_equal(*together)
