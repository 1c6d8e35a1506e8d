"""How a policy would have done on logged decisions, and what the log cannot say about it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from fairchance.audit.bounds import (
    cover,
    difference_bounds,
    fdr_bounds,
    mean_bounds,
    profit_bounds,
    round_starts,
)
from fairchance.audit.estimates import (
    DEFAULT,
    MEASURES,
    SUMS,
    estimators,
    fit_bad,
    named,
    row_sums,
    standard_error,
)
from fairchance.audit.log import DecisionLog, GroupColumn
from fairchance.audit.policies import PolicyChances, chances
from fairchance.audit.rates import Judgement, group_errors, judge_ends
from fairchance.core.utility import Accuracy, Utility
from fairchance.errors import InputError
from fairchance.frames import to_frame
from fairchance.notebook import Displayed
from fairchance.words import audits as words

__all__ = ["NEGLIGIBLE", "SMALL", "Diagnostics", "Estimate", "Evaluation", "Gap", "Measured"]
__all__ += ["Pending", "Sensitivity", "added_profit", "check_log", "error_of_groups", "evaluate"]
__all__ += ["find_measured", "gap_between", "hardly_covered", "notes_on", "usable_rows"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]
Pending = Literal["cut", "worst"]

SMALL = 10  # known outcomes below which a group is too small
_HARDLY = 50.0  # π/p above which outcomes must be many to cover an applicant
_NEEDED = 100.0  # expected outcomes of such applicants
_LEAST_ESTIMATED = 0.05  # probability that covers anyone, if it is estimated
NEGLIGIBLE = 0.01  # of a policy's acceptances that may be uncovered
_LARGEST_GAMMA = 1000.0


@dataclass(frozen=True)
class Estimate:
    """One estimator's answer.

    Attributes
    ----------
    value, standard_error
        The estimate, and its standard error.
    """

    value: float
    standard_error: float


@dataclass(frozen=True)
class Measured:
    """What a log says about one measure of a policy, for all applicants or for a group.

    Attributes
    ----------
    measure
        ``"selection_rate"`` (of all applicants), ``"false_discovery_rate"`` (bad among loans taken)
        or ``"profit"``, what accepting earns over rejecting, per applicant; a loan that is not
        taken earns 0.
    attribute, group
        The protected attribute and its value; empty for all applicants.
    value
        The default estimate; NaN if the log does not identify it, or the group is too small.
    low, high
        An interval that is right at all times at once; NaN if there is none.
    least, most
        The estimate if all that the log does not cover were as favourable, and as unfavourable, as
        possible, in the order of numbers.
    estimates
        The answers of all estimators, by name.
    n_people, n_outcomes
        Number of applicants, and of known outcomes that the policy's acceptances rest on.
    reason
        Why there is no value or no interval: ``"no_complete_round"``, ``"accepts_none"``,
        ``"not_identified"``, ``"too_few_people"`` or ``"too_few_outcomes"`` of a group,
        ``"contradiction"`` (no value fits all rounds, so applicants or the policy must have
        changed); empty otherwise.
    """

    measure: str
    attribute: str
    group: str
    value: float
    low: float
    high: float
    least: float
    most: float
    estimates: Mapping[str, Estimate]
    n_people: int
    n_outcomes: int
    reason: str = ""

    @property
    def possible(self) -> tuple[float, float]:
        """The interval, which allows for chance, widened by what the log does not cover."""
        lows, highs = (self.low, self.least), (self.high, self.most)
        return (
            min((end for end in lows if not math.isnan(end)), default=math.nan),
            max((end for end in highs if not math.isnan(end)), default=math.nan),
        )


@dataclass(frozen=True)
class Gap:
    """How far a measure of the groups of an attribute is apart.

    Attributes
    ----------
    attribute, measure
        The attribute and the measure.
    difference, ratio
        Largest minus smallest, and smallest over largest, as fairlearn says; NaN with fewer than
        two values, and the ratio of what may be negative always.
    difference_low, difference_high, ratio_low, ratio_high
        Intervals that are right at all times, from those of all groups that have one; NaN with
        fewer than two.
    """

    attribute: str
    measure: str
    difference: float
    difference_low: float
    difference_high: float
    ratio: float
    ratio_low: float
    ratio_high: float


@dataclass(frozen=True)
class Diagnostics:
    """How well a log covers a policy.

    Attributes
    ----------
    effective_sample_size
        (ΣAw)² / Σ(Aw)², the number of equally weighted outcomes that would say as much.
    largest_weight
        The largest w = π/p of an accepted applicant who took the loan.
    hardly_covered
        Share of the policy's acceptances that the log hardly covers (``uncovered``).
    withdrawn
        Accepted applicants with an outcome never to be known; they count as bad in estimates, and
        as the worst case in each bound.
    not_taken
        Accepted applicants who did not take the loan.
    left_out
        Applicants that the policy says nothing about, as their features are erased; they count as
        the worst case in each bound, and not in estimates.
    """

    effective_sample_size: float
    largest_weight: float
    hardly_covered: float
    withdrawn: int
    not_taken: int
    left_out: int


@dataclass(frozen=True)
class Sensitivity:
    """How strong hidden selection would have to be to overturn a finding.

    If the probabilities are estimated, something that the log does not show may have decided, too.
    Γ bounds it: the true odds of acceptance of each applicant are within a factor Γ of those
    estimated.

    Attributes
    ----------
    keeps
        The finding: whether the policy keeps α.
    gamma
        The smallest Γ with which the data could say the opposite; infinite if none can.
    ranges
        The false discovery rates that are possible, by Γ.
    """

    keeps: bool
    gamma: float
    ranges: Mapping[float, tuple[float, float]]


@dataclass(frozen=True)
class Evaluation(Displayed):
    """How a policy would have done on logged decisions.

    Attributes
    ----------
    policy
        Its name.
    measured
        A ``Measured`` for each measure: of all applicants, then of each group.
    gaps
        A ``Gap`` for each attribute and measure.
    diagnostics
        How well the log covers the policy.
    sensitivity
        What hidden selection could do, if probabilities are estimated and α is given.
    first_round, last_round
        The rounds used.
    n_people, n_outcomes
        Number of applicants and of known outcomes used.
    alpha
        The bound on mistakes; None if none was given.
    confidence
        Probability that all intervals of one measure are right at all times, together.
    assumptions
        What must hold for the intervals, as codes (``words.audits.assumption``).
    backend
        The kind of frame that the log came in.
    shock
        σ of the log.
    """

    policy: str
    measured: tuple[Measured, ...]
    gaps: tuple[Gap, ...]
    diagnostics: Diagnostics
    sensitivity: Sensitivity | None
    first_round: int
    last_round: int
    n_people: int
    n_outcomes: int
    alpha: float | None
    confidence: float
    assumptions: tuple[str, ...]
    backend: str
    shock: float = 0.0

    def of(self, measure: str, group: str = "", attribute: str = "") -> Measured:
        """Return one measure, of all applicants or of a group.

        Parameters
        ----------
        measure
            Its name.
        group, attribute
            The group, and its attribute if several have a value of that name.
        """
        found: Measured = find_measured(self.measured, measure, group, attribute)
        return found

    @property
    def identified(self) -> bool:
        """Whether the log covers the policy."""
        return self.diagnostics.hardly_covered <= NEGLIGIBLE

    @property
    def verdict_code(self) -> Judgement:
        """Whether the policy keeps α; ``"unknown"`` without α or an interval."""
        fdr = self.of("false_discovery_rate")
        if self.alpha is None or math.isnan(fdr.low):
            return "unknown"
        return judge_ends(*fdr.possible, self.alpha)

    def verdict(self) -> str:
        """Return what the log says, in a few sentences."""
        return words.evaluation_verdict(self)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return all estimates as columns: a row per measure, group and estimator."""
        rows = [
            {
                "policy": self.policy,
                "measure": row.measure,
                "attribute": row.attribute,
                "group": row.group,
                "estimator": name,
                "value": estimate.value,
                "standard_error": estimate.standard_error,
                "low": row.low,
                "high": row.high,
                "least": row.least,
                "most": row.most,
                "n_people": row.n_people,
                "n_outcomes": row.n_outcomes,
                "reason": row.reason,
            }
            for row in self.measured
            for name, estimate in row.estimates.items()
        ]
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def to_frame(self, backend: str | None = None) -> Any:
        """Return all estimates as a frame of the log's kind, or of a named kind."""
        return to_frame(self.columns(), self.backend if backend is None else backend)


