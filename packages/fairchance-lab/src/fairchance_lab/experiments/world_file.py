"""Read an experiment from a TOML file."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from fairchance.core.sizes import read_toml
from fairchance.errors import InputError
from fairchance_lab.experiments import SHORT_WORLD
from fairchance_lab.experiments.methods import expand_names
from fairchance_lab.experiments.spec import Experiment, Goal, stated_goal
from fairchance_lab.experiments.world_spec import WorldSpec
from fairchance_lab.paper.published import published_table
from fairchance_lab.paper.released import check_switches

__all__ = ["read_world", "read_world_file"]


def read_world_file(path: Path) -> Experiment:
    """Read an experiment from a file; the same file gives the same results on any machine.

    The top level holds the fields of ``Experiment`` (``methods``, ``repetitions``, …), the table
    ``[goal]`` those of ``Goal``, the table ``[world]`` those of ``WorldSpec``, the table
    ``[classifier]`` and tables such as ``[variants.mine]`` options of Algorithm 1's methods. A file
    named in ``world.data`` is relative to this one. What ``[goal]`` leaves out is as the catalogue
    states for the data set.
    """
    try:
        content = read_toml(path)
    except FileNotFoundError as error:
        raise InputError(
            f"there is no file {path}; name a TOML file of a world, for example with {SHORT_WORLD}."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as TOML: {error}.") from error
    content.setdefault("name", path.stem)
    try:
        return _experiment(content, path.parent)
    except InputError as error:
        raise InputError(f"in {path}: {error}") from error


def read_world(content: Mapping[str, Any]) -> Experiment:
    """Read an experiment from the content of such a file, as a dictionary."""
    return _experiment({"name": "world", **deepcopy(dict(content))}, Path())


def _experiment(content: dict[str, Any], folder: Path) -> Experiment:
    for name in ("world", "methods"):
        if name not in content:
            raise InputError(f"{name} is missing; an experiment needs [world] and methods.")
    world, goal = content.pop("world"), content.pop("goal", {})
    for name, table in (("world", world), ("goal", goal)):
        if not isinstance(table, dict):
            raise InputError(f"{name} must be a table, [{name}], got {table!r}.")
    _check_fields("[world]", world, WorldSpec)
    _check_fields("[goal]", goal, Goal)
    _check_fields("the top level", content, Experiment)
    if "data" not in world:
        raise InputError("[world] needs data: the name of a data set or population, or a file.")
    goal = stated_goal(world["data"]) | goal
    beside = folder / str(world["data"])
    if world.get("columns") and beside.is_file():
        world["data"] = str(beside)
    for table in (world, content):
        table.update(
            {name: tuple(value) for name, value in table.items() if isinstance(value, list)}
        )
    key = content.get("published")
    if key is not None:
        published_table(key)
    content["methods"] = expand_names(content["methods"])
    unused = [name for name in content.get("variants", ()) if name not in content["methods"]]
    if unused:
        raise InputError(f"[variants.{unused[0]}] is not among the methods; add its name there.")
    content["switches"] = check_switches(content.get("switches", ()))
    return Experiment(world=WorldSpec(**world), goal=Goal(**goal), **content)


def _check_fields(where: str, given: Mapping[str, Any], kind: type) -> None:
    """Raise unless every name is a field of the class and its value has the field's type."""
    hints = get_type_hints(kind)
    for name, value in given.items():
        if name not in hints:
            near = difflib.get_close_matches(name, hints, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(hints)}."
            raise InputError(f"{where} has no field {name!r}; {hint}")
        if not _fits(value, hints[name]):
            raise InputError(f"{name} must be {_describe_type(hints[name])}, got {value!r}.")


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value of a TOML file fits a type."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        return isinstance(value, list) and all(_fits(item, parts[0]) for item in value)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts if part is not NoneType)
    if origin is not None:  # a mapping
        return isinstance(value, dict)
    if hint in (int, float):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole or (hint is float and isinstance(value, float))
    return isinstance(value, hint)


def _describe_type(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return f"one of {', '.join(parts)}"
    if origin is tuple:
        return f"a list, each {_describe_type(parts[0])}"
    if origin in (Union, UnionType):
        return " or ".join(_describe_type(part) for part in parts if part is not NoneType)
    if origin is not None:
        return "a table"
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
    return names.get(hint, str(hint))
