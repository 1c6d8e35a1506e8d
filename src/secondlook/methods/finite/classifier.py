"""Algorithm 1 of "Fair Classification with Partial Feedback" on finitely many kinds of people.

Everything is a head count by cell: a round is a group-by of the batch, a small program, and a draw.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from secondlook.core.budget import FdrBudget
from secondlook.core.coverage import CoverageRule
from secondlook.core.decisions import Decisions
from secondlook.core.fairness import RateParity
from secondlook.core.noise import OutcomeNoise
from secondlook.core.strategies import Strategy
from secondlook.core.utility import Utility
from secondlook.errors import InputError, LearningWarning
from secondlook.methods.estimator import check_unchanged
from secondlook.methods.finite.coverage import CellCoverage
from secondlook.methods.finite.exploration import draw_from_cells, sizes_of_cells
from secondlook.methods.finite.intake import CellIntake
from secondlook.methods.finite.learner import ExactFit
from secondlook.methods.finite.learning import ENOUGH_TO_TELL, note_of_round
from secondlook.methods.finite.ledger import Ledger
from secondlook.methods.finite.past import read_past
from secondlook.methods.finite.policies import CellPolicies, LastRound
from secondlook.methods.finite.records import CellPolicy, FiniteRound
from secondlook.methods.finite.settings import FIXED, check_settings
from secondlook.methods.finite.state import CellState
from secondlook.people.ids import seed_of

__all__ = ["FiniteClassifier"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class FiniteClassifier(CellPolicies):
    """Decide batches of people who fall into cells, with exact counts and an exact learner.

    A cell is a distinct row of features in a group, or whatever the group where groups may not
    decide. Cost grows with the number of cells, but for counting people and drawing among them. A
    cell that has not been seen before is unexplored.

    Parameters
    ----------
    utility
        What decisions are worth; None means ``Accuracy()``.
    budget
        α and how it is shared between exploiting and exploring, λ and ε; None means
        ``FdrBudget()``.
    coverage
        Which cells count as known: ``NormalisedG`` (None means this one), ``CountedOutcomes``,
        ``SummedAcceptance`` or ``SumOfG``.
    strategy
        Whom to explore: a ``Strategy``, or a function of (X, score, group) of the cells; None means
        ``ScoreWeighted()``. A cell's score is its observed share of good, or the share of good
        among all outcomes where it has none.
    hypothesis
        ``"cells"``: f_t may be any 0/1 function of the cells; ``"threshold"``: a cut on a score;
        ``"threshold_per_group"``: a cut per group.
    constraints
        ``"joint"``: the bounds on FDR and selection rate hold over everybody; ``"per_group"``:
        within each group.
    fairness
        Constraint between groups on f_t.
    weights
        ``"applicants"``: f_t is learned on the paper's η_w; ``"none"``: on the observed outcomes as
        they are.
    gap
        Relative optimality gap to which f_t is proven; 0 for the best itself.
    cut_score
        Function of (X, group) of the cells, or of X alone where groups may not decide, that gives
        the score for cuts; None means the cell's share of good.
    min_outcomes
        Observed outcomes that a cell needs, besides w > τ, to move from EXPLORE to EXPLOIT. With 0
        coverage alone decides, and a cell may be given up without a single outcome.
    first_round
        ``"past"``: round 1 decides as f_0 does (Algorithm 1); ``"learned"``: by what the history
        teaches. With nobody rejected in the history and no past policy given, round 1 is learned.
    maturity
        Rounds after which outcomes that have not come count as bad; until then a round of which
        some are still to come counts nowhere. None: outcomes count as soon as they come, the others
        not at all, which is right only if bad ones come neither earlier nor later than good ones.
    noise
        How often outcomes are recorded wrongly: bounds, estimated FDR and utility are corrected for
        it. None means never.
    group_mode
        What groups may change. ``"aware"``: everything; ``"blind"``: the group of the person
        decided on changes nothing, those of people with outcomes only f_t, through ``fairness`` or
        ``constraints="per_group"``; ``"audit"``: no group changes any decision, groups are read,
        checked and counted.
    pos_label
        Label of the good outcome; None means the larger of the two.
    random_state
        Seed of the draws.

    Attributes
    ----------
    classes_ : outcome labels.
    groups_ : group values by code, None without groups.
    rounds_ : what happened in each round, a tuple of ``FiniteRound``.
    policies_ : f_t, EXPLOIT_t, g and acceptance probabilities by cell, a tuple of ``CellPolicy``.
    counts_ : head counts by cell, ``Counts``.
    group_counts_ : who applied, was accepted and explored by round and group, ``GroupCount``.
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
        first_round: Literal["past", "learned"] = "past",
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
            Features of everybody who applied: discrete columns, or one column of cell numbers. None
            for no history, if ``domain`` and ``past_policy`` are given.
        y
            Outcomes; read only where accepted.
        accepted
            Who was accepted; None means everybody.
        sensitive_features
            Group of each person.
        ids
            Names of the applications, integers or strings; None means consecutive integers.
        past_policy
            f_0 if it is known: a function of (X, group) of cells, or of X alone where groups may
            not decide, that returns probabilities of acceptance; or an array over the cells of the
            domain. None means the share of each cell of the history that was accepted.
        domain
            Cells known beforehand, a pair of their features and groups, None for the latter where
            cells have none; they are numbered as they stand there. Others are added when somebody
            of them applies.
        """
        self._begin(X, y, accepted, sensitive_features, ids, past_policy, domain)
        return self

    def _start(
        self, X: Any, y: Any, accepted: Any, groups: Any, ids: Any, past_policy: Any, domain: Any
    ) -> None:
        """Forget everything and start from a history."""
        check_settings(self)
        self._intake: CellIntake = CellIntake(self.pos_label, self.group_mode)
        table = self._intake.read_domain(domain, grouped=groups is not None)
        history = self._intake.place_history(table, X, y, accepted, groups, ids)
        if self.fairness is not None and not self._intake.has_groups:
            raise InputError(
                "fairness is a constraint between groups; pass sensitive_features to fit."
            )
        cells, n_named = history.placed, 0 if table is None else len(table)
        self.classes_ = self._intake.classes
        self.groups_ = self._intake.groups
        self.n_features_in_ = len(cells.table.columns) - 1
        self._seed = seed_of(self.random_state)
        self._past = read_past(past_policy, history, n_named, self.group_mode)
        self._ledger = Ledger(self._intake.n_fit_groups)
        fit_group = history.group if self.group_mode == "blind" else None
        self._ledger.record(
            history.ids, history.bits, history.accepted, cells.cell, history.outcome, fit_group
        )
        self._state = CellState.begin(
            cells.table,
            cells.heads,
            self._ledger.outcomes(len(cells.table)),
            self._past,
            self._rule,
            n_named=n_named,
            by_group=fit_group is not None,
        )
        self._start_counts()
        self._rounds: list[FiniteRound] = []
        self._policies: list[CellPolicy] = []
        self._corrections = []
        self._carried = 0.0
        self._last = None
        self._fitted = {name: getattr(self, name) for name in FIXED}

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide a batch: steps 1 to 3 and 5 of Algorithm 1.

        An empty batch is no round: nothing is decided and nothing recorded.

        Parameters
        ----------
        X
            Features of the people who apply, none or ten million.
        sensitive_features
            Their groups; needed if ``fit`` got groups.
        ids
            Names of the applications, never used before; None means the next integers.
        """
        check_is_fitted(self, "_fitted")
        check_settings(self)
        check_unchanged(self, self._fitted)
        batch = self._intake.place_batch(self._state.table, X, sensitive_features, ids)
        self._ledger.check_new(batch.ids, batch.bits)
        placed, n, t = batch.placed, len(batch), len(self._rounds) + 1
        if n == 0:
            nobody, nothing = np.zeros(0, np.bool_), np.zeros(0)
            args = batch.ids, nobody, nobody, nothing, nothing, t, batch.backend
            return Decisions(*args, group_mode=self.group_mode)

        # Step 1. Count who applies, split the cells into EXPLOIT_t and EXPLORE_t, learn f_t.
        state = self._state.with_batch(placed, self._past, self._rule)
        known = self._counting(state, t)
        exploit = self._exploit_of_round(t, known)
        f, score = self._classifier_of_round(t, known, exploit), self._score_of_round(t, known)

        # Step 2. Exploit: accept whom f_t accepts.
        accepts = f.accepts & exploit
        n_exploit = int(placed.heads[accepts].sum())

        # Step 3. Explore as many as the budget allows, with probability proportional to g.
        n_candidates = int(placed.heads[~exploit].sum())
        n_explore, carried = self._budget.allot(t, n_exploit, self._carried, n_candidates)
        sizes = sizes_of_cells(self._strategy, placed, score, exploit)
        instead = self._budget.allowed(t, n_exploit * (1 - 1 / n), self._carried)
        drawn, chance = draw_from_cells(
            placed,
            batch.bits,
            exploit,
            sizes,
            n_explore,
            seed=self._seed,
            round=t,
            n_instead=instead,
        )
        acceptance = np.where(exploit, accepts, chance)
        accepted = accepts.take(placed.cell)
        accepted[drawn] = True

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
            n_explored=drawn.size,
            alpha_exploit=self._budget.alpha_exploit(t),
            carried=carried,
            n_outcomes=int(known.counts.outcomes[exploit].sum()),
            estimated_utility=f.utility,
            estimated_fdr=f.fdr,
            selection_rate=f.selection_rate,
            disparity=f.disparity,
            gap=f.gap,
            feasible=f.feasible,
            note=self._note(t, f, exploit, n, n - n_candidates, n_exploit),
            group_mode=self.group_mode,
        )
        fit_group = batch.group if self.group_mode == "blind" else None
        self._ledger.record(batch.ids, batch.bits, accepted, placed.cell, group=fit_group)
        n_groups = self._head_counts.view().shape[2]
        heads = batch.heads_by_group(accepts, accepted, drawn, n_groups)
        self._head_counts.append(heads[None])
        self._intake.has_seen(batch.ids)
        self._state = state.after_round(gained, exploit)
        self._policies.append(CellPolicy(exploit, accepts, score, sizes.g, acceptance))
        self._rounds.append(record)
        self._carried = carried
        self._last = LastRound(known, placed.heads, n_explore, instead)
        return Decisions(
            batch.ids,
            accepted,
            exploit.take(placed.cell),
            score.take(placed.cell),
            acceptance.take(placed.cell),
            t,
            batch.backend,
            group_mode=self.group_mode,
        )

    def _note(
        self, t: int, f: ExactFit, exploit: Flags, n: int, n_known: int, n_exploit: int
    ) -> str:
        so_far = n + sum(one.n_people for one in self._rounds)
        ever_known = n_known or any(one.n_exploit_region for one in self._rounds)
        note, aloud = note_of_round(
            f,
            max_fdr=self._budget.max_fdr(t),
            gap=self.gap,
            n_known=n_known,
            n_exploit=n_exploit,
            stuck=not (ever_known and exploit.any()) and so_far >= ENOUGH_TO_TELL,
            good=self._intake.good,
        )
        if aloud:
            warnings.warn(note, LearningWarning, stacklevel=3)
        return note
