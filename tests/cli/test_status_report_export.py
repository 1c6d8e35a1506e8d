"""``secondlook status``, ``report`` of a ledger and ``export``: words, JSON, pages, tables."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

import secondlook as sl
from experiments.test_report import Page
from secondlook.cli.app import app
from secondlook.cli.pages.report import page
from secondlook.cli.pages.spans import spans
from secondlook.cli.programs import looking
from secondlook.cli.programs.attention import attention
from secondlook.ledger import Program, SqlLedger
from secondlook.ledger.base import Facts
from secondlook.ledger.chain import NOTHING
from secondlook.ledger.summary import Change, Outcomes, Promise
from secondlook.ledger.summing_up import summarise

HOSTILE = ("<script>alert(1)</script>", "$x^{$ & \\alpha", "=2+3 [b]🙂")
COLUMNS = [
    *("id", "erased", "round", "batch", "at", "region", "accepted", "score", "threshold"),
    *("propensity", "policy", "mode", "certified", "fold", "reasons", "override"),
    *("override_reason", "outcome", "outcome_at"),
]


def applicants(n, start, seed):
    """Return people whose columns, ids and groups try to be more than data."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"score": rng.normal(size=n), "id": rng.choice(["=A1", "<b>b</b>"], n)})
    good = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 - X["score"])), "repaid", "lost")
    group = pd.DataFrame({"=<i>where": rng.choice(HOSTILE, n, p=[0.5, 0.3, 0.2])})
    return X, good, group, [f"=a{start + i}" for i in range(n)]


def classifier(**options):
    from sklearn.compose import make_column_transformer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["id"]), remainder="passthrough"
    )
    return sl.PartialFeedbackClassifier(
        learner=make_pipeline(encoder, LogisticRegression()),
        utility=sl.Revenue(gain=200, loss=300),
        strategy=sl.GroupShare(),
        pos_label="repaid",
        random_state=1,
        **options,
    )


@pytest.fixture(scope="module")
def lender(tmp_path_factory):
    """Return a program in which there is one of everything, and its decisions."""
    url = f"sqlite:///{tmp_path_factory.mktemp('lender')}/lender.db"
    X, good, group, ids = applicants(300, 0, 0)
    program = Program.create(
        url, classifier(), X, good, sensitive_features=group, ids=ids, by="<u>me</u>"
    )
    start = datetime.now(UTC) - timedelta(days=400)
    told = []
    for t in range(3):
        program.ledger.clock = lambda t=t: start + timedelta(days=100 * t)
        X, good, group, ids = applicants(80, 300 + 80 * t, t + 1)
        decided = program.decide(X, sensitive_features=group, ids=ids, batch=f"<b>{t}</b>")
        told.append((decided, good, X, group))
    decided, good, _, _ = told[0]
    yes, no = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    program.observe(yes[3:], good[decided.accepted][3:])
    program.withdraw(yes[:1])
    program.override(yes[1:2], False, "<img src=x>")
    program.override(no[:1], True, "=HYPERLINK(1)")
    with program.ledger.writing("main") as writer:
        gone = writer.standing([str(yes[3]), str(no[1])]).persons
        writer.append("erasure", {"reason": "<em>asked</em>"}, Facts(erased=gone), by="me")
    program.ledger.clock = lambda: datetime.now(UTC)
    return url, program, told, (yes[3], no[1])


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(one) for one in words], env={"SECONDLOOK_LEDGER": ""})
    assert result.exit_code == code, (result.stderr, result.exception)
    return result


def refused(words, *arguments):
    result = run(*arguments, code=2)
    assert result.stdout == ""
    assert re.search(words, result.stderr), result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


# Status


