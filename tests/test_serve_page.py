"""The page to try a model, in a real Chromium: it shows what the service returns."""

import re
import shutil

import pytest
from serving import MODELS, TEXTS, serving, wait_for

import symsvm

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A function that opens a page in a Chromium with an empty profile."""
    driver = pytest.importorskip("playwright.sync_api", reason="the page is tested with playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium in PATH (Debian: apt-get install chromium)")
    with driver.sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=chromium, args=FLAGS
        )
        context.set_default_timeout(20_000)
        yield context
        context.close()


@pytest.fixture
def tab(browser):
    """A tab that fails the test on errors of the page and on requests to other machines."""
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.on("request", lambda request: request.url.startswith("http://127.0.0.1:") or errors.append(request.url))
    page.errors = errors
    yield page
    page.close()
    assert not errors


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Services by the name of the model."""
    path = tmp_path_factory.mktemp("models")
    for name in ("text", "numbers"):
        symsvm.save(MODELS[name](), path / f"{name}.symsvm")
    with serving(path / "text.symsvm") as text, serving(path / "numbers.symsvm", token="sesame") as numbers:
        yield {"text": text, "numbers": numbers}


def number(text):
    """The number of a cell."""
    return float(text.replace("\u2212", "-").replace(" %", ""))


def test_a_post(tab, served):
    client = served["text"]
    tab.goto(str(client.base_url))
    tab.get_by_label("Text").fill(TEXTS[1])
    tab.get_by_role("button", name="Predict").click()
    result = client.post("/v1/explain", json={"text": TEXTS[1], "terms": 12}).json()
    tab.wait_for_selector("#why:not([hidden])")
    assert result["prediction"]["label"] in tab.get_by_role("status").inner_text()
    rows = tab.locator("#prediction tbody tr").all_inner_texts()
    assert [row.split("\t")[0].strip() for row in rows] == [c["name"] for c in result["prediction"]["classes"]]
    for row, c in zip(rows, result["prediction"]["classes"], strict=True):
        assert number(row.split("\t")[-1]) == pytest.approx(100 * c["proba"], abs=0.051)
    (decision,) = result["decisions"]
    words = tab.locator("#decision tbody tr th").all_inner_texts()
    assert words == [term["name"] for term in decision["terms"]]
    numbers = tab.locator("#decision td.number:last-child").all_inner_texts()
    assert number(numbers[-1]) == pytest.approx(decision["decision"], abs=1e-3)
    assert sum(map(number, numbers[:-1])) == pytest.approx(number(numbers[-1]), abs=2e-3)
    assert "optimal" in tab.locator("#certificate").inner_text()


def test_numbers_by_keyboard_and_with_a_token(tab, served):
    client = served["numbers"]
    tab.goto(str(client.base_url))
    tab.get_by_label("Access token").fill("sesame")
    tab.wait_for_selector("[role=alert]:not([hidden])")
    tab.keyboard.press("Tab")
    tab.get_by_label("x0").fill("6.0")
    for value in ("2.9", "a lot", "1.5"):
        tab.keyboard.press("Tab")
        tab.keyboard.type(value)
    tab.keyboard.press("Control+Enter")
    tab.wait_for_selector("#x2[aria-invalid=true]")
    assert tab.get_by_role("alert").inner_text() == "x2 must be a number."
    assert tab.evaluate("document.activeElement.id") == "x2"
    tab.get_by_label("x2").fill("4.6")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#why:not([hidden])")
    assert tab.get_by_role("alert").count() == 0
    assert "versicolor" in tab.get_by_role("status").inner_text()
    tab.get_by_label("Decision between").select_option("versicolor against virginica")
    rows = tab.locator("#decision tbody tr th").all_inner_texts()
    assert all(re.fullmatch(r"training row \d+ \((versicolor|virginica)\)", row) for row in rows)
    tab.errors[:] = [line for line in tab.errors if "401" not in line]  # Chromium reports the first response


def test_a_model_that_is_replaced(tab, tmp_path):
    path = tmp_path / "model.symsvm"
    symsvm.save(MODELS["text"](), path)
    with serving(path, reload=0.02) as client:
        tab.goto(str(client.base_url))
        before = client.get("/v1/model").json()["digest"]
        tab.get_by_text(before[:12]).wait_for()
        symsvm.save(MODELS["plain text"](), path)
        wait_for(lambda: client.get("/readyz").json()["model"] != before)
        tab.get_by_label("Text").fill(TEXTS[1])
        tab.get_by_role("button", name="Predict").click()
        tab.get_by_text(client.get("/v1/model").json()["digest"][:12]).wait_for()
        assert "Decision value" in tab.locator("#prediction thead").inner_text()  # no probabilities any more


def test_the_api_is_shown(tab, served):
    tab.goto(f"{served['text'].base_url}/docs")
    tab.get_by_text("Predict the newsgroup of a post").wait_for()
    paths = set(served["text"].get("/openapi.json").json()["paths"])
    assert paths == set(tab.locator("h2 code").all_inner_texts())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_both_schemes_and_no_overflow_of_narrow_pages(tab, served, scheme):
    """A contrast of at least 4.5, as the WCAG require, and no sideways scrolling at 320 pixels."""
    tab.emulate_media(color_scheme=scheme)
    tab.set_viewport_size({"width": 320, "height": 600})
    tab.goto(str(served["text"].base_url))
    tab.get_by_label("Text").fill(TEXTS[1])
    tab.keyboard.press("Control+Enter")
    tab.wait_for_selector("#why:not([hidden])")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 320
    cut = "[...document.querySelectorAll('.scroll')].filter((part) => part.scrollWidth > part.clientWidth).length"
    assert tab.evaluate(cut) == 0  # numbers are not cut off
    assert tab.evaluate(CONTRAST) >= 4.5
    unnamed = "[...document.querySelectorAll('input, textarea, select')].filter((f) => !f.labels.length).length"
    assert tab.evaluate(unnamed) == 0


# The least contrast between a text and its background.
CONTRAST = """() => {
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const numbers = (text) => text.match(/[0-9.]+/g).map(Number);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const c = numbers(getComputedStyle(node).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const node of document.querySelectorAll("body *")) {
    const words = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!words || !node.checkVisibility()) continue;
    const [a, b] = [light(numbers(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    least = Math.min(least, (a + 0.05) / (b + 0.05));
  }
  return least;
}"""
