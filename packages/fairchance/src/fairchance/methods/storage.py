"""Save a classifier with everything it knows, and load it again, without pickle.

A file is a zip archive: ``manifest.json`` holds the version of the format and a table of objects,
each a type name with its fields; arrays are stored as ``.npy``, frames as Arrow, and estimators of
other libraries as skops files, which only the version of scikit-learn reads that wrote them.
Loading makes only types marked with ``@saved``, types that the caller allows, and in skops files
types that skops or the caller trusts. No function is ever called because a file names it: a file is
data, never code.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import sklearn
from sklearn.base import BaseEstimator

import fairchance
from fairchance.core.saved import SAVED
from fairchance.core.sizes import unzipped, zipped
from fairchance.errors import InputError, UntrustedError, VersionsError, to_install
from fairchance.extras import arrow
from fairchance.frames import is_frame
from fairchance.methods.estimator import DecidingClassifier
from fairchance.methods.policy import Policy
from fairchance.methods.stored_trees import check_trees
from fairchance.people.store import ApplicantRows

__all__ = ["dump_estimator", "dumps", "load", "load_estimator", "loads", "save"]

FORMAT = 1
_MAKER = "scikit-learn"  # field of an estimator with the version that wrote it
_TRIED, _WORTH_PACKING = 2**16, 0.8  # bytes by which a file is tried, and the part that may remain

# Their types join SAVED when they are imported.
_METHODS = ("fairchance.methods.algorithm1.classifier", "fairchance.methods.certified")
_GROUP = "fairchance.saved"  # of entry points: modules of other packages with saved types

# Types of numpy and scikit-learn that hold arrays and cannot run code; trees are checked.
_DATA_TYPES = {
    "numpy.dtype",
    "sklearn.tree._tree.Tree",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
}
# Parameters of estimators: a folder of pickles, and whether text is the name of a file.
_CACHE, _SOURCE = "memory", "input"
_FROM_FILES = ("filename", "file")
_GRIDS = ("param_grid", "param_distributions")  # attributes that list parameters to try


def save(classifier: DecidingClassifier | Policy, path: str | Path) -> None:
    """Write a classifier or a policy to a file.

    An old file is replaced only once the new one is complete.

    Raises
    ------
    InputError
        If it contains something that cannot be saved, such as a function given as strategy.

    Examples
    --------
    >>> import tempfile
    >>> from fairchance import PartialFeedbackClassifier
    >>> X, good = [[0.0], [1.0], [2.0], [3.0]] * 50, [0, 1, 1, 1] * 50
    >>> clf = PartialFeedbackClassifier(random_state=0).fit(X, good)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(clf, f"{folder}/lender.zip")
    ...     copy = load(f"{folder}/lender.zip")
    >>> bool((clf.decide(X).accepted == copy.decide(X).accepted).all())
    True
    """
    content = dumps(classifier)
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    partial.write_bytes(content)
    partial.replace(target)


def dumps(value: Any, *, features: bool = True) -> bytes:
    """Return the content of a file with a classifier, or with any other saved type.

    The same value gives the same bytes. ``features`` says whether to write features of applicants
    that can be read elsewhere (``DecidingClassifier.read_features``).
    """
    writer = _Writer(features)
    root = writer.encode(value)
    manifest = {
        "format": FORMAT,
        "fairchance": fairchance.__version__,
        "root": root,
        "objects": writer.objects,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        files = {"manifest.json": json.dumps(manifest, allow_nan=False).encode()} | writer.files
        for name, content in files.items():
            undated = zipfile.ZipInfo(name)  # so that the bytes do not depend on the time
            archive.writestr(undated, content, _compression(content), compresslevel=1)
    return buffer.getvalue()


def _compression(content: bytes) -> int:
    """Return how to compress a file; fractions take seconds and stay large, counts do not."""
    some = content[:_TRIED]
    small = len(zlib.compress(some, 1)) <= _WORTH_PACKING * len(some)
    return zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED


def load(path: str | Path, *, types: Iterable[type] = (), trusted: Iterable[str] = ()) -> Any:
    """Read a classifier or a policy that ``save`` wrote; it continues exactly where it was.

    Parameters
    ----------
    path
        The file.
    types
        Your own classes that the file may contain, such as a subclass of ``Strategy``.
    trusted
        Names of types that estimators in the file may contain, as skops asks for.

    Examples
    --------
    >>> import tempfile
    >>> from fairchance import PartialFeedbackClassifier
    >>> clf = PartialFeedbackClassifier().fit([[0.0], [1.0]] * 50, [0, 1] * 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(clf, f"{folder}/lender.zip")
    ...     load(f"{folder}/lender.zip").classes_.tolist()
    [0, 1]
    """
    content = Path(path).read_bytes()
    kinds = DecidingClassifier, Policy
    return loads(content, types=types, trusted=trusted, name=str(path), holds=kinds)


def loads(
    content: bytes,
    *,
    types: Iterable[type] = (),
    trusted: Iterable[str] = (),
    name: str = "the content",
    holds: type | tuple[type, ...] = DecidingClassifier,
) -> Any:
    """Read the bytes of ``dumps``, a value of the type ``holds``; messages call it ``name``."""
    for method in _METHODS:
        import_module(method)
    try:
        files = unzipped(content, name)
        manifest = json.loads(files["manifest.json"])
        if manifest["format"] != FORMAT:
            raise InputError(
                f"{name} has format {manifest['format']}, not {FORMAT}; read it with fairchance "
                f"{manifest['fairchance']}."
            )
        own = {kind.__name__: kind for kind in types}
        named = {entry["type"] for entry in manifest["objects"] if "type" in entry}
        if not named <= {*SAVED, *own}:
            for package in entry_points(group=_GROUP):  # slow, so only for an unknown type
                package.load()
        known = SAVED | own
        value = _Reader(manifest["objects"], files, known, list(trusted)).decode(manifest["root"])
    except InputError:
        raise
    except Exception as error:  # zip, json, numpy, arrow and skops raise all kinds on damaged bytes
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{name} is no file of fairchance.save, or it is damaged ({why})."
        ) from error
    if not isinstance(value, holds):
        kinds = holds if isinstance(holds, tuple) else (holds,)
        words: dict[type, str] = {DecidingClassifier: "classifier", Policy: "policy"}
        kind = " or ".join(words.get(one, one.__name__) for one in kinds)
        raise InputError(f"{name} does not hold a {kind}.")
    return value


class _Writer:
    """Turn an object graph into JSON and named files; a shared object is written once."""

    def __init__(self, features: bool) -> None:
        self._features = features
        self.objects: list[Any] = []
        self.files: dict[str, bytes] = {}
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is reused while writing

    def encode(self, value: Any) -> Any:
        match value:
            case np.generic():
                coded: Any = {"scalar": value.dtype.str, "value": self.encode(value.item())}
            case None | bool() | int() | str():
                coded = value
            case float():
                coded = value if math.isfinite(value) else {"float": str(value)}
            case list():
                coded = {"list": [self.encode(item) for item in value]}
            case tuple():
                coded = {"tuple": [self.encode(item) for item in value]}
            case dict():
                coded = {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
            case np.ndarray():
                coded = self._array(value)
            case _:
                coded = self._object(value)
        return coded

    def _array(self, value: np.ndarray[Any, Any]) -> Any:
        if value.dtype == object:
            return {"objects": [self.encode(item) for item in value.tolist()]}
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
        elif isinstance(value, BaseEstimator) and not isinstance(value, tuple(SAVED.values())):
            content = self._file(dump_estimator(value), "skops")
            self.objects[position] = {"skops": content, _MAKER: sklearn.__version__}
        elif not hasattr(value, "__dict__") or callable(value):
            raise InputError(f"{value!r} cannot be saved; use a number or an instance of a class.")
        else:
            if isinstance(value, ApplicantRows) and not self._features:
                state = value.without_features()
            else:
                state = value.__getstate__() or {}
            state.pop("_sklearn_version", None)
            fields = {name: self.encode(field) for name, field in state.items()}
            self.objects[position] = {"type": type(value).__name__, "fields": fields}
        return {"ref": position}

    def _frame(self, frame: Any) -> Any:
        ipc = arrow("ipc")
        table = nw.from_native(frame, eager_only=True)
        sink = io.BytesIO()
        columns = table.to_arrow()
        with ipc.new_file(sink, columns.schema) as stream:
            stream.write_table(columns)
        kind = table.implementation.value
        return {"frame": self._file(sink.getvalue(), "arrow"), "backend": kind}


class _Reader:
    """Turn the table of objects back into a graph; each file of the archive is used once.

    Else a small file could name one array many times, and each would be a copy.
    """

    def __init__(
        self,
        objects: list[Any],
        files: dict[str, bytes],
        types: dict[str, type],
        trusted: list[str],
    ) -> None:
        self._objects, self._files = objects, files
        self._types, self._trusted = types, trusted
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
                made = [self.decode(part) for part in parts]
            case {"tuple": parts}:
                made = tuple(self.decode(part) for part in parts)
            case {"dict": pairs}:
                made = {self.decode(k): self.decode(v) for k, v in pairs}
            case {"objects": parts}:
                made = np.array([self.decode(part) for part in parts], dtype=object)
            case {"array": name}:
                made = np.load(io.BytesIO(self._files.pop(name)), allow_pickle=False)
            case _:
                raise InputError(f"the file holds {value}, which this version does not know.")
        return made

    def _object(self, position: int) -> Any:
        if position not in self._made:
            self._made[position] = self._make(position, self._objects[position])
        return self._made[position]

    def _make(self, position: int, entry: Any) -> Any:
        if "skops" in entry:
            if entry[_MAKER] != sklearn.__version__:  # which may fail, or score otherwise
                raise VersionsError(entry[_MAKER], sklearn.__version__)
            return load_estimator(self._files.pop(entry["skops"]), self._trusted)
        if "frame" in entry:
            with arrow("ipc").open_file(io.BytesIO(self._files.pop(entry["frame"]))) as stream:
                table = nw.from_native(stream.read_all(), eager_only=True)
            if entry["backend"] == "pandas":
                return table.to_pandas()
            return table.to_polars() if entry["backend"] == "polars" else table.to_native()
        if entry["type"] not in self._types:
            raise InputError(
                f"the file contains the type {entry['type']!r}; pass it as {{option}}, or install "
                f"its package.",
                option="types",
            )
        kind: Any = self._types[entry["type"]]
        made = self._made[position] = kind.__new__(kind)
        for name, field in entry["fields"].items():
            made.__dict__[name] = self.decode(field)
        return made


def dump_estimator(estimator: Any) -> bytes:
    """Return an estimator as a skops file."""
    _check_reads_no_file(list(_parts(estimator)))
    content: bytes = _skops().dumps(estimator)
    return content


def load_estimator(content: bytes, trusted: Iterable[str] = ()) -> Any:
    """Make an estimator of scikit-learn's types, saved types, and types whose names are trusted.

    Types are trusted one by one: a whole module has functions too, and a file that may name them
    could have them called. A cache is left out, because its files are pickles; results do not
    depend on it.
    """
    ours = {f"{kind.__module__}.{kind.__qualname__}" for kind in SAVED.values()}
    allowed = _DATA_TYPES | ours | set(trusted)
    content = _plain_archive(content)
    used = set(_skops().get_untrusted_types(data=content))
    if used - allowed:
        raise UntrustedError(
            f"a stored estimator contains {', '.join(sorted(used - allowed))}; pass the types that "
            f"you trust as {{option}}.",
            option="trusted",
        )
    made = _skops().loads(content, trusted=sorted(used))
    parts = list(_parts(made))
    _check_reads_no_file(parts)
    check_trees(parts)
    for part in parts:
        if isinstance(part, BaseEstimator) and vars(part).get(_CACHE) is not None:
            vars(part)[_CACHE] = None
    return made


def _plain_archive(content: bytes) -> bytes:
    """Return a skops file without compression; raise if it unpacks to too much.

    A file of the archive belongs to one object: else each object would be a copy of it.
    """
    files = unzipped(content, "a stored estimator")
    nodes, used = [json.loads(files["schema.json"])], set()
    for node in nodes:
        if isinstance(node, dict) and "file" in node:
            used.add((node["file"], node["__id__"]))
        nodes += node.values() if isinstance(node, dict) else node if type(node) is list else ()
    if len(used) > len({file for file, _ in used}):
        raise InputError("a stored estimator uses one file for several objects; it is damaged.")
    return zipped(files)


def _parts(estimator: Any) -> Iterator[Any]:
    """Yield all objects that an estimator holds, itself first."""
    seen, todo = set(), [estimator]
    while todo:
        part = todo.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            todo += part.values()
        elif isinstance(part, list | tuple | set | frozenset):
            todo += part
        elif isinstance(part, np.ndarray):
            todo += part.ravel().tolist() if part.dtype == object else []
        elif not isinstance(part, type):
            todo += getattr(part, "__dict__", {}).values()


def _check_reads_no_file(parts: Iterable[Any]) -> None:
    """Raise if fitting an estimator would read files that its parameters or its input name."""
    for part in parts:
        if not isinstance(part, BaseEstimator):
            continue
        own = vars(part)
        grids = [own[name] for name in _GRIDS if name in own]
        tried = [
            (name.rpartition("__")[2], value)
            for some in grids
            for grid in ([some] if isinstance(some, dict) else some)
            for name, values in grid.items()
            for value in np.ravel(np.array(values, object)).tolist()
        ]
        if own.get(_SOURCE) in _FROM_FILES or any(
            (name == _CACHE and value is not None) or (name == _SOURCE and value in _FROM_FILES)
            for name, value in tried
        ):
            raise UntrustedError(
                f"a stored estimator must not read files, got {type(part).__name__} with "
                f"{_CACHE} or {_SOURCE}; leave that out."
            )


def _skops() -> Any:
    try:
        import skops.io  # noqa: PLC0415 - an extra that the core does not need
    except ImportError as error:
        raise InputError(
            f"saving or loading an estimator of another library needs skops; "
            f"{to_install('models')} installs it."
        ) from error
    return skops.io
