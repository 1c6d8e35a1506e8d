"""Which tables and keys a configuration may have, and what their values may be."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from secondlook.errors import InputError
from secondlook.ledger.config_classifiers import CLASSIFIERS, LIMITS
from secondlook.ledger.config_kinds import LABELS, TEXT, TEXTS, WHOLE

__all__ = ["read_tables"]

_TABLES: dict[str, dict[str, Any]] = {
    "program": {"name": TEXT},
    "columns": {
        "id": TEXT,
        "outcome": TEXT,
        "accepted": TEXT,
        "groups": TEXTS,
        "features": TEXTS,
        "text": TEXTS,
    },
    "outcomes": {"good": LABELS, "bad": LABELS, "indeterminate": LABELS},
    "classifier": {},  # by its kind
    "limits": LIMITS,
    "retention": {"months": WHOLE},
}
_NEEDED = {
    "columns": ("id", "outcome"),
    "outcomes": ("good", "bad"),
    "classifier": ("kind",),
}


def read_tables(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return every table of a configuration, with values of the kinds that they must be.

    Raises
    ------
    InputError
        If tables or keys are unknown, missing or another kind's, with all of them in one sentence,
        or if a value cannot be what it is.

    Examples
    --------
    >>> read_tables({"columns": {"id": "id"}})
    Traceback (most recent call last):
        ...
    secondlook.errors.InputError: [columns] needs the key outcome, which is missing; got id, so add
    it; also, [outcomes] needs the keys good and bad, which are missing; got nothing, so add them;
    also, [classifier] needs the key kind, which is missing; got nothing, so add it.
    """
    strange = [name for name in content if name not in _TABLES]
    if strange:
        place = next((f"[{one}]" for one, keys in _TABLES.items() if strange[0] in keys), None)
        _raise_all([_unknown("table", [f"[{one}]" for one in strange], _TABLES, "", place)])
    for name, table in content.items():
        if not isinstance(table, dict):
            raise InputError(f"{name} must be a table of its own, [{name}], got {table!r}.")
    tables = {name: content.get(name, {}) for name in _TABLES}
    _raise_all(
        [
            f"[{name}] needs the key{'s' if len(lacking) > 1 else ''} {' and '.join(lacking)}, "
            f"which {'are' if len(lacking) > 1 else 'is'} missing; got "
            f"{', '.join(tables[name]) or 'nothing'}, so add {'them' if len(lacking) > 1 else 'it'}"
            for name, needed in _NEEDED.items()
            if (lacking := [key for key in needed if key not in tables[name]])
        ]
    )
    keys = {name: _keys_of(name, table) for name, table in tables.items()}
    _raise_all(
        [
            *_of_another_kind(tables["classifier"], keys["classifier"]),
            *(
                _unknown("key", [repr(one) for one in strange], keys[name], f" of [{name}]")
                for name, table in tables.items()
                if (strange := _strange_keys(name, table, keys[name]))
            ),
        ]
    )
    return {
        name: {key: keys[name][key].read(f"[{name}] {key}", one) for key, one in table.items()}
        for name, table in tables.items()
    }


def _keys_of(name: str, table: dict[str, Any]) -> dict[str, Any]:
    if name != "classifier":
        return _TABLES[name]
    kind = table["kind"].replace("_", "-") if isinstance(table["kind"], str) else table["kind"]
    if kind not in CLASSIFIERS:
        raise InputError(
            f"[classifier] kind must be {' or '.join(map(repr, CLASSIFIERS))}, got "
            f"{table['kind']!r}; choose one."
        )
    return CLASSIFIERS[kind]


def _kinds_with(key: str) -> list[str]:
    return [kind for kind, keys in CLASSIFIERS.items() if key in keys]


def _of_another_kind(table: dict[str, Any], keys: dict[str, Any]) -> list[str]:
    """Say which keys belong to another kind of classifier, all at once."""
    wrong = [key for key in table if key not in keys and _kinds_with(key)]
    if not wrong:
        return []
    other, many = _kinds_with(wrong[0])[0], len(wrong) > 1
    return [
        f"[classifier] {' and '.join(wrong)} {'are keys' if many else 'is a key'} of kind = "
        f"{other!r} and not of {table['kind']!r}; take {'them' if many else 'it'} out, or change "
        f"the kind"
    ]


def _strange_keys(name: str, table: dict[str, Any], keys: dict[str, Any]) -> list[str]:
    elsewhere = _kinds_with if name == "classifier" else lambda _: []
    return [key for key in table if key not in keys and not elsewhere(key)]


def _unknown(
    what: str, names: list[str], known: Mapping[str, Any], where: str, place: str | None = None
) -> str:
    """Say which names are not known, as they are written, with those that may be meant."""
    near = [difflib.get_close_matches(one.strip("[]'\""), known, n=1) for one in names]
    if len(names) == 1:
        hint = f"it belongs in {place}; " if place else ""
        hint = f"did you mean {near[0][0]}? " if near[0] else hint
        return f"the {what} {names[0]}{where} is not known; {hint}allowed are {', '.join(known)}"
    listed = ", ".join(
        f"{name} (did you mean {meant[0]}?)" if meant else name
        for name, meant in zip(names, near, strict=True)
    )
    return f"the {what}s {listed}{where} are not known; allowed are {', '.join(known)}"


def _raise_all(found: list[str]) -> None:
    """Raise one error that names everything found."""
    if found:
        raise InputError("; also, ".join(found) + ".")
