"""The pages, in a browser: `explain --html` and the report of `run --out`."""
import json
import math

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--no-first-run"]

PROGRAMS = {
    "covariance": """# Mean and covariance, in two rounds.
input x : [*, p]
let n      = records(x)
let centre = sum[*](x) / n
let r      = x - centre
let c      = r' @ r / (n - 1)
let s      = sqrt(diag(c))
let (values, vectors) = eigh(c)
output zebra = n
output centre
output covariance = c
output correlation = c / outer(s, s)
output spectrum = -sort(-values)
output bins = sum[*](r[:, 1][:, new] < linspace(-3, 3, 7))
output shape = sum[*](r[:, 2][:, new] < linspace(-3, 3, 50)) / n - 0.5
output tall = outer(linspace(-3, 3, 30), [1, 2])
output odd = [1, 0 - inf, nan, 1e-12]
output alone = 1 / n^3
""",
    "newton": """# Logistic regression by Newton's method.
input x : [*, p]
input y : [*]
input ridge : [] = 1e-6
state beta : [p] = zeros(p)
state info : [p, p] = eye(p)
repeat 25 {
  let mu   = sigmoid(x @ beta)
  let g    = x' @ (mu - y) + ridge * beta
  let h    = ((mu * (1 - mu))[:, new] * x)' @ x + ridge * eye(p)
  let step = solve(h, g)
  trace loss = sum[*](softplus(x @ beta) - y * (x @ beta))
  trace largest = max(abs(step))
  beta <- beta - step
  info <- h
} until max(abs(step)) < 1e-9
output beta
output beta_se = sqrt(diag(inv(info)))
""",
    "nested": """# Two loops, one inside the other.
size k = 4
input x : [*, p]
input y : [*]
state m : [p] = zeros(p)
repeat 5 {
  state inner : [p] = m - 1
  repeat k {
    let d = y @ clip(x - inner, -2, 2) / sum[*](y)
    trace move = max(abs(d))
    inner <- inner + d
  } until max(abs(d)) < 1e-6
  m <- inner
}
output m
""",
    "twelve": "input x : [*, p]\ninput y : [*]\n" + "".join(
        f"output o{i} = {fold}\n" for i, fold in enumerate([
            "records(x)", "sum[*](x)", "min[*](x)", "max[*](x)", "x' @ x", "x' @ y", "var[*](x)", "logsumexp[*](y)",
            "any[*](y < 0)", "all[*](not isnan(y))", "prod[*](1 + y / 100)", "sum[*](clip(x, -1, 1) * exp(-abs(x)) / (1 + x ^ 2))"
        ])),
    "hostile": "# </script><img src=x onerror=alert(1)> \"' & </table></section><style>main{display:none}</style>\n"
               "input x : [*, p]  # <svg onload=alert(2)>\noutput m = sum[*](x < 1)\n",
}

# The least contrast of any text with what is behind it, and that text.
CONTRAST = """() => {
  const parse = text => { const n = text.match(/[\\d.]+/g).map(Number); return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1]; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const light = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
                       return .2126 * r + .7152 * g + .0722 * b; };
  const behind = element => element === null ? [255, 255, 255, 1]
    : over(parse(getComputedStyle(element).backgroundColor), behind(element.parentElement));
  let worst = [99, ''];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!walker.currentNode.data.trim() || element.closest('title, style') || !element.getClientRects().length) continue;
    let ground = behind(element), ink = parse(element.closest('svg') ? style.fill : style.color);
    const cell = element.previousElementSibling;
    if (cell && element.matches('.strong') && cell.matches('rect.warm, rect.cool')) {
      ground = over([...parse(getComputedStyle(cell).fill).slice(0, 3), Number(cell.getAttribute('fill-opacity'))], ground);
    }
    const [a, b] = [light(over(ink, ground)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < worst[0]) worst = [ratio, walker.currentNode.data.trim().slice(0, 40)];
  }
  return worst;
}"""

