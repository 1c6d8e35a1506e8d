"""Methods by name: each runs, and has the settings of its name."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fairchance import (
    Accuracy,
    GroupShare,
    PartialFeedbackClassifier,
    PowerSchedule,
    ScoreWeighted,
    SelectionRateParity,
    SumOfG,
    TruePositiveRateParity,
)
from fairchance.core.budget import ExploitOnly
from fairchance.errors import InputError
from fairchance.methods.options import CLASSIFIERS, PARTIAL, RESEARCH
from fairchance.simulate.populations import Lender
from fairchance.simulate.run import run
from fairchance_lab.baselines.base import CODE, ICML, OURS, PAPER, RELEASED
from fairchance_lab.baselines.fair_clf import FAIR_CLF
from fairchance_lab.datasets import load
from fairchance_lab.experiments import methods
from fairchance_lab.experiments.methods import (
    ABLATIONS,
    ALGORITHM1,
    ASSUMPTIONS,
    BASELINES,
    DEEP,
    METHODS,
    PARITY_CELLS,
    REFERENCES,
    SETS,
    VARIANTS,
    Setup,
    break_even,
    build,
    cell_of_fair_clf,
    check_methods,
    expand_names,
    find_variant,
    label,
    left_out,
    make_classifier,
    options_of,
    values_of,
)
from fairchance_lab.experiments.repetition import run_repetition
from fairchance_lab.experiments.results import COUNTS
from fairchance_lab.experiments.spec import NO_VARIANTS, Experiment, Goal
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.experiment import DEFAULT_METHODS, paper_experiment
from fairchance_lab.paper.published import paper_row, published_table, why_different
from sentences import one_sentence

LENDER = WorldSpec("lender", n_batch=150, n_rounds=3, past=({"rule": "policy"},))


def make_setup(world, options=None, **goal):
    return Setup(world.history(), Goal(**goal), True, 11, options=options or {})


@pytest.fixture(scope="module")
def world():
    return LENDER.build(Lender(), 2)


def after_rounds(name, world, variants=NO_VARIANTS, **setup):
    """Run a method through a world; return it with its decisions."""
    method = build(name, world, make_setup(world, **setup), variants)
    return method, [result.decided for result in run(method, world)]


@pytest.mark.parametrize("name", DEFAULT_METHODS)
def test_every_method_runs_on_a_data_set(name):
    spec = WorldSpec("german", "sex", n_batch=120, n_rounds=3)
    columns = run_repetition(Experiment("x", spec, (name,)), load("german"), 0).columns
    assert set(columns["method"]) == {name}
    assert columns["round"].tolist() == [1, 1, 2, 2, 3, 3]
    assert columns["group"].tolist() == ["female", "male"] * 3
    people = columns["n_people"].reshape(3, 2)
    assert people.sum(axis=1).tolist() == [120] * 3
    for part, whole in (
        ("n_good", "n_people"),
        ("n_accepted", "n_people"),
        ("n_accepted_good", "n_accepted"),
        ("n_accepted_good", "n_good"),
        ("n_explored", "n_accepted"),
        ("n_explored_good", "n_explored"),
        ("n_exploit_region", "n_people"),
    ):
        assert np.all(columns[part] <= columns[whole]), (part, whole)
    assert all(np.all(columns[count] >= 0) for count in COUNTS)
    assert columns["n_accepted"].sum() > 0


@pytest.mark.parametrize("name", ["no-exploration", "alpha-at-once", "fair-clf"])
def test_methods_without_exploration(name, world):
    assert not any(decisions.explored.any() for decisions in after_rounds(name, world)[1])


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_explore(name, world):
    assert any(decisions.explored.any() for decisions in after_rounds(name, world)[1])


def test_alpha_over_the_rounds(world):
    rising = [0.075, 0.075 * 2**0.2, 0.075 * 3**0.2]
    others = ("plain-unweighted", "no-exploration", "fair-clf-schedule")
    want = dict.fromkeys((*VARIANTS, *PARITY_CELLS, *others), rising)
    want |= dict.fromkeys(("alpha-at-once", *map(cell_of_fair_clf, PARITY_CELLS)), [0.15] * 3)
    ladders = {name for name in METHODS if name.startswith("certified")} | {"plug-in"}
    assert set(want) == set(METHODS) - ladders - set(BASELINES)
    for name, alphas in want.items():
        method, _ = after_rounds(name, world)
        assert [record.alpha_exploit for record in method.rounds_] == pytest.approx(alphas), name


def test_weights_of_rows(world):
    weights = {name: after_rounds(name, world)[0].weights for name in (*VARIANTS, *ABLATIONS)}
    assert set(weights.values()) == {"acceptance"}
    unweighted, decided = after_rounds("plain-unweighted", world)
    assert unweighted.weights == "none"
    assert type(unweighted.strategy) is type(after_rounds("plain", world)[0].strategy)
    assert any(decisions.explored.any() for decisions in decided)


def test_fair_variants(world):
    """Fair exploration draws each group by its share of the explore region."""
    for name in VARIANTS:
        method, decided = after_rounds(name, world, options={"fairness_difference": 0.02})
        constraint = method.fairness or getattr(method.learner, "fairness", None)
        assert (constraint is not None) == (name in ("exploit-fair", "both-fair"))
        assert constraint is None or constraint.difference == 0.02
        groups = [batch.applicants.people.group for batch in world.batches()]
        gaps = []
        for decisions, group in zip(decided, groups, strict=True):
            explore, total = ~decisions.exploit, decisions.propensity[~decisions.exploit].sum()
            in_b = group[explore] == "B"
            if total > 0 and 0 < in_b.sum() < in_b.size:
                share = decisions.propensity[explore][in_b].sum() / total
                gaps.append(abs(share - in_b.mean()))
        assert gaps
        by_share = max(gaps) < 1e-9
        assert by_share == (name in ("explore-fair", "both-fair"))


CELLS = {
    "plain": ("none", "shared"),
    "fair-shared-cut": ("cut", "shared"),
    "fair-fit": ("fit", "shared"),
    "per-group-cuts": ("none", "per_group"),
    "exploit-fair": ("cut", "per_group"),
    "fair-fit-per-group-cuts": ("fit", "per_group"),
}


@pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")  # nobody is worth it
@pytest.mark.parametrize("family", [str, cell_of_fair_clf])
def test_cells_of_parity_and_cuts(world, family):
    """Each cell differs from the others in these two choices only."""
    made = {}
    for cell, (parity, cuts) in CELLS.items():
        method, _ = after_rounds(family(cell), world, options={"fairness_difference": 0.02})
        options = method.get_params(deep=False)
        at_cut, learner = options.pop("fairness"), options.pop("learner")
        in_fit = getattr(learner, "fairness", None)
        assert (at_cut is not None, in_fit is not None) == (parity == "cut", parity == "fit")
        assert all(c.difference == 0.02 for c in (at_cut, in_fit) if c is not None)
        assert options.pop("thresholds") == cuts
        last = [record.thresholds for record in method.rounds_[1:]]
        assert any(len(set(thresholds)) > 1 for thresholds in last) == (cuts == "per_group")
        made[cell] = options
    assert all(options == made["plain"] for options in made.values())


def test_one_name_for_all_cells():
    names = expand_names(["parity"])
    assert names == SETS["parity"] == (*CELLS, *map(cell_of_fair_clf, CELLS))
    assert {"plain", "exploit-fair", "fair-clf", "clf-per-group-cuts"} < set(names)
    check_methods(names)


def test_goals_reach_the_methods(world):
    for name in (*VARIANTS, *ABLATIONS):
        method, _ = after_rounds(name, world, alpha=0.2, gain=10.0, loss=70.0)
        assert (method.utility.gain_good, method.utility.gain_bad) == (10.0, -70.0)
        assert method.budget.alpha == 0.2


OPTIONS = {  # with the parameters that they set
    "slack": (0.004, {"budget.slack": 0.004}),
    "reserve": (0.02, {"budget.reserve": 0.02}),
    "min_selection_rate": (0.1, {"budget.min_selection_rate": 0.1}),
    "alpha_exploit": (0.1, {"budget.exploit": 0.1}),
    "alpha_exploit_power": (0.3, {"budget.exploit": PowerSchedule(power=0.3)}),
    "explore": (False, {"budget": ExploitOnly()}),
    "coverage": ("sum-of-g", {"coverage": SumOfG()}),
    "coverage_threshold": (0.7, {"coverage.threshold": 0.7}),
    "strategy": ("group-share", {"strategy": GroupShare()}),
    "strategy_beta": (0.1, {"strategy": ScoreWeighted(0.1)}),
    "learner": ("gradient-boosting", {"learner.random_state": 0}),
    "weights": ("none", {"weights": "none"}),
    "weight_cap": ("none", {"weight_cap": None}),
    "fairness": ("true-positive-rate", {"fairness": TruePositiveRateParity()}),
    "thresholds": ("per-group", {"thresholds": "per_group"}),
    "split": ("cross", {"split": "cross"}),
    "constraints": ("per-group", {"constraints": "per_group"}),
    "coverage_reference_size": (50, {"coverage.reference_size": 50}),
    "min_outcomes": ("none", {"min_outcomes": None}),
    "first_round": ("learned", {"first_round": "learned"}),
    "exploration": ("coins", {"exploration": "coins"}),
    "bounds_in": ("fit", {"bounds_in": "fit"}),
    "maturity": (2, {"maturity": 2}),
    "group_mode": ("blind", {"group_mode": "blind"}),
    "utility": ("accuracy", {"utility": Accuracy()}),
}


def parameter(classifier, path):
    for name in path.split("."):
        classifier = getattr(classifier, name)
    return classifier


@pytest.mark.parametrize(("key", "value", "want"), [(k, *v) for k, v in OPTIONS.items()])
def test_options_reach_the_classifier(key, value, want):
    """All else stays as it is without the option."""
    plain, given = ALGORITHM1["plain"], make_classifier(ALGORITHM1["plain"], Goal(), {key: value})
    for path, expected in want.items():
        assert parameter(given, path) == expected
    without = make_classifier(plain, Goal(), {}).get_params(deep=False)
    changed = {name for name, v in given.get_params(deep=False).items() if v != without[name]}
    assert changed == {path.partition(".")[0] for path in want}


def test_every_parameter_of_the_classifier_is_an_option():
    """Except those that describe the data, and what the goal and the repetition set."""
    made = {"budget", "checks", "missing_values", "pos_label", "random_state"}
    assert {*PartialFeedbackClassifier().get_params()} - made <= {*CLASSIFIERS[PARTIAL], *RESEARCH}


@pytest.mark.parametrize(
    ("name", "given", "taken"),
    [
        ("plain", {"fairness_difference": 0.1}, {}),
        ("exploit-fair", {"fairness_difference": 0.1}, {"fairness_difference": 0.1}),
        ("exploit-fair", {"thresholds": "shared"}, {}),  # its own option defines it
        ("explore-fair", {"strategy": "uniform", "strategy_beta": 0.2}, {"strategy_beta": 0.2}),
        ("no-exploration", {"strategy": "uniform", "slack": 0.0}, {"slack": 0.0}),
        ("alpha-at-once", {"alpha_exploit": 0.1, "alpha_exploit_power": 0.3, "reserve": 0.0}, {}),
        ("plain-unweighted", {"weight_cap": 5}, {}),
        ("fair-clf", {"coverage": "sum-of-g", "bounds_in": "fit"}, {"bounds_in": "fit"}),
        ("plain@0.1", {"alpha_exploit": 0.05, "weight_cap": 5}, {"weight_cap": 5}),
    ],
)
def test_a_method_takes_the_options_that_have_an_effect_on_it(name, given, taken):
    variant = find_variant(name)
    own = options_of(variant, Goal(), {})
    assert options_of(variant, Goal(), given) == own | taken
    make_classifier(variant, Goal(), given)


def test_paper_text_sets_exactly_the_papers_choices():
    """Explicit keys come first, and what has no effect on a method is left out."""
    text = {"paper_text": True}
    for name in VARIANTS:
        ours, paper = (make_classifier(ALGORITHM1[name], Goal(), g) for g in ({}, text))
        changed = {"bounds_in": "fit", "min_outcomes": None, "coverage": SumOfG()}
        changed |= {"weight_cap": None, "first_round": "cut"}
        if name in ("explore-fair", "both-fair"):
            changed["strategy"] = GroupShare(reading="product")
        if name in ("exploit-fair", "both-fair"):  # parity in the fit, and one cut for all
            changed |= {"fairness": None, "thresholds": "shared", "learner": paper.learner}
            assert paper.learner.fairness == ours.fairness
        assert paper.get_params(deep=False) == ours.get_params(deep=False) | changed
    plain = options_of(ALGORITHM1["plain"], Goal(), text | {"weight_cap": 5, "paper_text": False})
    assert plain == {"weight_cap": 5}
    given = text | {"coverage": "mean-past-score", "weights": "none"}
    expected = given | {"bounds_in": "fit", "min_outcomes": "none", "first_round": "cut"}
    del expected["paper_text"]
    assert options_of(ALGORITHM1["plain"], Goal(), given) == expected
    fair_clf = options_of(ALGORITHM1["fair-clf"], Goal(), text)
    assert fair_clf == FAIR_CLF | {
        "alpha_exploit": 0.15,
        "bounds_in": "fit",
        "fairness": "selection-rate",
        "fairness_in": "fit",
    }
    per_group = options_of(ALGORITHM1["exploit-fair"], Goal(), text | {"thresholds": "per-group"})
    assert per_group["thresholds"] == "per-group"


def test_variants_have_options_of_their_own(world):
    """They come before those of the experiment, and may replace those of the method."""
    variants = {"mine": {"method": "exploit-fair", "thresholds": "shared", "weight_cap": 20}}
    method, _ = after_rounds("mine", world, variants, options={"weight_cap": 5, "slack": 0.0})
    assert (method.thresholds, method.weight_cap, method.budget.slack) == ("shared", 20, 0.0)
    assert isinstance(method.fairness, SelectionRateParity)
    assert label("mine", variants) == "mine"
    wrong = {"mine": {"method": "greedy-aligned"}}
    for names, given in ((("mine",), wrong), (("plain",), {"plain": {"method": "plain"}})):
        with pytest.raises(InputError, match=r"\[variants\.(mine|plain)\]") as error:
            check_methods(names, given)
        one_sentence(error)


def test_variant_with_constant_alpha_exploit(world):
    method, _ = after_rounds("explore-fair@0.12", world)
    assert [record.alpha_exploit for record in method.rounds_] == [0.12] * 3
    plain, _ = after_rounds("explore-fair", world)
    assert type(method.strategy) is type(plain.strategy)
    assert label("explore-fair@0.12") == "Algorithm 1, fair exploration, α_exploit = 0.12"


OWN = """
import numpy as np
from fairchance.core.decisions import Decisions

