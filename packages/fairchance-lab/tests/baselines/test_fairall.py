"""FairAll as a method: what it keeps, what it reads, and what it says when it cannot go on."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binomtest

pytest.importorskip("jax")

from baselines.playing import check_promises, check_refusals, people, started
from fairchance.errors import InputError
from fairchance_lab.baselines.fairall import FairAll, Schedule
from fairchance_lab.baselines.fairall.columns import Columns
from fairchance_lab.baselines.fairall.method import SCHEDULES, as_schedule
from fairchance_lab.baselines.fairall.training import (
    DivergedError,
    FairAllPeople,
    minibatches,
    padded_width,
)
from fairchance_lab.datasets import load
from fairchance_lab.paper.experiment import paper_experiment

pytestmark = pytest.mark.xdist_group("fairall")

# All tests share it, and with it what was compiled.
SHORT = Schedule(15, 128, 15, 2, reconstruction_draws=2, kl_draws=3)


def method(**options):
    return FairAll.setting("aligned", schedule=SHORT, random_state=0, **options)


def test_it_keeps_what_every_method_keeps():
    check_promises(method())


def test_wrong_parameters_are_named():
    wrong = [
        ("cost", 1.0),
        ("clip", 0.0),
        ("kl_weight", 0.0),
        ("classifier_weight", -1.0),
        ("learning_rate", np.inf),
        ("latent", 5),
        ("latent", True),
        ("schedule", "slow"),
    ]
    check_refusals(method(), wrong)
    for kinds, message in (
        (["real"], " 3"),
        (["real", "real", "odd"], "'odd'.* column 2"),
        (["real", "real", "binary"], "column 2.* binary.* 400"),
        (["real", "real", "count"], "counts"),
    ):
        with pytest.raises(InputError, match=message):
            started(method(columns=kinds))
    with pytest.raises(InputError, match=r"kl_draws.* 0"):
        Schedule(kl_draws=0)


def test_coins_fall_as_often_as_is_logged():
    fitted = started(method())
    X, group, _ = people(3, np.random.default_rng(4))
    many = np.repeat(np.arange(3), 4000)
    batch = fitted.decide(X[many], sensitive_features=group[many])
    p = batch.propensity.reshape(3, 4000)
    np.testing.assert_allclose(p, p[:, :1] * np.ones(4000), rtol=1e-12)
    counts = batch.accepted.reshape(3, 4000).sum(axis=1)
    for count, chance in zip(counts, p[:, 0], strict=True):
        assert binomtest(int(count), 4000, chance).pvalue > 1e-4
        assert binomtest(int(count), 4000, chance**2).pvalue < 1e-4  # a control


@pytest.mark.long
def test_a_round_trains_on_its_own_people_however_late_outcomes_are():
    fitted = started(method())
    rounds = []
    for t in range(3):
        X, group, good = people(240, np.random.default_rng([7, t]))
        batch = fitted.decide(X, sensitive_features=group)
        rounds.append((batch, good))
    sizes = [(int(b.accepted.sum()), int((~b.accepted).sum())) for b, _ in rounds]
    assert len(fitted.trainings_) == 1  # the warm-up: nothing has come since
    for t in (1, 0):  # the second round's outcomes first, then those of the first
        batch, good = rounds[t]
        fitted.observe(batch.ids[batch.accepted], good[batch.accepted])
        X, group, _ = people(240, np.random.default_rng([8, t]))
        sizes.append(None)
        fitted.decide(X, sensitive_features=group)
    # Rejected people of rounds that wait for outcomes count the first time there is anything new.
    second, first = fitted.trainings_[1:]
    assert second.n_labelled == sizes[1][0]
    assert second.n_unlabelled == sum(size[1] for size in sizes[:3])
    assert first.n_labelled == sizes[0][0]
    assert all(np.isfinite(one.kl) for one in fitted.trainings_)

    batch, good = rounds[0]
    name = batch.ids[batch.accepted][:1]
    fitted.correct(name, 1 - good[batch.accepted][:1])
    fitted.decide(X, sensitive_features=group)
    assert fitted.trainings_[-1].n_labelled == sizes[0][0]


def test_weights_are_logged_chances_of_our_own_and_estimates_of_the_past():
    fitted = started(method(clip=0.6))
    X, group, good = people(240, np.random.default_rng(3))
    batch = fitted.decide(X, sensitive_features=group)
    fitted.observe(batch.ids[batch.accepted], good[batch.accepted])
    rows = fitted._labelled()
    weight, clip_rate = fitted._weights(rows)
    own = rows.round > 0
    np.testing.assert_allclose(weight[own], 1 / np.maximum(rows.propensity[own], 0.6))
    assert clip_rate == pytest.approx(np.sum(rows.propensity[own] < 0.6) / len(rows))
    # The past accepted from x0 = −0.4 on: whoever is far above it was surely accepted.
    past = ~own
    sure = past & (rows.X[:, 0] > 1)
    assert np.all(weight[past] <= 20.0)
    assert weight[sure].max() < 1.1 < weight[past & (rows.X[:, 0] < -0.2)].min()

    X, group, good = people(60, np.random.default_rng(1))
    everybody = method().fit(X, good, sensitive_features=group)
    assert np.all(everybody._weights(everybody._labelled())[0] == 1.0)


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("epochs", [0, pytest.param(3, marks=pytest.mark.long)])
def test_any_number_of_groups(n_groups, epochs):
    X, _, good = people(90, np.random.default_rng(0))
    group = None if n_groups == 1 else np.array(["a", "b", "c"])[np.arange(90) % 3]
    schedule = Schedule(epochs, 128, epochs, epochs, reconstruction_draws=2, kl_draws=3)
    fitted = method().set_params(schedule=schedule)
    fitted.fit(X, good, accepted=X[:, 0] > -1, sensitive_features=group)
    columns = fitted._group_columns(np.arange(90) % n_groups)
    assert columns.shape == (90, 0 if n_groups == 1 else 3)
    assert np.all(columns.sum(axis=1) == (0 if n_groups == 1 else 1))
    p = fitted.acceptance_probability(X, sensitive_features=group)
    assert np.all((p > 0) & (p < 1))
    assert p.std() > 0
    assert np.isfinite(fitted.trainings_[0].kl) == (epochs > 0)


def test_networks_that_diverge_say_so_and_keep_what_was_known():
    X, group, good = people(400, np.random.default_rng(0))
    wild = method(learning_rate=1e200)
    with pytest.raises(DivergedError, match="learning_rate"):
        wild.fit(X, good, accepted=X[:, 0] > 0, sensitive_features=group)
    assert issubclass(DivergedError, InputError)

    fitted = started(method())
    X, group, good = people(240, np.random.default_rng(1))
    batch = fitted.decide(X, sensitive_features=group)
    networks = fitted._networks
    fitted.observe(batch.ids[batch.accepted], good[batch.accepted])
    broken = networks.model | {"decoder": [(w * np.nan, b) for w, b in networks.model["decoder"]]}
    fitted._networks = type(networks)(
        networks.plan, broken, networks.policy, networks.state, networks.policy_state
    )
    with pytest.raises(DivergedError, match="FairAll"):
        fitted.decide(X, sensitive_features=group)
    fitted._networks = networks
    assert fitted.decide(X, sensitive_features=group).round == 2


def test_without_jax_everything_else_works_and_one_sentence_says_what_is_missing():
    code = """