# What sticks out of the page on the right, other than what scrolls inside itself.
OVERFLOW = """() => [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, svg')
    && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80)).slice(0, 3)"""


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser):
    """Opens a file; the test fails when the page complains or asks for anything but itself."""
    contexts, complaints = [], []

    def show(path, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: request.url == path.as_uri() or complaints.append(request.url))
        page.goto(path.as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def explained(starfold, tmp_path):
    def write(name):
        source, target = tmp_path / f"{name}.fold", tmp_path / f"{name}.html"
        source.write_text(PROGRAMS[name])
        result = starfold("explain", source, "--html", target)
        assert result.code == 0, result.err
        return target, starfold("check", source, "--json").json()

    return write


@pytest.fixture
def reported(starfold, federation, tmp_path):
    def run(name, *more):
        random = np.random.default_rng(5)
        clients = {}
        for client, count in {"north": 300, "south & <west>": 40, "island": 1, "empty": 0}.items():
            x = random.normal(size=(count, 3)) + np.arange(3)
            clients[client] = {"x": x, "y": (random.random(count) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)}
        source, out = tmp_path / f"{name}.fold", tmp_path / "out"
        source.write_text(PROGRAMS[name])
        result = starfold("run", source, *federation(clients), "--out", out, *more)
        assert result.code == 0, result.err
        return out, result

    return run


def check_looks(page):
    """Every section can be seen, nothing sticks out, and text can be read."""
    for section in page.locator("section").all():
        assert section.is_visible() and section.bounding_box()["height"] > 40
    assert page.evaluate(OVERFLOW) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    ratio, text = page.evaluate(CONTRAST)
    assert ratio >= 4.5, (ratio, text)


def check_all_looks(page):
    """On a desk, a phone, in the dark and on paper (A4 within its margins)."""
    for width, scheme, media in [(1280, "light", "screen"), (1280, "dark", "screen"), (390, "light", "screen"),
                                 (390, "dark", "screen"), (688, "light", "print")]:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media=media, color_scheme=scheme)
        check_looks(page)


def same_number(text, value):
    value = float(value)
    return float(text) == value or (math.isnan(float(text)) and math.isnan(value))


def page_numbers(page, selector="data"):
    """{name: {index: exact value}} of all numbers on a page."""
    found = {}
    entries = page.locator(selector).evaluate_all("all => all.map(e => [e.dataset.name, Number(e.dataset.index), e.value])")
    for name, index, value in entries:
        assert index not in found.setdefault(name, {})
        found[name][index] = value
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_explain_page_looks_right(explained, open_page, name):
    check_all_looks(open_page(explained(name)[0]))


