"""The decisions on a batch, and the record of a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.core.saved import saved
from fairchance.frames import to_frame
from fairchance.notebook import Displayed

__all__ = ["CertifiedRound", "ClosedRound", "Correction", "CurvePoint"]
__all__ += ["Decisions", "GroupCount", "Note", "Round"]

TINY = 1e-4  # a chance that hardly any batch turns into an acceptance

# Fields of decisions with an entry per applicant.
_DECIDED = ("ids", "accepted", "exploit", "score", "propensity", "threshold")
_PER_APPLICANT = (*_DECIDED, "incumbent", "barred", "applicants")


@dataclass(frozen=True, repr=False)
class Decisions(Displayed):
    """The decisions on one batch, in the order of its rows.

    Attributes
    ----------
    ids
        Ids of the applications.
    accepted
        Which applicants are accepted.
    exploit
        Which are in the exploit region, or accepted by the incumbent if the round's policy or ramp
        uses its decisions; the others are in the explore region, where r = 0 leaves no chance.
    score
        f_t's likelihood of the good outcome (in a round that follows the past policy, its
        probability of acceptance).
    propensity
        Probability with which each applicant was accepted, given the batch:
        p = (1 − r)·d + r·π. π is 1 or 0 in the exploit region, and the inclusion probability of the
        draw in the explore region.
    round
        Number of the round, from 1.
    backend
        Kind of frame the caller works with.
    certified
        Whether the round carries a certificate (``CertifiedClassifier``).
    group_mode
        What groups may change: ``"aware"``, ``"blind"`` or ``"audit"``.
    threshold
        The score from which our policy accepts each applicant for sure; None if there is none. For
        r < 1 the incumbent decides on some, whatever their scores.
    reasons
        Why each rejected applicant was rejected: columns with their contribution to the log-odds
        of the score, the most negative first; None for accepted applicants. A ledger's ``Program``
        fills it in; otherwise it is None as a whole.
    unlike
        Columns in which the batch is unlike the history or the last round, each an ``Unlike``.
    incumbent
        d, which applicants the lender's own process accepts; None if it was not given.
    barred
        Which applicants must not be accepted; None if that was not given.
    ramp
        r, the share of applicants for whom our policy decides; for the others d does.
    status
        ``"shadow"`` if r = 0. Otherwise the status of a ``CertifiedRound``, empty for Algorithm 1.
    applicants
        The applicants as they were read, which ``close_round`` needs; None if they are recorded.
    receipts
        The digest of each recorded decision, if a ledger's ``Program`` decided in an open round.
    """

    ids: NDArray[np.generic]
    accepted: NDArray[np.bool_]
    exploit: NDArray[np.bool_]
    score: NDArray[np.floating]
    propensity: NDArray[np.float64]
    round: int
    backend: str = "numpy"
    certified: bool = False
    group_mode: str = field(default="aware", kw_only=True)
    threshold: NDArray[np.floating] | None = field(default=None, kw_only=True)
    reasons: Sequence[list[tuple[str, float]] | None] | None = field(default=None, kw_only=True)
    unlike: tuple[Any, ...] = field(default=(), kw_only=True)
    incumbent: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    barred: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    ramp: float = field(default=1.0, kw_only=True)
    status: str = field(default="", kw_only=True)
    applicants: Any = field(default=None, kw_only=True, repr=False, compare=False)
    receipts: tuple[bytes, ...] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return int(self.accepted.shape[0])

    def __getitem__(self, rows: NDArray[np.intp]) -> Decisions:
        """Return the decisions on some applicants, without reasons."""
        given = {name: getattr(self, name) for name in _PER_APPLICANT}
        some: dict[str, Any] = {
            name: values[rows] for name, values in given.items() if values is not None
        }
        return replace(self, reasons=None, **some)

    def __repr__(self) -> str:
        explored = int(self.explored.sum())
        return (
            f"Decisions(round {self.round}: {len(self)} applicants, "
            f"{int(self.accepted.sum()) - explored} by score, {explored} explored)"
        )

    @property
    def region(self) -> NDArray[np.str_]:
        """``"exploit"`` or ``"explore"`` for each applicant."""
        return np.where(self.exploit, "exploit", "explore")

    @property
    def explored(self) -> NDArray[np.bool_]:
        """Which applicants were accepted by the exploration draw."""
        return self.accepted & ~self.exploit

    def to_frame(self, backend: str | None = None) -> Any:
        """Return a frame of the caller's kind, or of a named kind (pandas, polars, pyarrow).

        For callers who work with arrays it is a structured array.
        """
        return to_frame(self.columns(), self.backend if backend is None else backend)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the decisions as named columns."""
        columns = {
            "id": self.ids,
            "accepted": self.accepted,
            "region": self.region,
            "score": self.score,
            "threshold": self.threshold,
            "propensity": self.propensity,
            "incumbent": self.incumbent,
            "barred": self.barred,
            "round": np.full(len(self), self.round),
        }
        return {name: values for name, values in columns.items() if values is not None}


