"""References that know all outcomes, against brute force over all cuts and known truth."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from fairchance import Revenue
from fairchance.errors import InputError
from fairchance.simulate.people import Table
from fairchance.simulate.populations import FiniteDomain, Lender, constrained_optimum
from fairchance.simulate.run import run
from fairchance_lab.baselines import references
from fairchance_lab.baselines.references import best_linear, ceiling, logistic_all_labels
from fairchance_lab.experiments.world_spec import WorldSpec

MONEY = Revenue(gain=200, loss=500)
REFERENCES = (ceiling, best_linear, logistic_all_labels)


def bent(n=3000, seed=0):
    """Return people whose outcome no linear rule ranks well: good if x is near 0, or z is high."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(50_000, 9_000, n), rng.integers(0, 40, n), rng.normal(size=n)])
    code_is_good = np.random.default_rng(7).random(40) < 0.4
    p = np.where(code_is_good[X[:, 1].astype(int)] & (np.abs(X[:, 2]) < 1), 0.95, 0.25)
    outcome = (rng.random(n) < p).astype(np.int8)
    features = ("income", "code", "x")
    return Table("bent", "Made up.", features, X, np.where(X[:, 2] > 0, "a", "b"), outcome)


def world_of(table, seed=0, scaling="history"):
    return WorldSpec("bent", n_parts=10, scaling=scaling).build(table, seed)


def best_by_brute_force(score, good, alpha):
    """Return the largest revenue of a cut whose FDR is at most α, trying every one."""
    best = 0.0
    for cut in np.unique(score):
        taken = good[score >= cut]
        if (1 - taken).mean() <= alpha:
            best = max(best, (200 * taken - 500 * (1 - taken)).sum())
    return best / good.size


def earned(reference, population):
    """Return the revenue per person, and the FDR."""
    people, good = population.people, population.good
    p = reference.acceptance_probability(people.X, sensitive_features=people.group)
    assert set(p.tolist()) <= {0.0, 1.0}
    accepted = population.mass * p
    worth = 200 * accepted @ good - 500 * accepted @ (1 - good)
    return worth, accepted @ (1 - good) / max(accepted.sum(), 1e-12)


@pytest.mark.parametrize("make", REFERENCES)
@pytest.mark.parametrize("alpha", [0.05, 0.15])
def test_no_cut_of_the_same_scores_earns_more_within_the_bound(make, alpha):
    world = world_of(bent())
    reference, population = make(world, MONEY, alpha), world.population()
    score = reference.decide(population.people.X, sensitive_features=population.people.group).score
    worth, fdr = earned(reference, population)
    assert worth == pytest.approx(best_by_brute_force(score, population.good, alpha))
    assert worth == pytest.approx(reference.point.utility)
    assert fdr <= alpha


def test_the_ceiling_is_the_strongest_and_logistic_the_weakest():
    world = world_of(bent())
    worths = [earned(make(world, MONEY, 0.15), world.population())[0] for make in REFERENCES]
    assert worths[0] > 1.2 * worths[1]
    assert worths[1] >= worths[2]


def test_logistic_scores_are_those_of_scikit_learn():
    table = bent()
    world = world_of(table)
    population = world.population()
    Z = (table.X - table.X.mean(0)) / table.X.std(0)
    model = LogisticRegression(C=1.0, tol=1e-9).fit(Z, table.outcome)
    decided = logistic_all_labels(world, MONEY, 0.15).decide(population.people.X)
    assert decided.score == pytest.approx(model.predict_proba(Z)[:, 1], abs=1e-4)


def test_no_one_is_scored_by_a_model_that_saw_them():
    """Noise earns nothing, however often the same people are drawn again."""
    rng = np.random.default_rng(0)
    n = 2000
    table = Table(
        "noise",
        "Made up.",
        ("x", "code"),
        np.column_stack([rng.normal(size=n), rng.integers(0, 150, n)]),
        np.full(n, "a"),
        (rng.random(n) < 0.6).astype(np.int8),
    )
    world = WorldSpec("noise", n_batch=200, n_rounds=3).build(table, 0)
    assert earned(ceiling(world, MONEY, 0.15), world.population())[0] < 2
    memory = HistGradientBoostingClassifier(max_iter=200).fit(table.X, table.outcome)
    score = memory.predict_proba(table.X)[:, 1]
    assert best_by_brute_force(score, table.outcome.astype(float), 0.15) > 20


@pytest.mark.parametrize("scaling", ["history", "stream", "none"])
def test_scores_do_not_depend_on_how_a_world_scales(scaling):
    table = bent()
    first = ceiling(world_of(table), MONEY, 0.15)
    world = world_of(table, seed=5, scaling=scaling)
    other = ceiling(world, MONEY, 0.15)
    X = world_of(table).population().people.X
    assert np.array_equal(
        first.acceptance_probability(X),
        other.acceptance_probability(world.population().people.X),
    )


