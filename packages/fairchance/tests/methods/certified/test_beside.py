"""The promise beside a lender: nulls in which certificates are false, and controls that break it.

In each null every policy that may be certified breaks α by a little, so any certificate is false.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from fairchance import CertifiedClassifier
from fairchance.methods.certified import policy as policy_module
from fairchance.methods.certified.rules import Rules
from methods.certified.controls import (
    ErasedLeftOut,
    MixtureUnproven,
    VetoedLeftOut,
    WeightsDropped,
    with_engine,
)
from methods.certified.known_truth import ALPHA, DELTA, QUICK, rngs, too_many
from methods.certified.lender import Month, Town, false_run, open_program, tell

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
JUST_ABOVE = ALPHA + 0.0005
GOOD_TAKE_LESS, BAD_TAKE_LESS = (0.6, 0.95), (0.95, 0.6)

# Own policies break α, and the lender, who knows more than x, keeps it: FDR .10 and .12.
SHARP = Town(lender=(0.6, 0.38)).with_fdr(JUST_ABOVE)
GENEROUS = Town(lender=(0.9, 0.7)).with_fdr(JUST_ABOVE)
# The lender breaks α by a little, and everything else by more.
LAX = Town(lender=(0.8, 0.33)).with_lenders_fdr(JUST_ABOVE)


@dataclass(frozen=True)
class Capacity(Town):
    """The lender accepts the k best of a month by what it alone knows."""

    k: int = 150

    def draw(self, n, rng):
        month = super().draw(n, rng)
        score = rng.normal(size=n) - 1.5 * month.bad
        wanted = np.zeros(n, np.bool_)
        wanted[np.argsort(-score)[: self.k]] = True
        return replace(month, incumbent=wanted)


def tell_and_erase(classifier, month, decided):
    """Report outcomes, and erase most of the bad ones before the round is in the tests."""
    tell(classifier, month, decided)
    bad = decided.ids[decided.accepted & month.bad]
    rejected = decided.ids[~decided.accepted]
    classifier.forget([*bad[: 2 * bad.size // 3], *rejected[::9]])


def tell_and_correct(classifier, month, decided):
    """Report outcomes, and correct one in every fourth round, so that testing begins again."""
    tell(classifier, month, decided)
    if decided.round % 4 == 0:
        known = decided.accepted & month.takes
        good = (1 - month.bad[known])[:1]
        classifier.correct(decided.ids[known][:1], 1 - good)
        classifier.correct(decided.ids[known][:1], good)


FROM_HISTORY = {"evidence": "history", "n_history": 2000, "rounds": 2, "n": 100}
NULLS = {
    "hidden information": (SHARP, {}),
    "hidden information, generous": (GENEROUS, {}),
    "hidden information, half, ramp .3": (SHARP, {"ramp": 0.3}),
    "hidden information, in shadow": (GENEROUS, {"ramp": 0.0}),
    "hidden information, ramp .05": (GENEROUS, {"ramp": 0.05}),
    "hidden information, ramp .3": (GENEROUS, {"ramp": 0.3}),
    "lax lender": (LAX, {}),
    "lax lender, in shadow": (LAX, {"ramp": 0.0}),
    "lax lender, ramp .05": (LAX, {"ramp": 0.05}),
    "lax lender, ramp .3": (LAX, {"ramp": 0.3}),
    "good take less": (replace(GENEROUS, takes=GOOD_TAKE_LESS).with_fdr(JUST_ABOVE), {}),
    "bad take less": (replace(GENEROUS, takes=BAD_TAKE_LESS).with_fdr(JUST_ABOVE), {}),
    "lax lender, good take less": (
        replace(LAX, takes=GOOD_TAKE_LESS).with_lenders_fdr(JUST_ABOVE),
        {},
    ),
    "lax lender, bad take less": (
        replace(LAX, takes=BAD_TAKE_LESS).with_lenders_fdr(JUST_ABOVE),
        {},
    ),
    "capacity": (Capacity(bad=JUST_ABOVE, k=200), {"kinds": ("own",)}),
    "erasures": (LAX, {"tell": tell_and_erase, "maturity": 1}),
    "restarts": (LAX, {"tell": tell_and_correct, "rounds": 16}),
    "restarts, own": (GENEROUS, {"tell": tell_and_correct, "rounds": 16}),
    "history": (SHARP, FROM_HISTORY),
    "history, lax lender": (LAX, FROM_HISTORY),
    "history, good take less": (
        replace(LAX, takes=GOOD_TAKE_LESS).with_lenders_fdr(JUST_ABOVE),
        FROM_HISTORY,
    ),
    "history, trees": (SHARP, FROM_HISTORY | {"learner": DecisionTreeClassifier(random_state=0)}),
}


def false_runs(town, options, seed, n):
    """Return how many of n runs certify a policy that breaks α."""
    return sum(false_run(town, rng, **options) for rng in rngs(seed, n))


@pytest.mark.parametrize("name", NULLS)
def test_certificates_are_seldom_false(name):
    """Five of 8 runs fail it, by the exact binomial at a false-alarm rate of 0.001."""
    assert not too_many(false_runs(*NULLS[name], 60, 8), 8, DELTA)


@pytest.mark.long
@pytest.mark.parametrize("name", NULLS)
def test_certificates_are_seldom_false_in_300_runs(name):
    """Exact binomial; a false alarm has probability 0.001."""
    assert not too_many(false_runs(*NULLS[name], 61, 300), 300, DELTA)


@pytest.mark.parametrize("ramp", [0.0, 0.3, 1.0])
def test_the_same_runs_certify_if_the_lender_keeps_the_bound(ramp):
    """Nulls say something only if a policy that keeps α is certified in as many rounds."""
    town, certified = Town(lender=(0.8, 0.33)).with_lenders_fdr(0.06), 0
    for rng in rngs(63, 4):
        classifier = open_program(town, rng)
        for _ in range(12):
            month = town.draw(300, rng)
            decided = classifier.decide(month.X, incumbent=month.incumbent, ramp=ramp)
            tell(classifier, month, decided)
        certified += classifier._engines[0].incumbent_certified
        assert decided.certified == (ramp > 0 and classifier.rounds_[-1].status == "certified")
    assert certified == 4


# Controls: each breaks one condition, and must be caught.


def tell_late(classifier, month, decided):
    """Call every third bad loan "not taken" once it is known to be bad."""
    hidden = month.bad & (np.arange(len(month)) % 3 == 0)
    tell(classifier, replace(month, takes=month.takes & ~hidden), decided)


def tell_gentle(classifier, month, decided):
    """Give better terms to those whom only we accept: most of them turn out to be good."""
    helped = decided.accepted & ~month.incumbent & (np.arange(len(month)) % 10 != 0)
    tell(classifier, replace(month, bad=month.bad & ~helped), decided)


@dataclass(frozen=True)
class Uneven(Capacity):
    """Months of two sizes, in which a fixed number is accepted: one month is not like another."""

    sizes: tuple[int, int] = (600, 170)

    small: float = 0.62  # share of small months, so that the FDR of all is just above α

    def draw(self, n, rng):
        return super().draw(self.sizes[int(rng.random() < self.small)], rng)

    def mean_fdr(self, n, months=600):
        """Return the lender's FDR in months of a size."""
        rng = np.random.default_rng(0)
        drawn = [super(Uneven, self).draw(n, rng) for _ in range(months)]
        return float(np.mean([month.bad[month.incumbent].mean() for month in drawn]))

    def fdr(self, rejected, accepted):
        """Return the FDR of the lender's own policy over all months; that of a union is larger."""
        return np.full(accepted.shape[1:], JUST_ABOVE)


