"""Run a method of the simulator through a ledger, and verify the ledger."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fairchance.core.decisions import Decisions
from fairchance.errors import InputError, LearningWarning
from fairchance.ledger import Verification, verify
from fairchance.ledger.base import Reader
from fairchance.ledger.encoding import Shape
from fairchance.ledger.program import Program
from fairchance.ledger.sql import SqlLedger
from fairchance.methods.estimator import DecidingClassifier
from fairchance.simulate.people import Table
from fairchance.simulate.populations import Population
from fairchance_lab.experiments.methods import REFERENCES, build
from fairchance_lab.experiments.repetition import Segments, run_and_count, seeds_of, setup_of
from fairchance_lab.experiments.results import COUNTS, Results
from fairchance_lab.experiments.spec import Experiment

__all__ = ["LedgerMethod", "check_recordable", "run_on_ledger"]

_DECIDED = COUNTS[: COUNTS.index("n_next")]  # the other counts are not decisions


def check_recordable(experiment: Experiment) -> None:
    """Raise if a ledger cannot record an experiment's first method."""
    name = experiment.methods[0]
    if experiment.switches:
        raise InputError(
            f"a ledger cannot record deviations of the released code, got "
            f"{', '.join(experiment.switches)}; leave out the switches or the ledger."
        )
    if name in REFERENCES:
        raise InputError(
            f"a ledger cannot record the reference {name!r}, which knows outcomes of rejected "
            f"people; name another method first, such as plain or certified."
        )


def run_on_ledger(
    experiment: Experiment, source: Table | Population, results: Results, url: str
) -> Verification:
    """Run the first method of the first repetition through a ledger, and verify the ledger.

    Its decisions must be equal to those of the results. An interrupted run continues when it is
    started again; a complete run is read from the ledger.

    Parameters
    ----------
    experiment, source
        The experiment and its people.
    results
        The results of the experiment.
    url
        The ledger, which is created if necessary; the program has the name of the method.
    """
    check_recordable(experiment)
    setting, name = experiment.settings[results.main], experiment.methods[0]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        world_seed, method_seed = seeds_of(experiment, 0)
        world = experiment.world.build(source, world_seed)
        past = world.history()
        setup = setup_of(world, setting, source, method_seed)
        classifier = build(name, world, setup, experiment.variants)
        if not isinstance(classifier, DecidingClassifier):
            raise InputError(
                f"a ledger records classifiers of this library, and the method {name!r} is a "
                f"{type(classifier).__name__}; name another method first, such as plain or "
                f"certified."
            )
        method = LedgerMethod.begin(
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
        expected = results.count(column)[results.main, 0, 0]
        different = counts[column].reshape(expected.shape) != expected
        if different.any():
            raise InputError(
                f"the decisions of the ledger's program {name!r} differ from this run, first in "
                f"round {int(np.flatnonzero(different.any(axis=1))[0]) + 1} ({column}); another "
                f"version or run recorded them, so use another ledger."
            )
    return verify(method.program.ledger, name)


class LedgerMethod:
    """A program of a ledger as a method of the simulator; it decides as its classifier would.

    A batch is recorded under the number of its round. An interrupted run is started again with the
    same people: recorded rounds are answered from the ledger, and the run continues after them.
    Outcomes observed between recorded rounds are in the ledger already and are not recorded again,
    since a later correction may have replaced them. All other attributes are the classifier's.

    Parameters
    ----------
    program
        A program, new or with recorded rounds.

    Examples
    --------
    >>> import tempfile
    >>> from fairchance import FdrBudget, PartialFeedbackClassifier
    >>> from fairchance.simulate.histories import ByPolicy
    >>> from fairchance.simulate.populations import Lender
    >>> from fairchance.simulate.run import run
    >>> from fairchance.simulate.streams import Drawn
    >>> from fairchance.simulate.worlds import World
    >>> folder, people = tempfile.TemporaryDirectory(), Lender()
    >>> past = ByPolicy(people.probability_accepted_before)
    >>> world = World(Drawn(people, 200, n_rounds=3, n_history=600), past, seed=0)
    >>> past = world.history()
    >>> method = LedgerMethod.begin(
    ...     f"sqlite:///{folder.name}/ledger.db",
    ...     PartialFeedbackClassifier(budget=FdrBudget(alpha=0.3), random_state=0),
    ...     past.people.X,
    ...     past.outcomes,
    ...     accepted=past.accepted,
    ...     sensitive_features=past.people.group,
    ... )
    >>> [int(result.decided.accepted.sum()) for result in run(method, world)]
    [111, 135, 160]
    >>> len(method.rounds_)
    3
    >>> folder.cleanup()
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._round = 0
        with program.ledger.reading(program.name) as reader:
            self._recorded = sum(1 for _ in reader.entries(kind="batch"))

    @classmethod
    def begin(
        cls, url: str, classifier: Any, X: Any, y: Any, *, name: str = "main", **options: Any
    ) -> LedgerMethod:
        """Start a run, or continue it if the ledger has the program already.

        Parameters
        ----------
        url, classifier, X, y, name, options
            As for ``Program.create``.

        Raises
        ------
        InputError
            If the ledger has a program of that name with other settings or another history.
        """
        ledger = SqlLedger(url, make=True)
        if name not in ledger.programs():
            return cls(Program.create(url, classifier, X, y, name=name, **options))
        with ledger.reading(name) as reader:
            difference = _find_difference(reader, classifier, X)
        if difference is not None:
            raise InputError(
                f"the ledger has a program {name!r} with {difference}, so this run cannot continue "
                f"it; use another ledger or another name."
            )
        opening = ("by", "types", "trusted", "snapshot_every")
        return cls(
            Program.open(url, name, **{key: options[key] for key in opening if key in options})
        )

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide and record the next round."""
        batch = f"round {self._round + 1}"
        decided = self.program.decide(
            X,
            sensitive_features=sensitive_features,
            ids=ids,
            batch=batch,
            unlike_history=True,
        )
        self._round += 1
        return decided

    def observe(self, ids: Any, outcomes: Any) -> None:
        """Record outcomes of accepted people."""
        if self._round >= self._recorded:
            self.program.observe(ids, outcomes, unlike_expected=True)

    def correct(self, ids: Any, outcomes: Any) -> None:
        """Record corrected outcomes: in a ledger, the latest outcome counts."""
        self.observe(ids, outcomes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "program":
            raise AttributeError(name)
        return getattr(self.program.classifier, name)


def _find_difference(reader: Reader, classifier: Any, X: Any) -> str | None:
    """Return how a recorded program differs from the program of this run, or None."""
    settings, history = (next(reader.entries(kind=kind)) for kind in ("program", "history"))
    says = settings.says
    params = {key: repr(value) for key, value in classifier.get_params(deep=False).items()}
    if (says["classifier"], says["settings"]) != (type(classifier).__name__, params):
        return "other settings"
    people = reader.facts(history).people
    kept = Shape.read(says).columns.encode(X)
    stored = None if people is None else (list(people.numbers), list(people.texts))
    return None if stored == (kept.numbers, kept.texts) else "another history"
