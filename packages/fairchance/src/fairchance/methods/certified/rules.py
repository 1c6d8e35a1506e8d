"""The rules of a certificate: the promise, the division of δ and time, and the allowed options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairchance.core.limits import Limited
from fairchance.core.noise import OutcomeNoise
from fairchance.core.saved import saved
from fairchance.core.strategies import Strategy, Uniform, as_strategy
from fairchance.core.utility import Accuracy, Utility
from fairchance.errors import InputError
from fairchance.methods.estimator import check_group_mode, check_rounds

__all__ = ["FIXED", "Rules", "check_certified_settings", "check_cold_start", "coin_strategy"]

_FIRST_STAGE = 0.8  # of δ; restarts share the rest
_LEVELS = (0.05, 0.25, 0.25, 0.25, 0.20)  # of a stage's δ, ladder by ladder
# Beside the lender outcomes are many from the first round on, and late: the first ranking is tested
# for a year before the second one has any evidence.
_LEVELS_BESIDE = (0.35, 0.20, 0.20, 0.15, 0.10)
_HISTORY_PART = 0.2  # of δ, if the history is tested too
# Share of the horizon, and own outcomes. Any time is allowed: a ladder is tested on later rounds.
# About twice as late each time: what the first rounds teach is most of what a ranking lacks.
_FREEZES = ((0.0, 0), (0.03, 60), (0.08, 200), (0.2, 400), (0.45, 600))
_SOFTNESS = (0.3, 0.3, 0.22, 0.15, 0.1)  # of the share that a ladder's model thinks it can accept
_OTHER_BOUNDS = (1 / 3, 2 / 3, 4 / 3, 5 / 3)  # times α: bounds that the curve reports on
_USUAL_HORIZON = 40  # rounds, if none is given
_BETS_AGAINST_ALPHA = 0.2  # of the monitor's δ; comparisons with earlier rounds get the rest
_EVEN_LOOKS = 20  # about so many looks get equal parts, later ones less
_DOUBLINGS = 20  # further rankings then, each after twice as many rounds as the one before

# Options that the tests, and so the promise, rest on: they cannot change after ``fit``.
FIXED = (
    "alpha",
    "delta",
    "utility",
    "learner",
    "past_selection",
    "horizon",
    "ranks",
    "certify",
    "floor",
    "handover",
    "evidence",
    "per_person",
    "shock",
    "exploration_price",
    "strategy",
    "maturity",
    "patience",
    "noise",
    "monitor",
    "validity",
    "group_as_feature",
    "group_mode",
    "attributes",
    "missing_values",
    "pos_label",
)


@saved
@dataclass(frozen=True)
class Rules:
    """What one certificate promises, and how its δ is spent.

    ``within`` ranks applicants within their own group only, ``floor`` is the mean chance of every
    applicant, whatever the rank, ``strategy`` spreads it, and ``monitor`` is δ of the drift
    monitor over all stages, 0 for none. The other fields are options of ``CertifiedClassifier``.
    """

    alpha: float
    delta: float
    utility: Utility
    horizon: int | None
    within: bool
    floor: float
    strategy: Strategy
    noise: OutcomeNoise
    maturity: int = 0
    patience: int | None = None
    monitor: float = 0.05
    tests_history: bool = False
    per_person: int = 5
    shock: float = 0.0
    exploration_price: float | None = None
    validity: int | None = None

    @staticmethod
    def of(classifier: Any, n_engines: int, strategy: Strategy) -> Rules:
        """Return the rules of one of a classifier's engines, which share δ and price equally."""
        price = classifier.exploration_price
        horizon, validity = classifier.horizon, classifier.validity
        if validity is not None:  # a ladder lives as long as its generation
            horizon = 2 * validity if horizon is None else min(horizon, 2 * validity)
        return Rules(
            classifier.alpha,
            classifier.delta / n_engines,
            Accuracy() if classifier.utility is None else classifier.utility,
            horizon,
            within=classifier.ranks == "within_group" and n_engines == 1,
            floor=classifier.floor,
            strategy=strategy,
            noise=OutcomeNoise() if classifier.noise is None else classifier.noise,
            maturity=classifier.maturity,
            patience=classifier.patience,
            monitor=classifier.monitor / n_engines,
            tests_history=classifier.evidence == "history",
            per_person=classifier.per_person,
            shock=classifier.shock,
            exploration_price=None if price is None else price / n_engines,
            validity=validity,
        )

    @property
    def freezes(self) -> tuple[tuple[float, int], ...]:
        """Rounds of a stage before which rankings are frozen, and own outcomes needed for it."""
        horizon = _USUAL_HORIZON if self.horizon is None else self.horizon
        planned = tuple((max(1.0, share * horizon), n) for share, n in _FREEZES)
        if self.horizon is not None:
            return planned
        return planned + tuple((horizon * 2.0**i, 800 * 2**i) for i in range(_DOUBLINGS))

    @property
    def other_bounds(self) -> tuple[float, ...]:
        """Bounds next to α at which the rungs are tested too; decisions depend on α only."""
        return tuple(share * self.alpha for share in _OTHER_BOUNDS if share * self.alpha < 1)

    def levels(self, beside: bool = False) -> tuple[float, ...]:
        """Return the parts of a stage's δ, ranking by ranking; they sum to at most one."""
        levels = _LEVELS_BESIDE if beside else _LEVELS
        if self.horizon is not None:
            return levels
        half = tuple(level / 2 for level in levels)
        return half + tuple(0.25 / 2**i for i in range(_DOUBLINGS))

    def level(self, ladder: int, restarts: int, *, beside: bool = False) -> float:
        """Return the part of δ that a ladder of a stage may spend; all together at most δ.

        Beside the lender's own policy each ranking has two ladders, which share its part. One
        stage spends δ either for rounds beside the lender or for others.
        """
        stage = _FIRST_STAGE if restarts == 0 else (1 - _FIRST_STAGE) / 2**restarts
        left = 1 - _HISTORY_PART if self.tests_history else 1.0
        return self.delta * stage * left * self.levels(beside)[ladder]

    @property
    def history_level(self) -> float:
        """The part of δ that the ladders tested on the history may spend."""
        return self.delta * _FIRST_STAGE * _HISTORY_PART

    def softness(self, ladder: int) -> float:
        """Return the softness of a ladder's edge, as a part of the share its model would accept."""
        return _SOFTNESS[min(ladder, len(_SOFTNESS) - 1)]

    @property
    def hardest(self) -> float:
        """The softness of the hardest edge."""
        return _SOFTNESS[-1]

    def monitor_limit(self, restarts: int) -> float:
        """Return the δ of bets against α in a stage; with ``change_limit`` at most ``monitor``."""
        return _BETS_AGAINST_ALPHA * self.monitor / 2.0 ** (restarts + 1)

    def change_limit(self, restarts: int, look: int) -> float:
        """Return the p-value that is an alarm at a look, which are counted from 1 in each stage."""
        # Over all looks 21/((l + 20)·(l + 21)) sums to one.
        share = (_EVEN_LOOKS + 1) / ((look + _EVEN_LOOKS) * (look + _EVEN_LOOKS + 1))
        return (1 - _BETS_AGAINST_ALPHA) * self.monitor / 2.0 ** (restarts + 1) * share


