"""Strategies by hand, and what they do to groups when people are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from fairchance.core.sampling import fixed_size_draw
from fairchance.core.strategies import (
    EqualGroups,
    FromFunction,
    GroupShare,
    Product,
    ScoreWeighted,
    Strategy,
    Uniform,
    as_strategy,
    check_sizes,
)
from fairchance.errors import InputError
from fairchance.ledger import Program
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.certified.classifier import CertifiedClassifier
from fairchance.people.ids import keyed_bits, round_key

SCORE = np.array([0.0, 0.25, 1.0])
GROUP = np.array([0, 1, 1])
IN_BATCH, IN_EXPLORE = np.array([60.0, 30.0, 10.0]), np.array([30.0, 10.0, 0.0])


def person(strategy: Strategy, X=None) -> list[float]:
    return strategy.person_factor(X, SCORE.copy(), GROUP).tolist()


def group_factor(strategy: Strategy) -> list[float]:
    return strategy.group_factor(IN_BATCH, IN_EXPLORE).tolist()


class ReadsX(Strategy):
    reads_features = True


@pytest.mark.parametrize(
    ("strategy", "factor"),
    [
        (Uniform(), [1, 1, 1]),
        (ScoreWeighted(), [1e-6, 0.25, 1]),
        (ScoreWeighted(beta=0.2), [0.2 + 0.8e-6, 0.4, 1]),
        (ScoreWeighted(beta=1), [1, 1, 1]),
        (ScoreWeighted(floor=0.5), [0.5, 0.5, 1]),
        (GroupShare(), [1e-6, 0.25, 1]),
        (GroupShare(Uniform()), [1, 1, 1]),
        (EqualGroups(), [1, 1, 1]),
        (ScoreWeighted() * EqualGroups(), [1e-6, 0.25, 1]),
        (ScoreWeighted() * ScoreWeighted(floor=0.5), [0.5e-6, 0.125, 1]),
    ],
    ids=repr,
)
def test_person_factor(strategy, factor):
    assert person(strategy) == pytest.approx(factor, rel=1e-12)


@pytest.mark.parametrize(
    ("strategy", "factor"),
    [
        (Uniform(), [1, 1, 1]),
        (ScoreWeighted(), [1, 1, 1]),
        (GroupShare(), [1, 1, 1]),
        # A group that is absent counts as one person, so that g stays positive.
        (GroupShare(reading="product"), [30 / 41, 10 / 41, 1 / 41]),
        (EqualGroups(), [1 / 0.6, 1 / 0.3, 1 / 0.1]),
        (ScoreWeighted() * EqualGroups(), [1 / 0.6, 1 / 0.3, 1 / 0.1]),
        (GroupShare(EqualGroups(), "product"), [30 / 24.6, 10 / 12.3, 1 / 4.1]),
        (EqualGroups() * EqualGroups(), [1 / 0.36, 1 / 0.09, 1 / 0.01]),
    ],
    ids=repr,
)
def test_group_factor(strategy, factor):
    assert group_factor(strategy) == pytest.approx(factor)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_the_score_over_the_share_of_the_group_is_a_product(beta):
    """The paper's g = (β + (1 − β)·f) / P(Z = z)."""
    strategy, f = ScoreWeighted(beta) * EqualGroups(), np.array([0.1, 0.5, 0.9])
    group, counts = np.array([0, 1, 1]), np.array([30.0, 10.0])
    g = strategy.person_factor(None, f, group) * strategy.group_factor(counts, counts)[group]
    assert g == pytest.approx((beta + (1 - beta) * f) / (counts / 40)[group])


def test_scores_are_not_changed_in_place():
    score = SCORE.copy()
    ScoreWeighted(beta=0.5).person_factor(None, score, GROUP)
    assert np.array_equal(score, SCORE)


def test_a_table_of_scores_gives_a_table_of_g():
    table = np.column_stack([SCORE, SCORE[::-1]])
    for strategy in (Uniform(), ScoreWeighted(0.3), GroupShare(), ScoreWeighted() * Uniform()):
        g = strategy.person_factor(None, table, GROUP[:, None])
        by_column = [strategy.person_factor(None, one, GROUP) for one in table.T]
        assert np.array_equal(g, np.column_stack(by_column))


