"""Applications as JSON: the form that a program's applicants have, and how it is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    create_model,
)

from fairchance.core.groups import NOT_STATED, Attributes
from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.ledger.config import Roles
from fairchance.ledger.view import ProgramView
from fairchance.people.features import EncodedFeatures
from fairchance.people.ids import as_ids
from fairchance.service.strict import Strict

__all__ = ["Form"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WHOLE = re.compile("0|-?[1-9][0-9]{0,18}")
_DAY = 86_400_000  # milliseconds
_LONGEST_ID, _LONGEST_TEXT = 200, 1000  # characters, as in files


def _written(value: Any) -> Any:
    """Refuse a number, also in a text: pydantic would take it for seconds since 1970."""
    if not isinstance(value, str) or _DATE.match(value) is None:
        raise ValueError("a date is text such as 2031-01-31")
    return value


def _in_utc(value: datetime) -> datetime:
    """Return a time without a zone; one that has none is UTC already."""
    try:
        return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    except OverflowError as error:
        raise ValueError("a date must be in the years 1 to 9999 of UTC") from error


_NO_NUL = "^[^\\u0000]*$"  # numpy drops it at the end of a text, and databases refuse it
_Number = Annotated[StrictFloat, Field(allow_inf_nan=False)] | StrictBool
_Text = Annotated[StrictStr, Field(max_length=_LONGEST_TEXT, pattern=_NO_NUL)]
_Date = Annotated[datetime, BeforeValidator(_written), AfterValidator(_in_utc)]
_TextId = Annotated[StrictStr, Field(min_length=1, max_length=_LONGEST_ID, pattern=_NO_NUL)]
_WholeId = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
_Group = _TextId | StrictInt | _Number
# Where a value may be missing, an empty text says so, as it does in files.
_MaybeText = Annotated[StrictStr, Field(max_length=_LONGEST_ID, pattern=_NO_NUL)]
_MaybeGroup = _MaybeText | StrictInt | _Number


class Form:
    """How applications to one program are written.

    Attributes
    ----------
    sentences, example
        The lender's words for reasons, and an application for the description of the API.
    Id, Application, Decided
        The type of an id, the model of an application with the program's own columns, and the same
        with ``accepted``, for decisions that were made elsewhere.
    """

    def __init__(self, view: ProgramView) -> None:
        shape, rules, roles = view.shape, view.reading_rules, Roles.read(view.about)
        self._shape, known = shape, view.known_groups
        self.sentences: dict[str, dict[str, str]] = view.about.get("reasons", {})
        # A table of numbers is read quicker without the names of its columns.
        self._are_numbers = not (shape.columns.texts or shape.columns.dates or rules.raw)
        self._names = shape.columns.names or tuple(f"x{at}" for at in range(rules.n_features))
        self._groups = (shape.group_names or ("group",)) if shape.has_groups else ()
        self._are_text = [] if known is None else [one.dtype.kind in "UO" for one in known.values]
        may_hide = view.settings.says["group_mode"] != "aware" and all(self._are_text)
        self.Id: Any = _WholeId if shape.id_kind == "i" else _TextId
        fields: dict[str, Any] = {
            "id": (self.Id, Field(description="Names one application, for ever.")),
            "features": (self._features_model(view.about), ...),
        }
        if self._groups:
            fields["groups"] = (
                self._groups_model(may_hide),
                Field(description="Protected attributes."),
            )
        if roles is None or roles.incumbent is not None:
            said = "The lender's own decision, made before the program's is known."
            fields["incumbent"] = _field(StrictBool, said, optional=roles is None)
        said = "Whether the applicant must not be accepted, by a rule known before."
        fields["barred"] = (StrictBool, Field(False, description=said))
        if roles is None or roles.persons is not None:
            said = "Who applies; only a code of it is kept."
            fields["person"] = _field(_TextId, said, optional=roles is None)
        self.Application: Any = create_model("Application", __base__=Strict, **fields)
        self.example = self._example(known)
        accepted = (StrictBool, Field(description="What the policy decided."))
        self.Decided: Any = create_model("Decided", __base__=self.Application, accepted=accepted)

    def _features_model(self, about: dict[str, Any]) -> type[BaseModel]:
        columns, optional = self._shape.columns, {*about.get("missing", self._names)}
        fields: dict[str, Any] = {}
        for at, name in enumerate(self._names):
            kind: Any = _Date if name in columns.dates else _Number
            if name in columns.texts:
                kind = _Text if name in optional else Annotated[_Text, Field(min_length=1)]
            fields[f"c{at}"] = _field(kind, "", optional=name in optional, alias=name)
        return create_model("Features", __base__=Strict, **fields)

    def _groups_model(self, may_hide: bool) -> type[BaseModel]:
        said = "Null if the applicant does not state it." if may_hide else ""
        kind: Any = _MaybeGroup if may_hide else _Group
        fields = {
            f"g{at}": _field(kind, said, optional=may_hide, alias=name)
            for at, name in enumerate(self._groups)
        }
        return create_model("Groups", __base__=Strict, **fields)  # type: ignore[call-overload, no-any-return]

    def _example(self, known: Attributes | None) -> dict[str, Any]:
        """Return an application for the description: the usual applicant of the history."""
        columns, reference = self._shape.columns, self._shape.reference
        usual: dict[str, Any] = dict.fromkeys(self._names, 0.0)
        usual |= {} if reference is None else dict(zip(self._names, reference.values, strict=False))
        for name in columns.dates:
            usual[name] = str(np.datetime64(int(usual[name]), "D"))
        one: dict[str, Any] = {
            "id": 12345 if self._shape.id_kind == "i" else "2031-01-0001",
            "features": {
                name: float(f"{value:.3g}") if isinstance(value, float) else value
                for name, value in usual.items()
            },
        }
        if known is not None:
            first = [values.tolist()[0] for values in known.values]
            one["groups"] = dict(zip(self._groups, first, strict=True))
        one |= {"incumbent": True} if "incumbent" in self.Application.model_fields else {}
        return one

    def arrays(self, applications: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """Return features, and what else ``Program.decide`` takes, of some applications."""
        given: dict[str, Any] = {
            "ids": self._shape.ids([one.id for one in applications]),
            "barred": np.array([one.barred for one in applications]),
        }
        if self._groups:
            given["sensitive_features"] = self._group_values(applications)
        for name, attribute in (("incumbent", "incumbent"), ("persons", "person")):
            values = [getattr(one, attribute, None) for one in applications]
            n_missing = values.count(None)
            if 0 < n_missing < len(values):
                raise InputError(f"{n_missing} of {len(values)} applications have no {attribute}.")
            if not n_missing:
                given[name] = np.array(values)
        return self._features(applications), given

    def ids(self, values: Sequence[str | int]) -> Any:
        """Return ids in the type of the program's, which text may stand for."""
        names = list(map(str, values))
        if self._shape.id_kind == "i":
            wrong = [name for name in names if _WHOLE.fullmatch(name) is None]
            if wrong:
                raise InputError(f"ids must be integers, as in the history, got {wrong[0]!r}.")
            return as_ids(np.array(list(map(int, names))), len(names))
        return as_ids(names, len(names))

    def given(self, application: Any) -> tuple[bool, bool]:
        """Return what is given, which must be the same for all who are decided on together."""
        return (
            getattr(application, "incumbent", None) is not None,
            getattr(application, "person", None) is not None,
        )

    def _features(self, applications: Sequence[Any]) -> EncodedFeatures:
        rows, columns = [one.features for one in applications], self._shape.columns
        values = {
            name: [getattr(row, f"c{at}") for row in rows] for at, name in enumerate(self._names)
        }
        for name in columns.dates:
            values[name] = _days(values[name])
        numeric = [values[name] for name in self._names if name not in columns.texts]
        by_column = np.array(numeric, columns.dtype).reshape(len(numeric), len(rows))
        matrix = np.ascontiguousarray(by_column.T)
        words = [[value or None for value in values[name]] for name in columns.texts]
        encoded = columns.encoded(matrix, words, "numpy" if self._are_numbers else "pyarrow")
        return replace(encoded, X=matrix) if self._are_numbers else encoded

    def _group_values(self, applications: Sequence[Any]) -> Any:
        columns = []
        for at, is_text in enumerate(self._are_text):
            values = [getattr(one.groups, f"g{at}") for one in applications]
            if is_text:
                values = [NOT_STATED if value in (None, "") else str(value) for value in values]
            columns.append(values)
        if self._shape.group_names is None:
            return np.array(columns[0])
        return arrow().table(dict(zip(self._groups, columns, strict=True)))


def _field(kind: Any, said: str, *, optional: bool, alias: str | None = None) -> tuple[Any, Any]:
    """Return a field of a model; one that is optional may be left out or null."""
    about: dict[str, Any] = {"description": said or None, "alias": alias}
    return (kind | None, Field(None, **about)) if optional else (kind, Field(**about))


def _days(values: Sequence[datetime | None]) -> Any:
    """Return times in days since 1970, as a ledger has them."""
    times = np.array(values, "M8[ms]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / _DAY)
