"""The simulator on the record: a method that decides and observes through a ledger."""

from __future__ import annotations

from typing import Any

from secondlook.core.decisions import Decisions
from secondlook.errors import InputError
from secondlook.ledger.base import Reader
from secondlook.ledger.encoding import Shape
from secondlook.ledger.program import Program
from secondlook.ledger.sql import SqlLedger

__all__ = ["ThroughLedger"]


class ThroughLedger:
    """A classifier's program as a method of the simulator: it decides as the classifier would.

    Rounds are recorded under their numbers. A run that was killed is begun again with the same
    people: what is recorded is answered from the record, and it goes on from there. Outcomes that
    were told between recorded rounds are on record too, and are not told again: a correction may
    have replaced them since. Whatever else can be asked of the classifier is asked of it as the
    ledger has it.

    Parameters
    ----------
    program
        A program, at its beginning or not.

    Examples
    --------
    >>> import tempfile
    >>> from secondlook import FdrBudget, PartialFeedbackClassifier
    >>> from secondlook.lab.simulate.histories import ByPolicy
    >>> from secondlook.lab.simulate.populations import Lender
    >>> from secondlook.lab.simulate.run import run
    >>> from secondlook.lab.simulate.streams import Drawn
    >>> from secondlook.lab.simulate.worlds import World
    >>> folder, people = tempfile.TemporaryDirectory(), Lender()
    >>> past = ByPolicy(people.probability_accepted_before)
    >>> world = World(Drawn(people, 200, n_rounds=3, n_history=600), past, seed=0)
    >>> past = world.history()
    >>> method = ThroughLedger.begin(
    ...     f"sqlite:///{folder.name}/ledger.db",
    ...     PartialFeedbackClassifier(budget=FdrBudget(alpha=0.3), random_state=0),
    ...     past.people.X,
    ...     past.outcomes,
    ...     accepted=past.accepted,
    ...     sensitive_features=past.people.group,
    ... )
    >>> [int(result.decided.accepted.sum()) for result in run(method, world)]
    [107, 126, 143]
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
    ) -> ThroughLedger:
        """Begin a run, or begin it again where the ledger has the program already.

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
            other = _what_differs(reader, classifier, X)
        if other is not None:
            raise InputError(
                f"the ledger has a program called {name!r} with {other}, so this run cannot go on "
                f"with it; take another ledger or another name."
            )
        opening = ("by", "types", "trusted", "snapshot_every")
        return cls(
            Program.open(url, name, **{key: options[key] for key in opening if key in options})
        )

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        """Decide the next round, on the record."""
        batch = f"round {self._round + 1}"
        decided = self.program.decide(
            X, sensitive_features=sensitive_features, ids=ids, batch=batch
        )
        self._round += 1
        return decided

    def observe(self, ids: Any, outcomes: Any) -> None:
        """Record outcomes of accepted people."""
        if self._round >= self._recorded:
            self.program.observe(ids, outcomes)

    def correct(self, ids: Any, outcomes: Any) -> None:
        """Record what outcomes really are: in a ledger, an outcome that contradicts another."""
        self.observe(ids, outcomes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "program":
            raise AttributeError(name)
        return getattr(self.program.classifier, name)


def _what_differs(reader: Reader, classifier: Any, X: Any) -> str | None:
    """Say in what a recorded program is not the one that a run would begin."""
    settings, history = (next(reader.entries(kind=kind)) for kind in ("program", "history"))
    says = settings.says
    mine = {key: repr(one) for key, one in classifier.get_params(deep=False).items()}
    if (says["classifier"], says["settings"]) != (type(classifier).__name__, mine):
        return "other settings"
    people = reader.facts(history).people
    kept = Shape.read(says).columns.encode(X)
    stored = None if people is None else (list(people.numbers), list(people.texts))
    return None if stored == (kept.numbers, kept.texts) else "another history"