def test_status_says_the_same_in_words_and_in_json(lender):
    url, program, told, _ = lender
    found = summarise(program.ledger)
    said = run("status", "--ledger", url).stdout
    data = json.loads(run("status", "--ledger", url, "--json").stdout)
    assert data["checkpoint"] == str(program.checkpoint())
    assert f"Checkpoint: {program.checkpoint()}" in said
    accepted = sum(int(decided.accepted.sum()) for decided, *_ in told)
    assert data["people"]["accepted"] == accepted
    assert data["people"]["decided"] == 240
    assert (data["people"]["erased"], data["people"]["overridden"]) == (2, 2)
    whole = found.outcomes
    assert data["outcomes"]["all"] == {
        "good": whole.good,
        "bad": whole.bad,
        "indeterminate": 1,
        "pending": whole.pending,
        "fdr": whole.fdr,
        "interval": list(whole.interval),
        "range": list(whole.range),
    }
    assert data["outcomes"]["by_override"]["pending"] == 1
    assert [one["round"] for one in data["rounds"]] == [1, 2, 3]
    assert [one["n_accepted"] for one in data["rounds"]] == [
        int(d.accepted.sum()) for d, *_ in told
    ]
    assert {one["group"] for one in data["groups"]} == {*HOSTILE, None}
    assert [one["kind"] for one in data["changes"]] == ["override", "override", "erasure"]
    row = next(line for line in said.splitlines() if line.strip().startswith("all "))
    cells = row.split()
    assert cells[1:6] == [
        f"{n}" for n in (whole.accepted, whole.good, whole.bad, whole.indeterminate, whole.pending)
    ]
    assert cells[6] == f"{whole.fdr:.3f}"
    assert "2 overridden; 0 outcomes corrected; 0 people held, 2 erased." in said
    assert "[b]🙂" in said  # no markup of the terminal's either


def test_status_begins_with_what_is_late(lender):
    url, program, _, _ = lender
    found = summarise(program.ledger)
    late = found.waiting(250.0).n
    assert 0 < late < found.waiting().n
    data = json.loads(run("status", "--ledger", url, "--json", "--late", 250).stdout)
    assert data["late"]["n"] == late
    (sentence,) = [one for one in data["attention"] if "250 days" in one]
    assert sentence.startswith(f"{late} accepted people wait for an outcome since 250 days")
    assert "the oldest since 400 days" in sentence
    assert not any("wait" in one for one in attention(found, 500.0))
    said = run("status", "--ledger", url, "--late", 250, "--rounds", 2).stdout
    assert said.index(sentence) < said.index("Outcomes so far")
    assert "Earlier rounds not shown: 1 (--rounds)." in said


def test_attention_is_drawn_to_mistakes_pilots_and_dropped_certificates(lender):
    found = replace(summarise(lender[1].ledger), promise=Promise(alpha=0.15))
    quiet = replace(found, outcomes=Outcomes(90, 10, 0, 0), rounds=found.rounds[:1])
    noted = {"calibrated": True}
    quiet = replace(quiet, rounds=(replace(found.rounds[0], records=(noted,)),))
    assert attention(quiet, 1000.0) == []
    above = attention(replace(quiet, outcomes=Outcomes(80, 20, 0, 0)), 1000.0)
    assert above[0].endswith(
        "20 bad of 100 outcomes known are 0.200, and α is 0.15; the interval reaches below it."
    )
    sure = attention(replace(quiet, outcomes=Outcomes(700, 300, 0, 0)), 1000.0)
    assert "all of the interval is above" in sure[0]
    pilot = {"status": "pilot", "message": "About 40 more outcomes."}
    one = replace(found.rounds[0], records=(pilot,))
    assert attention(replace(quiet, rounds=(one,)), 1000.0) == [
        "The last round was a pilot and carries no promise (1 of 1 were). About 40 more outcomes."
    ]
    says = {"what": "dropped", "round": 7, "why": "correction"}
    gone = Change("certificate", 31, "2031-01-01T00:00:00+00:00", "me", 0, says)
    assert attention(replace(quiet, changes=(gone,)), 1000.0) == [
        "Certificates were dropped once, last after round 7 by a correction (entry 31), and "
        "testing began again."
    ]
    said = attention(replace(quiet, promise=Promise(problem="a type is not trusted.")), 1000.0)
    assert said == ["α and what decisions are worth are not shown: a type is not trusted."]


