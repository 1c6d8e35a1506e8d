"""Where the command starts, with words for an installation without the command line's extra."""

from __future__ import annotations

import sys

from secondlook.errors import to_install

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say how to install it."""
    try:
        from secondlook.cli.app import main as run  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        print(
            f"secondlook: the command line needs {error.name}, which is not installed; "
            f"{to_install('experiments')} installs it.",
            file=sys.stderr,
        )
        raise SystemExit(2) from error
    run()
