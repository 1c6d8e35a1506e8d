"""What decides within a round: a value that answers alike on any machine, in any piece and order.

``open_round`` of a classifier returns one, ``decide`` answers by it, and ``close_round`` takes the
answers back. It is frozen and small, and holds no applicant. Coins are keyed by the id, so the same
applicant gets the same answer wherever it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from fairchance.core.decisions import Decisions
from fairchance.core.versions import versions
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.people.ids import keyed_bits
from fairchance.people.intake import Batch, Reader
from fairchance.people.likelihoods import Likelihood
from fairchance.people.reasons import ReferenceApplicant, Scored, decode, in_words, reasons_for
from fairchance.people.tables import InputTable

__all__ = ["DECIDED", "KEPT", "Policy"]

Bits = NDArray[np.uint64]

# The columns of decisions beside the id, with their Arrow types.
DECIDED = {
    "accepted": "bool",
    "score": "double",
    "propensity": "double",
    "exploit": "bool",
    "round": "int64",
    "policy": "string",
}
KEPT = "decided_"  # begins their names beside the columns of the input, which may have a score


class Policy(ABC):
    """The policy of one round.

    Attributes
    ----------
    round
        Number of the round.
    ramp
        r, the share of applicants on whom it decides; the lender does on the others.
    status, certified
        As in ``Decisions``.
    needs_incumbent
        Whether the lender's own decision on an applicant has to be given.
    versions
        Versions of the packages that its answers may depend on, by name.
    expires
        UTC time (ISO 8601) from which on it refuses to decide; None if it does not expire.
    reader
        How applicants are read.
    round_key, ramp_key
        Keys of the coins.
    inputs
        Which columns of a table hold what, for ``decide_batches``; None for the usual names.
    """

    round: int
    ramp: float
    status: str
    certified: bool
    needs_incumbent: bool
    versions: dict[str, str]
    expires: str | None
    reader: Reader
    round_key: np.uint64
    ramp_key: np.uint64
    inputs: InputTable | None

    @property
    def key(self) -> str:
        """A name of the policy's round that no other program has; it tells nothing of the draws."""
        secret = self.round_key.tobytes() + self.ramp_key.tobytes()
        return sha256(b"fairchance policy %d " % self.round + secret).hexdigest()[:32]

    @property
    def _table(self) -> InputTable:
        return self.inputs or InputTable()

    @abstractmethod
    def stated(self) -> tuple[dict[str, Any], ...]:
        """Return what the records of its round repeat, by name, a dictionary for each record."""

    draws_together = False  # whether an answer depends on all applicants of the batch

    def without_draw(self) -> Policy:
        """Return a policy that explores nobody, if its draw depends on the whole batch."""
        return self

    def read(
        self,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
    ) -> Batch:
        """Read applicants as ``decide`` does, and refuse what it refuses, row by row."""
        self.check_incumbent(incumbent)
        return self.reader.read(
            X,
            ids=ids,
            sensitive_features=sensitive_features,
            incumbent=incumbent,
            barred=barred,
            persons=persons,
            key=self.ramp_key,
        )

    def coins(self, batch: Batch) -> tuple[Bits, Bits]:
        """Return the random bits of the coins and of the ramp's coins.

        They are keyed by the application. If applications of a person shared one, a person who was
        rejected and applies again would bring a coin that is known to be bad, so that the logged
        probability would be too large, and evidence about such applicants too small.
        """
        return keyed_bits(batch.bits, self.round_key), keyed_bits(batch.bits, self.ramp_key)

    @abstractmethod
    def decide_batch(self, batch: Batch) -> Decisions:
        """Decide on applicants that were read, also after the policy has expired."""

    @property
    @abstractmethod
    def likelihood(self) -> Likelihood:
        """The model that gives the scores."""

    def scored_by(self, X: Any, *, sensitive_features: Any = None) -> Scored:
        """Return applicants as the policy reads them, with the model."""
        model = self.likelihood
        X, group = self.reader.for_scoring(None, X, sensitive_features, model.reads_group)
        return Scored(model, X, group, self.reader.places)

    def scored(self, batch: Batch) -> Scored:
        """Return applicants that were read, with the model."""
        return Scored(self.likelihood, batch.X, batch.group, self.reader.places)

    def decide(
        self,
        X: Any,
        *,
        ids: Any,
        sensitive_features: Any = None,
        incumbent: Any = None,
        barred: Any = None,
        persons: Any = None,
    ) -> Decisions:
        """Decide on applicants; nothing is remembered.

        Parameters
        ----------
        X, sensitive_features, incumbent, barred, persons
            The applicants, as for the classifier's ``decide``.
        ids
            Ids of the applications. The same id gets the same draw, whenever it is asked.
        """
        self._check_usable()
        return self.decide_batch(
            self.read(
                X,
                ids=ids,
                sensitive_features=sensitive_features,
                incumbent=incumbent,
                barred=barred,
                persons=persons,
            )
        )

    def for_table(
        self,
        *,
        ids: str | None = None,
        groups: str | Sequence[str] | None = None,
        incumbent: str | None = None,
        barred: str | None = None,
        persons: str | None = None,
    ) -> Self:
        """Return the policy with the names of columns that ``decide_batches`` reads.

        ``save`` keeps them. The policy of a program knows those of its files already.

        Parameters
        ----------
        ids, groups, incumbent, barred, persons
            The columns of a table; None for what the policy knows already, which is ``"id"`` and no
            other column at first. The features are the columns of the history, or if that had no
            names, all other columns in their order.
        """
        given: dict[str, Any] = {
            "id": ids,
            "incumbent": incumbent,
            "barred": barred,
            "persons": persons,
        }
        given["groups"] = (groups,) if isinstance(groups, str) else groups and tuple(groups)
        named = {name: column for name, column in given.items() if column is not None}
        return replace(self, inputs=replace(self._table, **named))  # type: ignore[type-var]

    def decide_batches(
        self, batches: Iterable[Any], *, keep: bool = False, reasons: bool = False
    ) -> Iterator[Any]:
        """Decide on applicants in Arrow record batches; nothing is remembered.

        This is what engines map over their partitions: the ``mapInArrow`` of Spark takes the method
        as it is, and ``fairchance.engines`` has more. The pieces may be of any size and come in any
        order; an id must be in one of them only.

        Parameters
        ----------
        batches
            Record batches, with the columns that ``for_table`` named.
        keep
            Return the columns of the input too, which ``fairchance import`` needs. The names of
            decisions begin with ``decided_`` then.
        reasons
            Add ``reasons``, why each rejected applicant was rejected, as text. They compare with an
            applicant whom a program keeps, so the policy must be that of a program.

        Yields
        ------
        pyarrow.RecordBatch
            For each batch the ids and ``accepted``, ``score``, ``propensity``, ``exploit`` (as in
            ``Decisions``), ``round``, and ``policy``, the ``key`` of the policy.

        Raises
        ------
        InputError
            If the policy expired or was made with other versions, or for the first row that cannot
            be used.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from fairchance import CertifiedClassifier
        >>> X = np.arange(200.0)[:, None]
        >>> clf = CertifiedClassifier(random_state=0).fit(X, X[:, 0] > 20, accepted=X[:, 0] > 10)
        >>> policy = clf.open_round().for_table(ids="loan")
        >>> batch = pa.record_batch({"loan": [201, 202], "income": [15.0, 190.0]})
        >>> (decided,) = policy.decide_batches([batch])
        >>> decided.select(["loan", "accepted", "exploit"]).to_pylist()
        [{'loan': 201, 'accepted': False, 'exploit': False}, {'loan': 202, 'accepted': True,
        'exploit': True}]
        """
        self._check_pieces(reasons=reasons)
        for batch in batches:
            self._check_usable()
            yield self._decide_arrow(batch, keep=keep, reasons=reasons)

    def decided_columns(
        self, names: Sequence[str], *, keep: bool = False, reasons: bool = False
    ) -> tuple[list[str], dict[str, str]]:
        """Return which columns of the input ``decide_batches`` returns, and which it adds.

        ``names`` are the columns of the input; added columns come with their Arrow types.
        """
        self._check_pieces(reasons=reasons)
        self._table.check_there([self._table.id], names)
        prefix, kinds = KEPT if keep else "", DECIDED | ({"reasons": "string"} if reasons else {})
        added = {prefix + name: kind for name, kind in kinds.items()}
        both = [name for name in names if keep and name in added]
        if both:
            raise InputError(
                f"the table has a column {both[0]!r} already; rename it, or leave it out."
            )
        return [*names] if keep else [self._table.id], added

    def decided_schema(self, schema: Any, *, keep: bool = False, reasons: bool = False) -> Any:
        """Return the Arrow schema of ``decide_batches`` for input of a schema."""
        pa = arrow()
        kept, added = self.decided_columns(schema.names, keep=keep, reasons=reasons)
        fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in added.items()]
        return pa.schema([*(schema.field(name) for name in kept), *fields])

    def _check_pieces(self, *, reasons: bool) -> None:
        """Raise unless the policy can decide on applicants in pieces, with reasons if asked."""
        if reasons and self._table.reference is None:
            raise InputError(
                f"the policy of round {self.round} is not that of a program, which keeps the "
                f"applicant with whom reasons compare; leave reasons out.",
                option="reasons",
            )
        if self.draws_together:
            raise InputError(
                f"round {self.round} draws a fixed number of applicants from a whole batch, which "
                f"cannot come in pieces; make the classifier with exploration='coins'."
            )

    def _decide_arrow(self, batch: Any, *, keep: bool, reasons: bool) -> Any:
        pa, n = arrow(), batch.num_rows
        schema = self.decided_schema(batch.schema, keep=keep, reasons=reasons)
        if n == 0:  # engines have empty pieces
            return pa.RecordBatch.from_pylist([], schema)
        given = self._table.read(pa.Table.from_batches([batch]), self.reader)
        decided = self.decide_batch(self.read(**given))
        columns = batch.columns if keep else [batch.column(self._table.id)]
        values = {name: getattr(decided, name, None) for name in DECIDED}
        values |= {"round": np.full(n, self.round), "policy": pa.repeat(self.key, n)}
        if reasons:
            values["reasons"] = self._reasons(given, decided.accepted)
        kinds = schema.types[len(columns) :]
        arrays = [pa.array(one, kind) for one, kind in zip(values.values(), kinds, strict=True)]
        return pa.RecordBatch.from_arrays([*columns, *arrays], schema=schema)

    def _reasons(self, given: dict[str, Any], accepted: NDArray[np.bool_]) -> list[str | None]:
        """Return reasons as text, None for accepted applicants."""
        reference = ReferenceApplicant.read(dict(self._table.reference or {}))
        assert reference is not None
        groups = given.get("sensitive_features")
        encoded = reasons_for(self, given["X"], accepted, reference, sensitive_features=groups)
        return [
            None if one is None else in_words(decode(one, reference.names)) for one in encoded or ()
        ]

    def _check_usable(self) -> None:
        """Raise if the policy has expired, or if its answers may be others here."""
        if self.expires is not None and datetime.now(UTC) >= _time(self.expires):
            raise InputError(
                f"the policy of round {self.round} expired at {self.expires}; get that of the "
                f"round that is open now."
            )
        here = versions()
        if self.versions == here:
            return
        for package in ("fairchance", "scikit-learn"):
            made = self.versions[package]
            if made != here[package] and (package == "fairchance" or _has_estimator(self)):
                raise InputError(
                    f"the policy of round {self.round} was made with {package} {made}, on which "
                    f"its answers depend, and {here[package]} is installed; install "
                    f"{package}=={made}, or decide where that is installed."
                )

    def check_incumbent(self, incumbent: Any) -> None:
        """Raise unless the lender's own decisions are given if and only if they are needed."""
        if self.needs_incumbent == (incumbent is not None):
            return
        what = "with" if self.needs_incumbent else "without"
        do = "pass incumbent=" if self.needs_incumbent else "leave incumbent out"
        raise InputError(
            f"round {self.round} was opened {what} decisions of the lender's own; {do}, or open "
            f"the next round the other way."
        )


def _has_estimator(value: Any) -> bool:
    """Return whether a value holds an estimator of another package, such as scikit-learn."""
    if isinstance(value, BaseEstimator) and not type(value).__module__.startswith("fairchance."):
        return True
    parts = value if isinstance(value, tuple | list) else vars(value).values()
    return any(
        _has_estimator(one)
        for one in parts
        if hasattr(one, "__dict__") or type(one) in (tuple, list)
    )


def _time(text: str) -> datetime:
    """Return a time; one without a zone is UTC."""
    when = datetime.fromisoformat(text)
    return when if when.tzinfo else when.replace(tzinfo=UTC)
