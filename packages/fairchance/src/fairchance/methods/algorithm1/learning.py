"""Step 1 of Algorithm 1: learn f_t from the outcomes that have arrived.

First a likelihood model is fitted to rows weighted so that they represent all applicants in
EXPLOIT_t (the paper's η_w); then the best operating point is chosen on rows that it has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairchance.core.coverage import CoverageRule
from fairchance.core.decisions import Note
from fairchance.core.fairness import RateParity
from fairchance.core.noise import OutcomeNoise
from fairchance.core.saved import saved
from fairchance.core.utility import Accuracy, Utility
from fairchance.errors import InputError
from fairchance.frames import concat
from fairchance.learners.overlooked import Overlooked
from fairchance.learners.thresholds import OperatingPoint, group_thresholds, shared_threshold
from fairchance.learners.wrap import fit_likelihood
from fairchance.methods.algorithm1.policy_log import PolicyLog, per_person
from fairchance.methods.estimator import fits_read_groups
from fairchance.people.columns import Expansion
from fairchance.people.likelihoods import Likelihood, MeanLikelihood
from fairchance.people.store import ApplicantRows

__all__ = ["LabelledRows", "Learned", "LearningRules"]
__all__ += ["capped_share", "effective_sample_size", "learn"]

Floats = NDArray[np.float64]


@saved
@dataclass(frozen=True)
class LearningRules:
    """How f_t is learned; see ``PartialFeedbackClassifier`` for what each choice means."""

    utility: Utility
    rule: CoverageRule
    fairness: RateParity | None
    thresholds: Literal["shared", "per_group"]
    constraints: Literal["joint", "per_group"]
    split: Literal["half", "cross"]
    weights: Literal["acceptance", "none"]
    weight_cap: float | None
    min_outcomes: int | None
    bounds_in: Literal["thresholds", "fit", "both"]
    n_groups: int
    max_fdr: float
    min_selection_rate: float
    noise: OutcomeNoise = OutcomeNoise()  # noqa: RUF009 (it is frozen)
    expansion: Expansion | None = None  # of codes, for the learner
    waiting: tuple[int, ...] | None = None  # rounds that are left out until they are mature
    everywhere: bool = False  # learn outside EXPLOIT_t too
    overlooked: Overlooked = Overlooked()  # noqa: RUF009 (it is frozen)
    void: tuple[int, ...] = ()  # rounds that are left out for good
    fit_reads_groups: bool = False  # then rows without a group of the history are left out

    @classmethod
    def of(cls, classifier: Any, **rules: Any) -> LearningRules:
        """Return the rules of a round: a classifier's options and what depends on the round."""
        return cls(
            utility=Accuracy() if classifier.utility is None else classifier.utility,
            thresholds=classifier.thresholds,
            constraints=classifier.constraints,
            split=classifier.split,
            weights=classifier.weights,
            weight_cap=classifier.weight_cap,
            min_outcomes=classifier.min_outcomes,
            bounds_in=classifier.bounds_in,
            noise=OutcomeNoise() if classifier.noise is None else classifier.noise,
            fit_reads_groups=fits_read_groups(classifier),
            **rules,
        )

    def has_enough(self, own_weight: Floats) -> bool:
        """Return whether thresholds can rest on our own rows alone."""
        enough = self.min_outcomes
        return enough is not None and effective_sample_size(own_weight) >= enough


@saved
@dataclass(frozen=True)
class Learned:
    """f_t: a likelihood, its thresholds, and what they were learned from.

    ``follows`` says how it follows f_0 (``first_round``); it is empty if f_t was learned.
    ``take_up`` is the share of exploited applicants who take the loan, divided by that of explored
    ones: the budget counts loans taken.
    """

    likelihood: Likelihood
    thresholds: Floats
    calibrated: bool
    n_outcomes: int
    effective_sample_size: float
    estimated_fdr: float
    disparity: float
    feasible: bool
    notes: tuple[Note, ...]
    capped_share: float = 0.0
    uncapped_fdr: float = np.nan
    follows: str = ""
    take_up: float = 1.0

    @staticmethod
    def following(past: Likelihood, n_groups: int, follows: str, cut: float) -> Learned:
        """Return f_0 as the classifier of a round; a drawn f_0 accepts for sure from 1 on."""
        return Learned(
            likelihood=past,
            thresholds=np.full(n_groups, {"cut": 0.5, "matched": cut, "drawn": 1.0}[follows]),
            calibrated=False,
            n_outcomes=0,
            effective_sample_size=0.0,
            estimated_fdr=np.nan,
            disparity=np.nan,
            feasible=True,
            notes=(),
            follows=follows,
        )