def find_measured(rows: Sequence[Any], measure: str, group: str, attribute: str) -> Any:
    """Return the row of a measure and a group; the attribute may be empty if it is clear."""
    for row in rows:
        alike = not attribute or row.attribute == attribute
        if row.measure == measure and row.group == group and alike:
            return row
    measures = dict.fromkeys(row.measure for row in rows)
    groups = dict.fromkeys(row.group for row in rows)
    raise InputError(
        f"there is no {measure!r} of the group {group!r}; there are {', '.join(measures)} of "
        f"{', '.join(map(repr, groups))}."
    )


def evaluate(
    log: DecisionLog,
    policy: Any,
    *,
    utility: Utility | None = None,
    alpha: float | None = None,
    confidence: float = 0.95,
    pending: Pending = "cut",
    random_state: int = 0,
) -> Any:
    """Estimate how a policy would have done, from the decisions that others made.

    Parameters
    ----------
    log
        The decisions, with the probability of each acceptance.
    policy
        A ``Rule`` or its text (``"score >= 0.85"``), a ``Challenger``, one of our classifiers, a
        column of probabilities, ``"incumbent"`` (what the lender's own process decided); or several
        in a dictionary, by their names.
    utility
        What decisions are worth; None counts 1 for a good and −1 for a bad acceptance.
    alpha
        A bound on mistakes to compare with.
    confidence
        Probability that all intervals of one measure, over policies, are right at all times. Those
        of groups have another such probability.
    pending
        What happens to outcomes that are not known yet: ``"cut"`` uses rounds before the first one
        that still waits for outcomes; ``"worst"`` uses all rounds for intervals and counts each
        such outcome as the worst for each bound.
    random_state
        Seed of the folds of the doubly robust estimate.

    Returns
    -------
    Evaluation
        Or, for several policies, a dictionary of them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(4000)
    >>> propensity = np.where(score > 0.6, 1.0, 0.2)
    >>> accepted = rng.random(4000) < propensity
    >>> outcome = np.where(accepted, rng.random(4000) < score, np.nan)
    >>> log = DecisionLog(accepted, propensity, outcome, score=score)
    >>> print(evaluate(log, "score >= 0.8", alpha=0.15).verdict())
    recorded score ≥ 0.8: it would accept 19.9 % of applicants, and 11.4 % of them would be bad \
(7.98 % to 16 %). Whether it keeps α = 15 % is open.
    """
    options = _Options(
        Accuracy() if utility is None else utility,
        alpha,
        confidence,
        pending,
        random_state,
    )
    options.check(log)
    fitted: dict[bytes, Floats] = {}
    if not isinstance(policy, Mapping):
        return _evaluate(log, chances(log, policy), options, 1, fitted)
    if not policy:
        raise InputError("there is no policy to evaluate; pass at least one.")
    return {
        name: _evaluate(log, chances(log, each, str(name)), options, len(policy), fitted)
        for name, each in policy.items()
    }


