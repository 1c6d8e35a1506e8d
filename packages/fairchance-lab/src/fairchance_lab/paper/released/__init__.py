"""What the paper's released code does beside or against the paper, and which of it can be run.

``DEVIATIONS`` is the catalogue of all findings; some of them are switches, each of its own. What a
run says about itself is derived from this table.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, Literal, NamedTuple

from fairchance.errors import InputError

__all__ = [
    "DEVIATIONS",
    "REPORTING",
    "SWITCHES",
    "Deviation",
    "applicable_switches",
    "check_switches",
    "count_deviations",
]


class Deviation(NamedTuple):
    """One finding about the released code.

    Attributes
    ----------
    released
        What the released code does.
    ours
        What holds in our runs instead.
    modelled
        ``"switch"``; ``"always"``, our runs do the same; ``"elsewhere"``, another method, option or
        table shows it; or ``"no"``.
    where
        Where it is shown, or why it is not modelled; empty for a switch.
    option
        The option of Algorithm 1 that can change what holds in our runs, if any.
    """

    released: str
    ours: str
    modelled: Literal["switch", "always", "elsewhere", "no"] = "switch"
    where: str = ""
    option: str = ""


_FILE = resources.files(__package__).joinpath("deviations.toml")
DEVIATIONS = {
    name: Deviation(**fields)
    for name, fields in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
SWITCHES = {
    name: found.released for name, found in DEVIATIONS.items() if found.modelled == "switch"
}
REPORTING = ("E2",)  # changes tables, and no decision


def check_switches(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in the order of ``SWITCHES``; raise if a name is unknown."""
    wanted = set(names)
    unknown = sorted(wanted - set(SWITCHES))
    if unknown:
        raise InputError(
            f"there is no switch {', '.join(unknown)}; known are {', '.join(SWITCHES)}."
        )
    return tuple(name for name in SWITCHES if name in wanted)


def applicable_switches(world: Mapping[str, Any], *, algorithm: bool) -> tuple[str, ...]:
    """Return the switches that can change a method's row, in a world given as plain data.

    Parameters
    ----------
    world
        The ``world`` of an experiment.
    algorithm
        Whether the method is a variant or an ablation of Algorithm 1; B and C change no others.
    """
    resampled = not world.get("n_parts")
    return tuple(
        name
        for name in SWITCHES
        if (algorithm or name[0] not in "BC") and (resampled or name != "A9")
    )


def count_deviations() -> str:
    """Say how many findings about the released code are modelled, and how.

    Examples
    --------
    >>> count_deviations().split(", ")[0]
    'Of 65 findings about the released code'
    """
    n = Counter(found.modelled for found in DEVIATIONS.values())
    return (
        f"Of {len(DEVIATIONS)} findings about the released code, {n['switch']} are switches, "
        f"{n['always']} hold in every run, {n['elsewhere']} are shown by another method, option or "
        f"table, and {n['no']} are not modelled."
    )
