"""Save a classifier with everything it knows, and load it again, without pickle.

A file is a zip archive: ``manifest.json`` holds the format's version and a table of objects, each a
type name with its fields; arrays lie beside it as ``.npy``, frames as Arrow, and estimators that
are not ours as skops files, whose types the loader must allow. Only types named in this module, or
handed to ``load``, are ever made, and of no module any function: a file is data, never code.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import BaseEstimator

from secondlook.core import budget, coverage, fairness, limits, strategies
from secondlook.core.decisions import Correction, Round
from secondlook.core.groups import Attributes
from secondlook.core.noise import OutcomeNoise
from secondlook.core.utility import Utility
from secondlook.errors import InputError
from secondlook.frames import is_frame
from secondlook.learners.logistic import ConstrainedLogistic, FitStatus
from secondlook.learners.per_group import PerGroup
from secondlook.methods import certified, finite, many_classes
from secondlook.methods.algorithm1.classifier import PartialFeedbackClassifier
from secondlook.methods.algorithm1.learning import Learned, LearningRules
from secondlook.methods.algorithm1.past import PastPolicy
from secondlook.methods.algorithm1.policy_log import LoggedPolicy, PolicyLog
from secondlook.methods.estimator import DecidingClassifier
from secondlook.methods.finite.clusters import ClusteredDomain
from secondlook.methods.stored_estimators import dump_estimator, load_estimator
from secondlook.people import likelihoods
from secondlook.people.ids import IdIndex
from secondlook.people.intake import Intake
from secondlook.people.store import ApplicantRows, GrowingArray, PeopleStore

__all__ = ["dumps", "load", "loads", "save"]

FORMAT = 1

_TYPES: tuple[type, ...] = (
    PartialFeedbackClassifier,
    ConstrainedLogistic,
    FitStatus,
    PerGroup,
    ClusteredDomain,
    Utility,
    budget.FdrBudget,
    budget.ExploitOnly,
    budget.PowerSchedule,
    coverage.SummedAcceptance,
    coverage.MeanPastScore,
    coverage.SumOfG,
    fairness.SelectionRateParity,
    fairness.TruePositiveRateParity,
    strategies.Uniform,
    strategies.ScoreWeighted,
    strategies.GroupShare,
    strategies.EqualGroups,
    strategies.Product,
    strategies.WithoutGroup,
    limits.Limited,
    limits.Column,
    limits.Below,
    limits.Above,
    limits.OneOf,
    limits.Either,
    likelihoods.LinearLikelihood,
    likelihoods.ConstantLikelihood,
    likelihoods.EstimatorLikelihood,
    likelihoods.GroupedLikelihood,
    likelihoods.MeanLikelihood,
    likelihoods.PolicyFunction,
    Intake,
    Attributes,
    PeopleStore,
    IdIndex,
    ApplicantRows,
    GrowingArray,
    PastPolicy,
    PolicyLog,
    LoggedPolicy,
    Learned,
    LearningRules,
    Round,
    Correction,
    OutcomeNoise,
    *certified.SAVED_TYPES,
    *finite.SAVED_TYPES,
    *many_classes.SAVED_TYPES,
)


Classifier = DecidingClassifier


def save(classifier: Classifier, path: str | Path) -> None:
    """Write a classifier to a file; what was there before is replaced only once all is written.

    Raises
    ------
    InputError
        If it holds something that lives in memory only, such as a function given as strategy.
    """
    content = dumps(classifier)
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    partial.write_bytes(content)
    partial.replace(target)


def dumps(value: Any) -> bytes:
    """Return what ``save`` would write; the same value gives the same bytes.

    Beside classifiers, a ledger keeps what decided a round: the types named in this module.
    """
    writer = _Writer()
    root = writer.encode(value)
    manifest = {
        "format": FORMAT,
        "secondlook": version("secondlook"),
        "root": root,
        "objects": writer.objects,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        files = {"manifest.json": json.dumps(manifest, allow_nan=False).encode()} | writer.files
        for name, content in files.items():
            undated = zipfile.ZipInfo(name)
            undated.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(undated, content)
    return buffer.getvalue()


def load(path: str | Path, *, types: Iterable[type] = (), trusted: Iterable[str] = ()) -> Any:
    """Read a classifier that ``save`` wrote; it goes on exactly where it was.

    Parameters
    ----------
    path
        The file.
    types
        Your own classes that the file may name, such as a subclass of ``Strategy``.
    trusted
        Names of the types that estimators in the file may contain, as skops asks for.
    """
    return loads(Path(path).read_bytes(), types=types, trusted=trusted, name=str(path))


def loads(
    content: bytes,
    *,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
    name: str = "the content",
    holds: type = DecidingClassifier,
) -> Any:
    """Read what ``dumps`` returned, a value of the type ``holds``; messages call it ``name``."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = {one: archive.read(one) for one in archive.namelist()}
        manifest = json.loads(files["manifest.json"])
        if manifest["format"] != FORMAT:
            raise InputError(
                f"{name} has format {manifest['format']} and this version reads {FORMAT}; it was "
                f"written by secondlook {manifest['secondlook']}, so use that version."
            )
        reader = _Reader(manifest["objects"], files, (*_TYPES, *types), list(trusted))
        value = reader.decode(manifest["root"])
    except InputError:
        raise
    except Exception as error:  # whatever a changed byte may lead zip, numpy, arrow or skops to
        raise _damaged(name, error) from error
    if not isinstance(value, holds):
        kind = "classifier" if holds is Classifier else holds.__name__
        raise InputError(f"{name} does not hold a {kind}.")
    return value


