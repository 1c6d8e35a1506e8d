"""Algorithm 1 beside a lender's own process: a ramp, barred applicants, and loans not taken."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from fairchance import FdrBudget, PartialFeedbackClassifier, Revenue, load, save
from fairchance.errors import InputError, UnknownIdError
from fairchance.methods.algorithm1.classifier import ENOUGH_TO_TELL
from sentences import one_full_stop
from small_worlds import past_of

N, FALSE_ALARM = 120, 1e-6
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3))
D = (X[:, 1] + RNG.normal(size=N) > 0.3).astype(bool)  # rests on what we never see, too
BARRED = ~D & (X[:, 2] > 1)
SMALL = st.integers(0, 2**31)


def algorithm(seed=0, **options):
    options = {"first_round": "learned", "budget": FdrBudget(0.3, exploit=0.1)} | options
    return PartialFeedbackClassifier(Revenue(200, 300), random_state=seed, **options)


@cache
def lived(ramp=0.4):
    """Return a classifier after a round with a ramp, which has learned from it already."""
    past, y, accepted = past_of(np.random.default_rng(1), 0.3)
    classifier = algorithm(seed=3).fit(past, y, accepted=accepted)
    decided = classifier.decide(-X, incumbent=D, barred=BARRED, ramp=ramp)
    yes = decided.ids[decided.accepted]
    classifier.observe(yes, yes % 3 > 0)._classifier_of_round(2)
    return classifier


def twin(ramp=0.4, seed=None):
    """Return a copy of that classifier, whose draws may have another seed."""
    classifier = copy.deepcopy(lived(ramp))
    classifier._seed = classifier._seed if seed is None else seed
    return classifier


def fits(counts, p, n):
    """Exact binomial test of all counts together."""
    tails = 2 * np.minimum(binom.cdf(counts, n, p), binom.sf(counts - 1, n, p))
    return bool((tails > FALSE_ALARM / p.size).all())


@pytest.mark.parametrize("ramp", [0.0, 0.25, 1.0])
def test_the_propensity_is_the_share_of_acceptances(ramp):
    n, counts = 800, np.zeros(N)
    for seed in range(n):
        decided = twin(seed=seed).decide(X, incumbent=D, barred=BARRED, ramp=ramp)
        counts += decided.accepted
    assert fits(counts, decided.propensity, n)
    pi = twin().decide(X, incumbent=D, barred=BARRED).propensity
    assert np.allclose(decided.propensity, (1 - ramp) * D + ramp * pi)
    assert ((pi > 0) & (pi < 1)).any()
    assert fits(counts, pi, n) == (ramp == 1)  # the control


@given(SMALL, st.floats(0, 1))
@settings(deadline=None, max_examples=25)
def test_the_order_of_rows_does_not_matter(seed, ramp):
    order, ids = np.random.default_rng(seed).permutation(N), np.arange(5000, 5000 + N)
    options = {"ramp": ramp}
    one = twin().decide(X, ids=ids, incumbent=D, barred=BARRED, **options)
    other = twin().decide(
        X[order], ids=ids[order], incumbent=D[order], barred=BARRED[order], **options
    )
    for name in ("accepted", "exploit", "propensity", "score"):
        assert np.array_equal(getattr(one, name)[order], getattr(other, name)), name


@given(SMALL, st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None, max_examples=25)
def test_a_small_ramp_is_part_of_a_larger_one(seed, one, other):
    small, large = (
        twin(seed=seed).decide(X, incumbent=D, ramp=ramp) for ramp in sorted((one, other))
    )
    ours = twin(seed=seed).decide(X, incumbent=D).accepted
    # Where we and the incumbent differ, the decision shows who decided.
    shows = ours != D
    assert not np.any((small.accepted == ours) & (large.accepted != ours) & shows)


@given(SMALL, st.floats(0, 1), st.lists(st.booleans(), min_size=N, max_size=N))
@settings(deadline=None, max_examples=25)
def test_barred_applicants_are_never_accepted(seed, ramp, barred):
    barred = np.array(barred) & ~D
    classifier = twin(seed=seed)
    decided = classifier.decide(X, incumbent=D, barred=barred, ramp=ramp)
    assert not decided.accepted[barred].any()
    assert not decided.propensity[barred].any()
    assert not decided.exploit[barred].any()
    assert classifier.rounds_[-1].n_barred == barred.sum()
    alone = twin(seed=seed).decide(X, barred=np.ones(N))
    assert not alone.accepted.any()


@given(SMALL)
@settings(deadline=None, max_examples=15)
def test_outcomes_of_the_rejected_and_of_loans_not_taken_change_nothing(seed):
    past, y, accepted = past_of(np.random.default_rng(1), 0.6)
    rng = np.random.default_rng(seed)
    not_taken = accepted & (rng.random(y.size) < 0.3)
    unseen = ~accepted | not_taken
    found = []
    for outcome in (y, np.where(unseen, 1 - y, y), np.where(unseen, np.nan, y)):
        classifier = algorithm().fit(past, outcome, accepted=accepted, not_taken=not_taken)
        one = classifier.decide(X, incumbent=D, ramp=0.5)
        two = classifier.decide(-X, ids=one.ids + N, incumbent=D, ramp=1.0)
        found.append((one.accepted, one.propensity, two.accepted, two.propensity, two.score))
    for other in found[1:]:
        assert all(map(np.array_equal, found[0], other))


def test_in_shadow_the_incumbent_decides():
    classifier = twin()
    decided = classifier.decide(X, incumbent=D, barred=BARRED, ramp=0)
    assert np.array_equal(decided.accepted, D)
    assert np.array_equal(decided.propensity, D)
    assert (decided.status, decided.ramp) == ("shadow", 0.0)
    record = classifier.rounds_[-1]
    counts = record.ramp, record.n_incumbent, record.n_barred, record.n_exploited, record.n_explored
    assert counts == (0.0, D.sum(), BARRED.sum(), D.sum(), 0)
    assert np.array_equal(classifier.acceptance_probability(X, incumbent=D), D)
    with pytest.raises(InputError, match="incumbent") as refused:
        classifier.acceptance_probability(X)
    one_full_stop(refused)


def test_shadow_rounds_cover_whom_the_incumbent_accepts():
    past, y, accepted = past_of(np.random.default_rng(1), 0.2)
    classifier, people = algorithm().fit(past, y, accepted=accepted), np.tile(X, (3, 1))
    before = classifier._log.coverage(X, np.zeros(N, np.intp), classifier._rule, D)
    classifier.decide(people, incumbent=np.tile(D, 3), ramp=0)
    after = classifier._log.coverage(X, np.zeros(N, np.intp), classifier._rule, D)
    assert np.allclose(after - before, D)  # a full round of those with d = 1, none of the others
    decided = classifier.decide(X, incumbent=D)
    assert decided.exploit[D].all()
    assert not decided.exploit[~D].all()


def test_probabilities_of_others_are_those_of_the_batch():
    classifier = twin()
    decided = classifier.decide(X, incumbent=D, ramp=0.3)
    found = classifier.acceptance_probability(X, incumbent=D)
    sure = np.isin(decided.propensity, (0, 0.3, 0.7, 1))  # a draw depends on the batch a little
    np.testing.assert_allclose(found[sure], decided.propensity[sure])
    np.testing.assert_allclose(found, decided.propensity, atol=0.05)


def test_without_a_ramp_the_incumbent_changes_nothing():
    past, y, accepted = past_of(np.random.default_rng(1), 0.3)
    plain, beside = (algorithm().fit(past, y, accepted=accepted) for _ in range(2))
    one, other = plain.decide(X), beside.decide(X, incumbent=D, barred=np.zeros(N))
    assert np.array_equal(one.accepted, other.accepted)
    assert np.array_equal(one.propensity, other.propensity)
    assert np.array_equal(
        beside.acceptance_probability(X, incumbent=D), plain.acceptance_probability(X)
    )
    assert (one.status, one.incumbent, one.barred) == ("", None, None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"incumbent": [np.nan] * N}, "incumbent.*nan"),
        ({"incumbent": D, "barred": D}, f"{int(D.sum())} of {N}"),
        ({"incumbent": D, "ramp": 1.5}, "ramp.*1.5"),
        ({"ramp": 0.5}, "incumbent"),
    ],
)
def test_what_is_refused_leaves_no_trace(wrong, words):
    classifier = twin()
    with pytest.raises(InputError, match=words) as refused:
        classifier.decide(X, **wrong)
    one_full_stop(refused)
    assert len(classifier.rounds_) == 1
    again, other = classifier.decide(X), twin().decide(X)
    assert np.array_equal(again.ids, other.ids)
    assert np.array_equal(again.accepted, other.accepted)


def test_a_rejected_or_settled_id_cannot_be_not_taken():
    classifier = twin()
    decided = classifier.decide(X, incumbent=D, ramp=0.5)
    yes, no = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    classifier.observe(yes[:1], [1]).withdraw(yes[1:2])
    before = classifier.n_outcomes_
    for ids, error in ((no[:1], UnknownIdError), (yes[:1], InputError), (yes[1:2], InputError)):
        with pytest.raises(error, match=str(ids[0])):
            classifier.not_taken(np.append(yes[2:], ids))
    assert classifier.not_taken(yes[2:4]).not_taken(yes[2:4]) is classifier
    with pytest.raises(InputError, match=str(yes[2])):
        classifier.observe(yes[2:3], [1])
    classifier.correct(yes[2:3], [0])
    assert classifier.n_outcomes_ == before + 1
    assert [(one.before, one.after) for one in classifier.corrections_] == [(None, 0)]


def test_loans_not_taken_teach_what_withdrawn_ones_do():
    """They are the same for f_t; only the budget knows that nobody took them."""
    one, other = twin(), twin()
    ids = one.decide(X, incumbent=D).ids
    yes = ids[other.decide(X, incumbent=D).accepted]
    one.observe(yes[::2], yes[::2] % 3 > 0).not_taken(yes[1::2])
    other.observe(yes[::2], yes[::2] % 3 > 0).withdraw(yes[1::2])
    for classifier in (one, other):
        classifier.decide(-X)
    assert one.rounds_[-1].thresholds == other.rounds_[-1].thresholds
    assert one.rounds_[-1].estimated_fdr == other.rounds_[-1].estimated_fdr


def took(classifier, exploited, explored, n_left=0):
    """Decide a large round of which shares take the loan; return how many of each region do."""
    people = np.random.default_rng(8).normal(size=(900, 3))
    decided, counts = classifier.decide(people), []
    regions = decided.accepted & decided.exploit, decided.explored
    for region, share in zip(regions, (exploited, explored), strict=True):
        ids, good = decided.ids[region], people[region, 0] > -0.5
        cut = round(share * ids.size)
        classifier.observe(ids[n_left:cut], good[n_left:cut]).not_taken(ids[cut:])
        counts.append((ids.size, cut))
    return counts


def test_the_budget_counts_loans_taken():
    past, y, accepted = past_of(np.random.default_rng(1), 0.3)
    classifier = algorithm(seed=3).fit(past, y, accepted=accepted)
    (n_exploit, n_loans), (n_explore, n_explored_loans) = took(classifier, 0.9, 0.6)
    n_past = int(accepted.sum())  # all of them took the loan
    assert n_explore > ENOUGH_TO_TELL
    of_exploit = (n_past + n_loans + 1) / (n_past + n_exploit + 1)
    of_explore = (n_explored_loans + 1) / (n_explore + 1)
    carried = classifier.rounds_[-1].carried
    classifier.decide(np.random.default_rng(9).normal(size=(900, 3)))
    record = classifier.rounds_[-1]
    share = FdrBudget(0.3, exploit=0.1).explore_share(2)
    allowed = share * record.n_exploited * of_exploit / of_explore + carried
    assert record.n_explored == int(allowed)
    assert record.n_explored > share * record.n_exploited + 1


def test_rounds_with_pending_outcomes_say_nothing_about_take_up():
    past, y, accepted = past_of(np.random.default_rng(1), 0.3)
    classifier = algorithm(seed=3).fit(past, y, accepted=accepted)
    took(classifier, 0.9, 0.6, n_left=1)
    assert classifier._take_up(2) == 1.0
    late = algorithm(maturity=1).fit(past, y, accepted=accepted)
    took(late, 0.9, 0.6, n_left=1)
    assert late._take_up(2) == 1.0
    assert late._take_up(3) > 1.1


def test_the_history_tells_how_many_take_the_loan():
    past, y, accepted = past_of(np.random.default_rng(1), 0.6)
    not_taken = accepted & (np.arange(y.size) % 4 == 0)
    for first_round in ("learned", "matched"):
        classifier = algorithm(first_round=first_round)
        classifier.fit(past, y, accepted=accepted, not_taken=not_taken).decide(X)
        share = (accepted & ~not_taken).sum() / accepted.sum()
        assert classifier.deployed_.f.take_up == pytest.approx(share, abs=0.01)


def test_saved_forgotten_and_corrected_as_before(tmp_path):
    classifier = twin()
    decided = classifier.decide(X, incumbent=D, barred=BARRED, ramp=0.5)
    yes = decided.ids[decided.accepted]
    classifier.not_taken(yes[:20]).observe(yes[20:], yes[20:] % 3 > 0)
    path = tmp_path / "classifier.zip"
    save(classifier, path)
    again = load(path)
    for one in (classifier, again):
        one.correct(yes[:5], np.ones(5)).forget(yes[3:12])
    one, other = (c.decide(-X, incumbent=D, ramp=0.8) for c in (classifier, again))
    assert np.array_equal(one.accepted, other.accepted)
    assert np.array_equal(one.propensity, other.propensity)
    assert list(classifier.rounds_) == list(again.rounds_)