def test_shares_of_the_draw():
    assert GroupShare().group_shares(IN_EXPLORE).tolist() == [0.75, 0.25, 0]
    assert GroupShare().group_shares(np.zeros(2)).tolist() == [0.5, 0.5]  # nobody to draw from
    assert (GroupShare() * EqualGroups()).group_shares(IN_EXPLORE).tolist() == [0.75, 0.25, 0]
    assert (Uniform() * GroupShare()).group_shares(IN_EXPLORE).tolist() == [0.75, 0.25, 0]
    for strategy in (Uniform(), EqualGroups(), GroupShare(reading="product")):
        assert strategy.group_shares(IN_EXPLORE) is None
    with pytest.raises(InputError, match="reading='product'"):
        (GroupShare() * GroupShare()).group_shares(IN_EXPLORE)


def test_reading_features_is_passed_on():
    for reads in (ReadsX() * Uniform(), Uniform() * ReadsX(), GroupShare(ReadsX())):
        assert reads.reads_features
    for blind in (Uniform() * ScoreWeighted(), GroupShare(), EqualGroups()):
        assert not blind.reads_features


def test_a_users_function():
    X = np.array([[1.0], [2.0], [3.0]])
    strategy = as_strategy(lambda X, score, group: X[:, 0] + score + 10 * group)
    assert isinstance(strategy, FromFunction)
    assert strategy.reads_features
    assert person(strategy, X) == [1, 12.25, 14]
    assert person(GroupShare(strategy) * ScoreWeighted(floor=0.5), X) == [0.5, 6.125, 14]


def three(X, score, group, *, base=1.0):
    return base + score


@pytest.mark.parametrize("right", [three, lambda *args: args[1], lambda X, s, z, more=2: s, np.add])
def test_functions_that_can_be_called_with_three_arguments_are_strategies(right):
    assert as_strategy(right) == FromFunction(right)


def by_name(*, X, score, group):
    return score


def no_group(X, score):
    return score


@pytest.mark.parametrize("wrong", [no_group, by_name, lambda X, score, group, more: score])
@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
def test_a_function_of_other_arguments_is_refused_by_name(wrong, kind):
    X = np.linspace(-1, 1, 40)[:, None]
    with pytest.raises(InputError, match=r"\(X, score, group\)") as no:
        kind(strategy=wrong).fit(X, np.arange(40) % 2, accepted=X[:, 0] > 0)
    assert str(no.value).startswith(f"{wrong.__name__}(")
    assert str(no.value).endswith("change its arguments.")


@dataclass(frozen=True)
class NearTheMiddle(Strategy):
    least: float = 0.01

    def person_factor(self, X, score, group):
        return self.least + score * (1 - score)


def test_a_class_of_ones_own_can_go_on_a_ledger_and_a_function_cannot(tmp_path):
    url = f"sqlite:///{tmp_path}/own.db"
    X = np.random.default_rng(0).normal(size=(400, 1))
    start = partial(Program.create, url, X=X[:200], y=X[:200, 0] > 1, accepted=X[:200, 0] > 0)
    in_memory = PartialFeedbackClassifier(strategy=three, random_state=0)
    with pytest.raises(InputError, match="saved"):
        start(classifier=in_memory)
    kept = PartialFeedbackClassifier(strategy=NearTheMiddle(0.05), random_state=0)
    decided = start(classifier=kept, types=[NearTheMiddle]).decide(X[200:])
    program = Program.open(url, types=[NearTheMiddle])
    assert program.classifier.strategy == NearTheMiddle(0.05)
    again = program.verify()
    assert (again.problem, again.n_decisions) == (None, 200)
    assert decided.accepted.any()
    with pytest.raises(InputError, match="NearTheMiddle"):
        Program.open(url).decide(X[:10])


def test_as_strategy():
    assert as_strategy(None) == ScoreWeighted()
    assert as_strategy(one := EqualGroups()) is one
    assert isinstance(Uniform() * EqualGroups(), Product)


@pytest.mark.parametrize("wrong", ["uniform", Uniform, 3])
def test_other_things_are_no_strategy(wrong):
    with pytest.raises(InputError, match=r"strategy.*got "):
        as_strategy(wrong)


@pytest.mark.parametrize("shape", [(2,), (3, 1), ()])
def test_a_function_returns_one_number_a_person(shape):
    strategy = as_strategy(lambda *_: np.ones(shape))
    with pytest.raises(InputError, match=r"\(3,\), got shape \("):
        person(strategy)


