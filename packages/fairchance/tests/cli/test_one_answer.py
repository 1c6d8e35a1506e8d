"""Status, report, notebook, charts and audit give one answer to each question about a record."""

from __future__ import annotations

import json
import math
import re
from html import unescape
from itertools import chain

import pytest

from charts import rows_of
from cli.calls import call
from fairchance import plot
from fairchance.audit import added_profit
from fairchance.audit import groups as audit_groups
from fairchance.cli.commands.audit import _audited
from fairchance.errors import InputError
from fairchance.ledger.health import check_health
from fairchance.ledger.summary import read_details
from fairchance.pages.audit import audit_page
from fairchance.pages.page import PageTable
from fairchance.pages.program import program_page
from fairchance.words import LIGHTS, amount, percent, percents
from fairchance.words.money import added_text, money_rows
from random_programs import random_program

ENDS = ("added", "low", "high")


@pytest.fixture(scope="module", params=range(9))
def life(request, tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('life')}/ledger.db"
    return url, random_program(url, request.param)


@pytest.fixture(scope="module")
def status(life):
    return json.loads(call("status", life[0], "--json").stdout)


def shown(rate):
    """Return a rate as tables show it."""
    value, low, high = rate
    return (percent(value), percents((low, high))) if value is not None else "–"


def rates(status):
    """Return mistakes and acceptance by group, as status has them; "" for all applicants."""
    whole = status["outcomes"]["all"]
    found = {("mistakes", ""): (whole["fdr"], *whole["interval"])}
    for group in status["groups"]:
        if not group["erased"]:
            name, own, how = group["attribute"], group["outcomes"], group["acceptance"]
            name = f"{name} {group['group']}"
            found["mistakes", name] = (own["fdr"], *own["interval"])
            found["acceptance", name] = (how["value"], how["low"], how["high"])
    return found


def test_checks_have_the_numbers_of_the_tables(status):
    known = rates(status)
    checks = [one for one in status["checks"] if one["question"] == "mistakes"]
    assert checks
    for check in checks:
        found = (check["value"], check["low"], check["high"])
        assert found == known["mistakes", check["group"]]


def test_the_report_shows_the_numbers_of_status(life, status):
    _, program = life
    summary = program.summary()
    page = program_page(summary, read_details(program.ledger, summary), 180.0)
    assert page.light == status["light"]
    assert page.verdict.startswith(status["message"])
    cards = {card.title: card for card in page.cards}
    (mistakes,) = [c for c in status["checks"] if (c["question"], c["group"]) == ("mistakes", "")]
    assert cards["Mistakes"].light == mistakes["light"]
    known = rates(status)
    parts = chain(*(section.parts for section in page.sections))
    tables = {part.title: part for part in parts if isinstance(part, PageTable)}
    whole = tables["Outcomes so far"]
    at = list(whole.titles).index("Mistakes")
    assert whole.rows[0][at] == shown(known["mistakes", ""])
    seen = set()
    for title, table in tables.items():
        if {"Mistakes", "Rate"} <= {*table.titles}:
            attribute, titles = title.removeprefix("By "), list(table.titles)
            for row in table.rows:
                name = f"{attribute} {row[0]}"
                if row[0] != "(erased)":
                    assert row[titles.index("Mistakes")] == shown(known["mistakes", name])
                    assert row[titles.index("Rate")] == shown(known["acceptance", name])
                    seen.add(name)
    assert seen == {name for _, name in known} - {""}


def test_a_notebook_shows_the_numbers_of_status(life, status):
    text = unescape(life[1]._repr_html_())
    assert status["message"] in text
    cells = re.findall(r"<td[^>]*>(.*?)</td>", text)
    table = dict(zip(cells[::2], cells[1::2], strict=True))
    for (question, name), rate in list(rates(status).items())[:17]:
        word = {"mistakes": "mistakes", "acceptance": "accepted"}[question]
        value = shown(rate)
        expected = value if isinstance(value, str) else f"{value[0]} ({value[1]})"
        assert table[f"{word}, {name}" if name else word] == expected


def test_charts_show_the_numbers_of_status(life, status):
    drawn = {}
    for row in rows_of(plot.groups(life[1]), "row"):
        drawn.setdefault((row["name"], row["row"]), []).append(
            (row["value"], row["low"], row["high"])
        )
    known = rates(status)
    for (question, name), rate in known.items():
        group = name.partition(" ")[2]
        if group and rate[0] is not None and "×" not in name:
            title = {"mistakes": "Mistakes", "acceptance": "Accepted"}[question]
            assert any(rate == pytest.approx(one, abs=1e-4) for one in drawn[title, group])