@dataclass(frozen=True)
class Chances:
    """The chances of the applicants of a round.

    Attributes
    ----------
    least, n_hardly
        The smallest chance of applicants in the explore region, NaN if nobody had one, and how many
        had one below ``TINY``.
    sum, variance
        The sum of the chances of all applicants, and of their variances.
    """

    least: float = float("nan")
    n_hardly: int = 0
    sum: float = 0.0
    variance: float = 0.0

    @staticmethod
    def of(propensity: NDArray[np.float64], exploit: NDArray[np.bool_]) -> Chances:
        """Return the chances of some applicants."""
        p = propensity
        chances = p[~exploit & (p > 0)]
        return Chances(
            float(chances.min()) if chances.size else float("nan"),
            int(np.count_nonzero(chances < TINY)),
            float(p.sum()),
            float((p * (1 - p)).sum()),
        )

    def __add__(self, other: Chances) -> Chances:
        return Chances(
            float(np.fmin(self.least, other.least)),
            self.n_hardly + other.n_hardly,
            self.sum + other.sum,
            self.variance + other.variance,
        )


@dataclass(frozen=True, repr=False)
class ClosedRound(Displayed):
    """A round that was closed, in numbers.

    Attributes
    ----------
    round
        Number of the round, from 1.
    n_people, n_accepted, n_explored
        How many applicants it had, how many were accepted, and how many of these by the
        exploration draw.
    chances
        The chances of its applicants.
    certified, group_mode, unlike, ramp, status
        As in ``Decisions``.
    """

    round: int
    n_people: int
    n_accepted: int
    n_explored: int
    chances: Chances
    certified: bool = False
    group_mode: str = "aware"
    unlike: tuple[Any, ...] = ()
    ramp: float = 1.0
    status: str = ""

    @staticmethod
    def of(decided: Decisions) -> ClosedRound:
        """Return the round of a batch that was decided at once."""
        return ClosedRound(
            decided.round,
            len(decided),
            int(np.count_nonzero(decided.accepted)),
            int(np.count_nonzero(decided.explored)),
            Chances.of(decided.propensity, decided.exploit),
            decided.certified,
            decided.group_mode,
            decided.unlike,
            decided.ramp,
            decided.status,
        )

    def __repr__(self) -> str:
        return (
            f"ClosedRound(round {self.round}: {self.n_people} applicants, "
            f"{self.n_accepted - self.n_explored} by score, {self.n_explored} explored)"
        )


