"""The command ``fairchance``, which is also ``python -m fairchance``."""

from __future__ import annotations

import sys

from fairchance.errors import to_install

__all__ = ["main"]


def main() -> None:
    """Run the command line, or explain how to install it."""
    try:
        from fairchance.cli.app import main as run  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        print(
            f"fairchance: the command line needs {error.name}, which is not installed; "
            f"{to_install('production')} installs it.",
            file=sys.stderr,
        )
        raise SystemExit(2) from error
    run()


if __name__ == "__main__":
    main()