def test_long_names_of_batches_stay_whole_in_eighty_columns(lender):
    found = summarise(lender[1].ledger)
    name = "2031-01 northern branches, part one"
    rounds = tuple(replace(one, batch=name) for one in found.rounds)
    console = Console(file=StringIO(), width=80)
    looking._print(console, replace(found, rounds=rounds), 180, 12)
    said = console.file.getvalue()
    assert [f" {one.round} {name} " in said for one in rounds] == [True] * 3
    assert "Not shown in 80 columns: days, explored, applied, 95 % (--json has all).\n" in said


def test_a_program_without_rounds_has_little_to_say(tmp_path):
    url = f"sqlite:///{tmp_path}/new.db"
    X = np.random.default_rng(0).normal(size=(80, 2))
    Program.create(url, sl.PartialFeedbackClassifier(random_state=0), X, X[:, 0] > 0)
    assert "No batch has been decided yet." in run("status", "--ledger", url).stdout
    assert json.loads(run("status", "--ledger", url, "--json").stdout)["rounds"] == []
    run("report", "--ledger", url, "-o", tmp_path / "r.html")
    assert "No batch has been decided yet." in (tmp_path / "r.html").read_text()
    table = pc.read_csv(_written(tmp_path / "d.csv", run("export", "--ledger", url).stdout_bytes))
    assert table.column_names == COLUMNS
    assert table.num_rows == 0
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet")
    assert pq.read_table(tmp_path / "d.parquet").num_rows == 0


def _written(path, content):
    path.write_bytes(content)
    return path


# Report


@pytest.fixture(scope="module")
def html(lender, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "lender.html"
    said = run("report", "--ledger", lender[0], "-o", path)
    assert str(path) in said.stdout
    return path.read_text(encoding="utf-8")


def test_the_page_is_one_well_formed_file(html):
    found = Page(html)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids))
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert not {"script", "link", "img", "b", "i", "u", "em"} & set(found.tags)
    assert not re.findall(r"url\((?!#)|@import", html)
    # FDR, outcomes, worth, decisions and one attribute
    assert len(found.svgs) == 5
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 40 for svg in found.svgs)
    assert found.tags.count("figcaption") == len(found.svgs)
    assert found.tags.count("caption") == found.tags.count("table") == 4


def test_whatever_people_wrote_is_shown_and_does_nothing(html):
    for text in ("<script>alert(1)</script>", "<b>2</b>", "<em>asked</em>", "<u>me</u>"):
        assert text not in html
        assert text.replace("<", "&lt;").replace(">", "&gt;") in html
    assert html.count("$x^{$") >= 3  # in the table, in the words and in the picture


def test_numbers_of_the_page_are_those_of_the_summary(html, lender):
    found = summarise(lender[1].ledger)
    whole = found.outcomes
    low, high = whole.interval
    cells = [
        f"{whole.accepted:,}",
        f"{whole.good:,}",
        f"{whole.bad:,}",
        f"{whole.indeterminate:,}",
        f"{whole.pending:,}",
        f"{whole.fdr:.3f}",
        f"{low:.3f}–{high:.3f}",
        *(f"{end:.3f}" for end in whole.range),
        f"{200 * whole.good - 300 * whole.bad:,}".replace("-", "−"),
    ]
    row = "".join(f"<td>{text}</td>" for text in cells)
    assert f'<th scope="row">All</th>{row}' in html
    for one in found.groups:
        name = "(erased)" if one.group is None else one.group.replace("&", "&amp;")
        name = name.replace("<", "&lt;").replace(">", "&gt;")
        row = f'<th scope="row">{name}</th><td>{one.n_people}</td><td>{one.n_accepted}</td>'
        assert row in html
    assert html.count(str(found.head)) == 2
    assert "secondlook verify --program main --checkpoint" in html


