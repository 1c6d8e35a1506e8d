"""Independence of applicants and σ are stated wherever a certificate or an interval is printed."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from cli.lender_files import CERTIFIED, answer, apply, call, start, tell
from cli.pack_sums import read_rows, recomputed
from fairchance.audit import evaluate, groups
from fairchance.ledger import Program
from fairchance.pages.program import certificate_section
from fairchance.words import independence, intervals_assume

DOCS = Path(__file__).parents[4] / "docs"
SHOCK = 0.02
INTERVALS, CERTIFICATES = intervals_assume(SHOCK), independence(SHOCK)


def decided(batch):
    """Decide on a batch, observe its outcomes; return what both commands print."""
    came = apply(400, 1000 * batch)
    said = [call("decide", "applicants.csv", "-o", "decisions.csv", "--batch", f"month {batch}")]
    yes = answer().query("decision == 'accept'")["id"]
    tell(came[came["id"].isin(yes)][["id", "outcome"]])
    said.append(call("observe", "outcomes.csv", "--unlike-expected"))
    assert [one.exit_code for one in said] == [0, 0], said
    return [one.stdout for one in said]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Return what each place prints about a certified program with shocks."""
    folder = tmp_path_factory.mktemp("shocks")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "2000")
        url = f"sqlite:///{folder}/lender.db"
        patch.setenv("FAIRCHANCE_LEDGER", url)
        config = CERTIFIED.replace("alpha = 0.2", f"alpha = 0.4\nshock = {SHOCK}")
        start(url, folder, config)
        for batch in range(1, 5):
            decide, observe = decided(batch)
        program = Program.open(url)
        assert program.summary().rounds[-1].certified
        told = {
            "decide": decide,
            "observe": observe,
            "status": call("status").stdout,
            "evaluate": call("evaluate", "--policy", "score >= 0.5").stdout,
            "notebook": unescape(program._repr_html_()),
            "notebook of a round": unescape(program.classifier.rounds_[-1]._repr_html_()),
            "notebook of an evaluation": unescape(
                evaluate(program.decision_log(), "score >= 0.5")._repr_html_()
            ),
            "notebook of groups": unescape(groups(program.decision_log())._repr_html_()),
        }
        call("report", "-o", "report.html")
        told["what audit prints"] = call("audit", "-o", "pack").stdout
        told["pack"], told["ledger"] = Path("pack").absolute(), url
        files = {"report": "report.html", "audit": "pack/report.html"}
        files |= {"model card": "pack/model_card.txt"}
        told |= {name: unescape(Path(file).read_text()) for name, file in files.items()}
        told["summary"] = program.summary()
    return told


def line(text):
    return re.sub(r"\s+", " ", text)


PLACES = ("status", "notebook", "report", "audit", "model card")


@pytest.mark.parametrize("place", [*PLACES, "decide", "notebook of a round"])
def test_the_assumption_is_beside_each_certificate(printed, place):
    assert CERTIFICATES in line(printed[place]).replace(INTERVALS, "")


def test_a_certificate_that_rests_on_todays_process_says_so(printed):
    summary = printed["summary"]
    rounds = tuple(
        replace(row, records=tuple(replace(one, kind="union") for one in row.records))
        for row in summary.rounds
    )
    beside = certificate_section(replace(summary, rounds=rounds))
    for part in ("All whom today's process accepts and the best ", "a rule about one applicant"):
        assert part in str(beside.parts)
        assert part not in str(certificate_section(summary).parts)


@pytest.mark.parametrize(
    "place",
    [
        *PLACES,
        "observe",
        "evaluate",
        "what audit prints",
        "notebook of an evaluation",
        "notebook of groups",
    ],
)
def test_the_assumption_is_beside_intervals(printed, place):
    assert INTERVALS in line(printed[place])


@pytest.mark.skipif(not DOCS.is_dir(), reason="a source distribution has no docs")
@pytest.mark.parametrize("place", ["guarantees.md", "audit.md"])
def test_the_documentation_has_the_words(place):
    assert independence(0) in line((DOCS / place).read_text())


def test_plain_sums_with_the_allowance_give_the_evidence(printed):
    granted, why_not = recomputed(printed["pack"], printed["ledger"])
    assert granted
    assert not why_not
    assert {row["shock"] for row in read_rows(printed["pack"] / "certificates.csv")} == {str(SHOCK)}
