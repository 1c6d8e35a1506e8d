"""A program's configuration, read from a TOML file; nothing in it is imported or evaluated.

``program_example.toml`` in this folder explains every key.
"""

from __future__ import annotations

import difflib
import re
import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from fairchance.core.sizes import read_toml
from fairchance.errors import InputError
from fairchance.ledger.base import STATES, check_program_name
from fairchance.ledger.control import read_ramp
from fairchance.ledger.encoding import Shape
from fairchance.ledger.outcomes import TakeUpWindow
from fairchance.ledger.retention import MONTHS, MOST_MONTHS
from fairchance.ledger.rounds import RoundRules
from fairchance.methods.option_values import (
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    ChoiceValue,
    PlainValue,
    is_table,
)
from fairchance.methods.options import CLASSIFIERS, LIMITS, RESEARCH, build_classifier
from fairchance.people.tables import InputTable

__all__ = [
    "ADDRESS",
    "Config",
    "Labels",
    "Roles",
    "check_roles",
    "example_config",
    "input_table",
    "read_config",
]

_MOST_CURRENCY = 4  # characters


def _is_label(value: Any) -> bool:
    return any(kind.fits(value) for kind in (TEXT, NUMBER, FLAG))


def _is_currency(value: Any) -> bool:
    return (
        TEXT.fits(value)
        and len(value) <= _MOST_CURRENCY
        and all(c.isalpha() or unicodedata.category(c) == "Sc" for c in value)
    )


_TEXTS = PlainValue(
    'a list of names, such as ["income", "age"]',
    lambda value: isinstance(value, list) and all(map(TEXT.fits, value)),
)
_LABELS = PlainValue(
    'a label, or a list such as ["repaid", "closed"]',
    lambda value: all(map(_is_label, value)) if isinstance(value, list) else _is_label(value),
)
_WINDOW = PlainValue('such as "2 rounds" or "30 days"', TEXT.fits)
ADDRESS = PlainValue(
    'such as "https://example.org/alerts"',
    lambda value: TEXT.fits(value) and re.fullmatch(r"https?://[^/\s]+\S*", value) is not None,
)
_EVERY = PlainValue('such as "1 month", "1 week" or "1 day"', TEXT.fits)
_CURRENCY = PlainValue(
    'a code or a symbol of at most four characters, such as "EUR" or "€"', _is_currency
)
_SENTENCE = PlainValue(
    'such as { code = "R1", text = "Your income is low." }',
    lambda value: is_table(value, {"code": TEXT, "text": TEXT}, ("code", "text")),
)
# Who answers for a program, for its model card.
GOVERNANCE = ("tier", "owner", "approver", "next_review")
_CERTIFIED = ("handover", "evidence")  # keys of [program] for kind = "certified" only
# Which features may be missing: those that are missing in the history, all, or none.
MISSING = ("as-in-history", "anywhere", "refuse")
_TABLES: dict[str, dict[str, Any]] = {
    "program": {
        "name": TEXT,
        "currency": _CURRENCY,
        "ramp": NUMBER,
        "handover": ChoiceValue(("automatic", "by hand")),
        "evidence": ChoiceValue(("rounds", "history")),
        **dict.fromkeys(GOVERNANCE, TEXT),
    },
    "columns": {
        "id": TEXT,
        "outcome": TEXT,
        "accepted": TEXT,
        "incumbent": TEXT,
        "barred": TEXT,
        "applied": TEXT,
        "persons": TEXT,
        "groups": _TEXTS,
        "features": _TEXTS,
        "ignore": _TEXTS,
        "text": _TEXTS,
        "missing_values": _LABELS,
        "missing": ChoiceValue(MISSING),
    },
    "outcomes": {**dict.fromkeys(STATES, _LABELS), "not_taken_within": _WINDOW},
    "decisions": {"accepted": _LABELS, "rejected": _LABELS},
    "classifier": {"kind": ChoiceValue(tuple(CLASSIFIERS))},  # the others by its kind
    "limits": LIMITS,
    "checks": {"stop": NUMBER, "warn": NUMBER},
    "reasons": {},  # any column
    "retention": {"months": WHOLE},
    "rounds": {"every": _EVERY, "at_most": WHOLE},
    "alerts": {"url": ADDRESS, "secret_variable": TEXT},
}
_REQUIRED = {
    "columns": ("id", "outcome"),
    "outcomes": ("good", "bad"),
    "classifier": ("kind",),
}