@dataclass(frozen=True)
class LabelledRows:
    """Labelled rows as learning uses them; a weight of zero leaves a row out.

    ``uncapped`` and ``own_uncapped`` are the weights without ``weight_cap``.
    """

    X: Any
    outcome: NDArray[np.int8]
    group: NDArray[np.intp]
    weight: Floats
    own_weight: Floats
    uncapped: Floats
    own_uncapped: Floats

    @staticmethod
    def of(fold: ApplicantRows, log: PolicyLog, rules: LearningRules) -> LabelledRows:
        """Return the rows of a fold with the weights that rules give them."""
        usable = fold.counted(rules.waiting)
        if rules.void:
            usable &= ~np.isin(fold["round"], rules.void)
        if rules.fit_reads_groups:
            usable &= fold["group"] >= 0
        if not rules.everywhere:
            usable &= log.known(fold, rules.rule)
        own = usable & (fold["round"] > 0)
        every = usable, log.mean_acceptance(fold, own_rounds_only=False)
        ours = own, log.mean_acceptance(fold, own_rounds_only=True) if own.any() else np.ones(1)
        return LabelledRows(
            fold.X,
            # Pending rows have weight zero, unless their round is mature: then they count as bad.
            np.maximum(fold["outcome"], 0),
            np.maximum(fold["group"], 0),
            _inverse(*every, rules, rules.weight_cap),
            _inverse(*ours, rules, rules.weight_cap),
            _inverse(*every, rules, None),
            _inverse(*ours, rules, None),
        )

    @staticmethod
    def joined(parts: list[LabelledRows]) -> LabelledRows:
        """Return several folds as one."""
        return LabelledRows(
            concat([part.X for part in parts]),
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("outcome", "group", "weight", "own_weight", "uncapped", "own_uncapped")
            ),
        )

    def has_both_outcomes(self) -> bool:
        """Return whether rows with a weight have both outcomes."""
        good = self.outcome[self.weight > 0] == 1
        return bool(good.any() and not good.all())


def _inverse(
    used: NDArray[np.bool_], acceptance: Floats, rules: LearningRules, cap: float | None
) -> Floats:
    """Return 1 / acceptance probability up to the cap where used, 0 elsewhere.

    Without a cap, rows that no logged policy would accept represent no applicant and are left out.
    """
    if rules.weights == "none":
        return used.astype(np.float64)
    if cap is not None:
        return np.asarray(used / np.maximum(acceptance, 1 / cap))
    return np.divide(used, acceptance, out=np.zeros(used.shape), where=acceptance > 0)


def capped_share(weight: Floats, uncapped: Floats) -> float:
    """Return the share of rows with a weight whose weight the cap changed; NaN without rows.

    Examples
    --------
    >>> capped_share(np.array([1.0, 3.0, 0.0]), np.array([1.0, 7.5, 0.0]))
    0.5
    """
    used = weight > 0
    return float((weight != uncapped)[used].mean()) if used.any() else np.nan


