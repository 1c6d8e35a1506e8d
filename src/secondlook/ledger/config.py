"""A program's configuration, read from a TOML file whose values are data and nothing else.

``program_example.toml`` beside this file shows every key with a line of explanation.
"""

from __future__ import annotations

import re
import secrets
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from secondlook.errors import InputError
from secondlook.ledger.base import STATES
from secondlook.ledger.config_classifiers import build_classifier, takes_missing
from secondlook.ledger.config_tables import read_tables
from secondlook.ledger.retention import MONTHS, MOST_MONTHS
from secondlook.ledger.texts import check_program_name

__all__ = ["Config", "Labels", "Roles", "example_config", "read_config"]


@dataclass(frozen=True)
class Roles:
    """Which column of a file is what.

    Attributes
    ----------
    id, outcome
        Names of the columns with the application's name and with its outcome.
    accepted
        The column that says who was accepted; None: whoever has an outcome was.
    groups, features
        The protected attributes, and what decisions are made by.

    Examples
    --------
    >>> roles = Roles("id", "outcome", groups=("sex",), features=("income", "age"))
    >>> Roles.read({"roles": roles.to_dict()}) == roles
    True
    """

    id: str
    outcome: str
    accepted: str | None = None
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()

    @staticmethod
    def read(about: Mapping[str, Any]) -> Roles | None:
        """Return what a program's ``about`` says, None for one that was not made from a file."""
        kept = about.get("roles")
        if kept is None:
            return None
        return Roles(
            kept["id"],
            kept["outcome"],
            kept["accepted"],
            tuple(kept["groups"]),
            tuple(kept["features"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as a program's ``about`` keeps it."""
        return {**asdict(self), "groups": list(self.groups), "features": list(self.features)}


@dataclass(frozen=True)
class Labels:
    """What the words in an outcome column mean; programs made from a file know 1 and 0.

    Attributes
    ----------
    good, bad, indeterminate
        The words for each state, in the form of ``canonical``.

    Examples
    --------
    >>> Labels(good=("repaid", "1"), bad=("default", "0")).by_state()["bad"]
    ('default', '0')
    """

    good: tuple[str, ...]
    bad: tuple[str, ...]
    indeterminate: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        everything = (*self.good, *self.bad, *self.indeterminate)
        twice = next((one for one in everything if everything.count(one) > 1), None)
        if twice is not None:
            raise InputError(
                f"[outcomes] must give each label one meaning, got {twice!r} twice; take one out."
            )

    @staticmethod
    def read(about: Mapping[str, Any]) -> Labels | None:
        """Return what a program's ``about`` says, None for one that was not made from a file."""
        kept = about.get("outcomes")
        if kept is None:
            return None
        return Labels(**{state: tuple(kept.get(state, ())) for state in STATES})

    @staticmethod
    def canonical(label: object) -> str:
        """Return the form in which labels are compared: 1, 1.0 and "1" are the same.

        Examples
        --------
        >>> [Labels.canonical(one) for one in (1, 1.0, "1.00", True, "TRUE", " repaid ")]
        ['1', '1', '1', 'true', 'true', 'repaid']
        """
        word = str(label).strip()
        word = re.sub(r"^([+-]?\d+)\.0*$", r"\1", word)
        return word.lower() if word.lower() in ("true", "false") else word

    def by_state(self) -> dict[str, tuple[str, ...]]:
        """Return the labels of each state."""
        return {state: getattr(self, state) for state in STATES}

    def listed(self) -> str:
        """Return all labels as part of a sentence."""
        return ", ".join(
            f"{one!r} ({state})" for state, words in self.by_state().items() for one in words
        )


@dataclass(frozen=True)
class Config:
    """A program's configuration.

    Attributes
    ----------
    source
        The file, as messages call it.
    name
        The program's.
    roles
        Which column is what; ``features`` is empty where the file leaves it open.
    texts
        Features that are text whatever they look like.
    labels
        What the words in the outcome column mean.
    settings, limits
        The tables [classifier] and [limits].
    months
        How long people's data are kept.
    """

    source: str
    name: str
    roles: Roles
    texts: tuple[str, ...]
    labels: Labels
    settings: dict[str, Any] = field(repr=False)
    limits: dict[str, Any] = field(repr=False)
    months: int = MONTHS

    @property
    def missing(self) -> bool:
        """Whether rows with features that are missing can be used."""
        return takes_missing(self.settings)

    def features(self, names: list[str]) -> tuple[str, ...]:
        """Return the features among a file's columns: those named, or all that are nothing else."""
        if self.roles.features:
            return self.roles.features
        taken = {self.roles.id, self.roles.outcome, self.roles.accepted, *self.roles.groups}
        found = tuple(one for one in names if one not in taken)
        if not found:
            raise InputError(
                f"no column is left to decide by beside {', '.join(map(repr, names))}; a history "
                f"needs at least one feature, so add columns."
            )
        return found

    def classifier(self, texts: tuple[str, ...] = (), numbers: tuple[str, ...] = ()) -> Any:
        """Return the classifier, for features that hold text and numbers.

        Its ``random_state`` is the file's seed, or drawn where the file has none: then nobody can
        know beforehand who will be drawn, and the ledger keeps it.
        """
        seed = self.settings.get("seed", secrets.randbelow(2**31))
        return build_classifier({**self.settings, "seed": seed}, self.limits, texts, numbers)

    def about(self, features: tuple[str, ...]) -> dict[str, Any]:
        """Return what a ledger keeps of this beside the classifier."""
        roles = {**self.roles.to_dict(), "features": list(features)}
        outcomes = {state: list(words) for state, words in self.labels.by_state().items()}
        return {
            "roles": roles,
            "outcomes": outcomes,
            "missing": self.missing,
            "retention_months": self.months,
        }


def example_config() -> str:
    """Return a file to begin with, in which every key is explained."""
    found = resources.files("secondlook.ledger").joinpath("program_example.toml")
    return found.read_text(encoding="utf-8")


def read_config(path: str | Path) -> Config:
    """Read a configuration; nothing in it is imported or evaluated.

    Raises
    ------
    InputError
        If it is not TOML, or if a key is unknown, missing or has a value that it cannot have.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InputError(
            f"there is no file {str(path)!r}; secondlook init --example -o {path.name} writes one "
            f"to begin with."
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"{path.name} cannot be read as TOML: {str(error).rstrip('.')}; mend it, or begin with "
            f"the file that secondlook init --example writes."
        ) from error
    try:
        return _config(content, path.name)
    except InputError as error:
        raise InputError(f"in {path.name}: {error}") from error


def _config(content: dict[str, Any], source: str) -> Config:
    tables = read_tables(content)
    columns, outcomes = tables["columns"], tables["outcomes"]
    roles = Roles(
        columns["id"],
        columns["outcome"],
        columns.get("accepted"),
        tuple(columns.get("groups", ())),
        tuple(columns.get("features", ())),
    )
    labels = Labels(
        **{
            state: tuple(Labels.canonical(one) for one in _listed(outcomes.get(state, ())))
            for state in STATES
        }
    )
    config = Config(
        source,
        tables["program"].get("name", "main"),
        roles,
        tuple(columns.get("text", ())),
        labels,
        tables["classifier"],
        tables["limits"],
        tables["retention"].get("months", MONTHS),
    )
    _check_roles(config)
    check_program_name(config.name)
    if not 0 <= config.months <= MOST_MONTHS:
        raise InputError(
            f"[retention] months must be from 0 to {MOST_MONTHS}, got {config.months}; give such a "
            f"number."
        )
    config.classifier()  # its own checks, before any history is read
    return config


def _check_roles(config: Config) -> None:
    roles, mode = config.roles, config.settings.get("group_mode", "aware")
    single = [roles.id, roles.outcome, *([roles.accepted] if roles.accepted else [])]
    named = [*single, *roles.groups]
    twice = next((one for one in named if named.count(one) > 1), None)
    if twice is not None:
        raise InputError(
            f"[columns] must give each column one role, got {twice!r} twice; name another column."
        )
    for one in roles.features:
        if one in single or roles.features.count(one) > 1:
            why = "is named twice" if one not in single else "cannot be known when deciding"
            raise InputError(f"[columns] features holds {one!r}, which {why}; take it out.")
        if one in roles.groups and mode != "aware":
            raise InputError(
                f"[columns] features holds the group {one!r} and group_mode = {mode!r} says that "
                f"no group changes a decision; take one of them out."
            )
    for one in config.texts:
        if one in single or (roles.features and one not in roles.features):
            raise InputError(f"[columns] text holds {one!r}, which is no feature; take it out.")


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]
