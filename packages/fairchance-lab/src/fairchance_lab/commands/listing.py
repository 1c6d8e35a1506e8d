"""``fairchance datasets``, ``methods`` and ``switches``: list what is available."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from fairchance.cli.options import Json, errors
from fairchance.cli.output import Console, print_json, print_lines
from fairchance.errors import InputError
from fairchance_lab.commands.options import Data
from fairchance_lab.paper.released import DEVIATIONS, SWITCHES, count_deviations


def datasets(data: Data = None, json: Json = False) -> None:
    """List data sets and populations, and whether they are available offline.

    Example: fairchance datasets --json
    """
    from fairchance_lab.datasets import CATALOGUE  # noqa: PLC0415 - slow to import
    from fairchance_lab.experiments.world_spec import POPULATIONS  # noqa: PLC0415

    with errors(json):
        rows: list[dict[str, Any]] = [
            {
                "name": data_set.name,
                "kind": data_set.kind,
                "description": data_set.description,
                "source": data_set.source,
                "groups": list(data_set.groups),
                "licence": data_set.licence,
                "gain": data_set.gain,
                "loss": data_set.loss,
                "alpha": data_set.alpha,
                "utility": data_set.utility,
                "state": (there := data_set.available(data)).state,
                "where": there.where,
            }
            for data_set in CATALOGUE.values()
        ]
        synthetic = {
            "name": ", ".join(POPULATIONS),
            "kind": "population",
            "description": "Synthetic applicants with known outcomes",
            "source": "simulated",
            "groups": ["A", "B"],
            "licence": "Apache-2.0",
            **{name: rows[0][name] for name in ("gain", "loss", "alpha", "utility")},
            "state": "bundled",
            "where": "",
        }
        rows.append(synthetic)
        if json:
            print_json(rows)
            return
        for row in rows:
            goal = f"gain {row['gain']:g}, loss {row['loss']:g}, α {row['alpha']:g}"
            print_lines(
                [
                    f"{row['name']}: {row['description']}",
                    f"  {row['state']} {row['where']}".rstrip(),
                    f"  source: {row['source']}",
                    f"  groups by {', '.join(row['groups'])}; {goal}; licence: {row['licence']}",
                ]
            )
        print_lines(["Any state and year of the survey: acs:CA:2018, acs:PA+MA+IN:2024."])


def methods(
    baseline: Annotated[
        str | None, typer.Argument(help="A baseline, such as kilbertus-icml: list its values.")
    ] = None,
    json: Json = False,
) -> None:
    """List the methods that --methods accepts, or where the values of a baseline come from.

    Example: fairchance methods kilbertus-icml
    """
    from fairchance_lab.experiments.methods import METHODS, REFERENCES, SETS  # noqa: PLC0415 - slow

    if baseline is not None:
        with errors(json):
            _values(baseline, json)
        return
    names = {name: words for name, (words, _) in {**METHODS, **REFERENCES}.items()}
    if json:
        print_json(names)
        return
    table = _table(names, "what it is")
    for name, members in SETS.items():
        table.add_row(name, f"{len(members)} of these at once")
    table.add_row("explore-fair@0.13", "any of the four variants, with α_exploit held constant")
    table.add_row("module:function", "your own: a function of a Setup (see examples/own_method.py)")
    Console().print(table)


def _values(name: str, json: bool) -> None:
    from fairchance_lab.experiments.methods import BASELINES, values_of  # noqa: PLC0415 - slow

    if name not in BASELINES:
        raise InputError(f"there is no baseline {name!r}; known are {', '.join(BASELINES)}.")
    values = values_of(name)
    if json:
        print_json({key: {"value": v, "source": source} for key, (v, source) in values.items()})
        return
    table = Table("parameter", "value", "from")
    for key, (value, source) in values.items():
        table.add_row(key, f"{value:.4g}" if isinstance(value, float) else str(value), source)
    Console().print(table)


def switches(json: Json = False) -> None:
    """List the deviations of the paper's released code that can be switched on.

    With --json, all findings about that code: how each is modelled, or why not.

    Example: fairchance switches --json
    """
    if json:
        print_json({name: found._asdict() for name, found in DEVIATIONS.items()})
        return
    table = Table("name", "with it on", "without it")
    for name in SWITCHES:
        table.add_row(name, DEVIATIONS[name].released, DEVIATIONS[name].ours)
    Console().print(table)
    print_lines([f"{count_deviations()} --json lists them all."])


def _table(names: dict[str, str], title: str) -> Table:
    table = Table("name", title)
    for name, words in names.items():
        table.add_row(name, words)
    return table