@pytest.mark.parametrize("certify", ["overall", "per_group"])
def test_a_certified_program_shows_its_ladder(tmp_path, certify):
    from ledger_worlds import certified, started  # noqa: PLC0415

    url = f"sqlite:///{tmp_path}/certified.db"
    program, _, batches = started(url, certified(certify=certify), n_rounds=3)
    for one in batches:
        decided = program.decide(one.people.X, sensitive_features=one.people.group)
        program.observe(decided.ids[decided.accepted], one.outcome[decided.accepted])
    text = page(summarise(program.ledger), 180.0)
    assert 'id="figure-certificate"' in text
    by_group = {}
    for one in program.classifier.rounds_:
        by_group.setdefault(one.group, []).append(one.status == "certified")
    assert len(by_group) == (1 if certify == "overall" else 2)
    for group, flags in by_group.items():
        whom = "" if group is None else f" for group {group}"
        assert f"{sum(flags)} of 3 rounds are certified{whom}," in text
    assert Page(text).open == []


def test_many_rounds_are_shown_in_runs(lender):
    found = summarise(lender[1].ledger)
    first = found.rounds[0]
    rounds = tuple(replace(first, round=t + 1, certified=t % 2 == 0) for t in range(150))
    runs = spans(rounds)
    assert len(runs) == 50
    assert sum(one.total("n_people") for one in runs) == 150 * first.n_people
    assert sum(one.outcomes.bad for one in runs) == 150 * first.outcomes.bad
    assert (runs[1].name, runs[1].middle, runs[1].promise) == ("4–6", 5.0, "1 of 3 certified")
    assert [one.name for one in spans(rounds[:60])] == [f"{t + 1}" for t in range(60)]
    text = page(replace(found, rounds=rounds), 180.0)
    assert '<th scope="row">4–6</th>' in text
    assert "Runs of rounds are shown together." in text


# Export


def expected(lender):
    """Return the decisions as the test knows them, by id."""
    _, _, told, gone = lender
    rows = []
    for t, (decided, _, X, group) in enumerate(told):
        frame = pd.DataFrame(decided.columns()).assign(batch=f"<b>{t}</b>")
        frame["x"], frame["word"] = X["score"].to_numpy(), X["id"].to_numpy()
        frame["group"] = group.iloc[:, 0].to_numpy()
        rows.append(frame)
    frame = pd.concat(rows, ignore_index=True)
    frame["gone"] = frame["id"].isin(gone)
    first, good = told[0][0], told[0][1]
    yes, no = first.ids[first.accepted], first.ids[~first.accepted]
    states = np.where(good[first.accepted][3:] == "repaid", "good", "bad")
    outcome = dict(zip(yes[3:], states, strict=True))
    frame["outcome"] = frame["id"].map(outcome | {yes[0]: "indeterminate"})
    frame["override"] = frame["id"].map({yes[1]: "rejected", no[0]: "accepted"})
    return frame


def test_decisions_with_all_that_became_of_them(lender, tmp_path):
    url, program, _, _ = lender
    said = run("export", "--ledger", url, "-o", tmp_path / "d.parquet")
    assert f"240 decisions: {tmp_path}/d.parquet" in said.stdout.replace("\n", "")
    frame, wanted = pq.read_table(tmp_path / "d.parquet").to_pandas(), expected(lender)
    assert frame.columns.tolist() == COLUMNS
    assert frame["erased"].tolist() == wanted["gone"].tolist()
    assert frame["id"].isna().tolist() == wanted["gone"].tolist()
    there = ~wanted["gone"]
    assert frame["id"][there].tolist() == wanted["id"][there].tolist()
    for name in ("accepted", "region", "round", "batch"):
        assert frame[name].tolist() == wanted[name].tolist()
    for name in ("score", "propensity", "threshold"):
        np.testing.assert_array_equal(frame[name], wanted[name])
    for name in ("outcome", "override"):
        assert frame[name].fillna("-").tolist() == wanted[name].fillna("-").tolist()
    assert set(frame["override_reason"].dropna()) == {"<img src=x>", "=HYPERLINK(1)"}
    assert (frame["outcome_at"].notna() == frame["outcome"].notna()).all()
    assert set(frame["mode"]) == {"aware"}
    with program.ledger.reading("main") as reader:
        batches = {one.key: one for one in reader.entries(kind="batch")}
    for key, mine in frame.groupby("batch"):
        assert set(mine["at"]) == {batches[key].at}
        assert set(mine["policy"]) == {batches[key].says["policy"]}
    refusals = frame[~frame["accepted"] & ~frame["erased"]]
    assert refusals["reasons"].notna().all()
    assert frame[frame["accepted"]]["reasons"].isna().all()
    name = refusals["id"].iloc[0]
    from secondlook.reasons import in_words  # noqa: PLC0415

    assert refusals["reasons"].iloc[0] == in_words(program.reasons([name])[name])


