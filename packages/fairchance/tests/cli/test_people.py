"""``fairchance override``, ``withdraw``, ``hold``, ``release`` and ``erase``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pandas as pd
import pytest

from cli.lender_files import (
    CERTIFIED,
    PROGRAM,
    call,
    causes,
    done,
    people,
    refused,
    start,
)
from fairchance.errors import LedgerError
from fairchance.ledger.program import Program
from golden import transcript

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
    assert repr(rejected[0]) in words
    assert "--undo" in words
    assert kinds(url) == before
    file = listed(
        "frauds.csv", [accepted[0], accepted[1], "unknown", "", rejected[2], accepted[0], "a00001"]
    )
    strict = refused("override", file, "--reject", "--reason", "fraud", "--strict")
    assert "frauds.csv, row 3 (id 'unknown')" in strict
    assert kinds(url) == before
    result = call("override", file, "--reject", "--reason", "fraud", "--by", "a person")
    assert result.exit_code == 0, result.stderr
    assert "frauds.refused.csv" in result.stdout
    left = pd.read_csv("frauds.refused.csv", keep_default_na=False)
    assert left["id"].tolist() == ["unknown", "", rejected[2], "a00001"]
    assert left["reason_code"].tolist() == ["unknown", "no_id", "rejected", "in_history"]
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
    result = done("override", file, "--undo", "--reason", "the wrong person")
    assert (result["undone"], causes(result["refused"])) == (2, {"not_overridden": 1})
    assert done("override", "--id", rejected[1], "--undo", "--reason", "has none") == {"undone": 1}
    done("override", "--id", rejected[2], "--accept", "--reason", "a guarantor")
    standing = Program.open(url).standing([*rejected[:2], accepted[0]])
    assert standing.accepted.tolist() == [False, False, True]
    pd.DataFrame({"id": [accepted[0]], "outcome": ["repaid"]}).to_csv("observed.csv", index=False)
    so_far = done("observe", "observed.csv")["so_far"]
    assert so_far["by_override"] == {"accepted": 1, "known": 0}
    assert so_far["known"] == 1  # an override that was undone sets nobody apart
    for given in (["--accept", "--undo"], []):
        assert "--undo" in refused("override", "--id", rejected[0], *given, "--reason", "why")
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
    assert kinds(url) == before
    assert kinds(url).count("outcomes") == 2
    assert repr(rejected[0]) in refused("withdraw", "--id", rejected[0])
    result = done("withdraw", listed("never.csv", [accepted[1], accepted[2], rejected[0]]))
    if config == PROGRAM:  # an outcome can be taken back
        assert (result["withdrawn"], result["refused"]["rows"]) == (2, 1)
        assert kinds(url).count("correction") == 1
    else:
        assert (result["withdrawn"], result["refused"]["rows"]) == (1, 2)
        assert causes(result["refused"]) == {"final_outcome": 1, "not_accepted": 1}
    assert done("verify")["ok"]


def test_hold_release_and_erase(lender):
    url, accepted, rejected, after = lender()
    words = refused("erase", "--id", accepted[0], "--reason", "asked", "--yes")
    for part in ("2033-02-15", repr(accepted[0]), "--early"):
        assert part in words
    file = listed("asked.csv", accepted[:2])
    result = done("erase", file, "--reason", "asked", "--yes", code=2)
    assert (result["erased"], causes(result["refused"])) == (0, {"retained": 2})
    (reason,) = set(pd.read_csv("asked.refused.csv")["reason"])
    assert "2033-02-15" in reason
    assert "--early" in reason
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
            "causes": [{"rows": 1, "mistakes": [{"code": "unknown", "allowed": "held"}]}],
        },
    }
    report = done("erase", "--expired", "--reason", "over", "--yes")
    assert report == {"erased": 0, "other_programs": {}}
    assert "erasure" not in kinds(url)[-1:]
    after(31 + 25 * 31)
    assert repr(rejected[0]) in refused("erase", "--id", rejected[0], "--reason", "over", "--yes")
    assert done("release", "--id", rejected[0], "--reason", "settled") == {"released": 1}
    assert repr(rejected[0]) in refused("release", "--id", rejected[0], "--reason", "settled")
    result = call("erase", "--expired", "--reason", "over", stdin="y\n")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("478") == 2
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
        words = "the files are as they were."
        asked = ["--reason", "asked", "--early", "--yes"]
        result = call("erase", "--id", yes[0], *asked)
        assert (result.exit_code, words in result.stderr) == (0, True)
        report = done("erase", "--id", yes[1], *asked)
        assert (report["erased"], words in report["notes"][0]) == (1, True)
        assert refused("erase", "--compact") == "the files are as they were."
    assert done("erase", "--compact") == {"compacted": True}


def range_of(reader):
    return pd.RangeIndex(reader.people_end()).to_numpy()


def test_erasure_can_be_declined(lender):
    url, yes, _, _ = lender()
    before = kinds(url)
    asked = ["erase", "--id", yes[0], "--reason", "asked", "--early"]
    for answer in ("n\n", ""):
        result = call(*asked, stdin=answer)
        assert result.exit_code == 2
        assert "'main'" in result.stdout
        assert "--yes" in result.stderr
    assert "--yes" in call(*asked, "--json").stderr
    assert "--yes" in call("erase", "-", "--reason", "asked", stdin=f"id\n{yes[0]}\n").stderr
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
        assert f"r{number}" in call(*named).stdout
        file = command[1]
        listed(file, [*pd.read_csv(file)["id"], accepted[5]])
        if word in ("released", "undone"):  # nothing could be done to the other applicant
            assert done(*named)["refused"]["rows"] == 2
        else:
            assert f"'r{number}'" in refused(*named)
        listed(file, pd.read_csv(file)["id"][:-1])
        if word != "withdrawn":
            assert f"'r{number}'" in refused(*named, "--reason", "another")
        if word in others:
            assert f"'r{number}'" in refused(others[word], *named[1:])
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
    assert "'r'" in refused(*command, "--reason", "another")
    assert program.checkpoint() == head


def test_applicants_must_be_named_exactly_once(lender, monkeypatch):
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
        assert "--id" in refused(command, *options)
        assert "--id" in refused(command, file, *ids, *options)
    assert "--expired" in refused("erase", "--expired", *ids, "--reason", "over", "--yes")
    pd.DataFrame({"name": accepted[:2], "x": 1}).to_csv("wrong.csv", index=False)
    assert "'id'" in refused("hold", "wrong.csv", "--reason", "why")
    assert "' '" in refused("hold", *ids, "--reason", " ")
    assert call("override", *ids, "--reason", "why").exit_code == 2  # neither accept nor reject
    monkeypatch.delenv("FAIRCHANCE_LEDGER")
    assert "put --ledger" in call("erase", "sqlite:///x.db", *ids).stderr


def test_what_the_commands_print(lender, golden):
    golden = partial(golden, ranked=True)
    _, yes, no, _ = lender(CERTIFIED)
    pd.DataFrame({"id": yes[6:], "outcome": "repaid"}).to_csv("outcomes.csv", index=False)
    done("observe", "outcomes.csv")
    listed("some.csv", [yes[0], no[0], yes[6], "a00001", "nobody", ""])
    golden(
        "override",
        transcript(
            "override some.csv --reject --reason fraud",
            f"override --id {no[1]} --accept --reason 'a guarantor'",
            f"override --id {no[1]} --reject --reason again",
            f"override --id {no[1]} --undo --reason 'the wrong person'",
            f"override --id {no[1]} --undo --reason again",
            f"override --id {no[1]} --reason none",
        ),
    )
    golden(
        "withdraw",
        transcript(
            f"withdraw --id {yes[1]} --request gone",
            f"withdraw --id {yes[1]} --request gone",
            f"withdraw --id {yes[2]} --request gone",
            "withdraw some.csv",
        ),
    )
    golden(
        "hold",
        transcript(
            "hold some.csv --reason 'case 12/31'",
            f"release --id {yes[3]} --reason settled",
            f"release --id {no[0]} --reason settled",
            "hold --reason 'of nobody'",
        ),
    )
    golden(
        "erase",
        transcript(
            "erase some.csv --reason asked --yes",
            f"erase --id {yes[6]} --reason asked --early --yes",
            f"erase --id {no[0]} --reason asked --yes",
            f"erase --id {no[0]} --id {no[2]} --reason asked --early --yes",
            "erase --expired --reason over --yes",
            f"erase --id {no[0]}",
            "erase --compact",
        ),
    )
