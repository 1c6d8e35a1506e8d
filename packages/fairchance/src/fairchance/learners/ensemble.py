"""The default ranking of a certificate: a scorecard and boosted trees, mixed.

Both models learn from applicants whose outcomes are known, and both correct for how the history was
selected. The **scorecard** is a logistic model on clipped and binned columns, fitted together with
the acceptance rates of the past, s₁ = P(accepted | good) and s₀ = P(accepted | bad). With these a
rejected applicant of the history, whom the scorecard calls good with probability p, is good with

    g = p·(1 − s₁) / (p·(1 − s₁) + (1 − p)·(1 − s₀)).

The **trees** see every rejected applicant twice, as good with weight g and as bad with weight
1 − g. The log-odds of both models are mixed, one third scorecard and two thirds trees.

All this holds for a past that selected on the outcome. After a past that selected on features, the
outcomes of its accepted applicants need no correction, and its rejected ones are left out. If it is
unknown which of the two the past was, our own outcomes decide: the rejected are left out unless our
outcomes are clearly worse than those of accepted past applicants with the same features. A history
that ranks our own outcomes the wrong way round is left out.

A certificate holds for any ranking, so nothing here can break it.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold
from sklearn.preprocessing import TargetEncoder
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from fairchance.core.saved import saved
from fairchance.errors import LearningWarning
from fairchance.learners.selection import fit_selected_past
from fairchance.learners.trees import BoostedTrees, EncodedColumn
from fairchance.people.columns import SEVERAL

__all__ = [
    "MixedLikelihood",
    "Scorecard",
    "ScorecardColumn",
    "SelectionAwareEnsemble",
]

Floats = NDArray[np.float64]
Outcomes = NDArray[np.int8]

_SHARED = 2  # applicants with a value, for an encoding; three would cost Adult .03 of the ceiling
_FEW_VALUES = 12  # of a column; each of so many gets a step of its own
_CLIPPED = (0.01, 0.99)  # quantiles: one wild value must not rule the top of the ranking
_INNER = np.arange(1, 10) / 10  # deciles
_L2 = 100.0
_LARGEST_RATE = 0.97  # s₁ and s₀ of a rejected applicant's g
_PRIOR = 10.0  # applicants that the mean outcome counts as, in the encoding of a value
_FOLDS = 5
_TREES: dict[str, Any] = {
    "learning_rate": 0.08,
    "max_leaf_nodes": 8,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
    "max_bins": 63,  # weighted quantiles take most of the time of a fit with 255
    "early_stopping": False,
    "random_state": 0,  # reached only with more than 200,000 rows, which are sampled for bins
}
_FEWEST_FOR_TREES = 20  # applicants of either outcome
_SCORECARD_PART = 1 / 3  # of the mixed log-odds
_FEWEST_TO_ASK = 10  # own outcomes of either kind, before they judge the history
_WORSE = -np.log(2)  # shift of our log-odds that says that the past selected on the outcome
_WRONG_WAY = -2.0  # standard errors below a ranking at random


@saved
@dataclass(frozen=True, eq=False)
class ScorecardColumn:
    """The points of one column: ``slope · clip(x, low, high) + steps[number of cuts ≤ x]``.

    A category is its code, and has a step of its own. ``missing`` is for missing values.
    """

    low: float
    high: float
    slope: float
    cuts: Floats
    steps: Floats
    missing: float

    def points(self, x: Floats) -> Floats:
        """Return the points of each value."""
        points = self.steps[np.searchsorted(self.cuts, x, side="right")]
        if self.slope:
            points = points + self.slope * np.clip(x, self.low, self.high)
        return np.where(np.isnan(x), self.missing, points)


@saved
@dataclass(frozen=True, eq=False)
class Scorecard:
    """Log-odds as a sum of points, column by column."""

    reads_group: ClassVar[bool] = False
    columns: tuple[ScorecardColumn, ...]
    intercept: float

    def log_odds(self, X: Any) -> Floats:
        """Return the log-odds of a good outcome."""
        total = np.full(len(X), self.intercept)
        for column, x in zip(self.columns, np.asarray(X, np.float64).T, strict=True):
            total += column.points(x)
        return total

    def score(self, X: Any, group: Any) -> Floats:  # noqa: ARG002
        """Return the likelihood of a good outcome."""
        return np.asarray(expit(self.log_odds(X)))


@saved
@dataclass(frozen=True, eq=False)
class MixedLikelihood:
    """A scorecard and trees, mixed on the scale of log-odds."""

    reads_group: ClassVar[bool] = False
    scorecard: Scorecard
    trees: BoostedTrees

    def score(self, X: Any, group: Any) -> Floats:  # noqa: ARG002
        """Return the likelihood of a good outcome."""
        mixed = _SCORECARD_PART * self.scorecard.log_odds(X)
        mixed += (1 - _SCORECARD_PART) * self.trees.log_odds(X)
        return np.asarray(expit(mixed))


@dataclass(frozen=True)
class _Bins:
    """How a column enters the scorecard's fit: clipped, with a step at each cut.

    A category has no clipped value, and its steps are one-hot columns.
    """

    category: bool
    low: float
    high: float
    cuts: Floats
    missing: bool

    @staticmethod
    def of(x: Floats, category: bool) -> _Bins:
        present = x[~np.isnan(x)]
        missing = present.size < x.size
        values, counts = np.unique(present, return_counts=True)
        if category:
            # Rare categories have no column, and so the same points.
            often = values[counts >= max(2 * SEVERAL, x.size // 200)]
            return _Bins(True, 0.0, 0.0, often, missing)
        if not values.size:
            return _Bins(False, 0.0, 0.0, values, missing)
        low, high = np.quantile(present, _CLIPPED)
        few = values.size <= _FEW_VALUES
        common = values[counts >= SEVERAL]
        cuts = common[common > values[0]] if few else np.unique(np.quantile(present, _INNER))
        return _Bins(False, float(low), float(high), cuts, missing)

    def expand(self, x: Floats) -> Floats:
        """Return the columns of the fit; NaN becomes the mean later, apart from its own flag."""
        if self.category:
            columns = [(x == value).astype(np.float64) for value in self.cuts]
        else:
            columns = [np.clip(x, self.low, self.high)]
            columns += [np.where(np.isnan(x), np.nan, x >= cut) for cut in self.cuts]
        if self.missing:
            columns.append(np.isnan(x).astype(np.float64))
        return np.column_stack(columns) if columns else np.empty((x.size, 0))

    def column(self, weight: Floats, mean: Floats) -> ScorecardColumn:
        """Return the points that weights of the expanded columns amount to.

        An expanded column f gives ``weight · (f − mean)``.
        """
        of_missing = float(weight[-1]) if self.missing else 0.0
        offset = -float(weight @ mean)
        if self.category:
            k = int(self.cuts.max()) + 1 if self.cuts.size else 0
            steps = np.full(k + 1, offset)
            steps[self.cuts.astype(np.intp)] += weight[: self.cuts.size]
            return ScorecardColumn(0.0, 0.0, 0.0, np.arange(1.0, k + 1), steps, offset + of_missing)
        n = self.cuts.size
        steps = offset + np.append(0.0, np.cumsum(weight[1 : n + 1]))
        at_mean = of_missing * (1 - float(mean[-1])) if self.missing else 0.0
        return ScorecardColumn(self.low, self.high, float(weight[0]), self.cuts, steps, at_mean)


@dataclass(frozen=True)
class _FittedScorecard:
    scorecard: Scorecard
    accepted_good: float
    accepted_bad: float


@saved
class SelectionAwareEnsemble(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scorecard and boosted trees that know how the history was selected.

    Parameters
    ----------
    categorical
        Positions of columns that hold the codes of categories, 0, 1, 2, …
    past_selection
        What the past selected on: ``"features"``, the ``"outcome"``, or ``"unknown"``.
    leaning
        What to assume while that is unknown and too few outcomes of our own are known.

    Attributes
    ----------
    classes_ : the labels of a bad and of a good outcome.
    likelihood_ : the fitted model.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = (rng.random(600) < expit(2 * X[:, 0])).astype(int)
    >>> model = SelectionAwareEnsemble().fit(X[:400], y[:400], rejected=X[400:])
    >>> model.predict_proba([[-2.0, 0.0], [2.0, 0.0]])[:, 1].round(1).tolist()
    [0.1, 0.9]
    """

    def __init__(
        self,
        categorical: tuple[int, ...] = (),
        past_selection: Literal["features", "outcome", "unknown"] = "unknown",
        leaning: Literal["features", "outcome"] = "features",
    ) -> None:
        self.categorical = categorical
        self.past_selection = past_selection
        self.leaning = leaning

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        return tags

    def fit(
        self, X: Any, y: Any, *, rejected: Any = None, from_history: Any = None
    ) -> SelectionAwareEnsemble:
        """Fit to applicants with outcomes.

        Parameters
        ----------
        X, y
            Features, NaN where missing, and outcomes, the larger label good.
        rejected
            Features of applicants that the past rejected, whose outcomes are unknown.
        from_history
            Which rows of ``X`` the past accepted; None means all. The others are our own.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(y)
        labels = np.unique(y)
        if labels.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is "
                f"{type_of_target(y)}."
            )
        # Codes of outcomes are 0 and 1 also if only good ones are known.
        self.classes_ = np.array([0, 1]) if set(labels.tolist()) <= {0, 1} else labels
        outcome = (y == self.classes_[-1]).astype(np.int8)
        past = np.ones(outcome.size, np.bool_) if from_history is None else np.asarray(from_history)
        refused = X[:0] if rejected is None else np.asarray(rejected, np.float64)
        # The folds of encodings depend on the order of rows, and decisions must not.
        order = np.lexsort([past, outcome, *X.T])
        X, outcome, past = X[order], outcome[order], past[order]
        refused = refused[np.lexsort(refused.T)] if len(refused) else refused
        # One thread: several would sum in another order each time, and a ledger repeats fits.
        with threadpool_limits(1):
            self._fit(X, outcome, past, refused)
        return self

    def _fit(self, X: Floats, outcome: Outcomes, past: NDArray[np.bool_], refused: Floats) -> None:
        # Rejections alone do not tell the good from the bad.
        if not past.any() or self._selected_on(X, outcome, past, refused) == "features":
            refused = refused[:0]
        if self._is_reversed(X, outcome, past, refused):
            X, outcome, past, refused = X[~past], outcome[~past], past[~past], refused[:0]
        fitted = self._scorecard(X, outcome, past, refused)
        self.likelihood_: Any = fitted.scorecard
        if min(np.sum(outcome == 1), np.sum(outcome == 0)) >= _FEWEST_FOR_TREES:
            trees = self._trees(X, outcome, refused, fitted)
            self.likelihood_ = MixedLikelihood(fitted.scorecard, trees)

    def predict_proba(self, X: Any) -> Floats:
        """Return the likelihood of a bad and of a good outcome."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        good = self.likelihood_.score(X, np.zeros(len(X), np.intp))
        return np.column_stack([1 - good, good])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the likelier outcome."""
        probability = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(probability, axis=1)])

    def _selected_on(
        self, X: Floats, outcome: Outcomes, past: NDArray[np.bool_], rejected: Floats
    ) -> str:
        """Return what the past selected on, features or the outcome."""
        if np.unique(outcome[past]).size < 2:
            return "outcome"  # only its rejected say who is bad
        if self.past_selection != "unknown":
            return self.past_selection
        if not _can_judge(outcome[~past]):
            return self.leaning
        score = self._scorecard(X, outcome, past, rejected).scorecard.log_odds(X)
        return "outcome" if _shift(score, outcome, ~past) < _WORSE else "features"

    def _is_reversed(
        self, X: Floats, outcome: Outcomes, past: NDArray[np.bool_], rejected: Floats
    ) -> bool:
        """Return whether the history ranks our own outcomes the wrong way round."""
        own = outcome[~past]
        of_two_kinds = np.unique(outcome[past]).size + (len(rejected) > 0) >= 2
        if not of_two_kinds or not _can_judge(own):
            return False
        history = self._scorecard(X[past], outcome[past], past[past], rejected)
        area = _area(history.scorecard.log_odds(X[~past]), own)
        if _standard_errors(area, own) >= _WRONG_WAY:
            return False
        warnings.warn(
            f"The history ranks our own {own.size:,} outcomes the wrong way round (area under the "
            f"curve {area:.2f}), so the ranking leaves it out; check the labels of its outcomes.",
            LearningWarning,
            stacklevel=4,
        )
        return True

    def _scorecard(
        self, X: Floats, outcome: Outcomes, past: NDArray[np.bool_], rejected: Floats
    ) -> _FittedScorecard:
        """Fit the logistic model on clipped, binned columns."""
        together = np.vstack([X, rejected])
        bins = [_Bins.of(x, position in self.categorical) for position, x in enumerate(together.T)]
        parts = [b.expand(x) for b, x in zip(bins, together.T, strict=True)]
        expanded = np.hstack(parts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column may be missing for everyone
            mean, deviation = np.nanmean(expanded, axis=0), np.nanstd(expanded, axis=0)
        mean, deviation = np.nan_to_num(mean), np.nan_to_num(deviation)
        deviation[deviation == 0] = np.inf  # a constant column gets no weight
        scaled = np.nan_to_num((expanded - mean) / deviation)
        labelled, refused = scaled[: len(X)], scaled[len(X) :]
        fit = fit_selected_past(
            labelled[past], outcome[past], refused, labelled[~past], outcome[~past], l2=_L2
        )
        weights, at = fit.coef / deviation, np.cumsum([part.shape[1] for part in parts])[:-1]
        columns = tuple(
            b.column(weight, centre)
            for b, weight, centre in zip(
                bins, np.split(weights, at), np.split(mean, at), strict=True
            )
        )
        return _FittedScorecard(
            Scorecard(columns, fit.intercept), fit.accepted_good, fit.accepted_bad
        )

    def _trees(
        self, X: Floats, outcome: Outcomes, rejected: Floats, fitted: _FittedScorecard
    ) -> BoostedTrees:
        """Fit boosted trees; rejected applicants count as good with g and as bad with 1 − g."""
        g = _soft_labels(fitted, rejected)
        people = np.vstack([X, rejected])
        encoded, columns = self._encodings(people, np.concatenate([outcome, g]))
        seen = np.hstack([people, columns])
        refused = seen[len(X) :]
        n_rejected = len(rejected)
        model = HistGradientBoostingClassifier(
            max_iter=int(np.clip(20 + len(people) / 40, 40, 200)), **_TREES
        )
        model.fit(
            np.vstack([seen, refused]),
            np.concatenate([outcome, np.ones(n_rejected), np.zeros(n_rejected)]),
            np.concatenate([np.ones(outcome.size), g, 1 - g]),
        )
        return BoostedTrees.of(model, encoded)

    def _encodings(
        self, people: Floats, outcome: Floats
    ) -> tuple[tuple[EncodedColumn, ...], Floats]:
        """Return the mean outcomes of many-valued columns, and these columns, cross-fitted."""
        encoded, columns = [], []
        folds = KFold(_FOLDS, shuffle=True, random_state=0)
        for position, x in enumerate(people.T):
            values, counts = np.unique(x[~np.isnan(x)], return_counts=True)
            common = values[counts >= _SHARED]
            often = counts[counts >= _SHARED].sum()
            many = values.size > _FEW_VALUES and often >= people.shape[0] / 2
            if not (many or position in self.categorical) or not common.size:
                continue
            known = np.where(np.isin(x, common), x, np.nan)[:, None]
            encoder = TargetEncoder(target_type="continuous", smooth=_PRIOR)
            column = np.empty((len(people), 1))
            for rows, others in folds.split(people):
                column[others] = encoder.fit(known[rows], outcome[rows]).transform(known[others])
            columns.append(column)
            encoder.fit(known, outcome)
            means = encoder.transform(common[:, None])[:, 0]
            otherwise = float(encoder.transform([[np.nan]])[0, 0])
            encoded.append(EncodedColumn(position, common, means, otherwise))
        return tuple(encoded), np.hstack([np.empty((len(people), 0)), *columns])


def _soft_labels(fitted: _FittedScorecard, rejected: Floats) -> Floats:
    """Return g, the probability that each rejected applicant is good."""
    p = expit(fitted.scorecard.log_odds(rejected))
    if not len(rejected):
        return np.asarray(p)
    s1, s0 = (min(rate, _LARGEST_RATE) for rate in (fitted.accepted_good, fitted.accepted_bad))
    return np.asarray(p * (1 - s1) / (p * (1 - s1) + (1 - p) * (1 - s0)))


def _area(score: Floats, outcome: Outcomes) -> float:
    """Return the chance that a good applicant has a higher score than a bad one."""
    n_good, n_bad = int(np.sum(outcome == 1)), int(np.sum(outcome == 0))
    ranks = rankdata(score)[outcome == 1].sum()
    return float((ranks - n_good * (n_good + 1) / 2) / (n_good * n_bad))


def _can_judge(own: Outcomes) -> bool:
    """Return whether our own outcomes are enough to judge the history."""
    return bool(min(np.sum(own == 1), np.sum(own == 0)) >= _FEWEST_TO_ASK)


def _shift(score: Floats, outcome: Outcomes, own: NDArray[np.bool_]) -> float:
    """Return by how much our own log-odds of good differ from the history's at the same score.

    That is 0 after a past that selected on features, and −log(s₁/s₀) if it did on the outcome.
    """
    features, nobody = np.column_stack([own, score]), np.empty((0, 2))
    fit = fit_selected_past(features, outcome, nobody, nobody, outcome[:0], l2=1.0)
    return float(fit.coef[0])


def _standard_errors(area: float, outcome: Outcomes) -> float:
    """Return how many standard errors an area under the curve is above one half."""
    n_good, n_bad = int(np.sum(outcome == 1)), int(np.sum(outcome == 0))
    return (area - 0.5) / float(np.sqrt((n_good + n_bad + 1) / (12 * n_good * n_bad)))