def test_features_and_groups_only_if_asked(lender, tmp_path):
    url, *_ = lender
    wanted = expected(lender)
    for options, more in (
        (["--features"], ["feature.score", "feature.id"]),
        (["--groups"], ["group.=<i>where"]),
        (["--features", "--groups"], ["feature.score", "feature.id", "group.=<i>where"]),
    ):
        run("export", "--ledger", url, "-o", tmp_path / "d.parquet", *options)
        frame = pq.read_table(tmp_path / "d.parquet").to_pandas()
        assert frame.columns.tolist() == COLUMNS + more
        there = ~frame["erased"]
        for name, ours in (
            ("feature.score", "x"),
            ("feature.id", "word"),
            ("group.=<i>where", "group"),
        ):
            if name in frame:
                assert frame[name][there].tolist() == wanted[ours][there].tolist()
                assert frame[name][~there].isna().all()


def test_parts_and_csv_give_the_same_rows(lender, tmp_path, monkeypatch):
    url, *_ = lender
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet", "--features", "--groups")
    whole = pq.read_table(tmp_path / "d.parquet")
    monkeypatch.setattr("secondlook.cli.programs.decision_rows._ROWS", 7)
    run("export", "--ledger", url, "-o", tmp_path / "parts.parquet", "--features", "--groups")
    assert pq.read_table(tmp_path / "parts.parquet").equals(whole)
    said = run("export", "--ledger", url, "--features", "--groups")
    run("export", "--ledger", url, "-o", tmp_path / "d.csv", "--features", "--groups")
    assert (tmp_path / "d.csv").read_bytes() == said.stdout_bytes
    assert said.stdout.count('"id","erased"') == 1
    from secondlook.cli.files.tables import read_table  # noqa: PLC0415

    texts = [one.name for one in whole.schema if one.type == "string"]
    again = read_table(str(tmp_path / "d.csv"), text=texts).to_pandas()
    pd.testing.assert_frame_equal(again, whole.to_pandas(), check_dtype=False)
    # a spreadsheet runs nothing of it
    risky = re.findall(r'(?:^|,)"([=+\-@][^"]*)"', said.stdout, re.MULTILINE)
    assert risky == []
    assert '"\'=a300"' in said.stdout


def test_the_chain_and_the_checkpoint(lender, tmp_path):
    url, program, *_ = lender
    head = program.checkpoint()
    assert run("export", "--ledger", url, "--checkpoint").stdout == f"{head}\n"
    told = json.loads(run("export", "--ledger", url, "--checkpoint", "--json").stdout)
    assert told == {"checkpoint": str(head), "written": {}}
    lines = [
        json.loads(one)
        for one in run("export", "--ledger", url, "--entries").stdout.split("\n")[:-1]
    ]
    assert [one["number"] for one in lines] == list(range(1, head.number + 1))
    assert lines[0]["previous"] == NOTHING.hex()
    assert [one["previous"] for one in lines[1:]] == [one["hash"] for one in lines[:-1]]
    assert lines[-1]["hash"] == head.hash.hex()
    assert lines[-1]["header"]["reason"] == "<em>asked</em>"
    data = json.loads(run("export", "--ledger", url, "-o", tmp_path / "all", "--json").stdout)
    assert data["written"] == {
        str(tmp_path / "all" / "decisions.parquet"): 240,
        str(tmp_path / "all" / "entries.jsonl"): head.number,
    }
    names = {one.name for one in (tmp_path / "all").iterdir()}
    assert names == {"decisions.parquet", "entries.jsonl", "checkpoint.txt"}
    assert (tmp_path / "all" / "checkpoint.txt").read_text() == f"{head}\n"


