"""An experiment on the record: its first method once more, through a ledger that is then proved."""

from __future__ import annotations

import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from secondlook.errors import InputError, LearningWarning
from secondlook.lab.experiments.methods import REFERENCES, build
from secondlook.lab.experiments.repetition import Segments, run_and_count, seeds_of, setup_of
from secondlook.lab.experiments.results import COUNTS, Results
from secondlook.lab.experiments.spec import Experiment
from secondlook.lab.experiments.through_ledger import ThroughLedger
from secondlook.lab.simulate.people import Table
from secondlook.lab.simulate.populations import Population
from secondlook.ledger import Verification, verify
from secondlook.methods.estimator import DecidingClassifier

__all__ = ["check_recordable", "run_on_record"]

_DECIDED = COUNTS[: COUNTS.index("n_next")]  # the rest is about rounds to come


def check_recordable(experiment: Experiment) -> None:
    """Raise if a ledger cannot keep an experiment's first method, before anything runs."""
    name = experiment.methods[0]
    if experiment.switches:
        raise InputError(
            f"deviations of the released code decide outside the library, and cannot be recorded "
            f"in a ledger, got {', '.join(experiment.switches)}; leave out one or the other."
        )
    if name in REFERENCES:
        raise InputError(
            f"the method {name!r} knows outcomes that a ledger does not; put one first that learns "
            f"from what it has seen, such as plain or certified."
        )


def run_on_record(
    experiment: Experiment, source: Table | Population, results: Results, url: str
) -> Verification:
    """Run the first method of the first repetition through a ledger, and prove the ledger.

    Its decisions must be those of the results. A run that was killed goes on when it is begun
    again, and one that is complete is read from the record.

    Parameters
    ----------
    experiment, source
        What was run.
    results
        What came of it.
    url
        Where the ledger is, or is to be made; the program has the name of the method.
    """
    check_recordable(experiment)
    goal, name = experiment.goals[0], experiment.methods[0]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        world_seed, method_seed = seeds_of(experiment, 0)
        world = experiment.world.build(source, world_seed)
        past = world.history()
        classifier = build(name, world, setup_of(world, goal, source, method_seed))
        if not isinstance(classifier, DecidingClassifier):
            raise InputError(
                f"the method {name!r} is a {type(classifier).__name__}, and a ledger keeps the "
                f"library's own classifiers; put one of these first, such as plain or certified."
            )
        method = ThroughLedger.begin(
            url,
            classifier,
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
            name=name,
        )
        counts = run_and_count(method, world, Segments.of(world, experiment.segments))
    for column in _DECIDED:
        expected = results.count(column)[0, 0, 0]
        other = counts[column].reshape(expected.shape) != expected
        if other.any():
            raise InputError(
                f"the ledger's program {name!r} decided otherwise than this run, first in round "
                f"{int(np.flatnonzero(other.any(axis=1))[0]) + 1} ({column}); it was recorded by "
                f"another version or run, so take another ledger."
            )
    return verify(method.program.ledger, name)
