"""A town with a lender, in which the FDR of every policy among loans taken is known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from fairchance import CertifiedClassifier
from methods.certified.known_truth import ALPHA, DELTA, QUICK, UTILITY

GRID = norm.ppf((np.arange(400) + 0.5) / 400)[:, None]  # the population of x, in equal masses


@dataclass(frozen=True)
class Month:
    """Applicants of a month: features, who is bad, who takes the loan, and whom the lender wants.

    Who is bad and who takes the loan are known to the town, never to the method.
    """

    X: np.ndarray
    bad: np.ndarray
    takes: np.ndarray
    incumbent: np.ndarray

    def __len__(self):
        return self.bad.size


@dataclass(frozen=True)
class Town:
    """x ~ N(0, 1); take-up and the lender's decision depend on the outcome, given x.

    Attributes
    ----------
    bad
        P(bad) at x = 0.
    slope
        How fast the log odds of a good outcome rise with x; 0 if x says nothing.
    lender
        P(d = 1) of good and of bad applicants: what the lender knows beyond x.
    takes
        P(takes the loan) of good and of bad applicants.
    """

    bad: float = 0.3
    slope: float = 0.0
    lender: tuple[float, float] = (0.5, 0.5)
    takes: tuple[float, float] = (1.0, 1.0)

    def probability_bad(self, X):
        return expit(np.log(self.bad / (1 - self.bad)) - self.slope * X[:, 0])

    def draw(self, n, rng):
        X = rng.normal(size=(n, 1))
        bad = rng.random(n) < self.probability_bad(X)
        takes = rng.random(n) < np.where(bad, self.takes[1], self.takes[0])
        wanted = rng.random(n) < np.where(bad, self.lender[1], self.lender[0])
        return Month(X, bad, takes, wanted)

    def fdr(self, rejected, accepted):
        """Return the FDR of policies, given π on the grid if d = 0 and if d = 1 (axis 0: x)."""
        f = self.probability_bad(GRID)
        (d_good, d_bad), (t_good, t_bad) = self.lender, self.takes
        bad = t_bad * f @ (d_bad * accepted + (1 - d_bad) * rejected)
        good = t_good * (1 - f) @ (d_good * accepted + (1 - d_good) * rejected)
        return bad / (bad + good)

    def with_fdr(self, fdr):
        """Return the town in which everybody accepted gives this FDR; x has to say nothing."""
        (t_good, t_bad) = self.takes
        odds = fdr / (1 - fdr) * t_good / t_bad
        return replace(self, bad=odds / (1 + odds))

    def with_lenders_fdr(self, fdr):
        """Return the town in which the lender's own policy has this FDR; x has to say nothing."""
        (t_good, t_bad), (d_good, d_bad) = self.takes, self.lender
        odds = fdr / (1 - fdr) * t_good * d_good / (t_bad * d_bad)
        return replace(self, bad=odds / (1 + odds))


def open_program(
    town, rng, *, n_history=300, past_of=Town.draw, method=CertifiedClassifier, **options
):
    """Return a classifier fitted to what the lender did before, as ``past_of`` tells it."""
    past = past_of(town, n_history, rng)
    options = {"learner": QUICK, "horizon": 12, "alpha": ALPHA, "delta": DELTA} | options
    options = {"utility": UTILITY, "random_state": int(rng.integers(2**31))} | options
    return method(**options).fit(
        past.X, 1 - past.bad, accepted=past.incumbent, not_taken=past.incumbent & ~past.takes
    )


def true_fdr(town, policy):
    """Return the true FDR of policies; ``policy`` returns π on the grid, given d."""
    return town.fdr(*(policy(np.full(len(GRID), d)) for d in (False, True)))


def deployed_fdr(classifier, town):
    """Return the true FDR of what the last round did, the ramp included."""
    return true_fdr(town, lambda d: classifier.acceptance_probability(GRID, incumbent=d))


def breaks_the_bound(classifier, town, kinds=("own", "union")):
    """Return whether a certified policy breaks α: that in use, or any other on a ladder.

    A certificate that is not in use may be used later.
    """
    judged = kinds == ("own", "union") and classifier.rounds_[-1].status == "certified"
    if judged and deployed_fdr(classifier, town) > ALPHA:
        return True
    for ladder in classifier._engines[0].ladders:
        certified = ladder.certified()
        if ("union" if ladder.union else "own") in kinds and certified.any():
            at = ladder.locate(GRID, np.zeros(len(GRID), np.intp))
            fdr = true_fdr(
                town, lambda d, at=at, ladder=ladder: ladder.policies(at.beside(d, None))
            )
            if np.any(fdr[certified] > ALPHA):
                return True
    return False


def tell(classifier, month, decided):
    """Report what became of the accepted."""
    taken = decided.accepted & month.takes
    classifier.not_taken(decided.ids[decided.accepted & ~month.takes])
    classifier.observe(decided.ids[taken], 1 - month.bad[taken])


def false_run(
    town,
    rng,
    *,
    rounds=12,
    n=300,
    ramp=1.0,
    gives=lambda month: True,
    kinds=("own", "union"),
    tell=tell,
    **options,
):
    """Return whether a run ever certifies a policy that breaks α.

    ``ramp`` may be a function of the month, and ``gives`` says whether the lender decides in it.
    """
    classifier = open_program(town, rng, horizon=rounds, **options)
    for _ in range(rounds):
        month = town.draw(n, rng)
        r = ramp(month) if callable(ramp) else ramp
        d = month.incumbent if gives(month) else None
        decided = classifier.decide(month.X, incumbent=d, ramp=r)
        tell(classifier, month, decided)
        if breaks_the_bound(classifier, town, kinds):
            return True
    return False
