"""What can be asked of a program without changing anything."""

from __future__ import annotations

from typing import Any

from secondlook.ledger.base import Standing
from secondlook.ledger.chain import Checkpoint
from secondlook.ledger.engines import place_of
from secondlook.ledger.explaining import recorded_reasons
from secondlook.ledger.part import PartOfProgram
from secondlook.ledger.replay import Shape
from secondlook.ledger.summary import Summary
from secondlook.ledger.summing_up import summarise
from secondlook.ledger.telling import read_ids, read_names
from secondlook.ledger.verifying import Verification, verify

__all__ = ["Asking"]


class Asking(PartOfProgram):
    """The part of a program that answers and records nothing."""

    def __repr__(self) -> str:
        """Return who this is in one line, without what a URL may hold of a password."""
        engine = getattr(self.ledger, "engine", None)
        place = repr(self.ledger) if engine is None else repr(place_of(engine))
        return f"{type(self).__name__}(name={self.name!r}, ledger={place}, by={self.by!r})"

    @property
    def about(self) -> dict[str, Any]:
        """What was kept with the program's settings when it was created."""
        with self.ledger.reading(self.name) as reader:
            found: dict[str, Any] = self._settings(reader).says.get("about", {})
        return found

    @property
    def shape(self) -> Shape:
        """What the program's people, groups, ids and outcomes look like."""
        with self.ledger.reading(self.name) as reader:
            return Shape.read(self._settings(reader).says)

    def standing(self, ids: Any) -> Standing:
        """Return how things stand for applications, in the order asked for.

        Parameters
        ----------
        ids
            Names of applications, as for ``observe``, or all as text; those that are not known
            have the number −1.
        """
        with self.ledger.reading(self.name) as reader:
            shape = Shape.read(self._settings(reader).says)
            return reader.standing(read_names(ids, shape))

    def reasons(self, ids: Any) -> dict[Any, list[tuple[str, float]]]:
        """Return what spoke against people whom the program refused, as it was recorded.

        For each at most four columns with what they took off the log-odds of the score, against a
        reference applicant; ``secondlook.people.reasons`` says what that is, and puts it in words.

        Parameters
        ----------
        ids
            Names of applications that were refused.
        """
        with self.ledger.reading(self.name) as reader:
            shape = Shape.read(self._settings(reader).says)
            names = read_ids(ids, shape)
            found = recorded_reasons(reader, shape, names)
        return dict(zip(shape.ids(names).tolist(), found, strict=True))

    def checkpoint(self) -> Checkpoint:
        """Return where the chain stands, to be kept elsewhere and handed to ``verify`` later."""
        with self.ledger.reading(self.name) as reader:
            return reader.head()

    def summary(self, *, groups: bool = True) -> Summary:
        """Return how the program stands: ``summarise``, with the types that were trusted here.

        Parameters
        ----------
        groups
            Whether to count groups too.
        """
        types, trusted = self._allowed.types, self._allowed.trusted
        return summarise(self.ledger, self.name, groups=groups, types=types, trusted=trusted)

    def verify(
        self, *, checkpoint: Checkpoint | str | None = None, relearn: bool = False
    ) -> Verification:
        """Prove the program: ``verify``, with the types that were trusted here.

        Parameters
        ----------
        checkpoint, relearn
            As for ``verify``.
        """
        return verify(
            self.ledger,
            self.name,
            checkpoint=checkpoint,
            types=self._allowed.types,
            trusted=self._allowed.trusted,
            relearn=relearn,
        )
