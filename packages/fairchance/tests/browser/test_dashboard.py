"""The dashboard in a browser, while a simulated lender's months pass.

``pytest --update-golden`` takes the pictures of the documentation anew.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.checks import MEASURE, check_access, check_widths, is_bad, settle
from cli.lender_files import done
from fairchance.cli.live import MONTHS, LiveLender

pytestmark = [
    pytest.mark.xdist_group("browser"),
    pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning"),
]
PICTURES = Path(__file__).parents[4] / "docs" / "pictures"
WAIT = 60_000  # milliseconds; views rest for a while, and longer on a busy machine
VIEWS = ("overview", "months", "groups", "draws", "data", "rounds", "events", "applicant")


@contextmanager
def watched(browser, lender):
    """Open the dashboard of a lender, and collect what goes wrong on it."""
    found = defaultdict(list)
    home, elsewhere = lender.address.partition("#")[0], found["requests"]
    with browser.new_context(reduced_motion="reduce") as context:
        page = context.new_page()
        page.set_viewport_size({"width": 1280, "height": 800})
        page.on("pageerror", lambda error: found["errors"].append(str(error)))
        page.on("console", lambda line: found["errors"].extend([line.text] * is_bad(line)))
        page.on("request", lambda asked: asked.url.startswith(home) or elsewhere.append(asked.url))
        page.goto(lender.address)
        expect(page.locator("h1")).to_contain_text("Program live", timeout=WAIT)
        page.evaluate(MEASURE)
        yield page, found


def take(page, name, folder):
    """Take a picture; the documentation's have few colours, so that they are small."""
    settle(page)
    file = folder / f"live-{name}.png"
    page.screenshot(path=file)
    if folder == PICTURES:
        from PIL import Image  # noqa: PLC0415 - only the documentation needs it

        Image.open(file).convert("RGB").quantize(64, dither=0).save(file, optimize=True)


def go(page, view):
    """Choose a view as a reader does, and wait until its charts are drawn."""
    page.locator(f"nav a[href='#/{view}']").click()
    expect(page.locator("nav a[aria-current=page]")).to_have_attribute("href", f"#/{view}")
    settle(page)


def test_a_lender_is_watched(browser, tmp_path, request):
    lender = LiveLender(f"sqlite:///{tmp_path}/live.db")
    taken = PICTURES if request.config.getoption("update_golden") else tmp_path
    with lender.served(), watched(browser, lender) as (page, found):
        assert "key" not in page.url  # it is in the address only as long as the script needs
        card = page.locator("main").get_by_text
        statuses, shots = [], {2: "shadow", 4: "ramp", 8: "certified"}
        for month in lender.months(8, 0.0):
            statuses.append(month.status)
            if name := shots.get(month.month):
                before = f"in {month.month - 1} round"
                expect(card(before).first).to_be_visible(timeout=WAIT)
                take(page, name, taken)
        assert statuses[0] == "shadow"
        assert statuses[-1] == "certified"
        expect(card("Round 7 is certified").first).to_be_visible()

        go(page, "applicant")
        link = page.locator("main a").first
        name = link.inner_text()
        link.click()
        expect(page.locator("h1")).to_contain_text(name)
        expect(page.locator("main")).to_contain_text("receipt", ignore_case=True)
        page.get_by_label("Application").fill("nobody")
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("nobody")

        go(page, "overview")
        done("pause", "--ledger", f"sqlite:///{tmp_path}/live.db")
        expect(card("paused").first).to_be_visible(timeout=WAIT)
    assert not any(found.values()), found


def test_views_fit_and_can_be_read_aloud(browser, tmp_path):
    lender = LiveLender(f"sqlite:///{tmp_path}/live.db")
    with lender.served():
        list(lender.months(4, 0.0))
        with watched(browser, lender) as (page, found):
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")  # skips the navigation
            assert page.evaluate("document.activeElement.id") == "content"
            for view in VIEWS:
                page.set_viewport_size({"width": 1280, "height": 800})
                go(page, view)
                check_widths(page, found)
                check_access(page, found)
                page.emulate_media(color_scheme="light")
                found["charts"] += page.evaluate("measure.empty()")
    assert not any(found.values()), found


def test_a_key_is_taken_out_of_the_address(browser, tmp_path):
    lender = LiveLender(f"sqlite:///{tmp_path}/live.db")
    with lender.served(), browser.new_context() as context:
        page = context.new_page()
        page.goto(lender.address.partition("#")[0])
        expect(page.get_by_label("Key")).to_be_visible()
        page.goto(lender.address)  # in the same tab, which reloads nothing
        expect(page.get_by_label("Key")).to_be_hidden()
        expect(page.locator("h1")).to_contain_text("Program live", timeout=WAIT)
        expect(page.locator("#news")).to_be_empty()
        assert "key" not in page.url


def test_a_key_is_asked_for_and_kept_in_the_tab_only(browser, tmp_path):
    lender, found = LiveLender(f"sqlite:///{tmp_path}/live.db"), defaultdict(list)
    with lender.served(), browser.new_context() as context:
        address, _, key = lender.address.partition("#key=")
        page = context.new_page()
        page.goto(address)
        field = page.get_by_label("Key")
        expect(field).to_be_focused()
        assert (field.get_attribute("type"), field.get_attribute("autocomplete")) == (
            "password",
            "off",
        )
        page.evaluate(MEASURE)
        page.evaluate("document.documentElement.dataset.ready = 'yes'")  # no charts to wait for
        check_access(page, found)
        for wrong in ("", "fc_é", key[:-1]):
            field.fill(wrong)
            with page.expect_response("**/views/*") as answered:
                page.keyboard.press("Enter")
            assert answered.value.status == 401
        field.fill(f" {key}\n")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # the button
        expect(page.locator("h1")).to_contain_text("Program live", timeout=WAIT)
        expect(field).to_be_hidden()
        assert page.url == address
        page.reload()
        expect(page.locator("h1")).to_contain_text("Program live", timeout=WAIT)
        assert field.input_value() == ""
        assert context.cookies() == []
        assert page.evaluate("localStorage.length") == 0
        other = context.new_page()
        other.goto(address)
        expect(other.get_by_label("Key")).to_be_visible()
    assert not any(found.values()), found


@pytest.mark.long
def test_an_alarm_is_seen(browser, tmp_path, request):
    lender = LiveLender(f"sqlite:///{tmp_path}/live.db")
    taken = PICTURES if request.config.getoption("update_golden") else tmp_path
    with lender.served(), watched(browser, lender) as (page, found):
        list(lender.months(MONTHS, 0.0))
        expect(page.locator("main")).to_contain_text("no longer", timeout=WAIT)
        expect(page.locator(".verdict")).to_contain_text("dropped", timeout=WAIT)
        take(page, "alarm", taken)
        go(page, "months")
        expect(page.locator("main")).to_contain_text("were dropped")
    assert not any(found.values()), found
