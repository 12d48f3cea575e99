"""The documentation page of the service in a real browser: nothing fails, and all can be read aloud."""

import shutil

import pytest

pytest.importorskip("fastapi")
driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here (apt-get install chromium)"),
]


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_is_whole_and_accessible(width: int) -> None:
    from crosscast.service.app import page

    options = "--no-sandbox --disable-gpu --no-first-run --disable-background-networking".split()
    with driver.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=options)
        shown = browser.new_page(viewport={"width": width, "height": 800})
        wrong, asked = list[str](), list[str]()
        shown.on("console", lambda message: wrong.append(message.text))
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on("request", lambda request: asked.append(request.url))
        shown.set_content(page(("/v1/models", "/health")))
        assert shown.title() == "Crosscast"
        assert shown.locator("h2").all_inner_texts() == [
            "POST /v1/predict",
            "POST /v1/choose",
            "POST /v1/colocate",
        ]
        assert "srad/small" in shown.locator("pre").first.inner_text()
        found = axe.Axe().run(shown)
        assert found.violations_count == 0, found.generate_report()
        assert shown.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert (wrong, asked) == ([], [])
        browser.close()