def effective_sample_size(weight: Floats) -> float:
    """Return (Σw)² / Σw², the number of equally weighted rows worth as much.

    Examples
    --------
    >>> effective_sample_size(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    squares = float(weight @ weight)
    return float(weight.sum()) ** 2 / squares if squares > 0 else 0.0


def learn(
    learners: list[Any], folds: list[ApplicantRows], log: PolicyLog, rules: LearningRules
) -> Learned | None:
    """Learn f_t, or return None while only one outcome is known.

    ``split="half"``: likelihood from the first fold, thresholds from the second. ``"cross"``: each
    fold is scored by the likelihood of the other, thresholds come from both, and the mean of the
    two likelihoods (log-odds) is used. If a fold holds one outcome only, both folds together serve
    both purposes, and a note says so.
    """
    if rules.bounds_in != "thresholds":
        for learner in learners:
            _constrain(learner, rules.noise.recorded_fdr(rules.max_fdr), rules.min_selection_rate)
    parts = []
    for fold in folds:
        log.update(fold, rules.rule, rules.waiting)
        parts.append(LabelledRows.of(fold, log, rules))
    notes: list[Note] = []
    if not all(part.has_both_outcomes() for part in parts):
        parts = [LabelledRows.joined(parts)]
        if not parts[0].has_both_outcomes():
            return None
        notes.append(Note("not_held_out"))
    fits = [
        _fit(learner, part, rules)
        for learner, part in zip(learners, parts, strict=False)
        if part is parts[0] or rules.split == "cross"
    ]
    notes += dict.fromkeys(note for _, said in fits for note in said)
    likelihoods = [likelihood for likelihood, _ in fits]
    held_out = parts[1:] + parts[:1] if rules.split == "cross" else parts[-1:]
    weight, uncapped, calibrated = _held_out_weight(held_out, rules)
    scores, point = _operating_point(likelihoods, held_out, weight, rules)
    if point.missed is not None:
        notes.append(point.missed)
    thresholds = _below_ties(point.thresholds, scores, held_out, weight)
    return Learned(
        likelihoods[0] if len(likelihoods) == 1 else MeanLikelihood.of(tuple(likelihoods)),
        thresholds,
        calibrated,
        int((weight > 0).sum()),
        effective_sample_size(weight),
        rules.noise.true_fdr(point.fdr),
        point.disparity,
        point.feasible,
        tuple(notes),
        capped_share(weight, uncapped),
        rules.noise.true_fdr(_fdr_at(thresholds, scores, held_out, uncapped)),
    )


def _fdr_at(
    thresholds: Floats, scores: list[NDArray[Any]], parts: list[LabelledRows], weight: Floats
) -> float:
    """Return the weighted share of bad among rows that thresholds accept; 0 if there are none."""
    group, outcome = (_together([getattr(p, name) for p in parts]) for name in ("group", "outcome"))
    accepted = weight * (_together(scores) >= per_person(thresholds, group))
    total = float(accepted.sum())
    return float(accepted @ (outcome == 0)) / total if total > 0 else 0.0


def _below_ties(
    thresholds: Floats, scores: list[NDArray[Any]], parts: list[LabelledRows], weight: Floats
) -> Floats:
    """Lower a threshold that equals the lowest score by a few last bits.

    The same applicant may score a last bit lower in another block, and would then be rejected. No
    row scores lower, so none is let in by this; other thresholds lie between scores already.
    """
    score, used = _together(scores), weight > 0
    lowered = thresholds.copy()
    if (thresholds == thresholds[0]).all():
        parts_of: list[tuple[Any, Any]] = [(slice(None), used)]
    else:
        group = np.concatenate([part.group for part in parts])
        parts_of = [(z, used & (group == z)) for z in range(thresholds.size)]
    for z, rows in parts_of:
        lowest = np.min(score, where=rows, initial=np.inf)
        if np.isfinite(lowest) and np.all(thresholds[z] == lowest):
            lowered[z] -= 8 * float(np.spacing(lowest))
    return lowered


def _constrain(learner: Any, max_fdr: float, min_selection_rate: float) -> None:
    """Hand the budget's bounds to a learner that fits under constraints."""
    if "max_fdr" not in learner.get_params():
        raise InputError(
            f"bounds in the fit need a learner with the parameter max_fdr, such as "
            f"ConstrainedLogistic, got {type(learner).__name__}; pass {{option}}='thresholds'.",
            option="bounds_in",
        )
    lowest = min_selection_rate if min_selection_rate > 0 else None
    learner.set_params(max_fdr=max_fdr, min_selection_rate=lowest)


def _fit(
    learner: Any, rows: LabelledRows, rules: LearningRules
) -> tuple[Likelihood, tuple[Note, ...]]:
    """Fit the likelihood, and return it with notes on the fit."""
    # Mean weight 1, so that a penalty means the same however rare acceptance was.
    weight = rows.weight * (np.count_nonzero(rows.weight) / rows.weight.sum())
    overlooked, X = rules.overlooked, rows.X
    if overlooked.values:
        own = rows.own_weight > 0
        overlooked = overlooked.after(X[own], rows.outcome[own])
        X = overlooked.neutral(X)
    likelihood, notes = fit_likelihood(
        learner,
        X,
        rows.outcome,
        weight,
        rows.group,
        rules.n_groups,
        expansion=rules.expansion,
    )
    return overlooked.scored_by(likelihood), (*notes, *overlooked.notes())


def _held_out_weight(
    parts: list[LabelledRows], rules: LearningRules
) -> tuple[Floats, Floats, bool]:
    """Return the weights of held-out rows, with and without the cap.

    They are those of our own logged rows once there are enough (never, if ``min_outcomes`` is
    None), which the third value says.
    """
    own = _together([part.own_weight for part in parts])
    calibrated = rules.has_enough(own)
    names = ("own_weight", "own_uncapped") if calibrated else ("weight", "uncapped")
    weight, uncapped = (_together([getattr(part, name) for part in parts]) for name in names)
    return weight, uncapped, calibrated


def _operating_point(
    likelihoods: list[Likelihood], parts: list[LabelledRows], weight: Floats, rules: LearningRules
) -> tuple[list[NDArray[Any]], OperatingPoint]:
    """Return the scores of held-out rows and the thresholds chosen on these."""
    scores = [
        likelihood.score(part.X, part.group)
        for likelihood, part in zip(likelihoods, parts, strict=True)
    ]
    search = shared_threshold if rules.thresholds == "shared" else group_thresholds
    bounded = rules.bounds_in != "fit"
    point = search(
        _together(scores).astype(np.float64, copy=False),
        _together([part.outcome for part in parts]),
        weight,
        _together([part.group for part in parts]),
        rules.n_groups,
        utility=rules.noise.recorded_utility(rules.utility),
        max_fdr=rules.noise.recorded_fdr(rules.max_fdr) if bounded else 1.0,
        min_selection_rate=rules.min_selection_rate if bounded else 0.0,
        fairness=rules.fairness,
        constraints=rules.constraints,
    )
    return scores, point


def _together(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays joined; a single one without a copy."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
