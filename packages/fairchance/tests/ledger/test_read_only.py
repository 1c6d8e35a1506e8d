"""A ledger that may not be written can be read, and no file is left beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairchance.cli.app import app
from fairchance.ledger import Program, SqlLedger, verify
from ledger.children import folder_for_others, without_rights
from ledger_worlds import algorithm_1, same, started

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning"),
]
RIGHTS = {"neither": (0o444, 0o555), "no folder": (0o666, 0o555), "no file": (0o444, 0o777)}
READONLY = "(attempt to write a readonly database)"


class Shared:
    """A ledger with two batches in a folder of another user."""

    def __init__(self, source, folder):
        self.folder = folder
        self.path = shutil.copy(source, folder / "lender.db")
        self.url = f"sqlite:///{self.path}"
        os.utime(self.path, (1e9, 1e9))

    def rights(self, file=0o444, folder=0o555):
        for one in self.folder.iterdir():
            one.chmod(file)
        self.folder.chmod(folder)

    def names(self):
        return sorted(one.name for one in self.folder.iterdir())


@pytest.fixture(scope="module")
def lender(tmp_path_factory):
    """Return a ledger's file, two batches and a twin classifier without a ledger."""
    path = tmp_path_factory.mktemp("lender") / "lender.db"
    program, twin, (one, two, *_) = started(f"sqlite:///{path}", algorithm_1(), n_batch=80)
    decided = program.decide(one.people.X, sensitive_features=one.people.group, batch="b1")
    twin.decide(one.people.X, sensitive_features=one.people.group)
    yes, good = decided.ids[decided.accepted], one.outcome[decided.accepted]
    for teller in (program, twin):
        teller.observe(yes[:20], good[:20])
    for command in (("status",), ("verify",), ("export",)):  # so that every lazy import is done
        run(f"sqlite:///{path}", *command)
    run(f"sqlite:///{path}", "report", "-o", path.with_name("r.html"))
    program.ledger.close()
    return path, decided, one, two, twin


@pytest.fixture
def shared(lender):
    with folder_for_others() as folder:
        yield Shared(lender[0], folder)


def run(url, command, *options):
    found = CliRunner().invoke(app, [command, "--ledger", url, *map(str, options)])
    assert found.exit_code == 0, (found.stderr, found.exception)
    return found.stdout


@pytest.mark.parametrize("rights", RIGHTS.values(), ids=RIGHTS)
def test_reading_works_without_the_right_to_write(lender, shared, rights):
    _, decided, *_ = lender
    rejected = decided.ids[~decided.accepted][:3]

    def everything():
        program = Program.open(shared.url)
        found = program.summary()
        return [
            program.verify(relearn=True),
            found.total("n_people"),
            found.groups,
            str(program.checkpoint()),
            program.standing(decided.ids).states,
            program.reasons(rejected),
            program.shape.id_kind,
            len(program.classifier.rounds_),
            program.expired().size,
            program.ledger.programs(),
        ]

    with_rights = str(everything())
    assert "problem=None" in with_rights
    before = Path(shared.path).read_bytes()
    shared.rights(*rights)
    assert without_rights(everything) == with_rights
    assert shared.names() == ["lender.db"]  # where somebody else's log would stop the owner
    assert Path(shared.path).read_bytes() == before


def test_the_commands_that_read(shared):
    commands = [("verify",), ("export",), ("export", "--checkpoint"), ("status", "--json")]
    with_rights = [run(shared.url, *one) for one in commands[:3]]
    shared.rights()
    with folder_for_others() as own:
        own.chmod(0o777)

        def all_of_them():
            output = [run(shared.url, *one) for one in commands]
            run(shared.url, "report", "-o", own / "lender.html")
            assert output[:3] == with_rights
            return output[3]

        output = without_rights(all_of_them)
        assert f'"checkpoint": "{with_rights[2].strip()}"' in output
        assert (own / "lender.html").stat().st_size > 10_000
    assert shared.names() == ["lender.db"]


def test_writing_is_refused_and_nothing_is_lost(lender, shared):
    _, decided, one, two, _ = lender
    yes, good = decided.ids[decided.accepted], one.outcome[decided.accepted]
    group = two.people.group
    writing = {
        "decide": lambda ours: ours.decide(two.people.X, sensitive_features=group, batch="b2"),
        "observe": lambda ours: ours.observe(yes[20:], good[20:]),
        "correct": lambda ours: ours.observe(yes[:1], 1 - good[:1]),
        "withdraw": lambda ours: ours.withdraw(yes[20:]),
        "override": lambda ours: ours.override(yes[20:21], False, "fraud was found"),
        "hold": lambda ours: ours.hold(yes[:1], "a court asks"),
        "erase": lambda ours: ours.erase(yes[:1], "asked", early=True),
        "snapshot": lambda ours: ours.snapshot(),
    }
    before = Path(shared.path).read_bytes()
    shared.rights()
    for name, write in writing.items():
        output = without_rights(lambda write=write: write(Program.open(shared.url)))
        assert READONLY in output, name
        assert len(output.splitlines()) == 1
    assert Path(shared.path).read_bytes() == before
    assert shared.names() == ["lender.db"]

    def again():
        found = Program.open(shared.url).decide(
            one.people.X, sensitive_features=one.people.group, batch="b1"
        )
        return same(found, decided)

    assert without_rights(again) == "True"  # it is on the record, and writes nothing


def test_the_owner_continues_the_program(lender, shared):
    _, _, _, two, twin = lender
    shared.rights()
    people = two.people
    without_rights(lambda: Program.open(shared.url).summary())
    shared.rights(0o644, 0o755)
    found = Program.open(shared.url).decide(people.X, sensitive_features=people.group, batch="b2")
    assert same(found, twin.decide(people.X, sensitive_features=people.group))
    assert verify(shared.url).ok