@pytest.mark.parametrize(
    ("g", "found"),
    [
        ([1, 0, 2], "1 zero among 3"),
        ([1, -1, -2], "2 negative among 3"),
        ([1, np.nan, 2], "1 NaN among 3"),
        ([np.inf, 1, 2], "1 infinite among 3"),
        ([-np.inf, np.nan, 0], "1 zero, 1 negative, 1 NaN, 1 infinite among 3"),
        ([np.nan] * 3, "3 NaN among 3"),
    ],
)
def test_every_candidate_must_be_reachable(g, found):
    with pytest.raises(InputError, match=rf"got {found} from Uniform"):
        check_sizes(np.array(g, float), Uniform())


def test_positive_sizes_pass():
    check_sizes(np.array([5e-324, 1e308]), Uniform())
    check_sizes(np.empty(0), Uniform())


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan])
def test_beta_is_a_share(wrong):
    with pytest.raises(InputError, match=rf"beta.*got {wrong}"):
        ScoreWeighted(beta=wrong)


@pytest.mark.parametrize("wrong", [0, -0.1, 1.1, np.nan])
def test_floor_is_positive(wrong):
    with pytest.raises(InputError, match=rf"floor.*got {wrong}"):
        ScoreWeighted(floor=wrong)


def test_reading_is_one_of_two():
    with pytest.raises(InputError, match=r"reading.*'quotas'"):
        GroupShare(reading="quotas")


# Group 1 is a quarter of the explore region and has far lower scores.
MEMBERS = np.array([300, 100])
EXPLORED_GROUP = np.repeat([0, 1], MEMBERS)
EXPLORED_SCORE = np.r_[np.linspace(0.5, 0.9, 300), np.linspace(0.05, 0.15, 100)]
ALIKE = np.tile(np.linspace(0.2, 0.8, 100), 4)  # the same scores in both groups
N_DRAW = 42


def expected_counts(strategy: Strategy, score=EXPLORED_SCORE, n_rounds: int = 20) -> np.ndarray:
    """Return Σ π per group, and check that the counts of several rounds are near it."""
    counts = MEMBERS.astype(float)
    size = strategy.person_factor(None, score, EXPLORED_GROUP)
    size = size * strategy.group_factor(counts, counts)[EXPLORED_GROUP]
    shares, drawn = strategy.group_shares(counts), []
    for t in range(n_rounds):
        bits = keyed_bits(np.arange(size.size, dtype=np.uint64), round_key(0, t, 1))
        start = round_key(0, t, 2)
        draw = fixed_size_draw(size, N_DRAW, bits, start, EXPLORED_GROUP, 2, shares)
        drawn.append(np.bincount(EXPLORED_GROUP[draw.drawn], minlength=2))
    expected = np.bincount(EXPLORED_GROUP, draw.probability)
    assert expected.sum() == pytest.approx(N_DRAW)
    # Five standard deviations of a mean of counts, were people drawn independently.
    assert np.mean(drawn, axis=0) == pytest.approx(expected, abs=5 * np.sqrt(N_DRAW / 4 / n_rounds))
    return expected


def test_quotas_give_each_group_its_share():
    assert expected_counts(GroupShare()) == pytest.approx(N_DRAW * MEMBERS / 400)
    assert expected_counts(GroupShare(Uniform())) == pytest.approx(N_DRAW * MEMBERS / 400)


def test_the_literal_product_does_not():
    # g summed over a group is members · mean score · share, so shares enter squared.
    literal = MEMBERS**2 * np.array([0.7, 0.1])
    counts = expected_counts(GroupShare(reading="product"))
    assert counts == pytest.approx(N_DRAW * literal / literal.sum(), rel=1e-4)
    assert counts[1] < 0.1 * N_DRAW * MEMBERS[1] / 400
    alike = expected_counts(GroupShare(reading="product"), ALIKE)
    assert alike == pytest.approx([0.9 * N_DRAW, 0.1 * N_DRAW])


def test_equal_groups_explores_about_as_many_from_each():
    assert expected_counts(EqualGroups()) == pytest.approx([N_DRAW / 2] * 2)
    assert expected_counts(EqualGroups() * ScoreWeighted(), ALIKE) == pytest.approx(
        [N_DRAW / 2] * 2
    )


def test_quotas_within_quotas_are_refused():
    with pytest.raises(InputError, match="within"):
        GroupShare(GroupShare(), reading="product")
