"""What every page must do in Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

LARGEST = 5 * 2**20  # bytes of a page
WIDTHS = (390, 768, 1280)
A4 = 688  # CSS pixels between margins of 14 mm
ALIKE = [["svg"], ["tbody tr:nth-child(n+3)"]]  # charts have a label; other rows are like the first
MEASURE = Path(__file__).with_name("measure.js").read_text(encoding="utf-8")


def chromium():
    """Return the path of Chromium, or None."""
    return os.environ.get("FAIRCHANCE_CHROMIUM") or shutil.which("chromium")


# Not for the session: Playwright keeps an asyncio loop running, beside which none can start.
@pytest.fixture(scope="module")
def browser():
    """Start Chromium; skip the tests if there is none, which the end of the run says loudly."""
    if chromium() is None:
        pytest.skip("no Chromium")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield started
        started.close()


def problems(browser, path):
    """Return what is wrong with the page in a file, by the name of the check that it fails."""
    found = defaultdict(list)
    with browser.new_context(offline=True, reduced_motion="reduce") as context:
        page = context.new_page()
        page.on("pageerror", lambda error: found["errors"].append(str(error)))
        page.on("console", lambda line: found["errors"].extend([line.text] * is_bad(line)))
        page.on("request", lambda request: found["requests"].append(request.url[:200]))
        page.goto(Path(path).as_uri())
        found["requests"].remove(page.url)
        page.evaluate(MEASURE)
        check_widths(page, found)
        check_access(page, found)
        _check_print(page, found)
        _check_charts(page, found)
        if page.evaluate("'pwned' in window || document.querySelector('[data-pwned]') !== null"):
            found["scripts"].append("text became an element or ran as a script")
    return {name: list(dict.fromkeys(some)) for name, some in found.items() if some}


def is_bad(line):
    return line.type in ("error", "warning")


def settle(page):
    """Wait until charts have followed a change of the window."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)))")
    page.wait_for_selector("html[data-ready=yes]", state="attached")


def check_widths(page, found):
    """Check each width with sections folded, as a page opens, and unfolded."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for is_open in ("false", "true"):
            page.evaluate(f"measure.unfold({is_open})")
            settle(page)
            found["overflow"] += page.evaluate("measure.overflow(true)")


def check_access(page, found):
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        settle(page)
        options = {"resultTypes": ["violations"]}
        if scheme == "dark":
            options["runOnly"] = ["color-contrast"]
        result = Axe().run(page, {"exclude": ALIKE}, options)
        found["axe"] += [
            f"{scheme}: {finding['id']}, {finding['help']}: {node['target']} {node['html'][:200]}"
            for finding in result.response["violations"]
            if finding["impact"] in ("serious", "critical")
            for node in finding["nodes"]
        ]
        found["contrast"] += [f"{scheme}: {text}" for text in page.evaluate("measure.faint()")]


def _check_print(page, found):
    """Check that a page prints on A4: everything is unfolded, and nothing is too wide."""
    page.evaluate("measure.unfold(false)")
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": A4, "height": 1000})
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    settle(page)
    found["folded"] += page.evaluate("measure.folded()")
    found["print"] += page.evaluate("measure.overflow(false)")
    found["contrast"] += [f"print: {text}" for text in page.evaluate("measure.faint()")]
    found["print"] += [] if page.pdf(format="A4").startswith(b"%PDF") else ["no PDF"]
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen", color_scheme="light")


def _check_charts(page, found):
    """Check that all charts are drawn, show values under the mouse, and have legends to click."""
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("measure.unfold(true)")
    settle(page)
    found["charts"] += page.evaluate("measure.empty()")
    for figure in page.query_selector_all("figure"):
        name = figure.get_attribute("id") or "a figure"
        figure.scroll_into_view_if_needed()
        if not _shows_a_value(page, figure):
            found["hover"].append(f"{name} shows no value under the mouse")
        for legend in figure.query_selector_all(".role-legend"):
            if not _fades(page, figure, legend):
                found["legend"].append(f"{name}: nothing fades after a click in the legend")


def _fades(page, figure, legend):
    """Return whether a click on an entry of a legend changes how marks look."""
    before = figure.evaluate("measure.looks")
    for symbol in legend.query_selector_all(".role-legend-symbol path"):
        box = symbol.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        settle(page)
        if figure.evaluate("measure.looks") != before:
            return True
    return False


def _shows_a_value(page, figure):
    for x, y in figure.evaluate("measure.points"):
        page.mouse.move(x, y, steps=2)
        settle(page)
        tooltip = page.query_selector("#vg-tooltip-element.visible")
        if tooltip and any(sign.isdigit() for sign in tooltip.inner_text()):
            return True
    return False