import sys
sys.modules["jax"] = None
import numpy as np
import fairchance
from fairchance_lab.baselines.fairall import FairAll
X = np.random.default_rng(0).normal(size=(20, 2))
try:
    FairAll().fit(X, np.arange(20) % 2)
except fairchance.errors.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "FairAll needs jax and optax, which are not installed; "
        "`pip install 'fairchance-lab[deep]'` (in a checkout: "
        "`pip install 'packages/fairchance-lab[deep]'`) installs them.\n"
    )


def test_on_german_credit_the_group_is_outside_x():
    """Sex is a column of the data and the group: networks get it as s alone, as in the original."""
    world = paper_experiment("german").world.build(load("german"), 0)
    past = world.history()
    X, group = past.people.X, past.people.group
    fitted = method().set_params(schedule=Schedule(0, 128, 0, 0))
    fitted.fit(X, past.outcomes, accepted=past.accepted, sensitive_features=group)
    assert fitted._columns.layout.width == X.shape[1] - 1
    turned = X.copy()
    turned[:, -1] = 1 - turned[:, -1]
    other = np.where(group == "male", "female", "male")
    p = fitted.acceptance_probability(X, sensitive_features=group)
    assert np.array_equal(p, fitted.acceptance_probability(turned, sensitive_features=group))
    assert not np.allclose(p, fitted.acceptance_probability(X, sensitive_features=other))