@pytest.fixture
def logged(lender, shared):
    """Return a ledger whose second batch is in the log beside it, and its number of entries."""
    two = lender[3]
    with closing(sqlite3.connect(shared.path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("SELECT count(*) FROM entries").fetchone()  # keeps the log
        program = Program.open(shared.url)
        program.decide(two.people.X, sensitive_features=two.people.group, batch="b2")
        n = program.checkpoint().number
        program.ledger.close()
        copies = {one.name: one.read_bytes() for one in shared.folder.iterdir()}
    assert sorted(copies) == ["lender.db", "lender.db-shm", "lender.db-wal"]
    for name, content in copies.items():
        (shared.folder / name).write_bytes(content)
    return shared, n


def entries(url):
    return lambda: verify(url).n_entries


def test_a_log_that_can_be_read_is_read(logged):
    shared, n = logged
    shared.rights()
    assert without_rights(entries(shared.url)) == str(n)
    plain = f"file:{shared.path}?mode=ro&immutable=1"
    with closing(sqlite3.connect(plain, uri=True)) as connection:  # which would leave it out
        ((left,),) = connection.execute("SELECT count(*) FROM entries")
    assert left < n


@pytest.mark.parametrize("trouble", ["no index", "index", "log", "link"])
def test_an_unreadable_log_is_reported(logged, trouble, tmp_path):
    shared, n = logged
    log, index = (shared.folder / f"lender.db-{one}" for one in ("wal", "shm"))
    shared.rights()
    if trouble in ("no index", "link"):
        shared.folder.chmod(0o755)
        index.unlink()
        shared.folder.chmod(0o555)
    else:
        (index if trouble == "index" else log).chmod(0)
    url = shared.url
    with folder_for_others() as own:
        if trouble == "link":
            (own / "audited.db").symlink_to(shared.path)
            url = f"sqlite:///{own}/audited.db"
        output = without_rights(entries(url))
        names = sorted(one.name for one in own.iterdir())
    assert "lender.db-wal" in output
    assert len(output.splitlines()) == 1
    assert names == (["audited.db"] if trouble == "link" else [])
    for name in ("lender.db", "lender.db-wal"):  # what the sentence says to do
        (shared.folder / name).chmod(0o644)
        shutil.copy(shared.folder / name, tmp_path)
    assert verify(f"sqlite:///{tmp_path}/lender.db").n_entries == n


@pytest.mark.parametrize("index", [True, False])
def test_an_empty_log_is_ignored(shared, index):
    n = verify(shared.url).n_entries
    (shared.folder / "lender.db-wal").touch()
    if index:
        (shared.folder / "lender.db-shm").write_bytes(bytes(32768))
    shared.rights()
    assert without_rights(entries(shared.url)) == str(n)


def test_a_ledger_can_be_read_while_its_owner_writes(lender, shared):
    two = lender[3]
    owner = Program.open(shared.url)
    people = two.people
    with closing(owner.ledger.engine.raw_connection()) as kept:
        kept.execute("BEGIN IMMEDIATE")
        kept.execute("COMMIT")  # there are a log and its index now, and they stay
        shared.rights(0o644, 0o755)
        n = verify(shared.url).n_entries
        shared.folder.chmod(0o555)
        assert without_rights(entries(shared.url)) == str(n)
        shared.folder.chmod(0o755)
        owner.decide(people.X, sensitive_features=people.group, batch="b2")
        shared.folder.chmod(0o555)
        assert int(without_rights(entries(shared.url))) > n


def test_a_copy_without_write_ahead_log(shared, tmp_path):
    n = verify(shared.url).n_entries
    other = shared.folder / "other.db"
    with closing(sqlite3.connect(shared.path)) as connection:
        connection.execute("VACUUM INTO ?", (str(other),))
    with closing(sqlite3.connect(other)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
    url = f"sqlite:///{other}"
    shared.rights()
    assert without_rights(entries(url)) == str(n)
    shared.rights(0o644, 0o755)
    with closing(sqlite3.connect(other, isolation_level=None)) as connection:
        connection.execute("PRAGMA cache_size=1")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE people SET score = 0.5")  # more than fits: the file is changed
        halfway = {one.name: one.read_bytes() for one in shared.folder.glob("other*")}
        connection.execute("ROLLBACK")
    for name, content in halfway.items():
        (shared.folder / name).write_bytes(content)
    shared.rights()
    output = without_rights(entries(url))
    assert "other.db-journal" in output
    shared.rights(0o644, 0o755)
    assert verify(url).n_entries == n


def test_files_that_are_no_ledger_or_cannot_be_reached(shared):
    other = shared.folder / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE addresses (name)")
    shared.rights()
    output = without_rights(lambda: Program.open(f"sqlite:///{other}"))
    assert output.startswith(f"there is no ledger at {other}; start a program there first")
    Path(shared.path).chmod(0)
    output = without_rights(lambda: Program.open(shared.url))
    assert f"the ledger at {shared.url} could not be used (unable to open database file)" in output
    shared.folder.chmod(0)
    output = without_rights(lambda: Program.open(shared.url))
    assert output.startswith(
        f"the ledger at {shared.path} cannot be reached (Permission denied); ask"
    )
    shared.folder.chmod(0o755)
    other.unlink()


def test_a_writable_ledger_is_opened_for_writing(shared):
    with SqlLedger(shared.url).engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        connection.exec_driver_sql("DELETE FROM outcomes")