def thinned(town, n, rng):
    """Return a history that holds hardly any of the rejected."""
    month = town.draw(n, rng)
    stays = month.incumbent | (rng.random(n) < 0.005)
    return Month(month.X[stays], month.bad[stays], month.takes[stays], month.incumbent[stays])


def repeated(town, n, rng):
    """Return a history in which every person has ten applications, which are split by row."""
    month, who = town.draw(n // 10, rng), np.repeat(np.arange(n // 10), 10)
    return Month(month.X[who], month.bad[who], month.takes[who], month.incumbent[who])


CLEAR = Town(bad=0.25, slope=2.5)  # own policies can keep α, and the lender has FDR .33
UNEVEN = Uneven(bad=0.3, k=150)
CONTROLS = {
    "p ignored, in shadow": (SHARP, {"ramp": 0.0, "method": with_engine(WeightsDropped)}),
    "p ignored, ramp .3": (SHARP, {"ramp": 0.3, "method": with_engine(WeightsDropped)}),
    "not taken after the outcome": (LAX, {"tell": tell_late}),
    "vetoed after the answer": (LAX, {"method": with_engine(VetoedLeftOut)}),
    "erased left out": (
        LAX,
        {"tell": tell_and_erase, "maturity": 1, "method": with_engine(ErasedLeftOut)},
    ),
    "other terms for the explored": (SHARP, {"tell": tell_gentle}),
    "a mixture with an unproven lender": (
        CLEAR,
        {"ramp": 0.3, "method": with_engine(MixtureUnproven)},
    ),
    "a union with a capacity": (
        UNEVEN,
        {"ramp": 0.0, "kinds": ("union",), "rounds": 20},
    ),
    "a history without the rejected": (
        SHARP,
        FROM_HISTORY | {"past_of": thinned, "n_history": 4000},
    ),
    "a history split by row": (
        SHARP,
        FROM_HISTORY | {"past_of": repeated, "learner": DecisionTreeClassifier(random_state=0)},
    ),
}


def test_a_capacity_in_uneven_months_breaks_the_bound():
    large, small = map(UNEVEN.mean_fdr, UNEVEN.sizes)
    assert ALPHA < (1 - UNEVEN.small) * large + UNEVEN.small * small < ALPHA + 0.01


@pytest.mark.parametrize("name", CONTROLS)
def test_controls_are_caught(name):
    """At least six of 12, or the exact binomial does not reject δ at 0.001."""
    assert too_many(false_runs(*CONTROLS[name], 62, 12), 12, DELTA)


def test_the_mixture_is_not_certified_before_the_lenders_policy_is():
    assert false_runs(CLEAR, {"ramp": 0.3}, 62, 6) == 0


def test_dropping_what_is_uncovered_is_caught(monkeypatch):
    def nothing(pi, p, cap):
        return np.zeros_like(pi)

    monkeypatch.setattr("fairchance.methods.certified.ladder.uncovered", nothing)
    assert too_many(false_runs(SHARP, {"ramp": 0.0}, 62, 12), 12, DELTA)


def test_a_second_query_with_another_decision_is_caught(monkeypatch):
    """The lender asks for d = 0, and again for d = 1 if a bad applicant is accepted.

    So bad outcomes count by p of d = 1, which is larger. A second query of an id is refused.
    """
    months, coins = [], policy_module.ramped_coins

    class Watched(Town):
        def draw(self, n, rng):
            months.append(super().draw(n, rng))
            return months[-1]

    def asked_twice(pi, incumbent, ramp, *bits):
        accepted, p = coins(pi, incumbent, ramp, *bits)
        again = accepted & ~incumbent & months[-1].bad
        return accepted, np.where(again, 1.0, p)

    town = Watched(SHARP.bad, SHARP.slope, SHARP.lender, SHARP.takes)
    monkeypatch.setattr(policy_module, "ramped_coins", asked_twice)
    assert too_many(false_runs(town, {"ramp": 0.3, "kinds": ("own",)}, 62, 12), 12, DELTA)


def shadow_if_bad(month):
    return 0.0 if month.bad.mean() > JUST_ABOVE else 1.0


def shadow_by_x(month):
    return 0.0 if month.X.mean() > 0 else 1.0  # x says nothing of the outcome


@pytest.mark.long
@pytest.mark.parametrize(("ramp", "caught"), [(shadow_if_bad, True), (shadow_by_x, False)])
def test_a_ramp_chosen_after_a_look_at_the_outcomes_is_caught(ramp, caught):
    """A lender who knows which months are bad, and lets them pass in shadow, hides them."""
    false = false_runs(GENEROUS, {"ramp": ramp, "rounds": 60}, 67, 30)
    assert too_many(false, 30, DELTA) == caught


# What a round depends on, and what is spent.


def fixed_before(classifier):
    """Return everything that has to be fixed before the last round."""
    engine = classifier._engines[0]
    waiting = engine.waiting[-1]
    policy = waiting.policy
    fixed = [engine.ladders.index(policy.ladder), policy.rung, policy.certified, policy.ramp]
    for bet in waiting.bets:
        ladder = bet.ladder
        fixed += [ladder.tau, ladder.level, ladder.starts, ladder.union, ladder.frozen]
        fixed += [ladder.ranking.reference[0].tobytes(), bet.use.tobytes()]
        fixed += [policy.ratio_bounds(ladder).tobytes()]
        fixed += [test.starts for test in ladder.others]
    return fixed


@pytest.mark.parametrize("options", [{}, {"evidence": "history", "n_history": 1000}])
def test_what_is_bet_on_a_round_does_not_depend_on_its_applicants(options):
    """Other features and other decisions of the lender, as many of them; also where it freezes."""
    rng, other_rng, town = *rngs(64, 2), GENEROUS
    classifier = open_program(town, rng, **options)
    n_ladders = set()
    for t in range(12):
        ramp = (0.0, 0.3, 1.0)[t % 3]
        other = copy.deepcopy(classifier)
        month = town.draw(200, rng)
        decided = classifier.decide(month.X, incumbent=month.incumbent, ramp=ramp)
        strange = other_rng.normal(2.0, 0.3, size=(200, 1)), other_rng.random(200) < 0.1
        other.decide(strange[0], incumbent=strange[1], ramp=ramp, unlike_history=True)
        assert fixed_before(classifier) == fixed_before(other)
        n_ladders.add(len(classifier._engines[0].ladders))
        tell(classifier, month, decided)
    assert len(n_ladders) >= 4  # rankings were frozen in between


@pytest.mark.parametrize("evidence", ["rounds", "history"])
@pytest.mark.parametrize("seed", range(3))
def test_delta_is_never_overspent(seed, evidence):
    """Whatever the rounds with and without the lender, the ramps and the restarts."""
    (rng,), town = rngs(seed, 1), Town(lender=(0.8, 0.33)).with_lenders_fdr(0.1)
    classifier = open_program(town, rng, evidence=evidence, n_history=600, horizon=8)
    engine, kinds = classifier._engines[0], set()
    for _ in range(25):
        month, beside = town.draw(150, rng), rng.random() < 0.6
        ramp = float(rng.choice([0.0, 0.3, 1.0])) if beside else 1.0
        d = month.incumbent if beside else None
        decided = classifier.decide(month.X, incumbent=d, ramp=ramp)
        tell(classifier, month, decided)
        kinds |= {ladder.union for ladder in engine.ladders}
        if rng.random() < 0.15:
            known = decided.accepted & month.takes
            classifier.correct(decided.ids[known][:1], month.bad[known][:1].astype(int))
        assert decided.status != "certified" or classifier.rounds_[-1].delta_spent > 0
        assert engine.delta_spent <= DELTA + 1e-12
    assert kinds == {False, True}
    assert engine.stage.restarts > 0


@pytest.mark.parametrize("beside", [False, True])
def test_the_history_and_all_stages_share_delta(beside):
    rules = Rules.of(CertifiedClassifier(delta=DELTA, evidence="history", floor=0.0), 1, None)
    levels = [rules.level(k, 0, beside=beside) for k in range(len(rules.levels(beside)))]
    later = [
        rules.level(k, restarts, beside=beside)
        for restarts in range(1, 60)
        for k in range(len(rules.levels(beside)))
    ]
    assert sum(levels) + sum(later) + rules.history_level <= DELTA + 1e-12


# The history as evidence.


def certified_before_the_first_round(classifier):
    return [ladder.certified().any() for ladder in classifier._engines[0].ladders]


def safe_history(rng, **options):
    """Return a classifier whose lender's policy is shown to keep α by the history."""
    town = Town(lender=(0.8, 0.33)).with_lenders_fdr(0.06)
    return town, open_program(town, rng, evidence="history", n_history=2000, **options)


def test_the_history_certifies_the_lender_before_the_first_round():
    (rng,) = rngs(65, 1)
    town, classifier = safe_history(rng)
    month = town.draw(100, rng)
    assert classifier.decide(month.X, incumbent=month.incumbent).certified


def test_an_erased_history_is_no_evidence():
    """Otherwise a choice of past applicants to erase could make a certificate."""
    (rng,) = rngs(65, 1)
    town, classifier = safe_history(rng)
    classifier.forget([0])
    month = town.draw(100, rng)
    assert not classifier.decide(month.X, incumbent=month.incumbent).certified
    assert not any(ladder.from_history for ladder in classifier._engines[0].ladders)


def test_a_first_round_that_failed_does_not_test_the_history_twice():
    (rng,) = rngs(65, 1)
    town, classifier = safe_history(rng)
    month, engine = town.draw(100, rng), classifier._engines[0]
    usual, engine.open = engine.open, None  # so that the round cannot be opened
    with pytest.raises(TypeError):
        classifier.decide(month.X, incumbent=month.incumbent)
    engine.open = usual
    spent, n_ladders = engine.delta_spent, len(engine.ladders)
    assert any(ladder.from_history for ladder in engine.ladders)
    classifier.decide(month.X, incumbent=month.incumbent)
    assert (engine.delta_spent, len(engine.ladders)) == (spent, n_ladders)


def test_one_group_is_no_evidence_for_another():
    """The past accepted nobody of B, a small group, so it says nothing of B."""
    (rng,) = rngs(66, 1)
    n = 3000
    X, group = rng.normal(size=(n, 1)), np.where(np.arange(n) % 50 == 0, "B", "A")
    accepted = (group == "A") & (rng.random(n) < 0.97)
    bad = rng.random(n) < 0.02
    classifier = CertifiedClassifier(
        learner=QUICK, certify="per_group", evidence="history", horizon=12, random_state=0
    )
    classifier.fit(X, 1 - bad, accepted=accepted, sensitive_features=group)
    classifier.decide(X[:300], sensitive_features=group[:300])
    status = {record.group: record.status for record in classifier.rounds_}
    assert status == {"A": "certified", "B": "pilot"}
    from_history = [
        any(ladder.from_history for ladder in engine.ladders) for engine in classifier._engines
    ]
    assert from_history == [True, False]


@pytest.mark.parametrize(("wanted", "n"), [(True, 1), (True, 3), (False, 3), (False, 20)])
def test_a_round_of_a_few_applicants_does_not_mislead_the_next(wanted, n):
    """All of them, or none, are accepted by the lender, which says nothing about others."""
    town = Town(slope=1.2, lender=(0.6, 0.45))
    (rng,) = rngs(77, 1)
    classifier = open_program(town, rng, n_history=1500)
    for _ in range(4):
        month = town.draw(400, rng)
        tell(classifier, month, classifier.decide(month.X, incumbent=month.incumbent))
    some = town.draw(500, rng)
    some = some.X[some.incumbent == wanted][:n]
    month = town.draw(400, rng)
    usual = copy.deepcopy(classifier).decide(month.X, incumbent=month.incumbent)
    classifier.decide(some, incumbent=np.full(n, wanted))
    now = classifier.decide(month.X, incumbent=month.incumbent)
    assert now.accepted.sum() == pytest.approx(usual.accepted.sum(), rel=0.15)
    if not usual.certified:
        assert now.accepted[month.incumbent].all()