@dataclass(frozen=True)
class Roles:
    """The columns of a file by their role.

    Attributes
    ----------
    id, outcome
        The columns with ids and outcomes.
    accepted
        The column with past decisions; None if all applicants with an outcome were accepted.
    incumbent, barred
        The columns of a batch with the lender's own decisions, and with applicants who must not be
        accepted; None if there are none.
    groups, features
        The protected attributes, and the columns that decisions use.
    applied
        The column with the time of the application, which is not read; None if there is none.
    persons
        The column that says who applied, which is not stored; None if all applications are of
        different persons.

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
    incumbent: str | None = None
    barred: str | None = None
    applied: str | None = None
    persons: str | None = None

    @property
    def by_lender(self) -> dict[str, str]:
        """Return the columns in which a batch has truth values of the lender, by their role."""
        named = {"incumbent": self.incumbent, "barred": self.barred}
        return {role: name for role, name in named.items() if name is not None}

    @staticmethod
    def read(about: Mapping[str, Any]) -> Roles | None:
        """Return the roles in a program's ``about``; None if it was not made from a file."""
        stored = about.get("roles")
        if stored is None:
            return None
        return Roles(
            stored["id"],
            stored["outcome"],
            stored["accepted"],
            tuple(stored["groups"]),
            tuple(stored["features"]),
            stored["incumbent"],
            stored["barred"],
            stored.get("applied"),
            stored.get("persons"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the roles as a program's ``about`` stores them."""
        return {**asdict(self), "groups": list(self.groups), "features": list(self.features)}


def input_table(settings: Mapping[str, Any], shape: Shape) -> InputTable:
    """Return the columns that a program's files have, from the header of its first entry."""
    about = settings.get("about", {})
    roles = Roles.read(about)
    if roles is None:  # it was made in Python
        groups = (shape.group_names or ("group",)) if shape.has_groups else ()
        roles = Roles("id", "outcome", groups=groups)
    missing = about.get("missing")
    return InputTable(
        roles.id,
        roles.groups,
        roles.incumbent,
        roles.barred,
        roles.persons,
        None if shape.columns.names is None else shape.columns,
        None if missing is None else tuple(missing),
        tuple(about.get("missing_values", ())),
        about.get("decisions", {}),
        None if shape.reference is None else shape.reference.as_dict(),
    )


@dataclass(frozen=True)
class Labels:
    """What the values in an outcome column mean.

    Attributes
    ----------
    good, bad, withdrawn, not_taken
        The labels of each state, in the form of ``canonical``.

    Examples
    --------
    >>> Labels(good=("repaid", "1"), bad=("default", "0")).by_state()["bad"]
    ('default', '0')
    """

    good: tuple[str, ...]
    bad: tuple[str, ...]
    withdrawn: tuple[str, ...] = ()
    not_taken: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        labels = [label for of_state in self.by_state().values() for label in of_state]
        twice = next((label for label in labels if labels.count(label) > 1), None)
        if twice is not None:
            raise InputError(
                f"[outcomes] must give each label one meaning, got {twice!r} twice; remove one."
            )

    @staticmethod
    def read(about: Mapping[str, Any]) -> Labels | None:
        """Return the labels in a program's ``about``; None if it was not made from a file."""
        stored = about.get("outcomes")
        if stored is None:
            return None
        return Labels(**{state: tuple(stored.get(state, ())) for state in STATES})

    @staticmethod
    def canonical(label: object) -> str:
        """Return the form in which labels are compared: 1, 1.0 and "1" are the same.

        Examples
        --------
        >>> [Labels.canonical(label) for label in (1, 1.0, "1.00", True, "TRUE", " repaid ")]
        ['1', '1', '1', 'true', 'true', 'repaid']
        """
        word = str(label).strip()
        word = re.sub(r"^([+-]?\d+)\.0*$", r"\1", word)
        return word.lower() if word.lower() in ("true", "false") else word

    def meant(self, value: object) -> str | None:
        """Return the label that a value is, in any case if that has one meaning; None if none.

        Examples
        --------
        >>> labels = Labels(good=("paid", "P"), bad=("p",))
        >>> [labels.meant(value) for value in (" PAID", "p", "P", "lost")]
        ['paid', 'p', 'P', None]
        """
        word, state_of = self.canonical(value), self.state_of()
        if word in state_of:
            return word
        alike = [label for label in state_of if label.lower() == word.lower()]
        return alike[0] if len({state_of[label] for label in alike}) == 1 else None

    def state_of(self) -> dict[str, str]:
        """Return the state of each label."""
        return {label: state for state, labels in self.by_state().items() for label in labels}

    def by_state(self) -> dict[str, tuple[str, ...]]:
        """Return the labels of each state."""
        return {state: getattr(self, state) for state in STATES}

    def listed(self) -> str:
        """Return all labels as part of a sentence."""
        return ", ".join(f"{label!r} ({state})" for label, state in self.state_of().items())


@dataclass(frozen=True)
class Config:
    """A program's configuration.

    Attributes
    ----------
    source
        Name of the file, for messages.
    name
        Name of the program.
    roles
        The columns by their role; ``features`` is empty if the file names none.
    texts
        Features that are text even if they look like numbers.
    missing_values
        Values that mean that a feature is missing.
    missing
        Which features may be missing, one of ``MISSING``.
    labels
        What the values in the outcome column mean.
    ignore
        Columns that have no role.
    decisions
        Further words for ``"accepted"`` and ``"rejected"`` in columns of decisions.
    not_taken_within
        How long after the decision an applicant may be recorded as not having taken the loan; empty
        if no label means that.
    ramp
        The first ramp.
    settings, limits, checks
        The tables [classifier], [limits] and [checks].
    months
        The retention period.
    currency
        The currency of the utility, for reports; empty if none is named.
    governance
        Those of ``GOVERNANCE`` that are stated.
    reasons
        The lender's ``code`` and ``text`` for columns that are reasons of rejections.
    rounds
        The table [rounds]: when a round that stays open is due; empty if each batch is a round.
    alerts
        The table [alerts]: who is told of changed lights; empty if nobody is.
    """

    source: str
    name: str
    roles: Roles
    texts: tuple[str, ...]
    missing_values: tuple[str, ...]
    missing: str
    labels: Labels
    settings: dict[str, Any] = field(repr=False)
    limits: dict[str, Any] = field(repr=False)
    checks: dict[str, Any] = field(repr=False)
    ignore: tuple[str, ...] = ()
    decisions: dict[str, list[str]] = field(default_factory=dict)
    not_taken_within: str = ""
    ramp: float = 1.0
    months: int = MONTHS
    currency: str = ""
    governance: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    rounds: dict[str, Any] = field(default_factory=dict)
    alerts: dict[str, str] = field(default_factory=dict)

    def features(self, names: list[str]) -> tuple[str, ...]:
        """Return the features of a file: those named, or all columns without another role."""
        features = self.roles.features or self.without_role(names)
        if not features:
            raise InputError(
                f"a history needs a feature, got {', '.join(map(repr, names))}; add a column."
            )
        return features

    def without_role(self, names: list[str]) -> tuple[str, ...]:
        """Return the columns of a file that have no role but that of a feature."""
        roles = self.roles
        taken = {roles.id, roles.outcome, roles.accepted, roles.applied, *self.ignore}
        taken |= {roles.persons, *roles.groups, *roles.by_lender.values()}
        return tuple(name for name in names if name not in taken)

    def check_reasons(self, features: tuple[str, ...]) -> None:
        """Raise if a sentence is about a column that is no feature, and so is never a reason."""
        known = {*features, *(f"missing {name}" for name in features)}
        for name in self.reasons:
            if name not in known:
                raise InputError(
                    f"[reasons] of {self.source} has {name!r}, which is not a feature; features "
                    f"are {', '.join(map(repr, features))}."
                )

    def without_sentence(self, features: tuple[str, ...], gaps: tuple[str, ...]) -> list[str]:
        """Return the possible reasons that have no sentence, if the file has sentences."""
        possible = (
            *features,
            *(f"missing {name}" for name in self._may_be_missing(features, gaps)),
        )
        return [name for name in possible if self.reasons and name not in self.reasons]

    def _may_be_missing(self, features: tuple[str, ...], gaps: tuple[str, ...]) -> tuple[str, ...]:
        return {"as-in-history": gaps, "anywhere": features, "refuse": ()}[self.missing]

    def classifier(self) -> Any:
        """Return the classifier.

        Its ``random_state`` is the seed in the file, or drawn if there is none: then draws cannot
        be predicted, and the ledger stores the seed.
        """
        seed = self.settings.get("seed", secrets.randbits(128))
        words = self.missing_values
        numbers = (float(word) for word in words if re.fullmatch(r"-?\d+(\.\d+)?", word))
        return build_classifier(
            {**self.settings, "seed": seed}, self.limits, (*words, *numbers), self.checks
        )

    def about(self, features: tuple[str, ...], gaps: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return what a ledger stores of this in addition to the classifier.

        Parameters
        ----------
        features
            The features.
        gaps
            Those of them that are missing in the history.
        """
        roles = {**self.roles.to_dict(), "features": list(features)}
        outcomes = {state: list(labels) for state, labels in self.labels.by_state().items()}
        return {
            "roles": roles,
            "outcomes": outcomes,
            "missing": list(self._may_be_missing(features, gaps)),
            "missing_values": list(self.missing_values),
            "retention_months": self.months,
            "ramp": self.ramp,
            **({"decisions": {**self.decisions}} if self.decisions else {}),
            **({"not_taken_within": self.not_taken_within} if self.not_taken_within else {}),
            **({"currency": self.currency} if self.currency else {}),
            **({"reasons": self.reasons} if self.reasons else {}),
            **({"rounds": self.rounds} if self.rounds else {}),
            **({"alerts": self.alerts} if self.alerts else {}),
            **self.governance,
        }


def example_config() -> str:
    """Return an example file in which every key is explained."""
    example = resources.files("fairchance.ledger").joinpath("program_example.toml")
    return example.read_text(encoding="utf-8")


def read_config(path: str | Path) -> Config:
    """Read a configuration.

    Raises
    ------
    InputError
        If it is not TOML, or if a key is unknown, missing or has a wrong value.
    """
    path = Path(path)
    try:
        content = read_toml(path)
    except FileNotFoundError:
        raise InputError(f"there is no file {str(path)!r}; name one that exists.") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path.name} cannot be read as TOML: {str(error).rstrip('.')}; repair it."
        ) from error
    try:
        return _config(content, path.name)
    except InputError as error:
        raise InputError(f"in {path.name}: {error}") from error


def _config(content: dict[str, Any], source: str) -> Config:
    tables = _read_tables(content)
    columns, outcomes, program = (tables[name] for name in ("columns", "outcomes", "program"))
    roles = Roles(
        columns["id"],
        columns["outcome"],
        columns.get("accepted"),
        tuple(columns.get("groups", ())),
        tuple(columns.get("features", ())),
        columns.get("incumbent"),
        columns.get("barred"),
        columns.get("applied"),
        columns.get("persons"),
    )
    labels = Labels(**{state: _labels(outcomes.get(state, ())) for state in STATES})
    config = Config(
        source,
        program.get("name", "main"),
        roles,
        tuple(columns.get("text", ())),
        _labels(columns.get("missing_values", ())),
        columns.get("missing", MISSING[0]),
        labels,
        tables["classifier"] | {name: program[name] for name in _CERTIFIED if name in program},
        tables["limits"],
        tables["checks"],
        tuple(columns.get("ignore", ())),
        {key: [*_labels(words)] for key, words in tables["decisions"].items()},
        outcomes.get("not_taken_within", ""),
        read_ramp(program.get("ramp", 1.0)),
        tables["retention"].get("months", MONTHS),
        program.get("currency", ""),
        {name: program[name] for name in GOVERNANCE if name in program},
        tables["reasons"],
        tables["rounds"],
        tables["alerts"],
    )
    if config.rounds:
        RoundRules.read(config.rounds)
    check_roles(config)
    _check_lender(config)
    check_program_name(config.name)
    if not 0 <= config.months <= MOST_MONTHS:
        raise InputError(
            f"[retention] months must be from 0 to {MOST_MONTHS}, got {config.months}; change it."
        )
    if config.currency and not isinstance(config.settings.get("utility"), dict):
        raise InputError(
            f"[program] currency = {config.currency!r} has no effect, because [classifier] utility "
            f"has no sums of money; remove it."
        )
    config.classifier()  # raises now, before a history is read
    return config


def _check_lender(config: Config) -> None:
    """Raise unless the lender's own process and loans that are not taken are configured in full."""
    if config.ramp < 1 and config.roles.incumbent is None:
        raise InputError(
            f"[program] ramp = {config.ramp:g} leaves decisions to the lender, and [columns] has "
            f"no incumbent; name the column with the lender's own decisions, or remove ramp."
        )
    if bool(config.labels.not_taken) != bool(config.not_taken_within):
        lacks = "not_taken_within" if config.labels.not_taken else "not_taken"
        raise InputError(
            f"[outcomes] lacks {lacks}; give both not_taken (labels) and not_taken_within, such "
            f'as "2 rounds" or "30 days", or neither.'
        )
    if config.not_taken_within:
        TakeUpWindow.read(config.not_taken_within)
    for name in _CERTIFIED:
        if name in config.settings and config.settings["kind"] != "certified":
            raise InputError(f"[program] {name} needs kind = 'certified'; remove it.")
    if config.roles.persons and config.settings["kind"] != "certified":
        raise InputError("[columns] persons needs kind = 'certified'; remove it.")


def check_roles(config: Config) -> None:
    """Raise unless each column has one role, and each word one meaning."""
    roles, mode = config.roles, config.settings.get("group_mode", "aware")
    single = [roles.id, roles.outcome, *([roles.accepted] if roles.accepted else [])]
    # A lender's decisions may have one name in the history and in batches.
    single += [name for name in roles.by_lender.values() if name != roles.accepted]
    single += [*filter(None, (roles.applied, roles.persons)), *config.ignore]
    named = [*single, *roles.groups]
    twice = next((name for name in named if named.count(name) > 1), None)
    if twice is not None:
        raise InputError(
            f"[columns] must name each column once, got {twice!r} twice; name another."
        )
    of = config.decisions
    both = {*of.get("accepted", ())} & {*of.get("rejected", ())}
    if both:
        raise InputError(
            f"[decisions] must give each word one meaning, got {min(both)!r} twice; remove one."
        )
    for name in roles.features:
        if name in single or roles.features.count(name) > 1:
            raise InputError(f"[columns] must name {name!r} once; remove it from features.")
        if name in roles.groups and mode != "aware":
            raise InputError(
                f"[columns] features has the group {name!r}, which group_mode = {mode!r} excludes; "
                f"remove one."
            )
    for name in config.texts:
        if name in single or (roles.features and name not in roles.features):
            raise InputError(f"[columns] text has {name!r}, which is not a feature; remove it.")


def _labels(value: Any) -> tuple[str, ...]:
    """Return a label or a list of labels in canonical form."""
    return tuple(map(Labels.canonical, value if isinstance(value, list | tuple) else [value]))


def _read_tables(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return all tables with their values checked."""
    for name, table in content.items():
        if name not in _TABLES:
            raise _unknown(f"[{name}]", _TABLES)
        if not isinstance(table, dict):
            raise InputError(f"[{name}] must be a table, got {table!r}; write its keys below it.")
    tables = {name: content.get(name, {}) for name in _TABLES}
    for name, required in _REQUIRED.items():
        lacking = [key for key in required if key not in tables[name]]
        if lacking:
            raise InputError(f"[{name}] lacks {' and '.join(lacking)}; add what is missing.")
    read = {}
    for name, table in tables.items():
        keys = _keys_of(name, table)
        for key in table:
            if key not in keys:
                raise _unknown(f"[{name}] {key}", keys)
        read[name] = {key: keys[key].read(f"[{name}] {key}", item) for key, item in table.items()}
    return read


def _keys_of(name: str, table: dict[str, Any]) -> Mapping[str, Any]:
    """Return the keys that a table may have."""
    if name == "classifier":
        kind = _TABLES[name]["kind"].read("[classifier] kind", table["kind"])
        return CLASSIFIERS[kind]
    return dict.fromkeys(table, _SENTENCE) if name == "reasons" else _TABLES[name]


def _unknown(name: str, known: Mapping[str, Any]) -> InputError:
    """Return an error about an unknown table or key, with the one that it resembles."""
    key = name.strip("[]").rpartition(" ")[2]
    near = difflib.get_close_matches(key, known, n=1)
    homes = [f"[{table}]" for table, keys in _TABLES.items() if key in keys]
    homes += [f"kind = {kind!r}" for kind, keys in CLASSIFIERS.items() if key in keys]
    homes += ["fairchance-lab"] if key in RESEARCH else []
    hint = f"did you mean {near[0]}?" if near else f"allowed are {', '.join(known)}."
    if homes and not near:
        hint = f"{homes[0]} has it."
    return InputError(f"{name} is unknown here; {hint}")
