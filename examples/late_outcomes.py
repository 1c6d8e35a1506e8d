"""Compare treatments of late and wrong outcomes under a bound on mistakes.

``python examples/late_outcomes.py [runs]`` runs Algorithm 1 and the certified method on a
population in which the false discovery rate of every policy is known. It prints that rate and the
utility for each treatment of outcomes that have not arrived. The bound is 0.15.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import fairchance as fc
from fairchance.simulate.feedback import ByOutcome, Feedback, Geometric
from fairchance.simulate.histories import SelectedOnOutcome
from fairchance.simulate.people import People
from fairchance.simulate.run import run
from fairchance.simulate.streams import Drawn
from fairchance.simulate.worlds import World

ALPHA, ROUNDS, PEOPLE = 0.15, 30, 600
EVEN = fc.Revenue(gain=200, loss=200)  # break-even at one half, so that the bound binds


class Applicants:
    """x ~ N(0, 1) and P(good) = σ(1 + 1.5·x)."""

    features = ("x",)
    groups = ("all",)

    def draw(self, n, rng):
        """Draw applicants."""
        return People(rng.normal(size=(n, 1)), np.full(n, "all"))

    def probability_good(self, people):
        """Return P(good | x)."""
        return 1 / (1 + np.exp(-1 - 1.5 * people.X[:, 0]))


class PendingAsGood:
    """Treat every accepted applicant as good until a bad outcome arrives."""

    def __init__(self, method):
        self.method = method

    def decide(self, X, **options):
        """Decide a batch, and record all accepted applicants as good."""
        decided = self.method.decide(X, **options)
        accepted = decided.ids[decided.accepted]
        self.method.observe(accepted, np.ones(accepted.size, int))
        return decided

    def observe(self, ids, outcomes):
        """Correct the outcomes that are bad."""
        bad = np.asarray(outcomes) == 0
        self.method.correct(np.asarray(ids)[bad], np.zeros(bad.sum(), int))

    def correct(self, ids, outcomes):
        """Replace wrong outcomes."""
        self.method.correct(ids, outcomes)

    def __getattr__(self, name):
        return getattr(self.method, name)


def algorithm(**options):
    """Return Algorithm 1 with the given options."""
    return fc.PartialFeedbackClassifier(EVEN, fc.FdrBudget(ALPHA), random_state=0, **options)


def evaluate(make, feedback, seed):
    """Return the population's FDR and utility under each round's policy, and if it is certified."""
    population = Applicants()
    world = World(
        Drawn(population, PEOPLE, ROUNDS), SelectedOnOutcome(), feedback=feedback, seed=seed
    )
    past = world.history()
    method = make()
    method.fit(
        past.people.X,
        past.outcomes,
        accepted=past.accepted,
        sensitive_features=past.people.group,
    )
    sample = population.draw(5_000, np.random.default_rng(0))
    good = population.probability_good(sample)
    gain = EVEN.expected(1.0, good) - EVEN.expected(0.0, good)
    rounds = []
    for result in run(method, world):
        p = method.acceptance_probability(sample.X, sensitive_features=sample.group)
        rounds.append(
            (p @ (1 - good) / max(p.sum(), 1e-9), (p * gain).mean(), result.decided.certified)
        )
    return np.array(rounds)


FEEDBACK = {
    "bad outcomes come six rounds late": Feedback(ByOutcome(good=0, bad=6)),
    "all come three rounds late on average": Feedback(Geometric(3)),
    "the same, and 5 % are wrong until corrected": Feedback(
        Geometric(3), wrong=0.05, corrected_after=2
    ),
    "the same, and 5 % are wrong for ever": Feedback(Geometric(3), wrong=0.05),
}
KNOWN_NOISE = {"noise": fc.OutcomeNoise(bad_as_good=0.05, good_as_bad=0.05)}


def treatments(feedback):
    """Return the treatments; those of outcomes that stay wrong know how often they are wrong."""
    noise = KNOWN_NOISE if feedback.wrong and feedback.corrected_after is None else {}
    return {
        "pending count as good": lambda: PendingAsGood(algorithm(**noise)),
        "pending are left out": lambda: algorithm(**noise),
        "pending count as bad": lambda: algorithm(maturity=0, **noise),
        "rounds mature (maturity=10)": lambda: algorithm(maturity=10, **noise),
        "certified (maturity=4, patience=12)": lambda: fc.CertifiedClassifier(
            ALPHA,
            utility=EVEN,
            horizon=ROUNDS,
            maturity=4,
            patience=12,
            random_state=0,
            **noise,
        ),
    }


def main(n_runs: int) -> None:
    """Print a table for each kind of feedback."""
    warnings.simplefilter("ignore")
    late = slice(2 * ROUNDS // 3, None)
    for name, feedback in FEEDBACK.items():
        print(f"\n{name}: last third of {ROUNDS} rounds, {n_runs} runs")
        print(f"  {'':36s} mean FDR   rounds above {ALPHA}   utility a person")
        for treatment, make in treatments(feedback).items():
            results = np.array([evaluate(make, feedback, seed)[late] for seed in range(n_runs)])
            fdr, utility = results[..., 0], results[..., 1]
            above = np.mean(fdr > ALPHA)
            print(
                f"  {treatment:36s} {fdr.mean():8.3f} {above:14.0%} {utility.mean():18.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
