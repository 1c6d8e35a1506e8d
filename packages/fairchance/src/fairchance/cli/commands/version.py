"""``fairchance version``: print the version."""

from __future__ import annotations

import fairchance
from fairchance.cli.options import Json
from fairchance.cli.output import print_json, print_lines


def version(json: Json = False) -> None:
    """Print the version.

    Example: fairchance version
    """
    if json:
        print_json({"version": fairchance.__version__})
    else:
        print_lines([fairchance.__version__])