SETUPS = []

class AcceptAll:
    def decide(self, X, *, sensitive_features=None, ids=None):
        yes = np.ones(len(X), bool)
        return Decisions(np.arange(len(X)), yes, yes, yes * 1.0, yes * 1.0, 1)

    def observe(self, ids, outcomes):
        pass

def make(setup):
    SETUPS.append(setup)
    return AcceptAll()
"""


def test_users_own_method(tmp_path, monkeypatch):
    (tmp_path / "own_method_of_a_test.py").write_text(OWN)
    monkeypatch.syspath_prepend(str(tmp_path))
    name = "own_method_of_a_test:make"
    columns = run_repetition(Experiment("x", LENDER, (name, "plain")), Lender(), 3).columns
    own_rows = columns["method"] == name
    assert np.array_equal(columns["n_accepted"][own_rows], columns["n_people"][own_rows])
    assert np.array_equal(columns["n_good"][own_rows], columns["n_good"][~own_rows])
    import own_method_of_a_test as own  # noqa: PLC0415 (written above)

    (setup,) = own.SETUPS
    assert np.isnan(setup.past.outcomes[~setup.past.accepted]).all()
    assert setup.goal == Goal()
    assert label(name) == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plian", "'plian'.* plain, .*module:function"),
        ("explore-fair@", "'explore-fair@'"),
        ("fair-clf@0.1", "'fair-clf@0.1'"),
        ("explore-fair@much", "explore-fair@much"),
        ("explore-fair@0.15", r"\(0, 0.15\).* 0.15"),
        ("no_such_module_at_all:f", "no_such_module_at_all.* module:function"),
        ("math:no_such_function", "no_such_function.* module:function"),
    ],
)
def test_an_unknown_method_is_refused_in_one_sentence(world, name, message):
    with pytest.raises(InputError, match=message) as error:
        build(name, world, make_setup(world))
    one_sentence(error)


def test_labels_are_unique():
    assert len({label(name) for name in DEFAULT_METHODS}) == len(DEFAULT_METHODS)


@pytest.mark.parametrize("name", [":f", ".x:f", "os:path"])
def test_what_is_no_function_of_a_setup_is_refused_in_one_sentence(world, name):
    with pytest.raises(InputError) as error:
        build(name, world, make_setup(world))
    assert name in one_sentence(error)


QUICK = [name for name in BASELINES if name not in DEEP]
SPEC = WorldSpec("lender", n_batch=200, n_rounds=2, past=({"rule": "policy"},))


@pytest.fixture(scope="module")
def baseline_world():
    return SPEC.build(Lender(), 5)


def setup_of(baseline_world, seed=3, **goal):
    return Setup(
        baseline_world.history(), Goal(**goal), True, seed, n_rounds=baseline_world.n_rounds
    )


def decisions(name, baseline_world, setup):
    return [result.decided for result in run(build(name, baseline_world, setup), baseline_world)]


@pytest.mark.parametrize("name", QUICK)
def test_seeds_repeat_runs_and_outcomes_of_the_rejected_change_nothing(name, baseline_world):
    setup = setup_of(baseline_world)
    first = decisions(name, baseline_world, setup)
    past = setup.past
    lies = np.where(past.accepted, past.outcomes, 1.0)
    lied = replace(setup, past=replace(past, outcomes=lies))
    for again in (decisions(name, baseline_world, setup), decisions(name, baseline_world, lied)):
        for first_decisions, repeated in zip(first, again, strict=True):
            assert first_decisions.accepted.tolist() == repeated.accepted.tolist()
            assert np.array_equal(first_decisions.propensity, repeated.propensity, equal_nan=True)


@pytest.mark.parametrize("name", QUICK)
def test_propensities_are_probabilities_of_acceptance(name, baseline_world):
    """Over a large batch, accepted minus propensity has mean 0 and binomial variance."""
    method = build(name, baseline_world, setup_of(baseline_world))
    for _ in run(method, baseline_world):
        pass
    rng = np.random.default_rng(1)
    people = Lender().draw(6000, rng)
    X = (people.X - people.X.mean(axis=0)) / people.X.std(axis=0)
    batch = method.decide(X, sensitive_features=people.group)
    p = batch.propensity
    known = np.isfinite(p)
    assert known.all() or not type(method).propensity_known
    assert known.mean() > 0.05
    assert np.all((p[known] >= 0) & (p[known] <= 1))
    surplus, spread = (batch.accepted - p)[known].sum(), np.sqrt((p * (1 - p))[known].sum())
    assert abs(surplus) <= 4.5 * spread + 1e-9
    assert not batch.accepted[p == 0].any()
    assert batch.accepted[p == 1].all()
    asked = method.acceptance_probability(X, sensitive_features=people.group)
    assert np.all((asked >= 0) & (asked <= 1))
    assert asked[known] == pytest.approx(p[known], abs=1e-9)


def test_unknown_propensities_are_nan():
    unknown = {name for name in QUICK if name.startswith("plot")}
    for name in QUICK:
        kind = methods._baseline_names()[name][0].kind
        assert kind.propensity_known == (name not in unknown)


def test_aligned_costs_are_at_the_break_even_point(baseline_world):
    assert break_even(Goal()) == pytest.approx(5 / 7)
    for name in QUICK:
        method = build(name, baseline_world, setup_of(baseline_world, gain=300.0, loss=100.0))
        costs = [
            getattr(method, option)
            for option in ("cutoff", "cost", "threshold")
            if hasattr(method, option)
        ]
        if name.endswith("-aligned"):
            assert costs == [0.25] or (method.gain, method.loss) == (300.0, 100.0)
        elif name.endswith(("-published", "-icml")):
            assert costs != [0.25]


def test_setup_reaches_the_method(baseline_world):
    setup = setup_of(baseline_world, seed=17)
    assert build("epsilon-greedy-aligned", baseline_world, setup).horizon == 2
    assert build("wei-finite-aligned", baseline_world, setup).horizon == 2
    assert build("bechavod-aligned", baseline_world, setup).n_rounds == 2
    assert build("greedy-aligned", baseline_world, setup).random_state == 17
    assert build("greedy-aligned", baseline_world, setup).group_as_feature
    # Kilbertus' policies use groups only in their penalty.
    n_features = setup.past.people.X.shape[1]
    assert build("kilbertus-aligned", baseline_world, setup).coef_.size == n_features
    assert build("kilbertus-icml", baseline_world, setup).coef_.size == n_features + 1
    rejecting = replace(setup, past_policy=lambda X: np.zeros(len(X)))
    method = build("frozen-past", baseline_world, rejecting)
    X, group = setup.past.people.X, setup.past.people.group
    assert not method.accepts(X, sensitive_features=group).any()


@pytest.mark.parametrize("options", [{}, {"paper_text": True}, {"bounds_in": "fit"}])
def test_opt_offline_bounds_its_fit_where_the_text_is_asked_for(baseline_world, options):
    setup = replace(setup_of(baseline_world), options=options)
    place = build("opt-offline", baseline_world, setup).bounds_in
    assert place == ("fit" if options else "thresholds")


def test_every_setting_has_a_label():
    for base in ("greedy", "epsilon-greedy", "random-2", "random-5", "thompson", "kilbertus"):
        assert {f"{base}-published", f"{base}-aligned"} <= set(BASELINES)
    assert "kilbertus-icml" in BASELINES
    assert len({label(name) for name in (*METHODS, *REFERENCES)}) == len({*METHODS, *REFERENCES})


def test_where_values_come_from():
    """What the papers' and authors' code says, listed by hand; everything else is ours."""
    for name in BASELINES:
        values = values_of(name)
        assert {"random_state", "horizon", "group_as_feature"}.isdisjoint(values)
        assert ("the experiment" in {source for _, source in values.values()}) == (
            name.endswith("-aligned")
        )
    icml = values_of("kilbertus-icml")
    stated = {"cost": 0.6, "batch_size": 128, "steps": 128, "learning_rate": 0.01}
    stated |= {"family": "logistic", "learn_from": "recent", "parity": "demographic"}
    assert {key: value for key, (value, s) in icml.items() if s == ICML} == stated
    released = {key: value for key, (value, s) in icml.items() if s == RELEASED}
    assert released == {"penalty": 0.5, "blind": False}
    compas = {"cost": 0.6, "learning_rate": 0.1, "batch_size": 64, "epochs": 40, "blind": True}
    for name, cost in (("kilbertus-published", CODE), ("kilbertus-semi-aligned", "the experiment")):
        values = values_of(name)
        for key, value in compas.items():
            assert values[key] == (value, CODE) or (key == "cost" and values[key][1] == cost)
        assert values["clip"] == (0.01, OURS)
    assert values_of("kilbertus-semi-published")["family"] == ("semi", CODE)
    assert values_of("yang-aligned")["min_outcomes"] == (150.0, CODE)
    assert values_of("epsilon-greedy-published")["epsilon"] == (0.2, CODE)
    assert values_of("random-2-published")["epsilon"] == (0.02, OURS)
    assert values_of("fairall-published")["schedule"] == ("published", CODE)
    assert values_of("fairall-quick-published")["schedule"] == ("quick", OURS)
    assert values_of("plot-network-aligned")["model"] == ("network", CODE)


def test_sources_name_parameters():
    for name in BASELINES:
        kind = methods._baseline_names()[name][0].kind
        for setting, sources in kind.sources.items():
            listed = [parameter for names in sources.values() for parameter in names]
            assert setting in kind.settings
            assert len(set(listed)) == len(listed)
            assert set(listed) <= set(kind().get_params())


def test_sets_of_methods():
    every = expand_names(["all"])
    assert {*METHODS, *REFERENCES} - {*every} <= {*DEEP}
    assert {*expand_names(["not-deep"])} == {*METHODS, *REFERENCES} - {*DEEP}
    assert {*expand_names(["baselines"])} == {*BASELINES} - {*DEEP}
    assert expand_names(["plain", "not-deep"])[0] == "plain"
    assert len(expand_names(["all", "not-deep"])) == len(every)
    quick = expand_names(DEEP, quick=True)
    assert len(quick) == len(DEEP) > 0
    assert all("quick" in name for name in quick)
    assert expand_names(["plain"], quick=True) == ("plain",)


def test_deep_methods_without_their_extra(monkeypatch):
    assert left_out() == "" or "fairchance-lab[deep]" in left_out()
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"fairall-aligned.* jax.* optax.*\[deep\]"):
        check_methods(["fairall-aligned"])
    check_methods(["greedy-aligned"])
    assert left_out().startswith("Left out: fairall-published, fairall-aligned, which needs jax")


def test_assumptions():
    assert {"extrapolation-aligned", "fuzzy-augmentation-published"} <= set(ASSUMPTIONS)
    assert all(text.endswith(".") for text in ASSUMPTIONS.values())
    assert "greedy-aligned" not in ASSUMPTIONS


@pytest.mark.parametrize("key", ["german_gender", "adult_race", "adult_gender"])
def test_every_row_of_the_paper_has_a_method_and_a_reason(key):
    names = (*METHODS, *REFERENCES)
    experiment = {"published": key, "world": {}, "switches": [], "classifier": {}}
    for row in published_table(key):
        beside = [name for name in names if paper_row(name) == row]
        assert beside, row
        for name in beside:
            assert 10 < len(why_different(experiment, name)) < 160, name
    assert why_different(experiment, "greedy-aligned") == ""
    icml, aligned = (why_different(experiment, f"kilbertus-{s}") for s in ("icml", "aligned"))
    assert icml != aligned


def test_aligned_costs_earn_more_on_german_credit():
    """Compare with wide bands around the numbers of a second implementation."""
    names = ("greedy-published", "greedy-aligned", "frozen-past")
    experiment = replace(paper_experiment("german"), methods=names)
    table = load("german")
    runs = [run_repetition(experiment, table, number) for number in range(3)]
    accepted, good = (
        sum(result.count(f"n_{name}").sum(axis=(0, 2, 3, 4)) for result in runs)
        for name in ("accepted", "accepted_good")
    )
    revenue = (200 * good - 500 * (accepted - good)) / (3 * 39 * 1000)
    fdr = 1 - good / accepted
    assert -2 < revenue[0] < 5
    assert 9.5 < revenue[1] < 14.5
    assert 0.20 < fdr[1] < 0.25 < fdr[0] < 0.30
    assert revenue[0] < revenue[2] < revenue[1]


DESCRIPTIONS = Path(__file__).parents[4] / "docs" / "methods.md"


@pytest.mark.parametrize(
    "name",
    [
        "epsilon-greedy-published",
        "kilbertus-published",
        "kilbertus-icml",
        "bechavod-published",
        "yang-published",
        "plot-network-published",
        "fairall-published",
    ],
)
def test_sources_are_shown_in_the_description(name):
    def cell(*sources):
        chosen = [(key, value) for key, (value, s) in values_of(name).items() if s in sources]
        words = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in chosen]
        return ", ".join(words) or "–"

    row = f"| `{name}` | {cell(PAPER, CODE)} | {cell(ICML)} | {cell(RELEASED)} | {cell(OURS)} |"
    assert row in DESCRIPTIONS.read_text(encoding="utf-8").splitlines(), row


def test_every_method_is_described():
    text = DESCRIPTIONS.read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z0-9*-]+)`", text))
    ends = tuple(f"-{setting}" for setting in ("published", "aligned", "icml"))
    for name in (*METHODS, *REFERENCES):
        family = next((name.removesuffix(end) for end in ends if name.endswith(end)), None)
        shown = {name} if family is None else {f"{family}-*", f"{family.partition('-')[0]}-*"}
        assert shown & named, name
