"""The playground in a browser, from a file. It is built by tools/playground, which needs emscripten: without the page there is nothing to test."""
import json
import pathlib

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "build" / "playground.html"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="tools/playground has not built the page")


@pytest.fixture(scope="module")
def page():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        one = browser.new_page()
        one.set_default_timeout(120_000)
        one.asked = []
        one.on("request", lambda request: one.asked.append(request.url))
        one.said = []
        one.on("console", lambda message: one.said.append(message.text))
        one.on("pageerror", lambda error: one.said.append(str(error)))
        one.goto(PAGE.as_uri())
        one.wait_for_function("document.getElementById('state').textContent === 'checked'")
        yield one
        browser.close()


def write(page, text):
    page.evaluate("document.getElementById('state').textContent = 'asked'")
    page.fill("#program", text)
    page.wait_for_function("document.getElementById('state').textContent !== 'asked'")


def run(page):
    page.click("#run")
    page.wait_for_function("['done', 'stopped'].includes(document.getElementById('state').textContent)")
    return page.inner_text("#results")


def test_types_and_exposure_as_you_type(page, starfold, program):
    write(page, "input x : [*, p]\nlet m = mean[*](x)\nlet r = x - m\noutput c = r' @ r\n")
    notes = page.inner_text("#notes").split("\n")
    assert notes[0] == "x : [*, p]"
    assert notes[1].startswith("m : [p]") and "leaves: [p] by sum, round 1" in notes[1]
    assert notes[2] == "r : [*, p]"
    # The table holds what `check` lists.
    rounds = starfold("check", program("input x : [*, p]\nlet m = mean[*](x)\nlet r = x - m\noutput c = r' @ r\n"), "--json").json()["rounds"]
    exposure = page.inner_text("#exposure")
    for each in rounds:
        for merge in each["merges"]:
            assert merge["expr"] in exposure
    assert exposure.count("leaves") == sum(len(each["merges"]) for each in rounds)


def test_a_mistake_is_said_as_on_the_command_line(page, starfold):
    text = "input x : [*]\noutput x\n"
    write(page, text)
    said = page.inner_text("#said")
    assert "error[E0301]: a federated value cannot be an output" in said
    expected = starfold("check", "-", input=text).err.replace("--> -:", "--> program.fold:")
    assert [line.rstrip() for line in said.strip().split("\n")] == [line.rstrip() for line in expected.strip().split("\n")]
    assert page.is_disabled("#run")


def test_a_run_gives_what_the_program_means(page):
    write(page, "input x : [*, p]\nlet n = records(x)\nlet m = sum[*](x) / n\noutput n\noutput zero = sum[*](x - m)\noutput s = solve(eye(p) * 4, ones(p))\noutput e = exp(1)\n")
    results = run(page)
    rows = {line.split("\t")[0]: line.split("\t")[2] for line in results.split("\n") if line.count("\t") >= 2}
    assert float(rows["n"]) == 125
    assert np.abs(np.array(rows["zero"].split(), float)).max() < 1e-12
    assert rows["s"].split() == ["0.25"] * 3
    assert float(rows["e"]) == pytest.approx(np.e, rel=1e-5)


def test_every_example_is_checked_and_most_run(page):
    names = page.evaluate("Object.keys(examples)")
    assert {path.stem for path in (ROOT / "examples").glob("*.fold")} == set(names)
    done = 0
    for name in names:
        page.evaluate("document.getElementById('state').textContent = 'asked'")
        page.evaluate(f"open({json.dumps(name)})")
        page.wait_for_function("document.getElementById('state').textContent !== 'asked'")
        assert page.inner_text("#state") == "checked", name
        run(page)
        done += page.inner_text("#state") == "done"
    assert done >= len(names) - 2  # labels of made-up records are 0 and 1, which not every program takes


def test_the_library_is_inside(page):
    write(page, "import stats\ninput x : [*]\noutput q = stats.quantile(x, 0.5)\n")
    assert page.inner_text("#state") == "checked"
    notes = page.inner_text("#notes").split("\n")
    assert "leaves" in notes[2] and "leaves" not in notes[1]  # what the library sends, at its call
    assert "q" in run(page)


def test_hostile_programs_do_not_end_the_page(page):
    for text in ("(" * 20_000, "let a = " + "-" * 20_000 + "1", "\u0001\u0002", "fn f(a : []) = f(a)\noutput b = f(1)\n"):
        write(page, text)
        assert "error" in page.inner_text("#said")
    write(page, "output a = 1\n")
    assert page.inner_text("#state") == "checked"


def test_nothing_leaves_the_page(page):
    assert [url for url in page.asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert page.said == []