def test_people_are_decided_alike_in_a_batch_and_in_the_population():
    world = world_of(bent())
    reference = ceiling(world, MONEY, 0.15)
    accepted = good = 0
    for result in run(reference, world):
        people = result.applicants.people
        p = reference.acceptance_probability(people.X, sensitive_features=people.group)
        assert np.array_equal(p, result.decided.accepted)
        assert np.array_equal(
            reference.accepts(people.X, sensitive_features=people.group), result.decided.accepted
        )
        accepted += p.sum()
        good += p @ result.applicants.outcome
    first = world.full_history()
    p = reference.acceptance_probability(first.people.X, sensitive_features=first.people.group)
    everybody = reference.acceptance_probability(world.population().people.X)
    assert accepted + p.sum() == everybody.sum()
    assert good + p @ first.outcome == everybody @ world.population().good


def test_scores_are_learned_once_for_all_repetitions(monkeypatch):
    fits = []
    fit = HistGradientBoostingClassifier.fit
    monkeypatch.setattr(
        HistGradientBoostingClassifier, "fit", lambda *args: fits.append(1) or fit(*args)
    )
    monkeypatch.setattr(references, "_LEARNED", {})
    table = bent(500)
    for seed, alpha in enumerate((0.15, 0.15, 0.1)):
        ceiling(world_of(table, seed), MONEY, alpha)
    assert len(fits) == 5  # folds
    ceiling(world_of(bent(500, seed=1)), MONEY, 0.15)
    assert len(fits) == 10


def test_groups_are_appended_where_methods_append_them(rng):
    """Only the group tells good from bad: without it no one can be accepted."""
    group = rng.choice(["a", "b"], 800)
    good = np.where(group == "b", 1, rng.random(800) < 0.3).astype(np.int8)
    table = Table("t", "Made up.", ("x",), rng.normal(size=(800, 1)), group, good)
    world = world_of(table)
    people = world.population().people
    for make in REFERENCES:
        seeing = make(world, MONEY, 0.15, ("a", "b"))
        p = seeing.acceptance_probability(people.X, sensitive_features=group)
        assert p[group == "b"].all()
        assert p[group == "a"].mean() < 0.1
        blind = make(world, MONEY, 0.15)
        assert blind.acceptance_probability(people.X, sensitive_features=group).mean() < 0.1


CELLS = FiniteDomain(
    [[0.0], [1.0], [2.0], [3.0]],
    ["a", "a", "b", "b"],
    mass=[4, 3, 2, 1],
    good=[0.5, 0.97, 0.6, 0.9],
)


def test_the_ceiling_is_the_exact_optimum_where_the_truth_is_known():
    world = WorldSpec("cells", n_batch=50, n_rounds=2).build(CELLS, 0)
    worth, fdr = earned(ceiling(world, MONEY, 0.15, ("a", "b")), world.population())
    best = CELLS.optimum(MONEY, 0.15)
    assert (worth, fdr) == pytest.approx((best.utility, best.fdr))
    lender = WorldSpec("lender", n_batch=50, n_rounds=2).build(Lender(), 0)
    worth, fdr = earned(ceiling(lender, MONEY, 0.15, ("A", "B")), lender.population())
    best = constrained_optimum(Lender(), MONEY, 0.15, rng=np.random.default_rng(0))
    assert worth == pytest.approx(best.utility, rel=0.05)
    assert fdr == pytest.approx(best.fdr, abs=0.005)


def test_linear_references_weigh_people_by_their_mass_and_truth():
    """Only one order of the cells accepts those above the bound; a line can find it."""
    world = WorldSpec("cells", n_batch=50, n_rounds=2).build(CELLS, 0)
    logistic = logistic_all_labels(world, MONEY, 0.3, ("a", "b"))
    weight = np.concatenate([CELLS.mass * CELLS.good, CELLS.mass * (1 - CELLS.good)]) * 4
    Z = np.column_stack([(CELLS.X - 1.5) / np.std([0, 1, 2, 3]), CELLS.group == "b"])
    model = LogisticRegression(C=1.0, tol=1e-9).fit(
        np.vstack([Z, Z]), np.repeat([1, 0], 4), sample_weight=weight
    )
    decided = logistic.decide(CELLS.X, sensitive_features=CELLS.group)
    assert decided.score == pytest.approx(model.predict_proba(Z)[:, 1], abs=1e-4)


def test_few_people_of_one_outcome():
    table = bent(40)
    one = Table(**{**vars(table), "outcome": (np.arange(40) == 0).astype(np.int8)})
    world = WorldSpec("few", n_batch=10, n_rounds=1).build(one, 0)
    worth, fdr = earned(ceiling(world, MONEY, 0.15), world.population())
    assert worth >= 0
    assert fdr <= 0.15


def test_a_world_that_drifts_has_no_reference():
    spec = WorldSpec("bent", n_batch=50, n_rounds=2, drift={"feature": "x", "spoil": 0.01})
    with pytest.raises(InputError, match="drift"):
        ceiling(spec.build(bent(), 0), MONEY, 0.15)
