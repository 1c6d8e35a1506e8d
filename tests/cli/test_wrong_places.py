"""Every command with nothing, and with files, folders and names that are not there or cannot be."""

import pytest

from cli.lender_files import apply, call, done, refused
from secondlook.cli.app import COMMANDS

WORLD = """
methods = ["plain"]
repetitions = 1
[world]
data = "lender"
n_history = 400
n_batch = 60
n_rounds = 2
"""
ANSWER_TO_NOTHING = {"plan", "compare", "datasets", "switches", "methods", "version"}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("SECONDLOOK_LEDGER", raising=False)
    (tmp_path / "a-file").write_text("not a folder")
    (tmp_path / "world.toml").write_text(WORLD)


@pytest.mark.parametrize(
    "command", [one.name for one in COMMANDS if one.name not in ANSWER_TO_NOTHING]
)
def test_a_command_that_is_told_nothing_says_what_it_needs(command):
    found = call(command)
    assert found.exit_code == 2, found.exception
    assert found.stdout == ""
    needs = ("Missing argument", "Missing option '--ledger'", "needs", "nothing to report on")
    assert any(words in found.stderr for words in needs)


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
def test_a_table_that_is_not_there(lender, made, words, tmp_path):
    (tmp_path / "program.toml").write_bytes((made / "program.toml").read_bytes())
    before = lender.checkpoint()
    assert refused(*words.split()) == "there is no file 'missing.csv'; check the path."
    assert lender.checkpoint() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("simulate missing.toml", "there is no file missing.toml; name a TOML file of a world."),
        ("compare missing.toml", "there is no file missing.toml; name a TOML file of a world."),
        ("report missing", "there are no results at missing; name a file or folder."),
        (
            "verify sqlite:///missing.db",
            "there is no ledger at {here}/missing.db; start a program there first, with secondlook "
            "init or Program.create.",
        ),
        (
            "init h.csv --ledger sqlite:///new.db --config a-folder",
            "'a-folder' is a folder; name a file in it.",
        ),
        (
            "plan --jobs 0",
            "jobs must be 1 or more, or -1 for one per core, got 0.",
        ),
        (
            "compare world.toml --methods ,",
            "--methods must name at least one method, got ','; secondlook methods lists them.",
        ),
        (
            "simulate world.toml --jobs 1 --ledger nonsense",
            "a ledger lives at sqlite:///file or postgresql://host/database, got 'nonsense'; pass "
            "one of these.",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence_before_anything_runs(words, sentence, tmp_path):
    (tmp_path / "a-folder").mkdir()
    assert refused(*words.split()) == sentence.format(here=tmp_path)
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("command", ["export --out a-file/x.csv", "report --out a-file/x.html"])
def test_a_file_is_no_folder_to_write_into(lender, command):
    sentence = refused(*command.split())
    assert sentence == (
        f"{command.split()[-1]} cannot be written (Not a directory); choose another place."
    )


def test_a_report_of_runs_says_where_it_cannot_be_written(monkeypatch):
    monkeypatch.setattr("secondlook.cli.runs.write_report", lambda *_: None)
    done("simulate", "world.toml", "--jobs", 1, "--out", "run")
    for option, place in (("--figures", "a-file"), ("--out", "a-file/x.html")):
        sentence = refused("report", "run", option, place)
        assert sentence == f"{place} cannot be written (File exists); choose another place."


def test_names_that_are_empty_are_not_put_on_record(lender):
    apply(20)
    before = lender.checkpoint()
    for words in (
        ("decide", "applicants.csv", "-o", "decisions.csv", "--by", ""),
        ("hold", "--id", "a00001", "--reason", "x", "--by", "  "),
        ("init", "applicants.csv", "--config", "program.toml", "--program", ""),
        ("init", "applicants.csv", "--config", "program.toml", "--by", ""),
    ):
        option = words[-2]
        assert refused(*words) == (
            f"{option} takes a name, got an empty one; give a name or leave it out."
        )
    assert lender.checkpoint() == before
    assert lender.ledger.programs() == ["main"]


def test_an_export_to_no_place_writes_nothing(lender, tmp_path):
    before = sorted(tmp_path.iterdir())
    assert refused("export", "--out", "") == (
        "--out must be a folder or a file that ends in .csv or .parquet, got ''."
    )
    assert sorted(tmp_path.iterdir()) == before
