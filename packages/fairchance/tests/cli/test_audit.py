"""``fairchance audit``: the files of the pack agree with each other and with other commands."""

from __future__ import annotations

import io
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from html import unescape
from pathlib import Path

import openpyxl
import pandas as pd
import pyarrow as pa
import pytest

from browser.worlds import hostile, program
from cli.lender_files import call, done, people, refused
from cli.pack_sums import recomputed
from fairchance.audit import DecisionLog, evaluate
from fairchance.audit.rates import WHOLE, rate_of
from fairchance.cli import pack
from fairchance.cli.commands.audit import _audited
from fairchance.cli.files.csv_files import csv_bytes
from fairchance.cli.files.excel import xlsx_bytes
from fairchance.errors import visible
from fairchance.ledger import Program
from fairchance.pages.audit import DECIDED, audit_page
from fairchance.pages.page import PageTable
from golden import transcript

FDR = "false_discovery_rate"
TABLES = ("policies", "groups", "gaps", "unknown", "calibration", "drift", "decisions")
FILES = {"README.txt", "report.html", "model_card.txt", "verify.json", "verify.txt"}
FILES |= {"checkpoint.txt", "decisions.xlsx", "certificates.csv", "bets.csv", "chances.csv"} | {
    f"{name}.csv" for name in TABLES
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own, without a ledger."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("FAIRCHANCE_LEDGER", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Return the ledger of a program with four rounds, of which the last has no outcomes."""
    place = tmp_path_factory.mktemp("lender")
    program(place)
    return f"sqlite:///{place}/lender.db"


@pytest.fixture(scope="module")
def written(url, tmp_path_factory):
    """Return a pack, and what the command printed as JSON."""
    place = tmp_path_factory.mktemp("packs") / "pack"
    words = ("--purpose", "Loans for *everybody*", "--policy", "income >= 0.5")
    return place, done("audit", url, "-o", place, *words)


@pytest.fixture(scope="module")
def audited(url):
    """Return what pages are made of."""
    return _audited(url, None, {}, "", "cut", True, None, True)


def text(pack, name):
    return (pack / name).read_text(encoding="utf-8")


def data(pack, name):
    """Return the rows of a table; empty cells are NaN or empty text."""
    return pd.read_csv(pack / f"{name}.csv").to_dict("records")


def listed(pack):
    """Return the files that the readme lists."""
    return set(re.findall(r"^([\w.]+): ", text(pack, "README.txt"), re.M))


def test_all_files_are_there_and_the_readme_lists_exactly_these(written):
    place, said = written
    assert {path.name for path in place.iterdir()} == FILES
    assert {Path(path).name for path in said["written"]} == FILES
    assert listed(place) == FILES


def test_plain_sums_give_the_evidence_of_certificates(written, url):
    granted, why_not = recomputed(written[0], url)
    # An applicant of the last round is erased, so that it cannot be repeated.
    assert {*why_not} == {key for key, says in granted.items() if says["round"] >= 4}
    assert 0 < len(why_not) < len(granted)
    assert all("was erased" in why for why in why_not.values())


def test_decisions_are_a_table_and_a_spreadsheet(written, url):
    place, _ = written
    sheet = pd.read_excel(place / "decisions.xlsx")
    table = pd.read_csv(place / "decisions.csv")
    assert list(sheet.columns) == list(table.columns)
    assert len(sheet) == len(table) == Program.open(url).summary().total("n_people")
    risky = xlsx_bytes(pa.table({"=1+1": ["=2+3", "plain"]}))
    cells = [c.value for row in openpyxl.load_workbook(io.BytesIO(risky)).active for c in row]
    assert cells == ["'=1+1", "'=2+3", "plain"]


def test_an_auditor_reads_no_jargon_and_who_answers(written, url, audited):
    place, _ = written
    status = call("status", url).stdout
    said = [status, text(place, "model_card.txt"), text(place, "report.html").split("<script>")[0]]
    assert not any("exploited" in one.lower() for one in said)
    assert "by score" in status
    lines = ("Tier: not stated", "Owner: not stated", "Next review: not stated")
    assert all(line in text(place, "model_card.txt") for line in lines)
    about = audited.summary.about | {"owner": "Consumer credit"}
    owned = replace(audited, summary=replace(audited.summary, about=about))
    assert b"Owner: Consumer credit" in pack.files_of(owned)["model_card.txt"]


def test_policies_are_those_of_evaluate(written, url):
    place, _ = written
    rows = [row for row in data(place, "policies") if row["estimator"] == "self_normalised"]
    found = {(row["policy"], row["measure"]): row for row in rows}
    names = list(dict.fromkeys(row["policy"] for row in rows))
    assert (names[0], names[-1], len(names)) == ("as decided", "income ≥ 0.5", 13)
    log = Program.open(url).decision_log()
    cut = evaluate(log, "score >= 0.9").of("false_discovery_rate")
    row = found["score ≥ 0.9", "false_discovery_rate"]
    assert row["value"] == pytest.approx(cut.value)
    assert row["low"] <= cut.low <= cut.high <= row["high"]  # 13 policies share the error
    # The program's own decisions have the rates that status and report show.
    summary = Program.open(url).summary()
    decided = found["as decided", "false_discovery_rate"]
    known = summary.outcomes
    rate = rate_of(known.bad, known.known, WHOLE, missing=known.accepted - known.known)
    ends = ("value", "low", "high", "least", "most")
    assert [decided[end] for end in ends] == pytest.approx([getattr(rate, end) for end in ends])


def test_the_proof_is_that_of_verify(written, url):
    place, said = written
    checkpoint = text(place, "checkpoint.txt").strip()
    assert checkpoint == said["checkpoint"] == call("export", url, "--checkpoint").stdout.strip()
    proved = done("verify", url)
    del proved["other_programs"]
    assert json.loads(text(place, "verify.json")) == proved
    assert text(place, "verify.txt") == call("verify", url).stdout
    assert done("verify", url, "--checkpoint", place / "checkpoint.txt")["ok"]
    assert said["verified"] is True


def test_the_model_card_says_everything(written):
    place, said = written
    card = text(place, "model_card.txt")
    assert "Loans for *everybody*" in card
    assert said["message"] in card
    assert len(re.findall(r"^-{4,}$", card, re.M)) == 10  # sections


def test_the_report_shows_the_verdict_and_every_section(written):
    place, said = written
    html = text(place, "report.html")
    marked = re.sub(r'<sup class="print">\d+</sup>', "", html)  # numbers of notes
    shown = unescape(re.sub(r"<[^>]*>", "", marked.split("<script>\n")[0])).replace("\u00a0", " ")
    assert said["message"] in shown
    ids = re.findall(r'<details id="([\w-]+)"', html)
    assert ids == [
        *("groups", "policies", "unknown", "calibration", "drift", "certificate"),
        *("verification", "settings", "limits", "words"),
    ]
    for words in ("as decided", "income ≥ 0.5", "not identified"):
        assert words in shown


def cells(html, title):
    """Return a table of a page: a dictionary of texts, without small print, for each row."""
    table = re.search(rf"<h3>{title}</h3>.*?<table>(.*?)</table>", html, re.S)[1]
    plain = re.sub(r"<small>.*?</small>", "", re.sub(r"<sup.*?</sup>", "", table))
    rows = [
        [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in re.findall(r"<tr>.*?</tr>", plain, re.S)
    ]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_tables_of_the_report_have_their_numbers_in_the_right_columns(written):
    html = text(written[0], "report.html")
    for title, name, columns in (
        ("Slices", "unknown", {"Outcomes": "n_outcomes", "Accepted": "n_accepted"}),
        ("Rounds", "drift", {"Round": "round", "Outcomes": "n_outcomes"}),
    ):
        shown, rows = cells(html, title), data(written[0], name)
        assert len(shown) == len(rows) > 0
        for heading, key in {"Applied": "n_people", **columns}.items():
            assert [row[heading] for row in shown] == [f"{row[key]:,}" for row in rows]
    rows = [row for row in data(written[0], "policies") if row["estimator"] == "self_normalised"]
    rests_on = [row["n_outcomes"] for row in rows if row["measure"] == "false_discovery_rate"]
    assert [row["Outcomes"] for row in cells(html, "Policies")] == [f"{n:,}" for n in rests_on]
    assert len({*rests_on}) > 1


def test_the_best_cut_off_has_no_lead_if_intervals_overlap(audited):
    # α such that a cut-off keeps it
    cuts = {cut: replace(one, alpha=0.9) for cut, one in audited.cuts.items()}
    audited = replace(audited, cuts=cuts)
    best = audited.best_cut

    def said(profit):
        measured = [row for row in best.measured if row.measure != "profit"]
        better = replace(best, measured=(*measured, profit))
        cards = audit_page(replace(audited, cuts={0.5: better})).cards
        return next(card.text for card in cards if card.title == "Best cut-off")

    profit, own = best.of("profit"), audited.decided.of("profit")
    assert profit.low < own.high
    assert "intervals overlap" in said(profit)
    assert "overlap" not in said(replace(profit, low=own.high + 1))


def test_the_first_screen_names_groups_and_directions(audited):
    highs = {row.group: row.rate.most for row in audited.groups.measured if row.measure == FDR}
    (low, _), (high, broken) = sorted((highs[name], name) for name in highs if name)

    def page(alpha, **changes):
        decided = replace(audited.decided, alpha=alpha)
        changed = replace(audited, policies={**audited.policies, DECIDED: decided}, **changes)
        return audit_page(changed)

    assert broken not in page(high).cards[0].text
    assert f"sex {broken}" in page((low + high) / 2).cards[0].text
    part = replace(audited.calibration[0], score=0.5, low=0.4, high=0.6)
    scores = [part, replace(part, score=0.3), replace(part, score=0.35), replace(part, score=0.7)]
    assert "low in 2" in page(0.15, calibration=scores).verdict
    assert "Scores" not in page(0.15, calibration=[part]).verdict


def test_a_bound_is_not_kept_while_pending_outcomes_could_break_it(audited):
    rate = audited.groups.of(FDR).rate
    assert rate.missing > 0

    bounds = ((rate.high + rate.most) / 2, rate.most, rate.least / 2)
    found = [replace(audited.decided, alpha=alpha).verdict_code for alpha in bounds]
    assert found == ["open", "kept", "broken"]


def test_nothing_is_unknown_only_if_every_policy_is_identified(audited):
    known = [replace(one, unknown=False) for one in audited.unknown.slices]
    audited = replace(audited, unknown=replace(audited.unknown, slices=tuple(known)))
    assert audited.not_identified

    def light(audited):
        return next(card.light for card in audit_page(audited).cards if card.title == "Unknown")

    assert light(audited) == "amber"
    open_ = audited.not_identified
    covered = {name: one for name, one in audited.policies.items() if one not in open_}
    assert light(replace(audited, policies=covered)) == "green"


def test_what_is_printed_and_what_the_page_says(url, audited, golden, folder):
    printed = transcript(f"audit {url} -o pack").replace(url, "sqlite:///lender.db")
    page = audit_page(audited)
    lines = [printed.replace(str(folder), ""), page.verdict]
    lines += [f"{card.light} {card.title}: {card.value} {card.text}" for card in page.cards]
    for section in page.sections:
        if section.id not in ("certificate", "settings", "verification"):  # of other commands
            lines += ["", section.title, section.brief]
            lines += [line for part in section.parts if isinstance(part, list) for line in part]
            lines += [
                part.note for part in section.parts if isinstance(part, PageTable) and part.note
            ]
    golden("audit", "\n".join(lines) + "\n", ranked=True)


def test_without_groups_nothing_is_said_about_them(url):
    done("audit", url, "-o", "pack", "--no-groups")
    there = {path.name for path in Path("pack").iterdir()}
    assert there == FILES - {"groups.csv", "gaps.csv"}
    assert listed(Path("pack")) == there
    assert "No protected attribute was compared." in text(Path("pack"), "model_card.txt")


def test_pending_outcomes_may_count_as_the_worst(url):
    done("audit", url, "-o", "pack", "--pending", "worst")
    row = next(row for row in data(Path("pack"), "policies") if row["measure"] == "profit")
    assert row["n_people"] == 900  # estimates
    assert "rounds 1 to 4" in text(Path("pack"), "model_card.txt")


def test_without_a_complete_round_there_are_intervals_and_no_estimates(hostile_lender):
    ledger = hostile_lender[0]
    assert "--pending" in refused("audit", ledger, "-o", "pack")
    done("audit", ledger, "-o", "pack", "--pending", "worst")
    assert not Path("pack/calibration.csv").exists()


def test_a_program_without_outcomes_is_refused_with_what_to_do(lender_without_outcomes):
    assert "outcome" in refused("audit", lender_without_outcomes, "-o", "pack")
    assert not Path("pack").exists()


@pytest.fixture
def lender_without_outcomes(made, folder):
    """Return the ledger of a program that has decided one batch."""
    for file in made.glob("lender.db*"):
        shutil.copy(file, folder)
    url = f"sqlite:///{folder}/lender.db"
    assert "decide" in refused("audit", url, "-o", "pack")  # no batch yet
    people(80, 1000).drop(columns="outcome").to_csv("new.csv", index=False)
    done("decide", "new.csv", "-o", "out.csv", "--ledger", url)
    return url


# The folder


def test_a_pack_replaces_a_pack_and_nothing_else(url, folder, monkeypatch):
    Path("pack").mkdir()
    done("audit", url, "-o", "pack")  # an empty folder
    text_before = text(Path("pack"), "policies.csv")
    Path("pack/README.txt").write_text("old")
    done("audit", url, "-o", "pack")
    assert text(Path("pack"), "policies.csv") == text_before
    assert text(Path("pack"), "README.txt") != "old"
    assert [path.name for path in folder.iterdir()] == ["pack"]
    Path("pack/mine.txt").write_text("mine")
    assert "'mine.txt'" in refused("audit", url, "-o", "pack")
    assert Path("pack/mine.txt").read_text() == "mine"
    Path("file").write_text("mine")
    assert "is a file" in refused("audit", url, "-o", "file")


def test_a_pack_appears_whole_or_not_at_all(written, url, folder, monkeypatch):
    shutil.copytree(written[0], "pack")
    before = {path.name: path.read_bytes() for path in Path("pack").iterdir()}
    written = []

    def fail(path, content):
        written.append(path)
        if len(written) > 3:
            raise OSError(28, "No space left on device")
        return original(path, content)

    original = Path.write_bytes
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fail)
        for place in ("pack", "new"):
            assert "No space left" in refused("audit", url, "-o", place)
            written.clear()
    assert [path.name for path in folder.iterdir()] == ["pack"]
    assert {path.name: path.read_bytes() for path in Path("pack").iterdir()} == before


def test_a_folder_that_cannot_be_made(url):
    Path("file").write_text("")
    assert "file/pack" in refused("audit", url, "-o", "file/pack")


# A record that does not fit, and hostile names


def changed(url, folder, statement):
    """Return a copy of a ledger in which somebody changed a row."""
    place = folder / "copy.db"
    kept = sqlite3.connect(url.removeprefix("sqlite:///"))
    with closing(kept), closing(sqlite3.connect(place)) as copy:
        kept.backup(copy)
    with closing(sqlite3.connect(place, isolation_level=None)) as copy:
        assert copy.execute(statement).rowcount
    return f"sqlite:///{place}"


def test_a_record_that_contradicts_itself_gives_no_pack(url, folder):
    statement = "UPDATE people SET accepted = 0 WHERE person = {}"
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as ledger:
        sure = "SELECT max(person) FROM people WHERE accepted AND propensity = 1 AND person < 1000"
        (person,) = ledger.execute(sure).fetchone()
    place = changed(url, folder, statement.format(person))
    error = done("audit", place, "-o", "pack", code=4)["error"]
    assert error["code"] == "unverified"
    assert f"(person {person}) in people was changed" in error["message"]
    assert not Path("pack").exists()


def test_a_changed_record_is_in_the_pack_and_in_the_exit_code(url, folder):
    place = changed(url, folder, "UPDATE people SET score = score / 2 WHERE person = 700")
    said = done("audit", place, "-o", "pack", code=4)
    assert said["verified"] is False
    assert said["message"].startswith("The record does not fit, so all that follows may be false.")
    assert said["checkpoint"] is None
    gone = {"checkpoint.txt", "bets.csv", "chances.csv"}
    assert {path.name for path in Path("pack").iterdir()} == FILES - gone
    assert "cannot be repeated" in text(Path("pack"), "certificates.csv")
    for name in ("report.html", "README.txt"):
        assert "checkpoint.txt" not in text(Path("pack"), name)
    proof = json.loads(text(Path("pack"), "verify.json"))
    assert (proof["ok"], proof["checkpoint"]) == (False, None)
    assert "was changed" in text(Path("pack"), "verify.txt")
    assert "was changed" in text(Path("pack"), "model_card.txt")


def test_hostile_names_are_only_text(folder):
    lender = program(folder, hostile)
    policy = f"{hostile('income')} >= 0.5"
    url = f"sqlite:///{folder}/lender.db"
    done("audit", url, "-o", "pack", "--purpose", hostile("Loans"), "--policy", policy)
    for name in ("model_card.txt", "README.txt"):
        shown = text(Path("pack"), name)
        assert visible(lender.name) in shown
        assert all(line.isprintable() for line in shown.splitlines())
    table = pd.read_csv("pack/groups.csv")
    assert {hostile("women"), hostile("men")} <= set(table["group"])


def test_names_that_a_spreadsheet_would_run(url):
    log = Program.open(url).decision_log()
    frame = pd.DataFrame({"=1+1": log.X["income"].to_pylist()})
    odd = DecisionLog(log.accepted, log.propensity, log.outcome, X=frame, round=log.round)
    from fairchance.cli.evaluations import estimates_table  # noqa: PLC0415

    one = evaluate(odd, {"=cmd|x": "=1+1 >= 0"})["=cmd|x"]
    assert b'"\'=cmd|x"' in csv_bytes(estimates_table([one]))


def test_a_table_in_pieces_has_every_line_once():
    empty, first, last = (pa.array(some, pa.string()) for some in ([], ["x"], ["y"]))
    table = pa.table({"a": pa.chunked_array([empty, first, empty, last])})
    assert csv_bytes(table) == b'"a"\n"x"\n"y"\n'


def test_every_file_of_a_pack_has_a_place_in_the_readme():
    assert set(pack.NAMES) == FILES
