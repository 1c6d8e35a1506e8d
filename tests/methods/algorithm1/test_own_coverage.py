"""Coverage rules of one's own: they decide as they say, can be kept, and must say what they sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import secondlook as sl
from lab.experiments.test_spec import one_sentence
from secondlook.core.coverage import CoverageRule
from secondlook.errors import InputError


@dataclass(frozen=True)
class BySize(CoverageRule):
    """What ``SummedAcceptance`` does with a full round of ``size`` people."""

    size: int = 60
    needs: ClassVar[str] = "acceptance"

    def round_weight(self, n_people, n_rounds, first_batch):
        return n_people / self.size


def decided(rule):
    """Return a classifier with ten rounds behind it, and the regions of all its people."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    good = (rng.random(1000) < 1 / (1 + np.exp(-1 - X[:, 0]))).astype(int)
    clf = sl.PartialFeedbackClassifier(coverage=rule, random_state=0)
    clf.fit(X[:400], good[:400], accepted=X[:400, 0] > 0.8)
    regions = []
    for rows in np.array_split(np.arange(400, 1000), 10):
        batch = clf.decide(X[rows])
        clf.observe(batch.ids[batch.accepted], good[rows][batch.accepted])
        regions.append(batch.region)
    return clf, np.concatenate(regions)


def test_a_rule_of_ones_own_decides_as_the_same_rule_of_ours():
    _, own = decided(BySize(0.7))
    _, ours = decided(sl.SummedAcceptance(0.7, reference_size=60))
    _, other = decided(sl.SummedAcceptance(0.7, reference_size=600))
    assert np.array_equal(own, ours)
    assert not np.array_equal(own, other)


def test_it_is_kept_by_its_name(tmp_path):
    clf, _ = decided(BySize(0.7, size=61))
    sl.save(clf, tmp_path / "kept")
    with pytest.raises(InputError, match="the type 'BySize'"):
        sl.load(tmp_path / "kept")
    again = sl.load(tmp_path / "kept", types=[BySize])
    assert again.coverage == BySize(0.7, size=61)
    X = np.random.default_rng(1).normal(size=(50, 2))
    assert np.array_equal(again.decide(X).propensity, clf.decide(X).propensity)


@pytest.mark.parametrize(
    ("body", "got"), [({}, "nothing"), ({"needs": "g²"}, "'g²'"), ({"needs": None}, "nothing")]
)
def test_a_rule_says_what_it_sums(body, got):
    def round_weight(self, n_people, n_rounds, first_batch):
        return 1.0

    with pytest.raises(InputError, match=f"'score' or 'g', and Mine says {got}; add") as error:
        type("Mine", (CoverageRule,), {**body, "round_weight": round_weight})
    assert one_sentence(str(error.value))


def test_a_class_between_need_not_say_it_yet():
    between = type("Between", (CoverageRule,), {})
    with pytest.raises(TypeError, match="abstract"):
        between()
    kept = type("Kept", (BySize,), {})
    assert kept.needs == "acceptance"