def added_profit(
    log: DecisionLog,
    *,
    utility: Utility | None = None,
    confidence: float = 0.95,
    pending: Pending = "cut",
) -> Measured:
    """Return what the logged decisions earned over the incumbent's, per applicant.

    The estimate is the mean of A·T·v·(1 − d/p), where v is what a loan is worth. An applicant whom
    both accept for sure adds 0 without any noise, so the interval is narrower than the difference
    of two.

    Parameters
    ----------
    log
        The decisions, with those of the incumbent.
    utility, confidence, pending
        As for ``evaluate``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chance, incumbent = rng.random(4000), rng.random(4000) < 0.5  # it knows nothing
    >>> p = 0.5 * incumbent + 0.5 * (chance > 0.6)
    >>> accepted = rng.random(4000) < p
    >>> outcome = np.where(accepted, rng.random(4000) < chance, np.nan)
    >>> found = added_profit(DecisionLog(accepted, p, outcome, incumbent=incumbent))
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (0.13, 0.1, 0.16)
    """
    policy, utility = chances(log, "incumbent"), Accuracy() if utility is None else utility
    options = _Options(utility, None, confidence, pending, 0)
    options.check(log)
    return _Judge(log, policy, options, *usable_rows(log, policy, pending), None).added()


@dataclass(frozen=True)
class _Options:
    utility: Utility
    alpha: float | None
    confidence: float
    pending: str
    random_state: int

    def check(self, log: DecisionLog) -> None:
        """Raise if an option cannot be used, or the log has no outcome."""
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise InputError(f"alpha must be between 0 and 1, got {self.alpha}.")
        if not isinstance(self.utility, Utility):
            raise InputError(f"utility must be one such as Revenue(200, 500), got {self.utility}.")
        check_log(log, self.confidence, self.pending)


