"""``fairchance version``: print the version."""

from __future__ import annotations

import platform

import fairchance
from fairchance.cli.options import Json
from fairchance.cli.output import print_json, print_lines


def version(json: Json = False) -> None:
    """Print the version; as JSON also those of Python and of the packages that answers depend on.

    Example: fairchance version --json
    """
    if json:
        from fairchance.core.versions import versions  # noqa: PLC0415 - slow

        print_json(
            {"version": fairchance.__version__, "python": platform.python_version()}
            | {"packages": versions()}
        )
    else:
        print_lines([fairchance.__version__])