def test_an_audit_has_the_numbers_of_status(life, status):
    _, program = life
    known = rates(status)
    if known["mistakes", ""][0] is None:
        with pytest.raises(InputError):
            audit_groups(program.decision_log(), pending="worst")
        return
    found = audit_groups(program.decision_log(), pending="worst")
    questions = {"false_discovery_rate": "mistakes", "selection_rate": "acceptance"}
    for row in found.measured:
        question = questions.get(row.measure), f"{row.attribute} {row.group}".strip()
        if question in known:
            numbers = [math.nan if one is None else one for one in known.pop(question)]
            assert [row.recorded, row.low, row.high] == pytest.approx(numbers, nan_ok=True)
    assert all("×" in name for _, name in known)  # an audit has no combinations
    unequal = {
        check.group.partition(" ")[0]
        for check in check_health(program.summary())
        if check.finding == "acceptance_unequal" and "×" not in check.group
    }
    apart = [one for one in found.findings if one.measure == "selection_rate"]
    assert {one.attribute for one in apart if one.answer == "real"} == unequal


def test_the_pack_of_an_audit_has_the_light_of_status(life, status):
    if rates(status)["mistakes", ""][0] is None:
        return
    audited = _audited(life[0], None, {}, "", "worst", True, None, True)
    page = audit_page(audited)
    for one in audited.groups.findings:
        if one.measure == "selection_rate":
            ratios = [
                (check["value"], check["low"], check["high"])
                for check in status["checks"]
                if check["finding"] in ("acceptance_unequal", "acceptance_open")
                and check["group"].startswith(f"{one.attribute} ")
                and "×" not in check["group"]
            ]
            gap = one.corrected
            assert (gap.ratio, gap.ratio_low, gap.ratio_high) == pytest.approx(min(ratios))
            lights = [
                check["light"]
                for check in status["checks"]
                if check["finding"] in ("acceptance_unequal", "acceptance_open")
                and check["group"].startswith(f"{one.attribute} ")
                and "×" not in check["group"]
            ]
            assert one.light == min(lights, key=LIGHTS.index)
    (card,) = [card for card in page.cards if card.title == "Mistakes"]
    (check,) = [c for c in status["checks"] if (c["question"], c["group"]) == ("mistakes", "")]
    assert (card.light, card.value) == (check["light"], percent(check["value"]))


def test_the_difference_from_todays_policy_is_the_same_everywhere(life, status):
    _, program = life
    summary, money = program.summary(), status["money"]
    whole = summary.money.whole
    ends = [math.nan if money["whole"][name] is None else money["whole"][name] for name in ENDS]
    assert [getattr(whole, name) for name in ENDS] == pytest.approx(ends, nan_ok=True)
    printed = call("status", life[0]).stdout
    page = program_page(summary, read_details(program.ledger, summary), 180.0)
    (card,) = [card for card in page.cards if card.title == "Beyond today's policy"]
    (section,) = [one for one in page.sections if one.id == "money"]
    assert card.value == amount(whole.added)
    assert section.parts[0].rows == money_rows(summary.money)
    assert card.text == section.brief == money["message"]
    if any(one["added"] is not None for one in money["periods"]):  # else another chart is drawn
        assert page.figure.spoken == money["message"]
    assert money["message"] in printed
    notebook = unescape(program._repr_html_())
    assert money["message"] in notebook
    assert f">{added_text(whole)}</td>" in notebook
    drawn = [row["value"] for row in rows_of(plot.money(program), "today")]
    known = [one["added"] for one in money["periods"]]
    if any(one is not None for one in known):
        assert drawn == [one if one is None else pytest.approx(one, rel=1e-4) for one in known]
    if money["against"] != "incumbent" or math.isnan(ends[1]):
        return
    log, worth = program.decision_log(), {"utility": summary.promise.utility}
    early = math.isnan(whole.added)
    found = added_profit(log, **worth, pending="worst" if early else "cut")
    n = len(log) if early else whole.n_people
    audited = [n * one for one in (found.value, found.low, found.high)]
    assert audited == pytest.approx(ends, nan_ok=True)
