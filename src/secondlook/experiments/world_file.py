"""Experiments of one's own, written down in a TOML file."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from secondlook.errors import InputError
from secondlook.experiments.released.switches import check_switches
from secondlook.experiments.spec import Experiment, Goal
from secondlook.experiments.world_spec import WorldSpec

__all__ = ["read_world_file"]


def read_world_file(path: Path) -> Experiment:
    """Read an experiment from a file; the same file gives the same results anywhere.

    At the top level stand the fields of ``Experiment`` (``methods``, ``repetitions``, …), in the
    table ``[goal]`` those of ``Goal``, in ``[world]`` those of ``WorldSpec``. A file named in
    ``world.data`` is looked for beside this one.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
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
    world, goal = dict(content.pop("world")), dict(content.pop("goal", {}))
    _check_names("[world]", world, WorldSpec)
    _check_names("[goal]", goal, Goal)
    _check_names("the top level", content, Experiment)
    if "data" not in world:
        raise InputError("[world] needs data: the name of a data set or population, or a file.")
    beside = folder / str(world["data"])
    if world.get("columns") and beside.is_file():
        world["data"] = str(beside)
    for name in ("past",):
        if name in world:
            world[name] = tuple(world[name])
    for name in ("methods", "alphas", "switches"):
        if name in content:
            content[name] = tuple(content[name])
    content["switches"] = check_switches(content.get("switches", ()))
    return Experiment(world=WorldSpec(**world), goal=Goal(**goal), **content)


def _check_names(where: str, given: Mapping[str, Any], kind: type) -> None:
    known = [field.name for field in fields(kind)]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
            raise InputError(f"{where} has no field {name!r}; {hint}")
