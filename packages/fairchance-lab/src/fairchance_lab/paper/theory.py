"""How many applicants and rounds the paper's theorems need, and how far that is from practice.

On a finite domain of |D| kinds of applicants (cells), with g the exploration strategy,
σ = min g / Σ g, and ε replaced by min(ε, λ/3), the theorems need in every round

    n ≥ 12·|D| / (τ·ε³) · 1 / (α_explore^k·λ) · log(|D| / (δ·σ))

applicants, with k = 1 for feasibility and for the improvement of groups and k = 2 for convergence.
If outcomes change smoothly with the features, clusters of applicants take the place of cells.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace

from fairchance.errors import InputError

__all__ = ["Bound", "Setting", "convergence", "feasibility", "improvement", "theory_lines"]

# The proof of feasibility shows FDR ≤ α + 14·ε/λ.
_SLACK = 14.0
# 1/σ of a σ computed as 1/49 is a whole number, missed by rounding alone.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Setting:
    """The quantities that the theorems' sample sizes depend on.

    Parameters
    ----------
    cells
        |D|, the number of kinds of applicants by features and group; or of clusters.
    tau
        τ, the coverage above which a cell counts as known, in (0, 1). With τ of 1 or more, the
        1/σ rounds of the convergence theorem would not do.
    epsilon
        ε, the slack asked for; the theorems hold for at most λ/3, see ``effective_epsilon``.
    alpha_explore
        The part of α that is left to exploration, in (0, 1).
    min_selection_rate
        λ, the least share of applicants that f_0 and every f_t accept, in (0, 1].
    delta
        δ, the probability with which the promise may fail, in (0, 1).
    sigma
        σ = min g / Σ g over all cells; None means 1/|D|, the largest it can be, which uniform
        exploration reaches.

    Examples
    --------
    >>> Setting(cells=20, epsilon=0.3, min_selection_rate=0.75).effective_epsilon
    0.25
    """

    cells: int
    tau: float = 0.5
    epsilon: float = 0.05
    alpha_explore: float = 0.05
    min_selection_rate: float = 0.2
    delta: float = 0.1
    sigma: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.cells, numbers.Integral) or self.cells < 1:
            raise InputError(
                f"cells is the number of kinds of applicants and must be a whole number of at "
                f"least 1, got {self.cells!r}; count the distinct rows of features and group."
            )
        for name in ("tau", "epsilon", "alpha_explore", "delta"):
            _check_share(name, getattr(self, name), "(0, 1)")
        _check_share("min_selection_rate", self.min_selection_rate, "(0, 1]")
        if self.sigma is not None:
            _check_share("sigma", self.sigma, "(0, 1]")
            if self.sigma * self.cells > 1 + _ROUNDING:
                raise InputError(
                    f"sigma is the least share of g that a cell has and cannot be above 1/cells = "
                    f"{1 / self.cells:g}, got {self.sigma}; divide the smallest g by the sum of "
                    f"all g."
                )

    @property
    def least_share(self) -> float:
        """σ, given or 1/|D|."""
        return 1 / self.cells if self.sigma is None else self.sigma

    @property
    def effective_epsilon(self) -> float:
        """min(ε, λ/3), for which the theorems hold."""
        return min(self.epsilon, self.min_selection_rate / 3)


@dataclass(frozen=True)
class Bound:
    """The requirements of one theorem.

    Attributes
    ----------
    theorem
        Its name in a word or two.
    promise
        Its promise, in a phrase.
    people
        Applicants per round.
    rounds
        Rounds until the promise begins to hold; 0 if it holds from the first on.
    slack
        By how much the promise may be missed: 14·ε/λ of FDR for feasibility, ε of utility
        (scaled to |γ| ≤ 1) for the other two.
    """

    theorem: str
    promise: str
    people: int
    rounds: int
    slack: float

    def times(self, batch: int) -> float:
        """Return the ratio of the applicants needed to those of a batch."""
        if not isinstance(batch, numbers.Integral) or batch < 1:
            raise InputError(
                f"batch is the number of applicants a round and must be a whole number of at least "
                f"1, got {batch!r}."
            )
        return self.people / int(batch)

    def sentence(self, batch: int) -> str:
        """Return a sentence on how far the theorem is from rounds of a given size.

        Examples
        --------
        >>> print(feasibility(Setting(cells=20)).sentence(batch=500))
        Feasibility (FDR of at most α + 3.5 in every round) asks for 3.2 billion people a round,
        6,400,000 times a batch of 500.
        """
        ratio = self.times(batch)
        after = f", for {self.rounds:,} rounds" if self.rounds else ""
        asked = f"{self.theorem.capitalize()} ({self.promise}) asks for {_in_words(self.people)}"
        if ratio <= 1:
            return f"{asked} people a round{after}, which a batch of {batch:,} has."
        return f"{asked} people a round{after}, {_ratio(ratio)} times a batch of {batch:,}."


def feasibility(setting: Setting) -> Bound:
    """Return the bound for α-FDR in every round, up to 14·ε/λ, with probability 1 − δ.

    Assumes that f_0 holds α-FDR and accepts a share of at least λ.

    Examples
    --------
    >>> bound = feasibility(Setting(cells=20))
    >>> f"{bound.people:.1e}", round(bound.slack, 3)
    ('3.2e+09', 3.5)
    """
    slack = _SLACK * setting.effective_epsilon / setting.min_selection_rate
    promise = f"FDR of at most α + {slack:.2g} in every round"
    return Bound("feasibility", promise, _people(setting, power=1), 0, slack)


def improvement(setting: Setting) -> Bound:
    """Return the bound for no group to lose more than ε of utility where it is exploited.

    Compared with any earlier f_i, counted as rejecting outside EXPLOIT_i. Holds for one classifier
    per group with the FDR and λ constraints **per group**; with one constraint over all groups it
    is false, however large batches are. λ is then the least share of each group, and the number of
    applicants is that of feasibility.

    Examples
    --------
    >>> improvement(Setting(cells=20)).people == feasibility(Setting(cells=20)).people
    True
    """
    epsilon = setting.effective_epsilon
    promise = f"no group loses more than {epsilon:.2g} of utility, constraints per group"
    return Bound("group improvement", promise, _people(setting, power=1), 0, epsilon)


def convergence(setting: Setting, sigma_group: float | None = None) -> Bound:
    """Return the bound for coming within ε of the best utility that α allows.

    After 1/σ rounds every cell is known. α_explore must be left beside ε: with
    α_exploit = α − ε there is no exploration.

    Parameters
    ----------
    setting
        The quantities that the sample size depends on.
    sigma_group
        σ(z) = min of g over the group / Σ g over all cells: the group's own utility comes close
        after 1/σ(z) rounds, if constraints are per group. None means all applicants, 1/σ rounds.

    Examples
    --------
    >>> bound = convergence(Setting(cells=20))
    >>> f"{bound.people:.1e}", bound.rounds
    ('6.4e+10', 20)
    """
    least, what = setting.least_share, "utility"
    if sigma_group is not None:
        _check_share("sigma_group", sigma_group, "(0, 1]")
        if sigma_group < least * (1 - _ROUNDING):
            raise InputError(
                f"sigma_group is the least share of g over one group and cannot be below sigma = "
                f"{least:g}, the least over all, got {sigma_group}; divide both by the sum of g "
                f"over all cells."
            )
        least, what = sigma_group, "the group's utility"
    rounds = math.ceil(1 / least - _ROUNDING)
    epsilon = setting.effective_epsilon
    promise = f"{what} within {epsilon:.2g} of the best"
    return Bound("convergence", promise, _people(setting, power=2), rounds, epsilon)


def theory_lines(setting: Setting, batch: int) -> list[str]:
    """Return sentences for planning rounds of a given size.

    Examples
    --------
    >>> for line in theory_lines(Setting(cells=20), batch=500):
    ...     print(line)
    What the paper's theorems ask for, with 20 kinds of people:
    Feasibility (FDR of at most α + 3.5 in every round) asks for 3.2 billion people a round,
    6,400,000 times a batch of 500.
    Group improvement (no group loses more than 0.05 of utility, constraints per group) asks for
    3.2 billion people a round, 6,400,000 times a batch of 500.
    Convergence (utility within 0.05 of the best) asks for 64 billion people a round,
    for 20 rounds, 130,000,000 times a batch of 500.
    A slack of 3.5 on a rate allows everything: feasibility says nothing here; for a slack of 0.02
    epsilon must be 0.00029 and a round must have 17,000,000 billion people.
    At this size the theorems promise nothing; a certificate does.
    """
    bounds = (feasibility(setting), improvement(setting), convergence(setting))
    kinds = "kind" if setting.cells == 1 else "kinds"
    lines = [
        f"What the paper's theorems ask for, with {setting.cells:,} {kinds} of people:",
        *(bound.sentence(batch) for bound in bounds),
    ]
    if bounds[0].slack >= 1:
        lines.append(_vacuous(setting, bounds[0].slack))
    if all(bound.times(batch) > 1 for bound in bounds):
        lines.append("At this size the theorems promise nothing; a certificate does.")
    return lines


def _people(setting: Setting, power: int) -> int:
    epsilon, share = setting.effective_epsilon, setting.alpha_explore**power
    per_cell = 12 / (setting.tau * epsilon**3 * share * setting.min_selection_rate)
    logarithm = math.log(setting.cells / (setting.delta * setting.least_share))
    return math.ceil(setting.cells * per_cell * logarithm)


def _vacuous(setting: Setting, slack: float, wanted: float = 0.02) -> str:
    epsilon = wanted * setting.min_selection_rate / _SLACK
    people = _people(replace(setting, epsilon=epsilon), power=1)
    return (
        f"A slack of {slack:.2g} on a rate allows everything: feasibility says nothing here; for a "
        f"slack of {wanted:g} epsilon must be {epsilon:.2g} and a round must have "
        f"{_in_words(people)} people."
    )


def _in_words(people: int) -> str:
    """Return a number of people with two significant digits."""
    for unit, name in ((10**9, " billion"), (10**6, " million")):
        if people >= unit:
            return f"{_ratio(people / unit)}{name}"
    return f"{people:,}"


def _ratio(value: float) -> str:
    """Return two significant digits, without an exponent."""
    digits = 1 - math.floor(math.log10(value))
    rounded = round(value, digits)
    return f"{rounded:,.{max(digits, 0)}f}" if rounded < 10 else f"{rounded:,.0f}"


def _check_share(name: str, value: float, allowed: str) -> None:
    top = 1.0 if allowed.endswith("]") else math.nextafter(1.0, 0.0)
    if isinstance(value, bool) or not (isinstance(value, numbers.Real) and 0 < value <= top):
        raise InputError(f"{name} must be a number in {allowed}, got {value!r}.")