def check_log(log: DecisionLog, confidence: float, pending: str) -> None:
    """Raise if the log has no outcome, or an option cannot be used."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be between 0 and 1, got {confidence}.")
    if pending not in ("cut", "worst"):
        raise InputError(f"pending must be 'cut' or 'worst', got {pending!r}.")
    if not log.known.any():
        raise InputError("the log has no outcome at all; add outcomes of accepted applicants.")


def usable_rows(log: DecisionLog, policy: PolicyChances, pending: str) -> tuple[Bools, Bools]:
    """Return the applicants that estimates use, and those that intervals use.

    Intervals also count applicants that the policy says nothing about, since they are erased.
    """
    bounded = log.round > policy.trained_through
    later = bounded & ~np.isnan(policy.pi)
    if not later.any():
        raise InputError(
            f"{policy.name!r} has seen the log up to round {policy.trained_through}, and the log "
            f"ends with round {int(log.round.max())}; judge it on later rounds."
        )
    early = log.round <= log.last_complete_round
    complete = later & early
    if not complete.any() and pending == "cut":
        raise InputError(
            f"no round that can be used has all of its outcomes (round "
            f"{int(log.round[later].min())} still waits for some); wait for them, or set "
            f"{{option}} to 'worst'.",
            option="pending",
        )
    return complete, bounded & early if pending == "cut" else bounded


def _evaluate(
    log: DecisionLog,
    policy: PolicyChances,
    options: _Options,
    n_policies: int,
    fitted: dict[bytes, Floats],
) -> Evaluation:
    """Evaluate one of some policies; ``fitted`` keeps models for others on the same decisions."""
    complete, bounded = usable_rows(log, policy, options.pending)
    model = None
    if log.has_features or log.score is not None:
        rows = complete.tobytes()
        if rows not in fitted:
            fitted[rows] = fit_bad(log, complete, np.random.default_rng(options.random_state))
        model = fitted[rows]
    error = (1 - options.confidence) / n_policies
    judge = _Judge(log, policy, options, complete, bounded, model)
    measured = list(judge.measure(error))
    gaps: list[Gap] = []
    for column in log.groups:
        of_groups = [
            row
            for code, part in error_of_groups(log, column, 2 * error).items()
            for row in judge.measure(
                part, column.attribute, column.names[code], column.codes == code
            )
        ]
        measured += of_groups
        gaps += _gaps(column.attribute, of_groups)
    used = bounded & ~np.isnan(policy.pi) if options.pending == "worst" else complete
    return Evaluation(
        policy.name,
        tuple(measured),
        tuple(gaps),
        judge.diagnostics(),
        judge.sensitivity(),
        int(log.round[used].min()),
        int(log.round[used].max()),
        int(used.sum()),
        int((log.known & used).sum()),
        options.alpha,
        options.confidence,
        tuple(_assumptions(log, policy, options)),
        log.backend,
        log.shock,
    )


def error_of_groups(log: DecisionLog, column: GroupColumn, error: float) -> dict[int, float]:
    """Return the error of each group that is in the log, by its code (``rates.group_errors``)."""
    rounds = {code: log.round[column.codes == code] for code in range(len(column.names))}
    first = {column.names[code]: int(own.min()) for code, own in rounds.items() if own.size}
    errors = group_errors(first, len(log.groups), error)
    return {code: errors[column.names[code]] for code, own in rounds.items() if own.size}


def _assumptions(log: DecisionLog, policy: PolicyChances, options: _Options) -> Iterator[str]:
    """Yield what must hold for the intervals."""
    if log.estimated:
        yield "estimated"
        return
    yield "one_population"
    yield "independent"
    if policy.changes:
        yield "policy_changes"
    yield from notes_on(log, options.pending)
    if np.isnan(policy.pi).any() or (log.groups and log.erased.any()):
        yield "erased_worst"
    yield "any_estimate"


def notes_on(log: DecisionLog, pending: str) -> Iterator[str]:
    """Yield what draws and pending outcomes mean for intervals."""
    if log.drawn.any():
        yield "draws"
    if pending == "worst":
        yield "pending_worst"
    elif log.pending.any():
        yield "pending_cut"


@dataclass(frozen=True, eq=False)
class _Judge:
    """A policy on a log, with everything that its measures need."""

    log: DecisionLog
    policy: PolicyChances
    options: _Options
    complete: Bools
    bounded: Bools
    model: Floats | None

    def measure(
        self, error: float, attribute: str = "", group: str = "", members: Bools | None = None
    ) -> Iterator[Measured]:
        """Yield all measures, of all applicants or of a group."""
        inside, unsure = np.ones(len(self.log), np.bool_), np.isnan(self.policy.pi)
        if members is not None:
            inside, unsure = members, unsure | self.log.erased  # who may be of any group
        rows = np.flatnonzero(self.complete & inside)
        bounded = np.flatnonzero(self.bounded & (inside | unsure))
        n_outcomes = int((self.log.known & (self.policy.pi > 0))[rows].sum())
        estimates, sums = self._estimates(rows)
        ends = self._intervals(bounded, error, unsure)
        ranges = self._ranges(rows, sums, np.flatnonzero(self.bounded & unsure))
        nothing = {DEFAULT: Estimate(math.nan, math.nan)}
        for measure in MEASURES:
            value, reason = self._value(measure, estimates, rows, n_outcomes, sums)
            least, most = ranges[measure]
            if not math.isnan(value):  # it may rest on weights that ranges do not count in full
                least, most = min(least, value), max(most, value)
            low, high = ends[measure]
            if low > high:
                low, high, reason = math.nan, math.nan, reason or "contradiction"
            numbers, answers = (value, low, high, least, most), estimates[measure]
            if members is not None and (lack := _too_few(measure, rows.size, n_outcomes, sums)):
                numbers, answers, reason = (math.nan,) * 5, nothing, lack
            yield Measured(
                measure, attribute, group, *numbers, answers, rows.size, n_outcomes, reason
            )

    def _value(
        self,
        measure: str,
        estimates: Mapping[str, Mapping[str, Estimate]],
        rows: Rows,
        n_outcomes: int,
        sums: Mapping[str, float],
    ) -> tuple[float, str]:
        """Return the default estimate, or NaN and the reason why there is none."""
        if not rows.size:
            return math.nan, "no_complete_round"
        if not sums["pi"] and measure == "false_discovery_rate":
            return math.nan, "accepts_none"
        if not sums["pi"]:
            return 0.0, ""
        covered = self._hardly_covered(rows) <= NEGLIGIBLE and n_outcomes > 0
        if measure == "selection_rate" or covered:
            return estimates[measure][DEFAULT].value, ""
        return math.nan, "not_identified"

    @property
    def _bad(self) -> Floats:
        """1 for bad outcomes and those that are not known, 0 for others."""
        return np.nan_to_num(1.0 - self.log.outcome, nan=1.0) * ~self.log.not_taken

    @property
    def _good(self) -> Floats:
        """1 for good outcomes and those that are not known, 0 for others."""
        return np.nan_to_num(self.log.outcome, nan=1.0) * ~self.log.not_taken

    def _estimates(self, rows: Rows) -> tuple[dict[str, dict[str, Estimate]], dict[str, float]]:
        """Return all estimates by measure and estimator, and the sums they are made of."""
        found: dict[str, dict[str, Estimate]] = {measure: {} for measure in MEASURES}
        if not rows.size:
            nothing = {DEFAULT: Estimate(math.nan, math.nan)}
            return dict.fromkeys(MEASURES, nothing), dict.fromkeys(SUMS, 0.0)
        some = self.log.select(rows)
        model = None if self.model is None else self.model[rows]
        terms, allowed = row_sums(some, self.policy.pi[rows], self._bad[rows], model)
        sums = terms.sum(axis=0)
        for (measure, name), estimate in estimators(self.options.utility).items():
            if name not in allowed:
                continue
            with np.errstate(all="ignore"):
                value = float(estimate(named(sums)))
                error = standard_error(estimate, terms) if math.isfinite(value) else math.nan
            value = value if math.isfinite(value) else math.nan
            found[measure][name] = Estimate(value, error)
        return found, {key: float(part) for key, part in named(sums).items()}

    def _hardly_covered(self, rows: Rows) -> float:
        pi, p = self.policy.pi[rows], self.log.propensity[rows]
        return hardly_covered(pi, p, estimated=self.log.estimated)

    def _ranges(
        self, rows: Rows, sums: Mapping[str, float], unsure: Rows
    ) -> dict[str, tuple[float, float]]:
        """Return the estimates if all that is hardly covered were good, and if it were bad.

        Erased applicants count if that makes the range wider.
        """
        selected = sums["pi"] / sums["n"] if sums["n"] else math.nan
        if not sums["pi"]:
            profit = 0.0 * selected
            return {
                "selection_rate": (selected, selected),
                "false_discovery_rate": (math.nan, math.nan),
                "profit": (profit, profit),
            }
        pi, p = self.policy.pi[rows], self.log.propensity[rows]
        covered_rows = ~uncovered(pi, p, estimated=self.log.estimated)
        accepted = rows[self.log.accepted[rows] & covered_rows]
        weight = self.policy.pi[accepted] / self.log.propensity[accepted]
        total = float(weight.sum())
        covered = 1.0 - self._hardly_covered(rows) if total else 0.0
        bad, left = (
            float(weight @ part[accepted]) / total * covered if total else 0.0
            for part in (self._bad, self.log.not_taken)
        )
        mass, more = sums["pi"], np.nan_to_num(self.policy.pi[unsure], nan=1.0)
        fewer = 1.0 - np.nan_to_num(self.policy.pi[unsure], nan=0.0)
        n, likely = sums["n"], float(more.sum())
        chosen = (mass / (n + float(fewer.sum())), (mass + likely) / (n + likely))
        # As bad as they can be, and as good.
        worst, best = (
            float(more @ self._counted(unsure, state)) for state in (self._bad, self._good)
        )
        loans = mass * (1.0 - left) or math.nan  # if all took none
        ends = (
            mass * bad / (loans + best),
            (mass * (bad + 1.0 - covered) + worst) / (loans + worst),
        )
        utility = self.options.utility
        worth = [utility.gain_good * (1 - b) + utility.gain_bad * b for b in ends]
        taken = (1.0 - left, (loans + likely) / (mass + likely))
        earned = [rate * t * each for rate in chosen for t in taken for each in worth]
        return {
            "selection_rate": chosen,
            "false_discovery_rate": ends,
            "profit": (min(earned), max(earned)),
        }

    def _counted(self, rows: Rows, state: Floats) -> Floats:
        """Return for how many applicants each one counts who is in a state, or not covered."""
        p = self.log.propensity[rows]
        bare = uncovered(np.ones(rows.size), p, estimated=self.log.estimated)
        weight = np.zeros(rows.size)
        np.divide(state[rows], p, out=weight, where=self.log.accepted[rows])
        return np.where(bare, 1.0, weight)

    def _intervals(self, rows: Rows, error: float, erased: Bools) -> dict[str, tuple[float, float]]:
        none = (math.nan, math.nan)
        if self.log.estimated or not rows.size:
            return dict.fromkeys(MEASURES, none)
        rows = rows[np.argsort(self.log.round[rows], kind="stable")]
        log, changes = self.log, self.policy.changes
        unsure = erased[rows] if erased[rows].any() else None
        least, pi = (np.nan_to_num(self.policy.pi[rows], nan=end) for end in (0.0, 1.0))
        rounds = round_starts(log.round[rows])
        covered = cover(pi, log.propensity[rows], log.taken[rows], log.drawn[rows])
        worst, best = self._bad[rows], 1.0 - np.nan_to_num(log.outcome[rows], nan=1.0)
        seen = covered, worst, best, rounds, error, changes
        return {
            "selection_rate": mean_bounds(least, pi, rounds, error, changes, unsure),
            "false_discovery_rate": fdr_bounds(*seen, unsure, log.shock) if least.any() else none,
            "profit": profit_bounds(*seen, self.options.utility, unsure, log.shock),
        }

    def added(self) -> Measured:
        """Return what the logged decisions earned over the policy, per applicant."""
        log, utility = self.log, self.options.utility
        rows, wider = np.flatnonzero(self.complete), np.flatnonzero(self.bounded)
        good, bad = utility.gain_good, utility.gain_bad
        pi, p = self.policy.pi[rows], log.propensity[rows]
        bare = uncovered(pi, p, estimated=log.estimated)
        weight = 1.0 - np.divide(pi, p, out=np.zeros_like(p), where=log.accepted[rows] & ~bare)
        earned = log.taken[rows] * weight * (good + (bad - good) * self._bad[rows])
        n, reason = max(rows.size, 1), "" if rows.size else "no_complete_round"
        value = float(earned.sum()) / n
        unseen = float(pi[bare].sum()) / n  # of the policy, which may earn anything
        if self._hardly_covered(rows) > NEGLIGIBLE:
            reason = "not_identified"
        low, high = math.nan, math.nan
        if not log.estimated:
            wider = wider[np.argsort(log.round[wider], kind="stable")]
            decided = log.propensity[wider], log.taken[wider], log.drawn[wider]
            low, high = difference_bounds(
                cover(log.propensity[wider], *decided),
                cover(self.policy.pi[wider], *decided),
                self._bad[wider],
                1.0 - np.nan_to_num(log.outcome[wider], nan=1.0),
                round_starts(log.round[wider]),
                1.0 - self.options.confidence,
                utility,
                log.shock,
            )
        error = float(np.linalg.norm(earned - value)) / n
        estimate = Estimate(math.nan if reason else value, error)
        n_outcomes = int(log.known[rows].sum())
        return Measured(
            *("profit", "", "", estimate.value, low, high),
            value - unseen * max(0.0, good, bad),
            value - unseen * min(0.0, good, bad),
            {"ips": estimate},
            rows.size,
            n_outcomes,
            reason,
        )

    def diagnostics(self) -> Diagnostics:
        """Return how well the log covers the policy."""
        rows = np.flatnonzero(self.complete)
        accepted = rows[self.log.taken[rows]]
        weight = self.policy.pi[accepted] / self.log.propensity[accepted]
        square = float(weight @ weight)
        return Diagnostics(
            float(weight.sum() ** 2 / square) if square else 0.0,
            float(weight.max(initial=0.0)),
            self._hardly_covered(rows),
            int(self.log.withdrawn[self.bounded].sum()),
            int(self.log.not_taken[self.bounded].sum()),
            int(np.isnan(self.policy.pi).sum()),
        )

    def sensitivity(self) -> Sensitivity | None:
        """Return what hidden selection could do."""
        alpha = self.options.alpha
        identified = self._hardly_covered(np.flatnonzero(self.complete)) <= NEGLIGIBLE
        if not self.log.estimated or alpha is None or not identified:
            return None
        rows = np.flatnonzero(self.complete & self.log.taken & (self.policy.pi > 0))
        pi, p, bad = self.policy.pi[rows], self.log.propensity[rows], self._bad[rows] == 1
        if not rows.size:
            return None

        def ends(gamma: float) -> tuple[float, float]:
            return _hidden_range(pi, p, bad, gamma)

        keeps = ends(1.0)[0] <= alpha

        def beyond(log_gamma: float) -> float:
            low, high = ends(math.exp(log_gamma))
            return high - alpha if keeps else alpha - low

        most = math.log(_LARGEST_GAMMA)
        gamma = math.inf
        if beyond(most) > 0:
            gamma = 1.0 if beyond(0.0) >= 0 else math.exp(brentq(beyond, 0.0, most))
        return Sensitivity(keeps, gamma, {g: ends(g) for g in (1.0, 1.25, 1.5, 2.0, 3.0)})


def _too_few(measure: str, n: int, n_outcomes: int, sums: Mapping[str, float]) -> str:
    """Return what a group lacks for a measure; empty if nothing."""
    if n < SMALL:
        return "too_few_people"
    if measure != "selection_rate" and sums["pi"] and n_outcomes < SMALL:
        return "too_few_outcomes"
    return ""


def _hidden_range(pi: Floats, p: Floats, bad: Bools, gamma: float) -> tuple[float, float]:
    """Return the self-normalised FDRs that are possible if odds may be off by a factor Γ.

    1/p = 1 + (1 − p)/p, and the true odds of rejection are within a factor Γ of (1 − p)/p. The
    rate is largest if the bad get the largest and the good the smallest weight.

    Examples
    --------
    >>> p, bad = np.array([0.5, 0.5]), np.array([True, False])
    >>> [round(end, 3) for end in _hidden_range(np.ones(2), p, bad, 2.0)]
    [0.333, 0.667]
    """
    against = (1 - p) / p
    large, small = pi * (1 + against * gamma), pi * (1 + against / gamma)
    ends = []
    for weight_bad, weight_good in ((small, large), (large, small)):
        total = float(weight_bad @ bad)
        ends.append(total / (total + float(weight_good @ ~bad)))
    return ends[0], ends[1]


def uncovered(pi: Floats, p: Floats, *, estimated: bool = False) -> Bools:
    """Return applicants that a policy may accept and that a log hardly covers with outcomes.

    Each had less than a fiftieth of the policy's chance, and all of them together, with the
    smallest chances first, let expect fewer than 100 outcomes. An estimated probability below 5 %
    covers no applicant, as a model cannot tell small chances from none.

    Examples
    --------
    >>> p = np.repeat([0.0, 0.01, 1.0], [5, 400, 20_000])
    >>> int(uncovered(np.ones(p.size), p).sum())  # 4 outcomes of 400 applicants are too few
    405
    >>> p = np.repeat([0.0, 0.01, 1.0], [5, 40_000, 20_000])
    >>> int(uncovered(np.ones(p.size), p).sum())
    5
    """
    if estimated:
        return np.asarray((pi > 0) & (p < _LEAST_ESTIMATED))
    hardly = (pi > 0) & (pi > _HARDLY * p)
    rows = np.flatnonzero(hardly)
    ratio = p[rows] / pi[rows]
    order = np.argsort(ratio, kind="stable")
    enough = np.flatnonzero(np.cumsum(p[rows][order]) >= _NEEDED)
    if enough.size:
        hardly[rows[ratio >= ratio[order[enough[0]]]]] = False
    return np.asarray(hardly)


def hardly_covered(pi: Floats, p: Floats, *, estimated: bool = False) -> float:
    """Return the share of a policy's acceptances that a log hardly covers (``uncovered``)."""
    mass = pi.sum()
    return float(pi[uncovered(pi, p, estimated=estimated)].sum() / mass) if mass else 0.0