@saved
@dataclass(frozen=True)
class Note(Displayed):
    """Something that the record of a round mentions, as data; ``words.rounds`` has the sentences.

    Attributes
    ----------
    code
        What it is about, a stable word.
    facts
        Its values by their names: numbers, texts and truth values that JSON can hold.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)


@saved
@dataclass(frozen=True)
class Round(Displayed):
    """The record of one round of Algorithm 1.

    Attributes
    ----------
    round
        Number of the round, from 1.
    n_people, n_exploit_region
        Size of the batch and of its exploit region.
    n_exploited, n_explored
        How many were accepted in the exploit region, and how many were explored.
    alpha_exploit
        The share of mistakes allowed to the exploited.
    carried
        Exploration budget carried to the next round, in applicants.
    thresholds
        Per group, the score from which applicants were accepted.
    calibrated
        Whether the thresholds were chosen on enough outcomes of our own logged decisions; if not,
        they come from the history or the past policy, and no estimate is to be trusted.
    n_outcomes
        Labelled rows that the thresholds were chosen on.
    effective_sample_size
        (Σw)² / Σw² of these rows.
    estimated_fdr
        Their weighted share of bad among those f_t accepts; NaN if the past policy decides.
    disparity
        Largest difference between groups of a rate that the fairness constraint bounds, on these
        rows; as a share of the largest rate if it bounds a ratio. 0 without a constraint, NaN if
        the past policy decides.
    feasible
        Whether all constraints could be met on these rows.
    notes
        What differs from the options.
    group_mode
        What groups could change: ``"aware"``, ``"blind"`` or ``"audit"``.
    n_unreachable, unreachable
        How many of the explore region the limits (``Limited``) bar from exploration, in all
        and per group; the promise of exploration does not cover them.
    capped_share
        Share of the rows that the thresholds were chosen on whose weight ``weight_cap`` changed.
    uncapped_fdr
        ``estimated_fdr`` of the same thresholds with uncapped weights.
    follows
        How the round follows the past policy (``first_round``); empty if f_t was learned.
    ramp
        r, the share of applicants for whom our policy decided; 0 is a round in shadow.
    n_incumbent
        How many the lender's own process accepted; None if its decisions were not given.
    n_barred
        How many applicants were barred from acceptance.
    coins
        Whether a coin of their own decided on each applicant, and not a draw from the batch.
    """

    round: int
    n_people: int
    n_exploit_region: int
    n_exploited: int
    n_explored: int
    alpha_exploit: float
    carried: float
    thresholds: tuple[float, ...]
    calibrated: bool
    n_outcomes: int
    effective_sample_size: float
    estimated_fdr: float
    disparity: float
    feasible: bool
    notes: tuple[Note, ...] = ()
    group_mode: str = field(default="aware", kw_only=True)
    n_unreachable: int = field(default=0, kw_only=True)
    unreachable: tuple[int, ...] = field(default=(), kw_only=True)
    capped_share: float = field(default=0.0, kw_only=True)
    uncapped_fdr: float = field(default=float("nan"), kw_only=True)
    follows: str = field(default="", kw_only=True)
    ramp: float = field(default=1.0, kw_only=True)
    n_incumbent: int | None = field(default=None, kw_only=True)
    n_barred: int = field(default=0, kw_only=True)
    coins: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class GroupCount(Displayed):
    """Counts of one group in one round.

    Attributes
    ----------
    round
        Number of the round, from 1.
    attribute
        Name of the protected attribute; names of all if combinations are counted.
    group
        The group: a value of the attribute, or a combination of values.
    n_people, n_accepted, n_explored
        How many applied, were accepted, and were accepted though not for sure.
    """

    round: int
    attribute: str
    group: Any
    n_people: int
    n_accepted: int
    n_explored: int


@saved
@dataclass(frozen=True)
class Correction(Displayed):
    """A replaced outcome.

    Attributes
    ----------
    id
        Id of the application.
    round
        The last round before the correction; 0 is before the first.
    before, after
        Outcomes, in the labels of the history; ``before`` is None for an applicant who was
        withdrawn or did not take the loan.
    """

    id: Any
    round: int
    before: Any
    after: Any


@saved
@dataclass(frozen=True)
class CurvePoint(Displayed):
    """What the certified rule would earn at a bound on mistakes other than α, or at α.

    Attributes
    ----------
    bound
        The bound.
    share
        The best share of applicants that the best allowed policy accepts for sure: the certified
        one of largest estimated utility or, if none is certified, the one that looks best; 0 if
        none looks allowed.
    earned
        Its estimated utility per applicant, less that of accepting none; NaN if it is certified and
        too few of our applicants are like those it accepts.
    estimated_fdr
        Its estimated FDR.
    certified
        Whether its FDR is at most the bound with confidence 1 − δ. Each point has this confidence
        by itself, not all of them together.
    """

    bound: float
    share: float
    earned: float
    estimated_fdr: float
    certified: bool


@saved
@dataclass(frozen=True)
class CertifiedRound(Displayed):
    """The record of a round of the certified method: its policy, its promise and its evidence.

    Attributes
    ----------
    round
        Number of the round, from 1.
    group
        The group that the certificate is about; None for all applicants together.
    status
        ``"certified"``: with confidence 1 − δ the FDR of what was done is at most α.
        ``"incumbent"``: the lender's own decisions stand for some applicants or all, without a
        certificate. ``"shadow"``: they stand for all, since r = 0. ``"pilot"``: no promise.
    n_people, n_accepted
        Number of applicants in the batch, and of accepted ones.
    ladder
        Number of the frozen ranking, from 0.
    share
        q: the best share of applicants that the policy accepts for sure.
    log_wealth, threshold
        Evidence for the policy, and the evidence that a certificate needs. The threshold is
        infinite if the policy lies inside the start of its ladder, where none can be certified.
    certified_from, certified_to
        The smallest and the largest certified share of the deployed ladder; NaN if none is
        certified.
    next_share, next_log_wealth, next_threshold
        Share, evidence and needed evidence of the policy that may be certified next: after a
        certified round the next rung of the ladder, after a pilot the policy of any ladder that is
        nearest to a certificate.
    more_outcomes
        About how many more outcomes that policy needs if they are like those so far; NaN if that is
        unknown.
    delta_spent
        Part of δ given to ladders so far.
    n_outcomes
        Outcomes of our own decisions known before the round.
    estimated_fdr
        Weighted share of bad outcomes under the deployed policy, a point estimate.
    alpha, delta
        The bound on the FDR, and the probability that any certificate breaks it.
    notes
        What the ranking's fit warned of, and which applicants limits bar from exploration.
    group_mode
        What groups could change: ``"aware"``, ``"blind"`` or ``"audit"``.
    n_unreachable
        Applicants who are not accepted for sure and are barred from exploration by the limits of
        the strategy.
    n_tested
        Accepted applicants whose outcomes the present tests rest on, missing ones counted as bad.
    next_n_tested
        The same for the ladder of ``next_share``. If it is positive and ``more_outcomes`` is NaN,
        the outcomes so far do not support a certificate.
    tests_began
        The round with which the present tests began: 1, or the round after certificates and
        evidence were last dropped.
    restart_reason
        Why they were dropped: ``"correction"`` of an outcome that had been tested, ``"drift"``
        noticed by the monitor, or ``""`` if they never were.
    awaited_round, n_awaited
        The oldest round that was not in the tests when this round was decided, and how many of its
        outcomes were missing, if that held up the tests or nothing had been tested; else 0.
    curve
        What the rule would earn at several bounds, α among them, in rising order; empty while too
        few outcomes are known.
    ramp
        r, the share of applicants for whom our policy decided; 0 is a round in shadow.
    n_incumbent
        How many the lender's own process accepted; None if its decisions were not given.
    n_barred
        How many applicants were barred from acceptance.
    shock
        σ of a shock of the bad share that all applicants of a round may have in common, which the
        certificate allows for.
    persons
        Whether the persons were known in this and all earlier rounds: then the certificate allows
        for applications of a person in a round that depend on each other.
    kind
        What the policy is: ``"own"``, our ranking; ``"union"``, the lender's decisions and the best
        of our ranking besides; ``"incumbent"``, the lender's decisions.
    """

    round: int
    group: Any
    status: str
    n_people: int
    n_accepted: int
    ladder: int
    share: float
    log_wealth: float
    threshold: float
    certified_from: float
    certified_to: float
    next_share: float
    next_log_wealth: float
    next_threshold: float
    more_outcomes: float
    delta_spent: float
    n_outcomes: int
    estimated_fdr: float
    alpha: float
    delta: float
    notes: tuple[Note, ...] = ()
    group_mode: str = field(default="aware", kw_only=True)
    n_unreachable: int = field(default=0, kw_only=True)
    n_tested: int = field(default=0, kw_only=True)
    next_n_tested: int = field(default=0, kw_only=True)
    tests_began: int = field(default=1, kw_only=True)
    restart_reason: str = field(default="", kw_only=True)
    awaited_round: int = field(default=0, kw_only=True)
    n_awaited: int = field(default=0, kw_only=True)
    curve: tuple[CurvePoint, ...] = field(default=(), kw_only=True)
    ramp: float = field(default=1.0, kw_only=True)
    n_incumbent: int | None = field(default=None, kw_only=True)
    n_barred: int = field(default=0, kw_only=True)
    shock: float = field(default=0.0, kw_only=True)
    persons: bool = field(default=False, kw_only=True)
    kind: str = field(default="own", kw_only=True)
