"""`secondlook report` on a ledger: one page that shows what people wrote and runs none of it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cli.hostile_lender import run
from experiments.test_report import Page
from secondlook.cli.pages.report import page
from secondlook.cli.pages.spans import spans
from secondlook.ledger.summing_up import summarise


@pytest.fixture(scope="module")
def html(hostile_lender, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "lender.html"
    said = run("report", "--ledger", hostile_lender[0], "-o", path)
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


def test_numbers_of_the_page_are_those_of_the_summary(html, hostile_lender):
    found = summarise(hostile_lender[1].ledger)
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


def test_many_rounds_are_shown_in_runs(hostile_lender):
    found = summarise(hostile_lender[1].ledger)
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
