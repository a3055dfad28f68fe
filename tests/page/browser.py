"""A headless Chromium, driven by selenium; and axe, which finds what people with other senses could not use."""
import os
import shutil
import subprocess
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
HERE = os.path.dirname(os.path.abspath(__file__))


def missing():
    """What is not installed, in words; nothing where all is."""
    lacks = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    try:
        import selenium # noqa: F401
    except ImportError:
        lacks.append("python3-selenium")
    return ", ".join(lacks)


def open_browser(width=1400, height=900, dark=False, still=False):
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--no-proxy-server", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    b = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    look(b, width, height, dark, still)
    return b


def look(b, width=1400, height=900, dark=False, still=False, mobile=False):
    """Size and tastes of whoever looks."""
    b.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile})
    b.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                                  {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}]})


def until(what, seconds=5.0, every=.03):
    """What it says as soon as it says something; nothing when the time is over. An element that was just replaced is asked again."""
    from selenium.common.exceptions import JavascriptException, StaleElementReferenceException
    end = time.monotonic() + seconds
    while True:
        try:
            if said := what():
                return said
        except (StaleElementReferenceException, JavascriptException):
            pass
        if time.monotonic() > end:
            return None
        time.sleep(every)


def computed_ms(b):
    """How long the threads that draw pages have computed, in milliseconds of processor time: what else runs on the machine is not in it."""
    import psutil
    driver = psutil.Process(b.service.process.pid)
    renderers = [p.pid for p in driver.children(recursive=True) if "--type=renderer" in p.cmdline()]
    total = 0
    for pid in renderers:
        with open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e6


def axe_source():
    """axe-core's own file, from the package of tests/page/axe.txt that ships it; nothing where it cannot be had."""
    found = subprocess.run([os.path.join(ROOT, "tools/frameworks"), os.path.join(HERE, "axe.txt")], capture_output=True, text=True)
    if found.returncode != 0:
        return None
    with open(os.path.join(found.stdout.strip(), "axe_playwright_python/axe.min.js"), encoding="utf-8") as f:
        return f.read()


def axe(b, source):
    """What axe finds wrong, a line each: all its rules, also those that it leaves out unless asked (experimental, AAA)."""
    if not b.execute_script("return typeof axe === 'object'"):
        b.execute_script(source)
    return b.execute_async_script("""
        const done = arguments[arguments.length - 1], rules = Object.fromEntries(axe.getRules().map((rule) => [rule.ruleId, {enabled: true}]));
        axe.run(document, {resultTypes: ["violations"], rules}).then((r) => done(r.violations.map((v) =>
            v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + n.html.slice(0, 160) + " " + n.failureSummary).join(" | "))), (e) => done([String(e)]));""")