def _gaps(attribute: str, rows: Sequence[Measured]) -> Iterator[Gap]:
    """Yield how far each measure of an attribute's groups is apart."""
    for measure in MEASURES:
        alike = [row for row in rows if row.measure == measure]
        values, ends = [row.value for row in alike], [(row.low, row.high) for row in alike]
        gap = gap_between(attribute, measure, values, ends, ratios=measure != "profit")
        if gap is not None:
            yield gap


def gap_between(
    attribute: str,
    measure: str,
    values: Sequence[float],
    intervals: Sequence[tuple[float, float]],
    *,
    ratios: bool = True,
) -> Gap | None:
    """Return how far groups are apart; None if fewer than two have a value or an interval.

    Examples
    --------
    >>> gap = gap_between("sex", "selection_rate", [0.5, 0.2], [(0.45, 0.6), (0.1, 0.25)])
    >>> round(gap.difference, 2), round(gap.difference_low, 2), round(gap.difference_high, 2)
    (0.3, 0.2, 0.5)
    """
    known = [value for value in values if not math.isnan(value)]
    ends = [pair for pair in intervals if not math.isnan(pair[0])]
    if max(len(known), len(ends)) < 2:
        return None
    difference, ratio = [math.nan] * 3, [math.nan] * 3
    if len(known) > 1:
        difference[0] = max(known) - min(known)
        ratio[0] = min(known) / max(known) if max(known) > 0 else math.nan
    if len(ends) > 1:
        lows, highs = zip(*ends, strict=True)
        difference[1:] = max(0.0, max(lows) - min(highs)), max(highs) - min(lows)
        if max(highs) > 0:
            ratio[1:] = (
                min(lows) / max(highs),
                min(1.0, min(highs) / max(lows)) if max(lows) > 0 else 1.0,
            )
    return Gap(attribute, measure, *difference, *(ratio if ratios else [math.nan] * 3))
