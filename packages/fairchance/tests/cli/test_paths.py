"""Paths that commands must not read from or write to."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cli.lender_files import PROGRAM, apply, call, done, people, refused
from fairchance.cli.app import COMMANDS, LAB
from fairchance.cli.files.tables import ledger_files
from fairchance.ledger import Program, verify

ANSWER_TO_NOTHING = {"demo", "plan", "version"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("FAIRCHANCE_LEDGER", raising=False)
    (tmp_path / "a-file").write_text("not a folder")


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if name not in {*ANSWER_TO_NOTHING, *LAB}]
)
def test_command_without_arguments_names_what_it_needs(command):
    result = call(command)
    assert result.exit_code == 2, result.exception
    assert result.stdout == ""
    needs = ("Missing argument", "Missing option '--ledger'", "needs")
    assert any(words in result.stderr for words in needs)


@pytest.mark.parametrize(
    "words",
    [
        "init missing.csv --config program.toml --program other",
        "decide missing.csv -o decisions.csv",
        "observe missing.csv",
        "override missing.csv --accept --reason x",
        "withdraw missing.csv",
        "hold missing.csv --reason x",
        "release missing.csv --reason x",
        "erase missing.csv --reason x --yes",
        "plan --history missing.csv --outcome a --group b",
    ],
)
def test_missing_table(lender, made, words, tmp_path):
    (tmp_path / "program.toml").write_bytes((made / "program.toml").read_bytes())
    before = lender.checkpoint()
    assert refused(*words.split()) == "there is no file 'missing.csv'; check the path."
    assert lender.checkpoint() == before


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("report missing", "'missing'"),
        ("verify sqlite:///missing.db", "{here}/missing.db"),
        ("init h.csv --ledger sqlite:///new.db --config a-folder", "'a-folder'"),
        ("plan --jobs 0", "--jobs"),
    ],
)
def test_wrong_paths_are_refused_before_anything_runs(words, value, tmp_path):
    (tmp_path / "a-folder").mkdir()
    assert value.format(here=tmp_path) in refused(*words.split())
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("command", ["export --out a-file/x.csv", "report --out a-file/x.html"])
def test_file_in_place_of_a_folder_is_refused(lender, command):
    assert command.split()[-1] in refused(*command.split())


def test_empty_names_are_not_recorded(lender):
    apply(20)
    before = lender.checkpoint()
    for words in (
        ("decide", "applicants.csv", "-o", "decisions.csv", "--by", ""),
        ("hold", "--id", "a00001", "--reason", "x", "--by", "  "),
        ("init", "applicants.csv", "--config", "program.toml", "--program", ""),
        ("init", "applicants.csv", "--config", "program.toml", "--by", ""),
    ):
        option = words[-2]
        assert option in refused(*words)
    assert lender.checkpoint() == before
    assert lender.ledger.programs() == ["main"]


def test_export_to_an_empty_path_writes_nothing(lender, tmp_path):
    before = sorted(tmp_path.iterdir())
    message = refused("export", "--out", "")
    assert message.startswith("--out ")
    assert "''" in message
    assert sorted(tmp_path.iterdir()) == before


def is_there(program):
    """Return whether a ledger is intact."""
    return verify(program.ledger).ok


@pytest.fixture
def named(lender, tmp_path, monkeypatch):
    """Return a function that renames the ledger and returns its program."""

    def rename(name):
        lender.ledger.engine.dispose()
        Path("lender.db").rename(name)
        url = f"sqlite:///{tmp_path / name}"
        monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
        return Program.open(url)

    return rename


@pytest.mark.parametrize("name", ["lender.db", "history.csv", "program.toml", "x.txt", "x"])
def test_report_must_be_named_like_a_page(lender, made, name):
    for value in ("history.csv", "program.toml"):
        shutil.copy(made / value, value)
    before = Path(name).read_bytes() if Path(name).exists() else None
    message = refused("report", "-o", name)
    assert message.startswith("--out ")
    assert repr(name) in message
    assert (Path(name).read_bytes() if Path(name).exists() else None) == before
    assert is_there(lender)


def test_existing_page_is_replaced(lender):
    for name in ("old.html", "OLD.HTM"):
        Path(name).write_text("an older page")
        assert done("report", "-o", name)["written"] == [name]
        assert Path(name).read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_report_never_replaces_the_ledger_through_a_link(lender, link):
    link("lender.db", "page.html")
    sentence = "the report would replace the ledger in 'page.html'; choose another file."
    assert refused("report", "-o", "page.html") == sentence
    assert is_there(lender)


def test_report_never_replaces_files_of_sqlite_or_a_ledger_named_like_a_page(named, tmp_path):
    program = named("lender.html")
    os.symlink("lender.html-wal", "log.html")
    for name in ("lender.html", "./lender.html", str(tmp_path / "lender.html"), "log.html"):
        assert "replace the ledger" in refused("report", "-o", name)
    os.symlink("lender.html", "link.db")
    assert "replace the ledger" in refused(
        "report", "-o", "lender.html", "--ledger", "sqlite:///link.db"
    )
    assert is_there(program)


def test_report_never_replaces_a_ledger_with_another_spelling(named, tmp_path):
    program = named("my l.html")
    for place in ("my%20l.html", f"{tmp_path}/my%20l.html", "my%20l%2Ehtml?timeout=5", "my l.html"):
        options = ("-o", "my l.html", "--ledger", f"sqlite:///{place}")
        assert "replace the ledger" in refused("report", *options)
    assert is_there(program)


@pytest.mark.parametrize(
    "url", [None, "", "sqlite://", "postgresql://ann@host/lender.db", "mysql://host/x", "lender.db"]
)
def test_other_urls_have_no_ledger_files(url):
    assert ledger_files(url) == []


def test_decisions_never_replace_the_ledger(named):
    program = named("lender.csv")
    apply(20)
    head = program.checkpoint()
    os.symlink("lender.csv", "link.csv")
    for name in ("lender.csv", "link.csv"):
        assert refused("decide", "applicants.csv", "-o", name) == (
            f"the decisions would replace the ledger in {name!r}; choose another file."
        )
    assert program.checkpoint() == head
    os.link("applicants.csv", "same.csv")
    assert "replace the input" in refused("decide", "applicants.csv", "-o", "same.csv")
    done("decide", "applicants.csv", "-o", "decisions.csv", "--refused", "no.csv")
    assert is_there(program)


def test_export_never_replaces_the_ledger(named):
    program = named("lender.csv")
    assert refused("export", "-o", "lender.csv") == (
        "what is exported would replace the ledger in 'lender.csv'; choose another file."
    )
    assert is_there(program)


@pytest.mark.parametrize("name", ["decisions.parquet", "outcomes.parquet", "checkpoint.txt"])
def test_export_to_a_folder_never_replaces_the_ledger(named, name):
    program = named(name)
    before = sorted(Path().iterdir())
    assert f"the ledger in {name!r}" in refused("export", "-o", ".")
    assert sorted(Path().iterdir()) == before
    assert is_there(program)


def test_refused_rows_never_replace_the_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("program.toml").write_text(PROGRAM)
    past = people(60)
    past.loc[3, "income"] = None
    past.to_csv("history.csv", index=False)
    words = ("init", "--config", "program.toml", "history.csv", "--ledger")
    assert refused(*words, "sqlite:///history.refused.csv") == (
        "refused rows would replace the ledger in 'history.refused.csv'; choose another file."
    )
    assert not Path("history.refused.csv").exists()
    assert refused(*words, "sqlite:///x.db", "--refused", "./history.csv").startswith(
        "refused rows would replace the input"
    )


def test_refused_rows_get_an_unused_file_name(named):
    """This includes a ledger with the name that the file would get."""
    program = named("outcomes.refused.csv")
    Path("outcomes.csv").write_text("id,outcome\nnobody,repaid\n")
    assert call("observe", "outcomes.csv").exit_code == 2
    assert Path("outcomes.2.refused.csv").exists()
    assert is_there(program)


def test_example_configuration_replaces_nothing(lender):
    os.symlink("nowhere", "dangling.toml")
    for name in ("lender.db", "dangling.toml"):
        assert name in refused("init", "--example", "-o", name)
    assert is_there(lender)