def coin_strategy(strategy: Any) -> Strategy:
    """Return how the floor is spread; raise InputError if independent coins cannot do that."""
    spread = Uniform() if strategy is None else as_strategy(strategy)
    if isinstance(spread, Limited) and spread.exposure is not None:
        raise InputError(
            f"exposure cannot be kept by independent coins, which a certificate needs, got "
            f"{spread.exposure}; leave it out here, or use PartialFeedbackClassifier."
        )
    return spread


def check_certified_settings(classifier: Any) -> None:
    """Raise InputError unless every option of a ``CertifiedClassifier`` is allowed."""
    _check_numbers(classifier)
    for name, allowed in (
        ("past_selection", ("automatic", "features", "outcome", "unknown")),
        ("ranks", ("overall", "within_group")),
        ("certify", ("overall", "per_group")),
        ("handover", ("automatic", "by hand")),
        ("evidence", ("rounds", "history")),
    ):
        if getattr(classifier, name) not in allowed:
            raise InputError(f"{name} must be one of {allowed}, got {getattr(classifier, name)!r}.")
    for name, kind, article in (("utility", Utility, "a"), ("noise", OutcomeNoise, "an")):
        value = getattr(classifier, name)
        if value is not None and not isinstance(value, kind):
            raise InputError(f"{name} must be {article} {kind.__name__} or None, got {value!r}.")
    check_group_mode(classifier)
    if classifier.certify == "per_group" and as_strategy(classifier.strategy).reads_group:
        raise InputError(
            f"certify='per_group' spreads the floor within each group, where a strategy between "
            f"groups changes nothing, got {classifier.strategy!r}; use Uniform() or "
            f"ScoreWeighted()."
        )


def _check_numbers(classifier: Any) -> None:
    for name in ("alpha", "delta"):
        value = getattr(classifier, name)
        if not (isinstance(value, int | float | np.number) and 0 < value < 1):
            raise InputError(f"{name} must be a number in (0, 1), got {value!r}.")
    for name, largest in (("floor", 0.1), ("monitor", 0.5), ("shock", 0.2)):
        value = getattr(classifier, name)
        if not (isinstance(value, int | float | np.number) and 0 <= value <= largest):
            raise InputError(f"{name} must be a number in [0, {largest}], got {value!r}.")
    price = classifier.exploration_price
    if price is not None and not (isinstance(price, int | float | np.number) and price >= 0):
        raise InputError(f"exploration_price must be a number from 0 on, or None, got {price!r}.")
    check_rounds("per_person", classifier.per_person, least=1)
    for name in ("horizon", "patience", "validity"):
        check_rounds(name, getattr(classifier, name), least=1)
    if classifier.maturity is None:
        raise InputError("maturity counts rounds and must be 0 or more, got None.")
    check_rounds("maturity", classifier.maturity, least=0)


def check_cold_start(strategy: Any) -> None:
    """Raise InputError if limits would bar every applicant while all look alike."""
    limited = as_strategy(strategy)
    if isinstance(limited, Limited) and limited.max_risk is not None and limited.max_risk < 0.5:
        raise InputError(
            f"without outcomes in the history every applicant has risk 0.5, so max_risk="
            f"{limited.max_risk} would bar all of them for good; start with 0.5 or more, or give a "
            f"history with outcomes."
        )
