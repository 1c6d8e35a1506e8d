"""``fairchance serve``: a program over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from fairchance.cli.options import LedgerUrl, ProgramName, Trusted, errors

__all__ = ["serve"]


def serve(
    ledger: LedgerUrl,
    program: ProgramName = None,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 for all, behind a proxy.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer.")] = 1,
    rate: Annotated[
        float,
        typer.Option(min=0, help="Requests of a key in a second, of each worker; 0 for any."),
    ] = 0.0,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long a request may take.")] = 30.0,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="A proxy that signs people in; its X-Forwarded-User may see the dashboard.",
        ),
    ] = None,
    trusted: Trusted = None,
) -> None:
    """Serve a program over HTTP: decisions, outcomes, files of applicants, status and metrics.

    The program needs [rounds] in its configuration, or an open round. Every request needs a key,
    which fairchance keys makes. The dashboard is at /, and asks for a key of the role audit. The
    log has a line of JSON per request, without personal data. TLS belongs to a proxy.

    Example: fairchance serve --ledger postgresql://localhost/lender --workers 4
    """
    with errors(json=False):
        from fairchance.service.doors import Limits  # noqa: PLC0415 - an extra
        from fairchance.service.server import Served, run  # noqa: PLC0415

        limits = Limits(rate=rate, seconds=seconds)
        allowed, proxies = tuple(trusted or ()), tuple(proxy or ())
        served = Served(ledger, program, allowed, host, port, workers, limits, proxies)
        served.open().close()  # so that what cannot be served is an error here, once
        run(served)