def test_arrays_without_names_and_whole_number_ids(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    X = np.random.default_rng(0).normal(size=(90, 2)).astype(np.float32)
    groups = np.where(X[:, 1] > 0, "a", "b")
    program = Program.create(
        url,
        sl.PartialFeedbackClassifier(random_state=0),
        X[:60],
        X[:60, 0] > 0,
        sensitive_features=groups[:60],
    )
    decided = program.decide(X[60:], sensitive_features=groups[60:])
    with program.ledger.writing("main") as writer:
        writer.append("erasure", {}, Facts(erased=np.arange(61)), by="me")
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet", "--features", "--groups")
    table = pq.read_table(tmp_path / "d.parquet")
    assert table["id"].to_pylist() == [None, *decided.ids[1:].tolist()]
    assert table["group.group"].to_pylist() == [None, *groups[61:]]
    np.testing.assert_array_equal(table["feature.x1"].to_pylist()[1:], X[61:, 1])
    assert table["feature.x1"][0].as_py() is None
    with program.ledger.writing("main") as writer:
        writer.append("erasure", {}, Facts(erased=np.arange(61, 90)), by="me")
    run("export", "--ledger", url, "-o", tmp_path / "d.parquet", "--features", "--groups")
    table = pq.read_table(tmp_path / "d.parquet")
    assert table["erased"].to_pylist() == [True] * 30
    assert table["accepted"].to_pylist() == decided.accepted.tolist()


# What cannot be


def test_what_cannot_be_asked_for(lender, tmp_path):
    url, *_ = lender
    for words, *arguments in (
        ("no program called 'x'", "status", "--ledger", url, "--program", "x"),
        ("no program called 'x'", "export", "--ledger", url, "--program", "x"),
        ("no program called 'x'", "report", "--ledger", url, "--program", "x"),
        ("nothing to report on: name the results", "report"),
        ("results or a ledger, got 'german' and", "report", "german", "--ledger", url),
        ("--figures is for results", "report", "--ledger", url, "--figures", tmp_path),
        ("must name a file, such as", "report", "--ledger", url, "-o", tmp_path),
        ("cannot be written", "report", "--ledger", url, "-o", tmp_path / "no" / "r.html"),
        ("a file that ends in .csv or .parquet", "export", "--ledger", url, "-o", "d.xlsx"),
        ("a file that ends in .jsonl", "export", "--ledger", url, "-o", "d.csv", "--entries"),
        ("writes nothing; leave out", "export", "--ledger", url, "--checkpoint", "--entries"),
        ("cannot be written", "export", "--ledger", url, "-o", tmp_path / "no" / "d.csv"),
    ):
        refused(words, *arguments)
    refused_json = run("export", "--ledger", url, "--json", code=2)
    assert "would both go to standard output" in refused_json.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_the_file_as_it_was(lender, tmp_path, monkeypatch):
    url, *_ = lender
    kept = tmp_path / "d.csv"
    kept.write_text("kept")
    calls = []

    def fail(table):
        calls.append(table)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return b"half"

    monkeypatch.setattr("secondlook.cli.files.csv_files.csv_bytes", fail)
    refused(
        "d.csv cannot be written .No space left on device", "export", "--ledger", url, "-o", kept
    )
    assert kept.read_text() == "kept"
    assert list(tmp_path.iterdir()) == [kept]


def test_status_reads_only(lender):
    url, program, *_ = lender
    before = program.checkpoint()
    for command in (["status"], ["export"], ["export", "--entries"]):
        run(*command, "--ledger", url)
    assert SqlLedger(url).programs() == ["main"]
    assert program.checkpoint() == before
    assert not math.isnan(summarise(program.ledger).outcomes.fdr)
