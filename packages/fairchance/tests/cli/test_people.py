"""``fairchance override``, ``withdraw``, ``hold``, ``release`` and ``erase``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from cli.lender_files import CERTIFIED, PROGRAM, call, done, people, refused, start
from fairchance.errors import LedgerError
from fairchance.ledger.program import Program

NOW = datetime(2031, 1, 15, tzinfo=UTC)


@pytest.fixture
def lender(tmp_path, monkeypatch):
    """Return a function that starts a lender with a decided batch at a fixed time."""
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    monkeypatch.setenv("FAIRCHANCE_LEDGER", url)
    time = [NOW]
    monkeypatch.setattr("fairchance.ledger.sql._now", lambda: time[0])

    def begin(config=PROGRAM):
        start(url, tmp_path, config)
        people(80, 400).drop(columns="outcome").to_csv("applicants.csv", index=False)
        done("decide", "applicants.csv", "-o", "decisions.csv")
        decided = pd.read_csv("decisions.csv")
        accepted, rejected = (decided["id"][decided["decision"] == what].tolist() for what in WORDS)
        return url, accepted, rejected, lambda days: time.__setitem__(0, NOW + timedelta(days=days))

    return begin


WORDS = ("accept", "reject")


def listed(name, ids):
    pd.DataFrame({"id": ids, "why": "x"}).to_csv(name, index=False)
    return name


def kinds(url):
    with Program.open(url).ledger.reading("main") as reader:
        return [entry.kind for entry in reader.entries()]


def test_override_by_id_and_by_file(lender):
    url, accepted, rejected, _ = lender()
    report = done(
        "override", "--id", rejected[0], "--id", rejected[1], "--accept", "--reason", "a guarantor"
    )
    assert report == {"overridden": 2}
    before = kinds(url)
    words = refused("override", "--id", rejected[0], "--accept", "--reason", "again")
    assert words == (
        f"ids that were overridden before cannot be overridden, got {rejected[0]!r}; nothing was "
        f"recorded, undo that override first (--undo, undo_override), or remove them."
    )
    assert kinds(url) == before
    file = listed(
        "frauds.csv", [accepted[0], accepted[1], "unknown", "", rejected[2], accepted[0], "a00001"]
    )
    strict = refused("override", file, "--reject", "--reason", "fraud", "--strict")
    assert "frauds.csv, row 3 (id 'unknown'): ids that are unknown or erased" in strict
    assert kinds(url) == before
    result = call("override", file, "--reject", "--reason", "fraud", "--by", "a person")
    assert result.exit_code == 0, result.stderr
    assert "2 people rejected by override." in result.stdout
    assert "4 rows refused, with the reasons in frauds.refused.csv" in result.stdout
    left = pd.read_csv("frauds.refused.csv", keep_default_na=False)
    assert left["id"].tolist() == ["unknown", "", rejected[2], "a00001"]
    assert left["reason"].tolist() == [
        "ids that are unknown or erased cannot be overridden",
        "'id' is empty or holds NUL, which is no id",
        "ids that are already rejected cannot be overridden",
        "ids that belong to the history cannot be overridden",
    ]
    with Program.open(url).ledger.reading("main") as reader:
        *_, entry = reader.entries(kind="override")
        rows = reader.facts(entry).overrides
        assert sorted(reader.names(rows.persons)) == sorted(accepted[:2])
        assert set(rows.reasons) == {"fraud"}
        assert not rows.accepted.any()
        assert entry.by == "a person"


def test_override_is_undone(lender):
    url, accepted, rejected, _ = lender()
    done(
        "override", "--id", rejected[0], "--id", rejected[1], "--accept", "--reason", "a guarantor"
    )
    done("override", "--id", accepted[0], "--reject", "--reason", "fraud")
    file = listed("wrong.csv", [rejected[0], accepted[0], accepted[1]])
    result = call("override", file, "--undo", "--reason", "the wrong person")
    assert "Override undone for 2 people.\n1 row refused" in result.stdout
    left = pd.read_csv("wrong.refused.csv")
    assert left["reason"].tolist() == ["ids that are not overridden cannot be undone"]
    assert done("override", "--id", rejected[1], "--undo", "--reason", "has none") == {"undone": 1}
    done("override", "--id", rejected[2], "--accept", "--reason", "a guarantor")
    standing = Program.open(url).standing([*rejected[:2], accepted[0]])
    assert standing.accepted.tolist() == [False, False, True]
    pd.DataFrame({"id": [accepted[0]], "outcome": ["repaid"]}).to_csv("observed.csv", index=False)
    output = call("observe", "observed.csv").stdout
    assert "So far no outcome is known; " in output
    assert " are pending. Not counted: 2 accepted with an override (1 known).\n" in output
    for given, words in ((["--accept", "--undo"], "two"), ([], "none")):
        assert refused("override", "--id", rejected[0], *given, "--reason", "why") == (
            f"override takes one of --accept, --reject and --undo, got {words}; give one."
        )
    assert done("verify", "--relearn")["ok"]
    done("export", "-o", "all.csv")
    rows = pd.read_csv("all.csv", index_col="id")
    shown = rows.loc[accepted[0]]
    assert (shown["override"], shown["override_reason"]) == ("taken back", "the wrong person")
    assert shown["accepted"]
    assert rows.loc[rejected[2], "override"] == "accepted"
    assert (rows["override_by"].notna() == rows["override"].notna()).all()


@pytest.mark.parametrize("config", [PROGRAM, CERTIFIED], ids=["algorithm 1", "certified"])
def test_withdraw(lender, config):
    url, accepted, rejected, _ = lender(config)
    pd.DataFrame({"id": accepted[2:], "outcome": "repaid"}).to_csv("outcomes.csv", index=False)
    done("observe", "outcomes.csv")
    assert done("withdraw", "--id", accepted[0]) == {"withdrawn": 1, "withdrawn_before": 0}
    before = kinds(url)
    assert done("withdraw", "--id", accepted[0]) == {"withdrawn": 0, "withdrawn_before": 1}
    output = "0 people withdrawn: no outcome will be known, 1 were withdrawn before.\n"
    assert call("withdraw", "--id", accepted[0]).stdout == output
    assert kinds(url) == before
    assert kinds(url).count("outcomes") == 2
    words = refused("withdraw", "--id", rejected[0])
    assert words.startswith("ids that are not accepted cannot be withdrawn, got ")
    result = done("withdraw", listed("never.csv", [accepted[1], accepted[2], rejected[0]]))
    if config == PROGRAM:  # an outcome can be taken back
        assert (result["withdrawn"], result["refused"]["rows"]) == (2, 1)
        assert kinds(url).count("correction") == 1
    else:
        assert (result["withdrawn"], result["refused"]["rows"]) == (1, 2)
        reasons = "ids that have an outcome that is final cannot be withdrawn"
        assert reasons in result["refused"]["reasons"]
    assert done("verify")["ok"]


def test_hold_release_and_erase(lender):
    url, accepted, rejected, after = lender()
    words = refused("erase", "--id", accepted[0], "--reason", "asked", "--yes")
    assert words == (
        f"ids that are kept for 25 months (until 2033-02-15 at the latest) cannot be erased, got "
        f"{accepted[0]!r}; nothing was recorded, erase them early (--early, early=True) and say "
        f"why in the reason, or remove them."
    )
    file = listed("asked.csv", accepted[:2])
    result = call("erase", file, "--reason", "asked", "--yes")
    assert (result.exit_code, "0 people erased.\n2 rows refused" in result.stdout) == (2, True)
    (reason,) = set(pd.read_csv("asked.refused.csv")["reason"])
    assert reason == (
        "ids that are kept for 25 months (until 2033-02-15 at the latest) cannot be erased; erase "
        "them early (--early, early=True) and say why in the reason, or remove them"
    )
    report = done("erase", "--id", accepted[0], "--reason", "asked", "--early", "--yes")
    assert report == {"erased": 1, "other_programs": {}}
    assert done(
        "hold",
        listed("disputed.csv", [accepted[0], rejected[0], rejected[1]]),
        "--reason",
        "a case",
    ) == {
        "held": 2,
        "refused": {
            "rows": 1,
            "file": "disputed.refused.csv",
            "reasons": {"ids that are unknown or erased cannot be held": 1},
        },
    }
    report = done("erase", "--expired", "--reason", "over", "--yes")
    assert report == {"erased": 0, "other_programs": {}}
    assert "erasure" not in kinds(url)[-1:]
    after(31 + 25 * 31)
    words = refused("erase", "--id", rejected[0], "--reason", "over", "--yes")
    assert words.startswith("ids that are under hold cannot be erased")
    assert done("release", "--id", rejected[0], "--reason", "settled") == {"released": 1}
    words = refused("release", "--id", rejected[0], "--reason", "settled")
    assert words.startswith("ids that are not under hold cannot be released")
    result = call("erase", "--expired", "--reason", "over", stdin="y\n")
    assert result.exit_code == 0, result.stderr
    assert "Erase 478 people of the program 'main' for good?" in result.stdout
    assert "478 people erased; the decisions stay." in result.stdout
    assert Program.open(url).expired().size == 0
    with Program.open(url).ledger.reading("main") as reader:
        assert [name for name in reader.names(range_of(reader)) if name is not None] == [
            rejected[1]
        ]
    people(60, 900).drop(columns="outcome").to_csv("later.csv", index=False)
    assert done("decide", "later.csv", "-o", "later-decisions.csv")["people"] == 60
    proof = done("verify")
    assert proof["ok"]
    assert proof["not_repeated"] > 0


def test_warning_of_an_erasure(lender, monkeypatch):
    _, yes, _, _ = lender()

    def fail(*_):
        raise LedgerError("the files are as they were.")

    with monkeypatch.context() as patched:
        patched.setattr("fairchance.ledger.database.compact", fail)
        words = "the applicants are erased and that is recorded, but the files are as they were."
        asked = ["--reason", "asked", "--early", "--yes"]
        result = call("erase", "--id", yes[0], *asked)
        assert (result.exit_code, result.stderr) == (0, f"fairchance: {words}\n")
        report = done("erase", "--id", yes[1], *asked)
        assert report == {"erased": 1, "other_programs": {}, "notes": [words]}
        assert refused("erase", "--compact") == "the files are as they were."
    assert "written anew, without erased" in call("erase", "--compact").stdout
    assert done("erase", "--compact") == {"compacted": True}


def range_of(reader):
    return pd.RangeIndex(reader.n_people()).to_numpy()


def test_erasure_can_be_declined(lender):
    url, yes, _, _ = lender()
    before = kinds(url)
    asked = ["erase", "--id", yes[0], "--reason", "asked", "--early"]
    for answer in ("n\n", ""):
        result = call(*asked, stdin=answer)
        assert result.exit_code == 2
        assert "Erase 1 person of the program 'main' for good?" in result.stdout
        assert "nothing was erased without a confirmation; answer y, or add --yes." in result.stderr
    words = "with --json, or with ids on standard input, nothing can be confirmed; add --yes."
    assert words in call(*asked, "--json").stderr
    assert words in call("erase", "-", "--reason", "asked", stdin=f"id\n{yes[0]}\n").stderr
    assert kinds(url) == before
    result = call("erase", "-", "--reason", "asked", "--early", "--yes", stdin=f"id\n{yes[0]}\n")
    assert result.exit_code == 0, result.stderr
    assert kinds(url) == [*before, "erasure", "snapshot"]


def test_a_repeated_request_changes_nothing(lender):
    url, accepted, rejected, _ = lender()
    program, why = Program.open(url), ("--reason", "why")
    some, gone = listed("some.csv", [*accepted[:3], "nobody"]), listed("gone.csv", rejected[:2])
    commands = {
        "hold": (["hold", some, *why], 3),
        "released": (["release", some, *why], 3),
        "overridden": (["override", some, "--reject", *why], 3),
        "undone": (["override", some, "--undo", *why], 3),
        "withdrawn": (["withdraw", some], 3),
        "erased": (["erase", gone, "--early", "--yes", *why], 2),
    }
    others = {"hold": "release", "released": "hold"}
    for number, (word, (command, n)) in enumerate(commands.items()):
        named = [*command, "--request", f"r{number}"]
        first = done(*named)
        head = program.checkpoint()
        again = done(*named)
        assert again.pop("repeats")["request"] == f"r{number}"
        assert again == first
        assert n in first.values()
        assert "Nothing changed: request" in call(*named).stdout
        file = command[1]
        listed(file, [*pd.read_csv(file)["id"], accepted[5]])
        if word in ("released", "undone"):  # nothing could be done to the other applicant
            assert done(*named)["refused"]["rows"] == 2
        else:
            assert "with other content" in refused(*named)
        listed(file, pd.read_csv(file)["id"][:-1])
        if word != "withdrawn":
            assert "with other content" in refused(*named, "--reason", "another")
        if word in others:
            assert "with other content" in refused(others[word], *named[1:])
        assert program.checkpoint() == head
    assert done("verify", "--relearn")["ok"]


def test_a_repeated_erasure_of_expired_applicants(lender):
    url, *_, pass_days = lender()
    done("erase", "--expired", "--reason", "over", "--yes", "--request", "nothing yet")
    pass_days(900)
    command = ["erase", "--expired", "--reason", "over", "--yes", "--request", "r"]
    first, program = done(*command), Program.open(url)
    assert first["erased"] == 480
    head = program.checkpoint()
    people(80, 700).drop(columns="outcome").to_csv("applicants.csv", index=False)
    assert done(*command)["erased"] == 480
    assert "with other content" in refused(*command, "--reason", "another")
    assert program.checkpoint() == head


def test_applicants_must_be_named_exactly_once(lender):
    _, accepted, rejected, _ = lender()
    ids = ["--id", rejected[0]]
    file = listed("some.csv", accepted[:2])
    for command, options in (
        ("override", ["--accept", "--reason", "why"]),
        ("withdraw", []),
        ("hold", ["--reason", "why"]),
        ("release", ["--reason", "why"]),
        ("erase", ["--reason", "why", "--yes"]),
    ):
        words = "applicants are named by a file or by --id, got {}; give one of these."
        assert refused(command, *options) == words.format("neither")
        assert refused(command, file, *ids, *options) == words.format("both")
    words = refused("erase", "--expired", *ids, "--reason", "over", "--yes")
    assert words.startswith("applicants are named by --expired, by a file or by --id, got two")
    pd.DataFrame({"name": accepted[:2], "x": 1}).to_csv("wrong.csv", index=False)
    assert "'id'" in refused("hold", "wrong.csv", "--reason", "why")
    assert refused("hold", *ids, "--reason", " ") == (
        "a hold needs a reason as text, got ' '; give one."
    )
    assert call("override", *ids, "--reason", "why").exit_code == 2  # neither accept nor reject
