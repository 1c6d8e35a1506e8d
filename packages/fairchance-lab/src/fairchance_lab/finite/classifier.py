"""Algorithm 1 of "Fair Classification with Partial Feedback" on a finite domain.

Everything is a count by cell: a round counts the batch by cell, solves a small 0/1 program, and
draws. ``decide`` follows the paper's box step by step.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from fairchance.core.budget import FdrBudget
from fairchance.core.coverage import CoverageRule
from fairchance.core.decisions import Decisions, Note, Round
from fairchance.core.fairness import RateParity
from fairchance.core.noise import OutcomeNoise
from fairchance.core.sampling import Draw, chance, fixed_size_draw
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy, as_strategy, check_sizes
from fairchance.core.utility import Accuracy, Utility
from fairchance.errors import InputError, LearningWarning
from fairchance.frames import n_rows, plain
from fairchance.methods.estimator import (
    DecidingClassifier,
    check_group_mode,
    check_rounds,
    check_unchanged,
    fits_read_groups,
)
from fairchance.notebook import ROWS, Records
from fairchance.people.ids import id_bits, keyed_bits, round_key, seed_of
from fairchance.people.reasons import Scored
from fairchance.people.store import PeopleStore
from fairchance.words.rounds import NOTES, note_text
from fairchance_lab.finite.cells import (
    CellCounts,
    CellState,
    CellTable,
    PlacedApplicants,
    call_on_cells,
    eta,
)
from fairchance_lab.finite.coverage import CellCoverage, as_cell_coverage
from fairchance_lab.finite.intake import (
    CellBatch,
    CellIntake,
    check_reads_no_group,
    read_past,
)
from fairchance_lab.finite.learner import CONSTRAINTS, HYPOTHESES, ExactFit, best_classifier

__all__ = ["CellPolicy", "FiniteClassifier", "FiniteRound", "LastRound"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_DRAW, _START = 1, 2  # purposes of a round's randomness
_ENOUGH_TO_WARN = 30  # applicants, so that a small batch does not raise a false alarm

_CHOICES: dict[str, tuple[str, ...]] = {
    "hypothesis": HYPOTHESES,
    "constraints": CONSTRAINTS,
    "weights": ("applicants", "none"),
    "first_round": ("matched", "cut", "learned"),
}
_TYPES: dict[str, type] = {
    "utility": Utility,
    "budget": FdrBudget,
    "fairness": RateParity,
    "noise": OutcomeNoise,
}
# Options that must not change after fit.
_FIXED = ("coverage", "group_mode", "pos_label", "random_state")


@saved
@dataclass(frozen=True)
class CellPolicy:
    """The policy of a round; arrays have an entry for each cell that was known then.

    Attributes
    ----------
    exploit
        Whether the cell was in EXPLOIT_t.
    accepts
        f_t on EXPLOIT_t; False elsewhere.
    score
        Share of good among the outcomes of the cell before the round, or f_0's probability of
        acceptance in a round that follows the past.
    g
        Size of an applicant of the cell in the draw, relative to others.
    acceptance
        Probability with which an applicant of the cell was accepted. For a cell without applicants,
        that of an applicant in the place of an average one.
    """

    exploit: Flags
    accepts: Flags
    score: Floats
    g: Floats
    acceptance: Floats

    def select(self, cells: Flags) -> CellPolicy:
        """Return the policy on some cells, given a flag for each cell known by now."""
        cells = cells[: self.exploit.size]
        return CellPolicy(
            self.exploit[cells],
            self.accepts[cells],
            self.score[cells],
            self.g[cells],
            self.acceptance[cells],
        )


@saved
@dataclass(frozen=True, kw_only=True)
class FiniteRound(Round):
    """The record of a round on cells; f_t has no thresholds.

    Attributes
    ----------
    n_cells, n_exploit_cells
        Number of known cells, and of those in EXPLOIT_t.
    estimated_utility, selection_rate
        Of f_t on η_w, as ``estimated_fdr`` and ``disparity``; NaN if the past policy decides.
    gap
        Proven relative gap to the best f_t; NaN if the past policy decides.
    """

    n_cells: int
    n_exploit_cells: int
    estimated_utility: float
    selection_rate: float
    gap: float


def _row(record: FiniteRound) -> dict[str, Any]:
    cells = f"{record.n_exploit_cells:,} of {record.n_cells:,}"
    return ROWS["Round"](record) | {"cells exploited": cells}


ROWS[FiniteRound.__name__] = _row
NOTES.update(
    no_cell_known=(
        "No cell of the applicants is known well enough to exploit, so none can be explored "
        "either; lower the threshold of the coverage rule, give a past policy, or fit again if "
        "outcomes were forgotten."
    ),
    no_cell_allowed=(
        "No classifier with an FDR of at most {max_fdr:.3g} meets the other constraints on the "
        "known cells, so none is accepted there; lower min_selection_rate or loosen the bound of "
        "fairness."
    ),
    gap="The best classifier is known only to a relative gap of {gap:.2g}.",
)


@saved
@dataclass(frozen=True)
class LastRound:
    """What the draw of the last round would have done in a cell that it did not know.

    Attributes
    ----------
    group_factor
        The strategy's factor per group.
    left, others
        As in ``Draw``, per group.
    pooled_share
        Share of good among all outcomes that counted, the score of a cell without outcomes.
    """

    group_factor: Floats
    left: Floats
    others: Floats
    pooled_share: float


@saved
class FiniteClassifier(DecidingClassifier):
    """Decide batches of applicants who fall into cells, with exact counts and an exact learner.

    A cell is a distinct row of features in a group, or in any group if groups may not decide. The
    cost of learning grows with the number of cells, not of applicants. A cell that was not seen
    before is unexplored.

    Parameters
    ----------
    utility
        Utility of decisions; None means ``Accuracy()``.
    budget
        α and how it is shared between exploiting and exploring, λ and ε; None means
        ``FdrBudget()``.
    coverage
        Which cells count as known: ``NormalisedG`` (the default), ``CountedOutcomes``,
        ``SummedAcceptance`` or ``SumOfG``.
    strategy
        How to choose applicants to explore: a ``Strategy``, or a function of (X, score, group) of
        the cells; None means ``ScoreWeighted()``. The score of a cell is its observed share of
        good, or the share of good among all outcomes if it has none.
    hypothesis
        ``"cells"``: f_t may be any 0/1 function of the cells; ``"threshold"``: a cut on a score;
        ``"threshold_per_group"``: a cut per group.
    constraints
        ``"joint"``: the bounds on FDR and selection rate hold over all applicants;
        ``"per_group"``: within each group.
    fairness
        Constraint between groups on f_t.
    weights
        ``"applicants"``: f_t is learned on the paper's η_w; ``"none"``: on the observed outcomes,
        unweighted.
    gap
        Relative optimality gap to which f_t is proven; 0 for the optimum.
    cut_score
        Function of (X, group) of the cells, or of X alone if groups may not decide, that gives the
        score for cuts; None means the cell's share of good.
    min_outcomes
        Observed outcomes that a cell needs, besides w > τ, to move from EXPLORE to EXPLOIT. With 0
        coverage alone decides, and a cell may be given up without a single outcome.
    first_round
        Round 1 decides as f_0 does (Algorithm 1). ``"matched"``: f_0 accepts cells from the
        probability on at which about as many of the history are accepted as the past accepted (½
        if the history has no rejections). ``"cut"``: f_0 accepts cells from a probability of ½ on,
        where its coverage exceeds τ. ``"learned"``: by what the history teaches. Without rejections
        in the history and without a past policy, round 1 is learned.
    maturity
        Number of rounds after which missing outcomes count as bad; until then a round with missing
        outcomes is left out of learning and coverage. None: outcomes count as soon as they arrive,
        missing outcomes do not count, which is right only if bad outcomes arrive neither earlier
        nor later than good ones.
    noise
        How often outcomes are recorded wrongly: bounds, estimated FDR and utility are corrected for
        it. None means never.
    group_mode
        What groups may change. ``"aware"``: everything; ``"blind"``: the group of an applicant does
        not change the decision, the groups of applicants with outcomes only change f_t, through
        ``fairness`` or ``constraints="per_group"``; ``"audit"``: groups change no decision; they
        are read, checked and counted.
    pos_label
        Label of the good outcome; None if outcomes are 0 and 1, False and True, or −1 and 1.
    random_state
        Seed of the draws.

    Attributes
    ----------
    classes_ : outcome labels.
    groups_ : group values by code, None without groups.
    bound_ : α, the bound on mistakes; known before ``fit``, too.
    rounds_ : the record of each round, a tuple of ``FiniteRound``.
    policies_ : f_t, EXPLOIT_t, g and acceptance probabilities by cell, a tuple of ``CellPolicy``.
    counts_ : counts by cell, ``CellCounts``.
    group_counts_ : applicants, accepted and explored by round and group, ``GroupCount``.
    coverage_ : w by cell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> job, good_share = rng.integers(5, size=4000), np.array([0.95, 0.9, 0.9, 0.6, 0.5])
    >>> repays = (rng.random(4000) < good_share[job]).astype(int)
    >>> history, batch = slice(0, 2000), slice(2000, 4000)
    >>> clf = FiniteClassifier(random_state=0)
    >>> clf = clf.fit(job[history], repays[history], accepted=job[history] < 2)
    >>> decided = clf.decide(job[batch])
    >>> clf = clf.observe(decided.ids[decided.accepted], repays[batch][decided.accepted])
    >>> clf.rounds_[0].n_exploited, clf.rounds_[0].n_explored, clf.policies_[0].exploit.tolist()
    (823, 71, [True, True, False, False, False])
    """

    reads_cells: ClassVar[bool] = True  # numbers are labels, not quantities
    learner = None
    _intake: CellIntake

    def __init__(
        self,
        utility: Utility | None = None,
        budget: FdrBudget | None = None,
        coverage: CellCoverage | CoverageRule | None = None,
        strategy: Strategy | Callable[..., ArrayLike] | None = None,
        *,
        hypothesis: Literal["cells", "threshold", "threshold_per_group"] = "cells",
        constraints: Literal["joint", "per_group"] = "joint",
        fairness: RateParity | None = None,
        weights: Literal["applicants", "none"] = "applicants",
        gap: float = 1e-4,
        cut_score: Callable[..., ArrayLike] | None = None,
        min_outcomes: int = 1,
        first_round: Literal["matched", "cut", "learned"] = "matched",
        maturity: int | None = None,
        noise: OutcomeNoise | None = None,
        group_mode: Literal["aware", "blind", "audit"] = "aware",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.utility = utility
        self.budget = budget
        self.coverage = coverage
        self.strategy = strategy
        self.hypothesis = hypothesis
        self.constraints = constraints
        self.fairness = fairness
        self.weights = weights
        self.gap = gap
        self.cut_score = cut_score
        self.min_outcomes = min_outcomes
        self.first_round = first_round
        self.maturity = maturity
        self.noise = noise
        self.group_mode = group_mode
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        accepted: Any = None,
        sensitive_features: Any = None,
        ids: Any = None,
        past_policy: Any = None,
        domain: Any = None,
    ) -> FiniteClassifier:
        """Start from a history of past decisions.

        Parameters
        ----------
        X
            Features of all applicants: discrete columns, or a column of cell numbers. None for no
            history, if ``domain`` and ``past_policy`` are given.
        y
            Outcomes; read only where accepted.
        accepted
            Which applicants were accepted; None means all.
        sensitive_features
            Group of each applicant.
        ids
            Names of the applications, integers or strings; None means consecutive integers.
        past_policy
            f_0 if it is known: a function of (X, group) of cells, or of X alone if groups may not
            decide, that returns probabilities of acceptance; or an array over the cells of the
            domain. None means the accepted share of each cell of the history.
        domain
            Cells known beforehand, a pair of their features and groups (None if cells have no
            groups), numbered in this order. Other cells are added when their applicants come.
        """
        self._begin(X, y, accepted, sensitive_features, ids, past_policy, domain)
        return self

    def _start(
        self, X: Any, y: Any, accepted: Any, groups: Any, ids: Any, past_policy: Any, domain: Any
    ) -> None:
        """Start from a history, without anything learned before."""
        self._check_options()
        self._intake = CellIntake(self.pos_label, self.group_mode)
        domain_table = self._intake.read_domain(domain, grouped=groups is not None)
        history = self._intake.place_history(domain_table, X, y, accepted, groups, ids)
        if self.fairness is not None and self._intake.sensitive is None:
            raise InputError(
                "fairness is a constraint between groups; pass sensitive_features to fit."
            )
        table, n_domain = history.placed.table, 0 if domain_table is None else len(domain_table)
        self.classes_ = self._intake.classes
        self.groups_ = self._intake.groups
        self.n_features_in_ = len(table.columns)
        self._seed = seed_of(self.random_state)
        self._past, acceptance = read_past(past_policy, history, n_domain, self.group_mode)
        self._people = PeopleStore(columns={"cell": np.int32(0)}, keep_rejected=True)
        self._record_applicants(history, history.accepted, 0, history.outcome)
        known = self._rule.initial(acceptance, self._count(len(table)).outcomes, self._past.given)
        self._state = CellState(table, acceptance, known, n_domain)
        self._start_counts()
        self._rounds: list[FiniteRound] = []
        self._policies: list[CellPolicy] = []
        self._corrections = []
        self._carried = 0.0
        self._last: LastRound | None = None
        self._fitted = {name: getattr(self, name) for name in _FIXED}

    def decide(
        self,
        X: Any,
        *,
        sensitive_features: Any = None,
        ids: Any = None,
        unlike_history: bool = False,
    ) -> Decisions:
        """Decide a batch: steps 1 to 3 and 5 of Algorithm 1.

        An empty batch is not a round: nothing is decided or recorded.

        Parameters
        ----------
        X
            Features of the applicants.
        sensitive_features
            Their groups; needed if ``fit`` got groups.
        ids
            Names of the applications, never used before; None means the next integers.
        unlike_history
            Decide although columns differ much from the history; see ``Checks``.
        """
        check_is_fitted(self, "_fitted")
        self._check_options()
        check_unchanged(self, self._fitted)
        batch = self._intake.place_batch(
            self._state.table, X, sensitive_features, ids, self._checks, unlike_history
        )
        self._people.check_new(batch.ids, batch.bits)
        placed, n, t = batch.placed, len(batch), len(self._rounds) + 1
        cell = placed.cell
        if n == 0:
            nothing, flags = np.zeros(0), np.zeros(0, np.bool_)
            empty = batch.ids, flags, flags, nothing, nothing, t, batch.backend
            return Decisions(*empty, group_mode=self.group_mode)

        # Step 1. Count the applicants, split the cells into EXPLOIT_t and EXPLORE_t, learn f_t.
        state = self._state.extend(placed.table, self._past, self._rule)
        counts = self._count(len(state.table), t)
        counts = replace(counts, applicants=counts.applicants + placed.heads)
        exploit = state.known
        if t > 1:
            exploit = state.exploit(self._rule, counts.outcomes, self.min_outcomes)
        if self._follows_past(t):
            f, score = _follow_past(state.summed >= self._past_cut), state.summed
            exploit = exploit | (f.accepts & (self.first_round == "matched"))
        else:
            f, score = self._learn(t, state.table, counts, exploit), counts.good_share()

        # Step 2. Exploit: accept the cells that f_t accepts.
        accepts = f.accepts & exploit
        n_exploit = int(placed.heads[accepts].sum())

        # Step 3. Explore as many as the budget allows, with probability proportional to g.
        n_candidates = int(placed.heads[~exploit].sum())
        n_explore, carried = self._budget.allot(t, n_exploit, self._carried, n_candidates)
        sizes = _cell_sizes(self._strategy, placed, score, exploit)
        draw = self._draw(t, batch, exploit, sizes, n_exploit, n_explore)
        explore = np.flatnonzero(~exploit[cell])
        acceptance = np.where(exploit, accepts, draw.chance(sizes.within, state.table.group))
        acceptance[cell[explore]] = draw.probability
        accepted = accepts[cell]
        accepted[explore[draw.drawn]] = True

        # Step 5. Update coverage.
        first_batch = self._rounds[0].n_people if self._rounds else n
        gained = self._rule.gained(sizes.g, acceptance, n, first_batch)

        record = FiniteRound(
            round=t,
            n_people=n,
            n_exploit_region=n - n_candidates,
            n_cells=len(state.table),
            n_exploit_cells=int(exploit.sum()),
            n_exploited=n_exploit,
            n_explored=int(draw.drawn.sum()),
            alpha_exploit=self._budget.alpha_exploit(t),
            carried=carried,
            n_outcomes=int(counts.outcomes[exploit].sum()),
            estimated_utility=f.utility,
            estimated_fdr=f.fdr,
            selection_rate=f.selection_rate,
            disparity=f.disparity,
            gap=f.gap,
            feasible=f.feasible,
            notes=self._notes(t, f, exploit, n, n - n_candidates, n_exploit),
            thresholds=(),
            calibrated=True,
            effective_sample_size=float(counts.outcomes[exploit].sum()),
            follows=self.first_round if self._follows_past(t) else "",
            group_mode=self.group_mode,
        )
        # Everything that can fail has been computed; from here on the round is recorded.
        self._record_applicants(batch, accepted, t)
        self._intake.passed(batch)
        self._state = replace(state, summed=state.summed + gained, known=exploit)
        self._policies.append(CellPolicy(exploit, accepts, score, sizes.g, acceptance))
        self._rounds.append(record)
        self._carried = carried
        self._last = LastRound(sizes.group_factor, draw.left, draw.others, counts.pooled_share)
        decided = Decisions(
            batch.ids,
            accepted,
            exploit[cell],
            score[cell],
            acceptance[cell],
            t,
            batch.backend,
            group_mode=self.group_mode,
        )
        return self._counted(batch, decided)

    def observe(self, ids: Any, outcomes: Any) -> Self:
        """Record outcomes of accepted applicants: step 4 of Algorithm 1.

        Outcomes may arrive in any order, in parts and many rounds late; the same outcome may arrive
        again.

        Parameters
        ----------
        ids
            Names of the applications.
        outcomes
            Their outcomes, in the labels of the history.
        """
        return self._record_outcomes(ids, outcomes, correcting=False)

    def correct(self, ids: Any, outcomes: Any) -> Self:
        """Replace recorded outcomes that turned out to be wrong.

        Parameters
        ----------
        ids
            Names of applications with recorded outcomes.
        outcomes
            The right outcomes.
        """
        return self._record_outcomes(ids, outcomes, correcting=True)

    def withdraw(self, ids: Any) -> Self:
        """Record that the outcomes of accepted applicants will never be known.

        Nothing is learned from these applicants from now on, even if an outcome is recorded. If an
        outcome arrives after all, record it with ``correct``.

        Parameters
        ----------
        ids
            Names of accepted applications.
        """
        names = self._read_ids(ids)
        self._people.withdraw(names, id_bits(names))
        return self

    def forget(self, ids: Any) -> Self:
        """Forget applicants for good: their names, cells, groups and outcomes.

        Counts by cell no longer include them, and the next round learns without them. A cell
        without applicants is dropped, with its feature values that no other cell has, unless it
        belongs to the ``domain``. A cell that loses outcomes and keeps fewer than ``min_outcomes``
        is explored again. Decisions, ``rounds_``, ``group_counts_``, coverage, and the past
        policies on the remaining cells do not change.

        Parameters
        ----------
        ids
            Names of applications, accepted or rejected, of rounds or of the history.
        """
        names = self._read_ids(ids)
        if names.size == 0:
            return self
        n_cells = len(self._state.table)
        before = self._count(n_cells)
        self._people.forget(names, id_bits(names))
        after = self._count(n_cells)
        # Before the first round f_0 decides in the cells it covers, with outcomes or without.
        needed = self.min_outcomes if self._rounds else 0
        short = (after.outcomes < before.outcomes) & (after.outcomes < needed)
        self._state = replace(self._state, known=self._state.known & ~short)
        kept = (after.applicants > 0) | (np.arange(n_cells) < self._state.n_domain)
        if not kept.all():
            self._state = self._state.select(kept)
            self._policies = [policy.select(kept) for policy in self._policies]
            number = np.cumsum(kept) - 1
            for rows in self._tables():
                rows["cell"][:] = number[rows["cell"]]
        self._forget_corrections(names)
        return self

    def accepts(self, X: Any, *, sensitive_features: Any = None) -> Flags:
        """Return which applicants f_t of the last round accepts; none in cells unknown to it."""
        f = self._last_policy().accepts
        return np.asarray(self._by_applicant(f, X, sensitive_features, False), dtype=np.bool_)

    def acceptance_probability(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the probability with which the policy of the last round accepts applicants.

        It is 0 or 1 in the exploit region of that round. Elsewhere it is the probability of being
        drawn: that of the applicants of the same cell in its batch or, for a cell without
        applicants, that of an applicant in the place of an average one.
        """
        p = self._last_policy().acceptance
        placed = self._intake.place_applicants(self._state.table, X, sensitive_features)
        if len(placed.table) > p.size:
            p = np.concatenate([p, self._acceptance_of_new(placed.table, p.size)])
        return np.asarray(p[placed.cell])

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return applicants with the scores that f_t of the last round gives to their cells.

        A cell that was not known then has the share of good among all outcomes.
        """
        f, pooled = self._last_policy().score, self.counts_.pooled_share
        score = self._by_applicant(f, X, sensitive_features, pooled)
        return Scored(CellScores(score), X, np.zeros(n_rows(X), np.intp))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the observed share of each outcome in the applicants' cells.

        Columns are in the order of ``classes_``. A cell without outcomes has the share among all
        outcomes.
        """
        counts = self.counts_
        share = self._by_applicant(counts.good_share(), X, sensitive_features, counts.pooled_share)
        return self._per_class(share)

    def coverage_of(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the coverage w of the applicants' cells in the next round."""
        w: Floats = self._by_applicant(self.coverage_, X, sensitive_features, 0.0)
        return w

    @property
    def rounds_(self) -> Records[FiniteRound]:
        """The record of each round."""
        check_is_fitted(self, "_rounds")
        return Records(self._rounds)

    @property
    def policies_(self) -> tuple[CellPolicy, ...]:
        """The policy of each round, by cell."""
        check_is_fitted(self, "_policies")
        return tuple(self._policies)

    @property
    def counts_(self) -> CellCounts:
        """Counts of applicants and recorded outcomes, by cell."""
        check_is_fitted(self, "_state")
        return self._count(len(self._state.table))

    @property
    def coverage_(self) -> Floats:
        """Coverage w in the next round, by cell."""
        check_is_fitted(self, "_state")
        counts = self._count(len(self._state.table), len(self._rounds) + 1)
        return self._rule.coverage(self._state.summed, counts.outcomes)

    @property
    def n_outcomes_(self) -> int:
        """Number of recorded outcomes, those of the history included."""
        return int(self.counts_.outcomes.sum())

    @property
    def cells_(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Features and groups of the known cells, in the order of all arrays over cells.

        All groups are the same if cells have no groups.
        """
        check_is_fitted(self, "_state")
        table = self._state.table
        return table.X, table.groups[table.group]

    # Applicants and their outcomes.

    def _tables(self) -> list[Any]:
        rejected = self._people.rejected
        assert rejected is not None
        return [*self._people.parts, rejected]

    def _record_applicants(
        self, batch: Any, accepted: Flags, round: int, outcome: NDArray[np.int8] | None = None
    ) -> None:
        group, cell = batch.for_fit().group, {"cell": batch.placed.cell}
        self._people.record(batch.bits, accepted, round, group=group, outcome=outcome, columns=cell)

    @property
    def _counts_by_group(self) -> bool:
        """Whether outcomes are counted by group within a cell, because a fit compares groups."""
        return self.group_mode == "blind" and fits_read_groups(self)

    def _count(self, n_cells: int, t: int | None = None) -> CellCounts:
        """Count applicants and the outcomes that count in round t; None means all recorded."""
        accepted, rejected = self._tables()
        applicants = np.bincount(accepted["cell"], minlength=n_cells)
        applicants += np.bincount(rejected["cell"], minlength=n_cells)
        waiting = None if t is None else self._people.waiting(t, self.maturity)
        by_group = self._counts_by_group
        counted = accepted.counted(waiting) & (accepted["group"] >= 0 if by_group else True)
        good = counted & (accepted["outcome"] == 1)
        bad = counted & ~good  # missing outcomes of mature rounds included
        n_groups = self._intake.n_groups if by_group else 1
        bins = accepted["cell"].astype(np.intp) * n_groups
        if n_groups > 1:
            bins += accepted["group"]
        sums = tuple(
            np.bincount(bins[flags], minlength=n_cells * n_groups).reshape(n_cells, n_groups)
            for flags in (good, bad)
        )
        return CellCounts(
            applicants,
            sums[0].sum(axis=1),
            sums[1].sum(axis=1),
            (sums[0], sums[1]) if by_group else None,
        )

    def _record_outcomes(self, ids: Any, outcomes: Any, *, correcting: bool) -> Self:
        names = self._read_ids(ids)
        if names.size:
            outcome = self._intake.read_outcomes(outcomes, names.shape[0])
            changes = self._people.observe(names, id_bits(names), outcome, correcting=correcting)
            if correcting:
                self._remember_corrections(
                    len(self._rounds), names[changes.at], changes.before, changes.after
                )
        return self

    def _read_ids(self, ids: Any) -> NDArray[Any]:
        check_is_fitted(self, "_fitted")
        return self._intake.read_ids(ids)

    # Steps of a round.

    def _follows_past(self, t: int) -> bool:
        return t == 1 and self._past.decides and self.first_round != "learned"

    @property
    def _past_cut(self) -> float:
        return self._past.cut if self.first_round == "matched" else 0.5

    def _learn(self, t: int, table: CellTable, counts: CellCounts, exploit: Flags) -> ExactFit:
        """Return the best classifier on η_w, with its FDR corrected for noise."""
        noise = OutcomeNoise() if self.noise is None else self.noise
        by_group = self._counts_by_group
        good, bad = eta(counts, exploit, self.weights, by_group=by_group)
        score = None
        if self.cut_score is not None:
            score = call_on_cells(self.cut_score, table, slice(None), self.group_mode)
        fit = best_classifier(
            good,
            bad,
            None if by_group else table.group,
            utility=noise.recorded_utility(Accuracy() if self.utility is None else self.utility),
            max_fdr=noise.recorded_fdr(self._budget.max_fdr(t)),
            min_selection_rate=max(0.0, self._budget.min_selection_rate - self._budget.slack),
            constraints=self.constraints,
            hypothesis=self.hypothesis,
            score=score,
            fairness=self.fairness,
            gap=self.gap,
        )
        return replace(fit, fdr=noise.true_fdr(fit.fdr)) if fit.accepts.any() else fit

    def _draw(
        self,
        t: int,
        batch: CellBatch,
        exploit: Flags,
        sizes: _CellSizes,
        n_exploit: int,
        n_explore: int,
    ) -> Draw:
        """Draw from EXPLORE_t with probability proportional to g; entries are its rows in order."""
        table, cell = batch.placed.table, batch.placed.cell
        # An applicant outside the batch takes the place of an average one, exploited or not.
        n_exploit_then = n_exploit * (1 - 1 / len(batch))
        n_explore_then = self._budget.allowed(t, n_exploit_then, self._carried)
        rows = np.flatnonzero(~exploit[cell])
        if rows.size == 0:
            return Draw.of_nobody(n_explore_then, table.groups.size)
        draw = fixed_size_draw(
            sizes.within[cell[rows]],
            n_explore,
            keyed_bits(batch.bits[rows], round_key(self._seed, t, _DRAW)),
            round_key(self._seed, t, _START),
            table.group[cell[rows]],
            table.groups.size,
            sizes.shares,
            n_batch=len(batch),
        )
        if 0 <= n_explore_then < n_explore:
            draw = replace(draw, left=draw.left * (n_explore_then / n_explore))
        return draw

    def _notes(
        self, t: int, f: ExactFit, exploit: Flags, n: int, n_known: int, n_exploit: int
    ) -> tuple[Note, ...]:
        """Return what went differently from what was asked for; warn if it needs attention."""
        n_so_far = n + sum(record.n_people for record in self._rounds)
        ever_known = n_known or any(record.n_exploit_region for record in self._rounds)
        max_fdr = self._budget.max_fdr(t)
        if n_so_far >= _ENOUGH_TO_WARN and not (ever_known and exploit.any()):
            note = Note("no_cell_known")
        elif not f.feasible:
            note = Note("no_cell_allowed", {"max_fdr": max_fdr})
        elif n_exploit == 0 and n_known >= _ENOUGH_TO_WARN:
            facts = {"max_fdr": max_fdr, "good": plain(self._intake.good)}
            note = Note("none_worth_accepting", facts)
        else:
            return (Note("gap", {"gap": f.gap}),) if f.gap > self.gap + 1e-9 else ()
        warnings.warn(note_text(note), LearningWarning, stacklevel=3)
        return (note,)

    # Questions about applicants.

    def _last_policy(self) -> CellPolicy:
        check_is_fitted(self, "_fitted")
        if not self._policies:
            raise InputError("no round has been decided yet, so there is no f_t; call decide.")
        return self._policies[-1]

    def _by_applicant(self, values: Any, X: Any, sensitive_features: Any, fill: Any) -> Any:
        """Return the value of each applicant's cell; ``fill`` if the cell is not known."""
        placed = self._intake.place_applicants(self._state.table, X, sensitive_features)
        by_cell = np.full(len(placed.table), fill, dtype=values.dtype)
        by_cell[: values.size] = values
        return by_cell[placed.cell]

    def _acceptance_of_new(self, table: CellTable, n_known: int) -> Floats:
        """Return what the last round would have done in the cells after the first ``n_known``."""
        last, t = self._last, len(self._rounds)
        assert last is not None
        past, group = self._past.new_cells(table, n_known), table.group[n_known:]
        exploit = self._rule.initial(past, np.zeros(past.size, np.int64), self._past.given)
        accepts, score = np.zeros(past.size), np.full(past.size, last.pooled_share)
        if self._follows_past(t):
            accepts, score = (past >= self._past_cut).astype(np.float64), past
            exploit |= (accepts > 0) & (self.first_round == "matched")
        size = self._strategy.person_factor(table.X[n_known:], score, group)
        size = np.asarray(size, np.float64) * last.group_factor[group]
        check_sizes(size, self._strategy)
        return np.where(exploit, accepts, chance(size, last.left[group], last.others[group]))

    # Options.

    def _check_options(self) -> None:
        """Raise unless every option is allowed."""
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(f"{name} must be one of {allowed}, got {value!r}.")
        for name, kind in _TYPES.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InputError(f"{name} must be a {kind.__name__} or None, got {value!r}.")
        if not 0 <= self.gap < 1:
            raise InputError(f"gap is a share and must be in [0, 1), got {self.gap}.")
        if not self.min_outcomes >= 0:
            raise InputError(f"min_outcomes must be 0 or more, got {self.min_outcomes}.")
        check_rounds("maturity", self.maturity, least=0)
        as_cell_coverage(self.coverage)
        if self.cut_score is not None and not callable(self.cut_score):
            raise InputError(
                f"cut_score must be a function of (X, group) or None, got {self.cut_score!r}."
            )
        if as_strategy(self.strategy).is_limited:
            raise InputError(
                f"limits on exploration are not supported on cells, got {self.strategy!r}; use "
                f"PartialFeedbackClassifier, or a strategy without limits."
            )
        self._check_group_mode()

    def _check_group_mode(self) -> None:
        """Raise if an option needs groups that the mode hides."""
        check_group_mode(self)
        if self.cut_score is not None:
            check_reads_no_group("cut_score", self.cut_score, self.group_mode)

    @property
    def _rule(self) -> CellCoverage:
        return as_cell_coverage(self.coverage)

    @property
    def bound_(self) -> float:
        """α of the budget, known before ``fit``, too."""
        return self._budget.alpha

    @property
    def _budget(self) -> FdrBudget:
        return FdrBudget() if self.budget is None else self.budget

    @property
    def _strategy(self) -> Strategy:
        return self._allowed(as_strategy(self.strategy))


def _follow_past(accepts: Flags) -> ExactFit:
    """Return f_0 as the classifier of a round."""
    return ExactFit(
        accepts=accepts,
        utility=np.nan,
        gap=np.nan,
        fdr=np.nan,
        selection_rate=np.nan,
        disparity=np.nan,
        feasible=True,
    )


@dataclass(frozen=True, eq=False)
class CellScores:
    """The scores of some applicants' cells, in the form of a likelihood."""

    reads_group: ClassVar[bool] = True
    value: Floats

    def score(self, X: Any, group: NDArray[np.intp]) -> Floats:  # noqa: ARG002
        """Return the scores."""
        return self.value


@dataclass(frozen=True)
class _CellSizes:
    """Sizes of applicants in the draw, by cell.

    Attributes
    ----------
    within
        Size by the strategy; with quotas it compares applicants of the same group only.
    shares
        Share of the draw of each group; None without quotas.
    group_factor
        The factor of each group in ``within``.
    g
        Size that compares applicants of all groups, quotas included: proportional to the
        probability of an applicant in a draw without certainties.
    """

    within: Floats
    shares: Floats | None
    group_factor: Floats
    g: Floats


def _cell_sizes(
    strategy: Strategy, placed: PlacedApplicants, score: Floats, exploit: Flags
) -> _CellSizes:
    """Return g(x, z; f_t) of every known cell, with or without applicants."""
    table, group, n_groups = placed.table, placed.table.group, placed.table.groups.size

    def by_group(values: Any) -> Floats:
        return np.bincount(group, values, n_groups).astype(np.float64)

    candidates = placed.heads * ~exploit
    in_batch, in_explore = by_group(placed.heads), by_group(candidates)
    features = table.X if strategy.reads_features else None
    group_factor = strategy.group_factor(in_batch, in_explore)
    within = np.asarray(strategy.person_factor(features, score.copy(), group), dtype=np.float64)
    within = within * group_factor[group]
    check_sizes(within, strategy)
    shares = strategy.group_shares(in_explore)
    if shares is None:
        return _CellSizes(within, None, group_factor, within)
    # A group without candidates counts as a single average applicant, so that g > 0 in its cells.
    mean = by_group(within) / np.maximum(by_group(None), 1)
    total = np.where(in_explore > 0, by_group(candidates * within), mean)
    quotas = strategy.group_shares(np.maximum(in_explore, 1.0))
    assert quotas is not None
    g = within * (quotas / np.where(total > 0, total, 1.0))[group]
    return _CellSizes(within, shares, group_factor, g)