def _damaged(name: str, error: Exception) -> InputError:
    why = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(f"{name} is not a file written by secondlook.save, or it is damaged ({why}).")


class _Writer:
    """Turn an object graph into JSON and named files; an object met twice is written once."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.files: dict[str, bytes] = {}
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # an id must not be reused while we write

    def encode(self, value: Any) -> Any:
        match value:
            case np.generic():
                coded: Any = {"scalar": value.dtype.str, "value": self.encode(value.item())}
            case None | bool() | int() | str():
                coded = value
            case float():
                coded = value if math.isfinite(value) else {"float": str(value)}
            case list():
                coded = {"list": [self.encode(one) for one in value]}
            case tuple():
                coded = {"tuple": [self.encode(one) for one in value]}
            case dict():
                coded = {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
            case np.ndarray():
                coded = self._array(value)
            case _:
                coded = self._object(value)
        return coded

    def _array(self, value: np.ndarray[Any, Any]) -> Any:
        if value.dtype == object:
            return {"objects": [self.encode(one) for one in value.tolist()]}
        buffer = io.BytesIO()
        np.save(buffer, value, allow_pickle=False)
        return {"array": self._file(buffer.getvalue(), "npy")}

    def _file(self, content: bytes, ending: str) -> str:
        name = f"{len(self.files)}.{ending}"
        self.files[name] = content
        return name

    def _object(self, value: Any) -> Any:
        if id(value) in self._seen:
            return {"ref": self._seen[id(value)]}
        self._kept.append(value)
        position = self._seen[id(value)] = len(self.objects)
        self.objects.append(None)
        if is_frame(value):
            self.objects[position] = self._frame(value)
        elif isinstance(value, BaseEstimator) and not isinstance(value, _TYPES):
            self.objects[position] = {"skops": self._file(dump_estimator(value), "skops")}
        elif not hasattr(value, "__dict__") or callable(value):
            raise InputError(
                f"{value!r} lives in memory only and cannot be saved; use a number, or a named "
                f"class with parameters, in its place."
            )
        else:
            state = value.__getstate__() if isinstance(value, BaseEstimator) else vars(value)
            if isinstance(value, GrowingArray):
                state = vars(GrowingArray(value.view()))  # without the room to grow
            fields = {
                name: self.encode(one) for name, one in state.items() if name != "_sklearn_version"
            }
            self.objects[position] = {"type": type(value).__name__, "fields": fields}
        return {"ref": position}

    def _frame(self, frame: Any) -> Any:
        pa = _arrow()
        table = nw.from_native(frame, eager_only=True)
        sink = io.BytesIO()
        arrow = table.to_arrow()
        with pa.ipc.new_file(sink, arrow.schema) as stream:
            stream.write_table(arrow)
        kind = table.implementation.value
        return {"frame": self._file(sink.getvalue(), "arrow"), "backend": kind}


class _Reader:
    """Turn the table of objects back into a graph."""

    def __init__(
        self,
        objects: list[Any],
        files: dict[str, bytes],
        types: tuple[type, ...],
        trusted: list[str],
    ) -> None:
        self._objects, self._files, self._trusted = objects, files, trusted
        self._types = {one.__name__: one for one in types}
        self._made: dict[int, Any] = {}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        made: Any
        match value:
            case {"ref": position}:
                made = self._object(position)
            case {"scalar": kind, "value": content}:
                made = np.dtype(kind).type(self.decode(content))
            case {"float": text}:
                made = float(text)
            case {"list": parts}:
                made = [self.decode(one) for one in parts]
            case {"tuple": parts}:
                made = tuple(self.decode(one) for one in parts)
            case {"dict": pairs}:
                made = {self.decode(k): self.decode(v) for k, v in pairs}
            case {"objects": parts}:
                made = np.array([self.decode(one) for one in parts], dtype=object)
            case {"array": name}:
                made = np.load(io.BytesIO(self._files[name]), allow_pickle=False)
            case _:
                raise InputError(f"the file holds {value}, which this version does not know.")
        return made

    def _object(self, position: int) -> Any:
        if position not in self._made:
            self._made[position] = self._make(position, self._objects[position])
        return self._made[position]

    def _make(self, position: int, entry: Any) -> Any:
        if "skops" in entry:
            return load_estimator(self._files[entry["skops"]], _TYPES, self._trusted)
        if "frame" in entry:
            with _arrow().ipc.open_file(io.BytesIO(self._files[entry["frame"]])) as stream:
                table = nw.from_native(stream.read_all(), eager_only=True)
            if entry["backend"] == "pandas":
                return table.to_pandas()
            return table.to_polars() if entry["backend"] == "polars" else table.to_native()
        if entry["type"] not in self._types:
            raise InputError(
                f"the file names the type {entry['type']!r}; pass it in types= if it is yours."
            )
        kind: Any = self._types[entry["type"]]
        made = self._made[position] = kind.__new__(kind)
        for name, one in entry["fields"].items():
            made.__dict__[name] = self.decode(one)
        return made


def _arrow() -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.ipc  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "saving or loading raw columns needs pyarrow; install it with: pip install pyarrow"
        ) from error
    return pa
