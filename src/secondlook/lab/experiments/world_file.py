"""Experiments of one's own, written down in a TOML file."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from secondlook.errors import InputError
from secondlook.lab.experiments.methods import expanded
from secondlook.lab.experiments.published import published_table
from secondlook.lab.experiments.released.switches import check_switches
from secondlook.lab.experiments.spec import Experiment, Goal
from secondlook.lab.experiments.world_spec import WorldSpec

__all__ = ["read_world_file"]


def read_world_file(path: Path) -> Experiment:
    """Read an experiment from a file; the same file gives the same results anywhere.

    At the top level stand the fields of ``Experiment`` (``methods``, ``repetitions``, …), in the
    table ``[goal]`` those of ``Goal``, in ``[world]`` those of ``WorldSpec``. A file named in
    ``world.data`` is looked for beside this one.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise InputError(f"there is no file {path}; name a TOML file of a world.") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read as TOML: {error}.") from error
    content.setdefault("name", path.stem)
    try:
        return _experiment(content, path.parent)
    except InputError as error:
        raise InputError(f"in {path}: {error}") from error


def _experiment(content: dict[str, Any], folder: Path) -> Experiment:
    for name in ("world", "methods"):
        if name not in content:
            raise InputError(f"{name} is missing; an experiment needs [world] and methods.")
    world, goal = content.pop("world"), content.pop("goal", {})
    for name, table in (("world", world), ("goal", goal)):
        if not isinstance(table, dict):
            raise InputError(f"{name} must be a table of its own, [{name}], got {table!r}.")
    _check("[world]", world, WorldSpec)
    _check("[goal]", goal, Goal)
    _check("the top level", content, Experiment)
    if "data" not in world:
        raise InputError("[world] needs data: the name of a data set or population, or a file.")
    beside = folder / str(world["data"])
    if world.get("columns") and beside.is_file():
        world["data"] = str(beside)
    for table in (world, content):
        table.update({name: tuple(one) for name, one in table.items() if isinstance(one, list)})
    key = content.get("published")
    if key is not None:
        published_table(key)
    content["methods"] = expanded(content["methods"])
    content["switches"] = check_switches(content.get("switches", ()))
    return Experiment(world=WorldSpec(**world), goal=Goal(**goal), **content)


def _check(where: str, given: Mapping[str, Any], kind: type) -> None:
    """Raise unless every name is a field of that kind, and every value one that it can hold."""
    hints = get_type_hints(kind)
    for name, value in given.items():
        if name not in hints:
            near = difflib.get_close_matches(name, hints, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(hints)}."
            raise InputError(f"{where} has no field {name!r}; {hint}")
        if not _fits(value, hints[name]):
            raise InputError(f"{name} must be {_in_words(hints[name])}, got {value!r}.")


def _fits(value: Any, hint: Any) -> bool:
    """Say whether a value of a TOML file can stand where a type is asked for."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, list) and all(_fits(one, parts[0]) for one in value)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in parts if one is not NoneType)
    if origin is not None:  # a mapping
        return isinstance(value, dict)
    if hint in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (hint is float and isinstance(value, float))
    return isinstance(value, hint)


def _in_words(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return f"one of {', '.join(parts)}"
    if origin is tuple:
        return f"a list, each {_in_words(parts[0])}"
    if origin in (Union, UnionType):
        return " or ".join(_in_words(one) for one in parts if one is not NoneType)
    if origin is not None:
        return "a table"
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    return words.get(hint, str(hint))