def test_columns_are_read_by_their_kinds():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 200)
    X = np.column_stack(
        [
            5 + 3 * rng.normal(size=200),
            rng.poisson(3, 200),
            np.where(rng.random(200) < 0.3, 7.0, 2.0),
            rng.choice([1.0, 4.0, 9.0], 200),
            10.0 * group,
            np.ones(200),
        ]
    )
    kinds = ["real", "count", "binary", "categorical", "binary", "real"]
    columns = Columns.of(X, group, kinds)
    assert columns.layout.width == 1 + 1 + 1 + 3  # the last two say nothing beyond the group
    assert columns.layout.n_parameters == 7
    read = columns.read(X)
    np.testing.assert_allclose([read[:, 0].mean(), read[:, 0].std()], [0, 1], atol=1e-12)
    np.testing.assert_array_equal(read[:, 1], X[:, 1])
    np.testing.assert_array_equal(read[:, 2], X[:, 2] == 7)
    np.testing.assert_array_equal(read[:, 3:], X[:, 3, None] == [1, 4, 9])
    new = X[:1].copy()
    new[0, 2:4] = 12.0, 5.0
    np.testing.assert_array_equal(columns.read(new)[0, 2:], [1, 0, 0, 0])
    new[0, 1] = 0.5
    with pytest.raises(InputError, match=r"0\.5.* row 0, column 1"):
        columns.read(new)
    guessed = Columns.of(X, group)
    assert guessed.real.tolist() == [0, 1, 3]
    assert guessed.binary.tolist() == [2]
    with pytest.raises(InputError, match="no feature"):
        Columns.of(X[:, 4:], group)


def test_minibatches_hold_everybody_once():
    rng = np.random.default_rng(0)
    n = 401
    names = np.arange(1.0, n + 1)
    rows = minibatches(
        FairAllPeople(names[:, None], -names[:, None], names / 2, names * 2),
        3,
        padded_width(n, 3),
        rng,
    )
    assert rows.x.shape == (3, 256, 1)
    there = rows.there == 1
    assert sorted(rows.x[there][:, 0]) == names.tolist()
    np.testing.assert_array_equal(rows.s[there], -rows.x[there])
    np.testing.assert_array_equal(rows.u[there], rows.x[there][:, 0] / 2)
    np.testing.assert_array_equal(rows.weight[there], rows.x[there][:, 0] * 2)
    assert not any(np.any(column[~there]) for column in rows)
    again = minibatches(FairAllPeople.without_outcomes(rows.x[0], rows.s[0]), 3, 128, rng)
    assert not again.u.any()


def test_schedules_are_named():
    assert as_schedule("published") == Schedule(1200, 128, 50, 1, 3, 50, 100)
    assert as_schedule(SHORT) is SHORT
    quick, published = SCHEDULES["quick"], SCHEDULES["published"]
    assert quick.pretraining_epochs < published.pretraining_epochs
    settings = FairAll.settings
    assert settings["published"]["cost"] == 0.5
    assert settings["aligned"]["cost"] == pytest.approx(500 / 700)


@pytest.mark.long
def test_it_learns_who_is_good():
    """With enough epochs a round, late acceptance follows the outcome it is to foresee."""
    fitted = started(method(columns=None).set_params(schedule=Schedule(100, 128, 50, 30, 3, 5, 10)))
    for t in range(12):
        X, group, good = people(400, np.random.default_rng([11, t]))
        batch = fitted.decide(X, sensitive_features=group)
        fitted.observe(batch.ids[batch.accepted], good[batch.accepted])
    X, group, good = people(4000, np.random.default_rng(12))
    p = fitted.acceptance_probability(X, sensitive_features=group)
    assert p[good == 1].mean() - p[good == 0].mean() > 0.15
    assert np.mean(p * (good - 5 / 7)) > max(0.0, np.mean(good - 5 / 7)) + 0.02
