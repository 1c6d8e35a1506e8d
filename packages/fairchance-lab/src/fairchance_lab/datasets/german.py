"""Statlog German credit: 1,000 applicants of the 1970s, bundled with the package."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from importlib.resources import files

import numpy as np

from fairchance.errors import InputError
from fairchance.simulate.people import Table
from fairchance_lab.datasets.reading import check_choice

__all__ = ["SHA256", "load_german"]

SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"

# Columns of the file, from 0, in the order of the paper's preparation.
_NUMBERS = {
    "credit_amount": 4,
    "duration": 1,
    "instalment_rate": 7,
    "residence_since": 10,
    "age": 12,
    "number_credits": 15,
    "people_liable": 17,
}
_PERSONAL_STATUS = 8
_MEN = ("A91", "A93", "A94")
_CLASS = 20


def load_german(group: str = "sex") -> Table:
    """Load the original file of UCI: 1,000 people, 70 % of them good credits.

    Features are the numbers of the file and sex (1 man, 0 woman), as the paper uses them.

    Parameters
    ----------
    group
        Only ``"sex"``, with the groups ``"male"`` and ``"female"``.

    Examples
    --------
    >>> table = load_german()
    >>> len(table), float(table.outcome.mean()), float((table.group == "male").mean())
    (1000, 0.7, 0.69)
    """
    check_choice("group", group, ("sex",))
    rows = np.array([line.split() for line in _original().decode("ascii").splitlines()])
    man = np.isin(rows[:, _PERSONAL_STATUS], _MEN)
    numbers = rows[:, list(_NUMBERS.values())].astype(np.float64)
    return Table(
        name="german",
        source="Statlog (German Credit Data), Hans Hofmann, UCI Machine Learning Repository, "
        "doi 10.24432/C5NC77, CC BY 4.0: all 1,000 rows of the original file.",
        features=(*_NUMBERS, "sex"),
        X=np.column_stack([numbers, man]),
        group=np.where(man, "male", "female"),
        outcome=(rows[:, _CLASS] == "1").astype(np.int8),
        unscaled=("sex",),
        group_feature="sex",
    )


def _original() -> bytes:
    """Return the bytes of the file as UCI published it; raise if the file differs."""
    packed = files("fairchance_lab.datasets").joinpath("data", "german.data.gz").read_bytes()
    try:
        raw = gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        raw = b""
    digest = hashlib.sha256(raw).hexdigest()
    if digest != SHA256:
        raise InputError(
            f"the German credit file inside the package is not the original: its sha256 must be "
            f"{SHA256}, got {digest}; install fairchance again."
        )
    return raw
