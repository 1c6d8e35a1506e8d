"""Algorithm 1 as in the released code: our classifier with deviations switched on.

Each deviation overrides a step of ``PartialFeedbackClassifier``; without switches it is that
classifier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.budget import ExploitOnly, FdrBudget
from fairchance.core.coverage import MeanPastScore, SummedAcceptance
from fairchance.core.fairness import RateParity
from fairchance.core.sampling import Draw
from fairchance.core.strategies import Counts, GroupShare
from fairchance.errors import InputError
from fairchance.learners.logistic import ConstrainedLogistic
from fairchance.methods.algorithm1.classifier import PartialFeedbackClassifier
from fairchance.methods.algorithm1.exploration import draw_explored
from fairchance.methods.algorithm1.learning import Learned
from fairchance.people.intake import Batch
from fairchance.simulate.run import Method
from fairchance_lab.experiments.methods import (
    ABLATIONS,
    VARIANTS,
    Setup,
    Variant,
    find_variant,
    fit_to_past,
    make_classifier,
)
from fairchance_lab.experiments.spec import NO_VARIANTS, Variants
from fairchance_lab.paper.released.logistic import ReleasedLogistic

__all__ = ["ReleasedBudget", "ReleasedClassifier", "build_released", "is_released"]


@dataclass(frozen=True)
class ReleasedBudget(FdrBudget):
    """The budget with C5 and C6, for a variant that started some rounds ago, or for an ablation."""

    switches: frozenset[str] = frozenset()
    begun: int = 0
    explores: bool = True

    def _check_constant(self, exploit: float | np.number[Any]) -> None:
        """Allow α itself, which the ablation needs."""
        if not 0 < exploit <= self.alpha:
            raise InputError(
                f"exploit (α_exploit) must be in (0, alpha] = (0, {self.alpha}], got {exploit}."
            )

    def alpha_exploit(self, round: int) -> float:
        """Return α_exploit; with C6 the value of the round before, without a cap."""
        own = round - self.begun
        if "C6" in self.switches and not isinstance(self.exploit, int | float | np.number):
            return float(self.exploit.at(max(1, own - 1), self.alpha))
        return super().alpha_exploit(own)

    def max_fdr(self, round: int) -> float:
        """Return α_exploit + ε; with C6 it may exceed α."""
        if "C6" in self.switches:
            return self.alpha_exploit(round) + self.slack
        return super().max_fdr(round)

    def explore_share(self, round: int) -> float:
        """Return the explored people per exploited person; with C5 α − α_exploit."""
        if not self.explores:
            return 0.0
        if "C5" in self.switches:
            return max(0.0, self.alpha - self.alpha_exploit(round))
        return super().explore_share(round)

    def allot(
        self, round: int, n_exploit: float, carried: float, n_candidates: int
    ) -> tuple[int, float]:
        """Return how many to explore; with C5 nothing is carried over."""
        if "C5" in self.switches:
            return min(math.floor(self.explore_share(round) * n_exploit), n_candidates), 0.0
        return super().allot(round, n_exploit, carried, n_candidates)


@dataclass(frozen=True)
class _WholeQuotas(GroupShare):
    """Quotas that are whole numbers (C7)."""

    quotas: tuple[float, ...] = ()

    def group_shares(self, in_explore: Counts) -> Counts | None:  # noqa: ARG002
        """Return each group's share of all quotas."""
        total = sum(self.quotas)
        return np.array(self.quotas) / total if total else None