@pytest.mark.parametrize("name", ["covariance", "newton", "nested", "twelve"])
def test_explain_page_says_what_check_says(explained, open_page, name):
    path, check = explained(name)
    page = open_page(path)
    assert page.locator("h1").inner_text() == f"{name}.fold"
    assert [s.get_attribute("id") for s in page.locator("section").all()] == ["short", "rounds", "leaves", "stays", "program", "names"]
    rows = page.locator("#leaves table").first.locator("tbody tr").evaluate_all("all => all.map(r => [...r.cells].map(c => c.innerText.trim()))")
    merges = [(number, merge) for number, entry in enumerate(check["rounds"], 1) for merge in entry["merges"]]
    assert [(int(r[0]), r[1], r[2], int(r[6])) for r in rows] == [
        (number, m["expr"], "[" + ", ".join(m["shape"]) + "]", m["line"]) for number, m in merges]
    names = page.locator("#names tbody tr").evaluate_all("all => all.map(r => [...r.cells].slice(0, 2).map(c => c.innerText))")
    assert names == [[t["name"], t["type"]] for t in check["types"]]
    kept = page.locator("#stays tbody tr td:first-child").all_inner_texts()
    assert kept == [t["name"] for t in check["types"] if "*" in t["type"]]
    assert page.locator("article.round").count() == len(check["rounds"])
    listing = page.locator("#program .listing").first.locator("tr").evaluate_all("all => all.map(r => r.cells[1].textContent).join('\\n')")
    assert listing + "\n" == PROGRAMS[name]
    assert page.locator("#program mark").count() >= len({m["line"] for _, m in merges})
    # Links lead somewhere.
    for target in set(page.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")):
        assert page.locator(f"[id='{target[1:]}']").count() == 1, target


def test_loops_are_drawn_as_loops(explained, open_page):
    page = open_page(explained("nested")[0])
    assert page.locator(".loop").count() == 2 and page.locator(".loop .loop").count() == 1
    titles = page.locator(".loop > h3").all_inner_texts()
    assert titles == ["Repeat up to 5 times", "Repeat up to k times, until max(abs(d)) < 1e-6"]
    assert page.locator(".loop .loop article.round").count() == 1
    assert page.locator(".loop > .rail").first.bounding_box()["height"] > 300


def test_hostile_text_stays_text(explained, open_page):
    page = open_page(explained("hostile")[0])
    assert "<img src=x onerror=alert(1)>" in page.locator("#L1").inner_text()
    assert page.locator("img, script, svg[onload]").count() == 0


@pytest.mark.parametrize("name", ["covariance", "newton", "nested"])
def test_report_shows_the_numbers_of_the_run(reported, open_page, name):
    out, _ = reported(name)
    outputs, run = (json.loads((out / file).read_text()) for file in ("outputs.json", "run.json"))
    page = open_page(out / "report.html")
    shown = page_numbers(page, "#results data")
    assert set(shown) == set(outputs)
    for output, value in outputs.items():
        assert sorted(shown[output]) == list(range(len(value["data"])))
        assert all(same_number(shown[output][i], v) for i, v in enumerate(value["data"])), output
    traces = page_numbers(page, "#progress data")
    assert set(traces) == set(run["traces"])
    for trace, values in run["traces"].items():
        assert [float(traces[trace][i]) for i in range(len(values))] == values
    clients = page.locator("#sent table").first.locator("tbody tr").evaluate_all("all => all.map(r => [...r.cells].map(c => c.innerText.trim()))")
    assert [[c[0], *(int(n.replace("\u202f", "")) for n in c[1:])] for c in clients] == [
        [c["name"], c["numbers_sent"], c["bytes_sent"], c["bytes_received"]] for c in run["clients"]]
    check_all_looks(page)


def test_report_chooses_pictures_and_keeps_the_order(reported, open_page):
    out, result = reported("covariance")
    page = open_page(out / "report.html")
    order = ["zebra", "centre", "covariance", "correlation", "spectrum", "bins", "shape", "tall", "odd", "alone"]
    assert page.locator("#results [data-output]").evaluate_all("all => all.map(e => e.dataset.output)") == order
    assert [line.split()[0] for line in result.out.splitlines() if line and line.split()[0] in order] == order
    marks = {name: page.locator(f"[data-output={name}] svg").evaluate_all(
        "all => all.map(s => ['circle', 'rect.bar', 'rect.warm', 'path.curve'].map(q => s.querySelectorAll(q).length > 0))") for name in order}
    dots, bars, heat, line = [True, False, False, False], [False, True, False, False], [False, False, True, False], [False, False, False, True]
    scree = [True, False, False, True]
    assert marks == {"zebra": [], "centre": [dots], "covariance": [heat], "correlation": [heat], "spectrum": [scree], "bins": [bars],
                     "shape": [line], "tall": [line], "odd": [dots], "alone": []}


def test_report_of_a_fit_has_intervals_and_curves(reported, open_page):
    out, _ = reported("newton")
    page = open_page(out / "report.html")
    assert page.locator("[data-output=beta] path.interval").count() == 3
    assert page.locator("[data-output=beta_se]").count() == 0  # shown with beta
    steps = page.locator("[data-trace=largest] svg text").all_text_contents()
    assert any(label.startswith("10\u207b") for label in steps)  # powers of ten
    assert not any(label.startswith("10\u207b") for label in page.locator("[data-trace=loss] svg text").all_text_contents())
    assert page.locator("#rounds .client").count() == 4 and "ran" in page.locator("#rounds .often").first.inner_text()


def test_report_of_a_reference_run(reported, open_page):
    out, _ = reported("covariance", "--reference")
    page = open_page(out / "report.html")
    assert "pooled records" in page.locator(".lead").inner_text()
    check_looks(page)


def test_entries_are_called_like_the_columns(starfold, open_page, tmp_path):
    for client in "ab":
        (tmp_path / f"{client}.csv").write_text("age,bmi,<i>\n1,2,3\n4,5,7\n5,5,6\n")
    (tmp_path / "p.fold").write_text("input x : [*, p]\noutput m = mean[*](x)\noutput c = x' @ x\n")
    result = starfold("run", tmp_path / "p.fold", "--client", f"a={tmp_path}/a.csv", "--client", f"b={tmp_path}/b.csv",
                      "--bind", "x=*", "--out", tmp_path / "out")
    assert result.code == 0, result.err
    page = open_page(tmp_path / "out" / "report.html")
    assert page.locator("[data-output=m] tbody td:first-child").all_inner_texts() == ["age", "bmi", "<i>"]
    assert page.locator("[data-output=c] thead th").all_inner_texts() == ["", "age", "bmi", "<i>"]
    assert "bmi" in page.locator("[data-output=m] svg text").all_text_contents()
    check_looks(page)


def table_text(page, name, part=0):
    """The table of an output, or a further part of one that is wider than a page: its head and its rows."""
    article = page.locator(f"article[data-output={name}] table").nth(part)
    return (article.locator("thead th").all_inner_texts(),
            article.locator("tbody tr").evaluate_all("all => all.map(r => [...r.cells].map(c => c.innerText.trim()))"))


@pytest.fixture
def table_report(starfold, open_page, tmp_path):
    """The report of a program over two clients' tables."""
    random = np.random.default_rng(11)
    for client in ("north", "south"):
        age, bmi = random.integers(20, 90, 400), random.normal(26, 4, 400)
        died = random.random(400) < 1 / (1 + np.exp(-(age - 60) / 20))
        rows = "".join(f"{a},{b:.2f},{'fm'[i % 2]},{int(d)}\n" for i, (a, b, d) in enumerate(zip(age, bmi, died)))
        (tmp_path / f"{client}.csv").write_text("age,bmi,sex,died\n" + rows)

    def run(program, inputs, more=""):
        (tmp_path / "study.toml").write_text(
            f'program = "{program}"\n[inputs]\n{inputs}\n[categorical.sex]\nlevels = ["f", "m"]\n{more}'
            '[[client]]\nname = "north"\ndata = "north.csv"\n[[client]]\nname = "south"\ndata = "south.csv"\n')
        result = starfold("run", tmp_path / "study.toml", "--out", tmp_path / "out")
        assert result.code == 0, result.err
        return open_page(tmp_path / "out/report.html")

    return run


def test_report_of_a_regression(table_report, tmp_path):
    """One table of coefficients, with names; the plot leaves the intercept to it; the time is there."""
    page = table_report("logistic", 'x = ["age", "bmi", "sex"]\ny = "died"')
    head, rows = table_text(page, "beta")
    assert head == ["", "beta", "beta_lower", "beta_upper", "beta_se", "z", "p_value"]
    assert table_text(page, "beta", 1)[0] == ["", "odds_ratio", "odds_ratio_lower", "odds_ratio_upper"]
    assert [row[0] for row in rows] == ["(intercept)", "age", "bmi", "sex=m"]
    assert page.locator("[data-output=z], [data-output=p_value]").count() == 0  # in the same table
    assert page.locator("[data-output=beta] svg").count() == 2  # coefficients, and odds ratios by powers
    plot = page.locator("[data-output=beta] svg").first
    assert plot.locator("path.interval").count() == 3 and "(intercept)" not in plot.locator("text").all_text_contents()
    # Whiskers end where the interval does: places along the axis are linear in the numbers of the table.
    beta = json.loads((tmp_path / "out/outputs.json").read_text())
    low = [b - 1.96 * s for b, s in zip(beta["beta"]["data"], beta["beta_se"]["data"])][1:]
    high = [b + 1.96 * s for b, s in zip(beta["beta"]["data"], beta["beta_se"]["data"])][1:]
    drawn = plot.locator("path.interval").evaluate_all("all => all.map(p => p.getAttribute('d').match(/[\\d.]+/g).map(Number))")
    dots = plot.locator("circle").evaluate_all("all => all.map(c => Number(c.getAttribute('cx')))")
    slope, origin = np.polyfit(beta["beta"]["data"][1:], dots, 1)
    for (x1, _, x2, _), a, b in zip(drawn, low, high):
        assert abs(origin + slope * a - x1) < 0.5 and abs(origin + slope * b - x2) < 0.5
    assert page.locator("[data-trace=deviance] svg path.curve").count() == 1
    assert "Time: compiling " in page.locator("#rounds").inner_text()
    check_all_looks(page)


def test_report_of_correlations(table_report, tmp_path):
    page = table_report("correlation", 'x = ["age", "bmi", "sex", "died"]')
    names = ["age", "bmi", "sex=m", "died"]
    texts = page.locator("[data-output=correlation] svg text").all_text_contents()
    assert [texts.count(name) for name in names] == [2] * 4  # beside the rows and above the columns
    cells = page.locator("[data-output=correlation] svg rect title").all_text_contents()
    data = json.loads((tmp_path / "out/outputs.json").read_text())["correlation"]["data"]
    assert [(c.split(": ")[0], float(c.split(": ")[1])) for c in cells] == [
        (f"{a}, {b}", data[4 * i + j]) for i, a in enumerate(names) for j, b in enumerate(names)]
    check_all_looks(page)


def test_report_of_components(table_report):
    """Variances are a scree plot by number; directions have names along one axis only."""
    page = table_report("pca", 'x = ["age", "bmi", "sex"]')
    assert [row[0] for row in table_text(page, "variances")[1]] == ["1", "2", "3"]
    head, rows = table_text(page, "directions")
    assert head == ["", "1", "2", "3"] and [row[0] for row in rows] == ["age", "bmi", "sex=m"]
    heights = page.locator("[data-output=variances] svg").first.locator("circle").evaluate_all("all => all.map(c => Number(c.getAttribute('cy')))")
    assert len(heights) == 3 and heights == sorted(heights)  # from the largest, at the top
    check_all_looks(page)


def test_report_of_a_histogram(starfold, federation, open_page, tmp_path):
    (tmp_path / "h.fold").write_text("size bins = 4\ninput x : [*]\nlet edges = [0, 1, 2, 4, 8]\n"
                                     "output counts = sum[*](x[:, new] >= edges[1:4] and x[:, new] < edges[2:5])\noutput edges\n")
    data = federation({"a": {"x": [0.5, 0.5, 1.5, 3, 3, 3]}, "b": {"x": [5.0, 7]}})
    assert starfold("run", tmp_path / "h.fold", *data, "--out", tmp_path / "out").code == 0
    page = open_page(tmp_path / "out/report.html")
    bars = page.locator("[data-output=counts] svg rect.bar").evaluate_all(
        "all => all.map(r => ['x', 'width', 'height'].map(a => Number(r.getAttribute(a))))")
    heights, widths = [b[2] for b in bars], [b[1] + 1 for b in bars]
    np.testing.assert_allclose(np.array(heights) / heights[1], [2, 1, 3, 2], rtol=0.02)
    np.testing.assert_allclose(np.array(widths) / widths[0], [1, 1, 2, 4], rtol=0.02)
    assert page.locator("[data-output=counts] svg rect title").all_text_contents() == ["0 to 1: 2", "1 to 2: 1", "2 to 4: 3", "4 to 8: 2"]
    assert page.locator("[data-output=edges] svg").count() == 0  # they are the axis above
    check_all_looks(page)