class ReleasedClassifier(PartialFeedbackClassifier):
    """The classifier with deviations switched on."""

    switches: frozenset[str] = frozenset()
    _every_round = 2**62  # as the released code, however many variants share an object (C1)

    def switch_on(self, switches: frozenset[str]) -> ReleasedClassifier:
        """Switch deviations on and return the classifier."""
        self.switches = switches
        return self

    def become(self, other: PartialFeedbackClassifier) -> ReleasedClassifier:
        """Continue as another variant, keeping all that was learned (C1)."""
        assert isinstance(self.budget, ReleasedBudget)
        self.budget = replace(self.budget, begun=len(self._rounds))
        self.strategy = other.strategy
        if _is_fair_in_fit(self.switches):
            for learner in self._learners:
                learner.set_params(fairness=other.fairness)
        else:
            self.fairness = other.fairness
            self.thresholds = other.thresholds
        self._news = True
        return self

    @property
    def _begun(self) -> int:
        return self.budget.begun if isinstance(self.budget, ReleasedBudget) else 0

    def _classifier_of_round(self, t: int) -> Learned:
        if t - self._begun == 1 and self._past.decides and self.first_round != "learned":
            past, n_groups = self._past, self._intake.n_groups
            return Learned.following(past.likelihood, n_groups, self.first_round, past.cut)
        return super()._classifier_of_round(t)

    def _learn(self, t: int, *, everywhere: bool = False) -> Learned | None:
        learned = super()._learn(t, everywhere=everywhere or "B7" in self.switches)
        if learned is None or "B9" not in self.switches:
            return learned
        return replace(learned, thresholds=np.full_like(learned.thresholds, 0.5))

    def _explore(
        self,
        t: int,
        batch: Batch,
        explore: NDArray[np.intp],
        score: NDArray[Any],
        n_exploit: float,
        n_explore: int,
    ) -> tuple[Draw, NDArray[np.float64]]:
        if "C7" not in self.switches or not isinstance(self.strategy, GroupShare):
            return super()._explore(t, batch, explore, score, n_exploit, n_explore)
        n_groups = self._intake.n_groups
        candidates = np.bincount(batch.group[explore], minlength=n_groups)
        quotas = np.floor(n_explore * candidates / max(1, candidates.sum()))
        n_places = int(quotas.sum())
        return draw_explored(
            batch,
            explore,
            score,
            n_places,
            _WholeQuotas(quotas=tuple(quotas.tolist())),
            n_groups,
            seed=self._seed,
            round=t,
            n_instead=n_places,
        )


def _smallest_group(setup: Setup) -> int:
    """Return the code of the group with fewest people in S_0."""
    _, counts = np.unique(setup.past.people.group, return_counts=True)
    return int(np.argmin(counts))


def _is_fair_in_fit(switches: frozenset[str]) -> bool:
    """Return whether the fit holds the group constraint, as it must if the cut is fixed."""
    return bool(switches & {"B3", "B4", "B6", "B9"})


def _learner(
    fairness: RateParity | None, setup: Setup, switches: frozenset[str]
) -> ConstrainedLogistic:
    fairness = fairness if _is_fair_in_fit(switches) else None
    if not switches & {"B3", "B4", "B6"}:
        return ConstrainedLogistic(fairness=fairness)
    return ReleasedLogistic(
        fairness=fairness,
        hard="B3" in switches,
        random_start="B4" in switches,
        one_sided="B6" in switches,
        minority=_smallest_group(setup),
        random_state=setup.seed,
    )


def _unfitted(variant: Variant, setup: Setup) -> PartialFeedbackClassifier:
    return make_classifier(
        variant,
        setup.goal,
        setup.options,
        group_as_feature=setup.group_as_feature,
        seed=setup.seed,
    )


def _new(variant: Variant, setup: Setup, switches: frozenset[str]) -> ReleasedClassifier:
    ours = _unfitted(variant, setup)
    assert ours.budget is not None
    options = ours.get_params(deep=False)
    options["budget"] = ReleasedBudget(
        **{part.name: getattr(ours.budget, part.name) for part in fields(ours.budget)},
        switches=switches,
        explores=not isinstance(ours.budget, ExploitOnly),
    )
    if "C2" in switches:
        options["coverage"] = MeanPastScore((ours.coverage or SummedAcceptance()).threshold)
    if ours.learner is None:
        options["learner"] = _learner(ours.fairness, setup, switches)
    if _is_fair_in_fit(switches):
        options |= {"fairness": None, "thresholds": "shared"}
    if "B7" in switches:
        options["weights"] = "none"
    if "C4" in switches:
        options["first_round"] = "learned"
    elif "B9" in switches:
        options["first_round"] = "cut"
    if switches & {"B3", "B9"}:
        options["bounds_in"] = "both"
    classifier = ReleasedClassifier(**options).switch_on(switches)
    fit_to_past(classifier, setup)
    return classifier


def is_released(name: str, variants: Variants = NO_VARIANTS) -> bool:
    """Return whether deviations can be switched on in a method: a variant or an ablation."""
    name = variants[name]["method"] if name in variants else name
    return name.partition("@")[0] in VARIANTS or name in ABLATIONS


def build_released(
    name: str,
    setup: Setup,
    switches: frozenset[str],
    shared: dict[str, Any],
    variants: Variants = NO_VARIANTS,
) -> Method:
    """Return a variant or an ablation of Algorithm 1 with deviations switched on.

    With C1 the paper's variants share one object, which is kept in ``shared``.
    """
    variant = find_variant(name, variants)
    assert variant is not None
    if "C1" not in switches or name not in VARIANTS:
        return _new(variant, setup, switches)
    if "object" not in shared:
        shared["object"] = _new(variant, setup, switches)
        return shared["object"]  # type: ignore[no-any-return]
    classifier: ReleasedClassifier = shared["object"]
    return classifier.become(_unfitted(variant, setup))
