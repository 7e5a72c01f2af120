#!/usr/bin/env python3
"""The status page in a real browser, and the metrics before promtool: `make test-web`.

Starts the program with two models and a token file, sends both the same stream of predictions and labels, and looks at
the page through headless Chromium. Needs python3-selenium, chromium, chromium-driver and promtool as Debian packs them.
Ends everything it started; gives up after 90 seconds. Pictures go to out/; with PICTURES=DIRECTORY those that the README
shows go there, too (`make pictures`).
"""

import csv
import http.client
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FRESHET", str(ROOT / "build/release/apps/freshet/freshet"))
ADMIN, READER = "an-admin-of-this-test-0123", "a-reader-of-this-test-0123"
MODELS = ["fresh", "plus"]
PICTURES = os.environ.get("PICTURES", "")
DEADLINE = time.monotonic() + 90


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def said(process, beginning):
    """Waits until a program has said a line that begins so."""
    for line in process.stdout:
        if line.startswith(beginning):
            return
    raise RuntimeError("the server did not start")


class Server:
    """The program on a port of its own; may be stopped and started again."""

    def __init__(self, directory):
        self.directory, self.port, self.process = directory, free_port(), None
        rows = directory / "sea.csv"
        self.program("data", "generate", "--kind", "sea", "--rows", "8000", "--drift-rows", "8000", "-o", rows)
        with open(rows, encoding="utf-8") as file:
            self.rows = [[float(value) for value in row] for row in list(csv.reader(file))[1:]]
        self.program("train", rows, "-o", directory / "start.model", "--quiet")
        tokens = directory / "tokens"
        tokens.write_text(f"admin {ADMIN}\npredict {READER}\n", encoding="utf-8")
        tokens.chmod(0o600)

    def program(self, *arguments):
        subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, timeout=30)

    def start(self):
        at = self.directory
        with open(at / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [PROGRAM, "serve", f"fresh:continuous={at}/start.model", f"plus:baseline+={at}/start.model",
                 "--state", at / "state", "--tokens", at / "tokens", "--listen", f"127.0.0.1:{self.port}",
                 "--buffer", "500", "--version-rows", "2000", "--threads", "2"],
                stdout=subprocess.PIPE, stderr=log, text=True)
        said(self.process, "serving")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def ask(self, path, token=ADMIN):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def json(self, path):
        return json.loads(self.ask(path)[1])


class Stream(threading.Thread):
    """Asks both models for predictions and sends the labels after, 400 rows a second; outlives a server that stops."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.ended, self.turned = server, threading.Event(), threading.Event()

    def run(self):
        connection, sent, batch = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=5), 0, 20
        while not self.ended.wait(0.05):
            at = sent % (len(self.server.rows) - batch)
            rows = self.server.rows[at:at + batch]
            turned = self.turned.is_set()  # another concept: every label is the opposite of what it was
            x = {"name": "x", "shape": [batch, 3], "datatype": "FP32", "data": [v for row in rows for v in row[:3]]}
            labels = [int(row[3]) ^ turned for row in rows]
            y = {"name": "labels", "shape": [batch], "datatype": "INT64", "data": labels}
            try:
                for model in MODELS:
                    self.post(connection, f"/v2/models/{model}/infer", {"inputs": [x]})
                    self.post(connection, f"/v2/models/{model}/learn", {"inputs": [x, y]})
                sent += batch
            except (OSError, http.client.HTTPException):
                connection.close()  # the next request opens it again
        connection.close()

    @staticmethod
    def post(connection, path, body):
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {ADMIN}"}
        connection.request("POST", path, json.dumps(body), headers)
        connection.getresponse().read()


def new_browser():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]:
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    browser.set_page_load_timeout(20)
    return browser


class StatusPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="freshet-web-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, ignore_errors=True)
        cls.server = Server(cls.directory)
        cls.server.start()
        cls.addClassCleanup(cls.server.stop)
        cls.stream = Stream(cls.server)
        cls.stream.start()
        cls.addClassCleanup(lambda: (cls.stream.ended.set(), cls.stream.join(10)))
        cls.browser = new_browser()
        cls.addClassCleanup(cls.browser.quit)
        cls.address = f"http://127.0.0.1:{cls.server.port}/"

    def setUp(self):
        self.expected = []  # what the console may complain of
        self.size(1280, 900, "light")
        self.browser.get(self.address)
        self.browser.execute_script("sessionStorage.setItem('freshet-token', arguments[0])", ADMIN)
        self.browser.get_log("browser")
        self.browser.get(self.address)

    # The page asks nobody but its server, and its console stays clean.
    def tearDown(self):
        asked = self.browser.execute_script(
            "return [location.href, ...performance.getEntriesByType('resource').map(e => e.name)]")
        places = {urlsplit(url).netloc for url in asked if not url.startswith("data:")}
        self.assertEqual(places, {urlsplit(self.address).netloc})
        complaints = [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] != "INFO"]
        self.assertEqual([c for c in complaints if not any(text in c for text in self.expected)], [])

    def until(self, condition, what):
        left = max(0.1, min(20, DEADLINE - time.monotonic()))
        return WebDriverWait(self.browser, left, poll_frequency=0.2).until(lambda _: condition(), f"never saw {what}")

    def size(self, width, height, scheme):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                     {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    # In one go: the page draws parts of itself anew all the time, and an element found before may be gone.
    def text(self, selector):
        return self.browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)

    def attribute(self, selector, name):
        return self.browser.execute_script(
            "return document.querySelector(arguments[0])?.getAttribute(arguments[1]) ?? ''", selector, name)

    def level(self, answer):
        return self.attribute(f"#{answer}", "data-level")

    def press(self, selector):
        self.browser.execute_script("document.querySelector(arguments[0]).click()", selector)

    def answer_of_server(self, beginning):
        return self.until(lambda: self.text("#said-text").startswith(beginning) and self.text("#said-text"), beginning)

    def kept(self, model="fresh"):
        return self.server.json(f"/v2/models/{model}/versions")["versions"]

    def test_answers_at_once_whether_it_is_healthy_learning_and_serving(self):
        for answer in ["health", "learning", "serving"]:
            self.until(lambda answer=answer: self.level(answer) == "good", f"good {answer}")
        self.assertEqual(self.text("#health .big"), "Healthy")
        self.assertRegex(self.text("#learning .big"), r"^[\d,.]+/s$")
        self.assertRegex(self.text("#serving .big"), r"^[\d,.]+/s$")
        self.assertRegex(self.text("#serving .more"), r"^99 % within [\d.]+ m?s")
        self.until(lambda: "%" in self.browser.title, "the error in the title")

    def test_draws_a_line_a_model_that_moves(self):
        def line(model):
            return self.attribute(f"path.line[data-model={model}]", "d")

        def both():
            return [line(model) for model in MODELS] + [self.text(f"[data-model={model}] .error") for model in MODELS]

        self.until(lambda: all(line(model).count("L") >= 3 for model in MODELS), "two lines")
        first = both()
        self.until(lambda: all(now != then for now, then in zip(both(), first)), "lines and numbers that move")
        labels = self.browser.execute_script(
            "return [...document.querySelectorAll('svg text.name')].map(label => label.textContent)")
        self.assertEqual(sorted(labels), MODELS)
        self.press("[data-value=AUC]")
        self.until(lambda: self.find("[data-measure=AUC] path.line"), "the area under the curve")
        self.press("[data-value='error rate']")
        self.until(lambda: self.find("[data-measure='error rate'] path.line"), "the error again")
        self.assertIn("plus (baseline+)", self.attribute(".chart svg", "aria-label"))
        self.until(lambda: self.find("[data-lane=fresh] .tick"), "ticks of iterations")
        self.until(lambda: self.find("[data-lane=fresh] .kept"), "ticks of versions")

    def test_tells_how_good_probabilities_and_classes_are(self):
        self.until(lambda: self.text("[data-model=fresh] [data-class='1']"), "figures of a class")
        shares = [self.text(f"[data-model=fresh] [data-class='{name}'] td:nth-child(2)") for name in "01"]
        self.assertAlmostEqual(sum(float(share.rstrip(" %")) for share in shares), 100, delta=.3)
        self.assertRegex(self.text(".model[data-model=fresh]"), r"AUC0\.\d{3}log loss 0\.\d+")

    def test_says_that_there_is_nothing_yet_between_the_axes_of_a_phone(self):
        port = free_port()
        with subprocess.Popen([PROGRAM, "serve", "--cold", "quiet", "--features", "3", "--state",
                               self.directory / "quiet", "--listen", f"127.0.0.1:{port}", "--threads", "1"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            try:
                said(process, "serving")
                self.address = f"http://127.0.0.1:{port}/"
                self.size(360, 740, "light")
                self.browser.get(self.address)
                self.until(lambda: self.find("svg .empty"), "that there is nothing yet")
                axis, *texts = self.browser.execute_script(
                    "return ['line.grid', ...document.querySelectorAll('svg .empty')].map(what =>"
                    " (what.getBoundingClientRect ? what : document.querySelector(what)).getBoundingClientRect())"
                    ".map(box => [box.left, box.right])")
                for left, right in texts:
                    self.assertGreaterEqual(left, axis[0])
                    self.assertLessEqual(right, 360)
            finally:
                process.terminate()

    def test_the_chart_tells_more_where_the_keyboard_points(self):
        self.until(lambda: self.find("svg text.name"), "a chart")
        chart = self.find(".chart svg")[0]
        chart.send_keys(Keys.ARROW_LEFT)
        self.until(lambda: "version" in self.text(".tip"), "what was known then")
        chart.send_keys(Keys.ESCAPE)
        self.until(lambda: not self.find(".tip")[0].is_displayed(), "the tip go")

    def test_marks_a_change_of_concept_as_drift(self):
        self.until(lambda: self.server.json("/v2/models/fresh/stats")["quality"]["rows"] > 2500, "enough rows")
        self.stream.turned.set()
        self.until(lambda: self.find("[data-drift=fresh]") and self.find("[data-drift=plus]"), "marks of drift")
        self.stream.turned.clear()
        self.assertGreater(self.server.json("/v2/models/fresh/stats")["training"]["drifts"], 0)
        self.until(lambda: self.server.json("/v2/models/fresh/stats")["quality"]["rows"] > 6000, "it recover")
        self.take_pictures()

    def take_pictures(self):
        (ROOT / "out").mkdir(exist_ok=True)
        for (width, height), scheme in itertools.product([(1280, 900), (420, 800)], ["light", "dark"]):
            self.size(width, height, scheme)
            self.until(lambda width=width: width - 100 < self.width_of_chart() < width, "the chart drawn anew")
            wide = self.browser.execute_script("return document.documentElement.scrollWidth")
            self.assertLessEqual(wide, width, "nothing sticks out to the right")
            self.assertTrue(self.browser.save_screenshot(str(ROOT / f"out/status-page-{width}-{scheme}.png")))
        if PICTURES:
            self.size(1100, 860, "light")
            self.until(lambda: 1000 < self.width_of_chart() < 1100, "the chart drawn anew")
            self.assertTrue(self.browser.save_screenshot(os.path.join(PICTURES, "status-page.png")))

    def width_of_chart(self):
        return self.browser.execute_script("return document.querySelector('.chart svg').viewBox.baseVal.width")

    def test_rolls_back_when_that_is_confirmed(self):
        self.until(lambda: self.find(".roll-back"), "versions")
        row = "tr[data-version='0']"  # the start, which is pinned and so does not go away
        before = self.server.json("/v2/models/fresh/stats")["training"]["roll_backs"]
        self.press(f"{row} .roll-back")
        self.until(lambda: self.find("#ask[open]"), "the question")
        self.assertEqual(self.text("#ask-title"), "Roll fresh back to version 0?")
        self.press("#ask-no")
        self.until(lambda: not self.find("#ask[open]"), "the question go")
        self.assertEqual(self.server.json("/v2/models/fresh/stats")["training"]["roll_backs"], before)
        self.press(f"{row} .roll-back")
        self.press("#ask-yes")
        self.assertEqual(self.answer_of_server("fresh: rolled back to"), "fresh: rolled back to version 0.")
        self.assertEqual(self.server.json("/v2/models/fresh/stats")["training"]["roll_backs"], before + 1)
        self.until(lambda: any(v["origin"] == "roll-back" for v in self.kept()), "a version of the roll-back")
        self.assertEqual([v["learned"] for v in self.kept() if v["origin"] == "roll-back"][-1], 0)
        self.until(lambda: self.find("[data-back=fresh]"), "its mark in the chart")

    def test_pins_a_version_and_lists_those_of_another_model(self):
        self.press_when_there("[data-tab=plus]")
        self.until(lambda: self.text("#rows tr .v") == self.kept("plus")[-1]["version"], "the versions of plus")
        self.press("tr[data-version='0'] .pin-it")  # it was pinned
        self.answer_of_server("plus: unpinned version 0.")
        self.assertFalse(self.kept("plus")[0]["pinned"])
        self.until(lambda: self.text("tr[data-version='0'] .pin-it") == "Pin", "it unpinned")
        self.press("tr[data-version='0'] .pin-it")
        self.answer_of_server("plus: pinned version 0.")
        self.assertTrue(self.kept("plus")[0]["pinned"])

    def press_when_there(self, selector):
        self.until(lambda: self.find(selector), selector)
        self.press(selector)

    def test_asks_for_a_token_and_for_a_larger_one(self):
        self.expected = ["status of 401", "status of 403"]
        self.until(lambda: self.find(".roll-back"), "versions")
        self.press("#token-open")
        self.press("#token-forget")
        self.until(lambda: self.text("#link") == "a token is needed", "that it is locked")
        self.assertIn("token needed", self.browser.title)
        self.find("#token-text")[0].send_keys("not one of them at all", Keys.ENTER)
        self.until(lambda: "does not take" in self.text("#token-why"), "that it is wrong")
        self.find("#token-text")[0].send_keys(READER, Keys.ENTER)
        self.until(lambda: self.text("#link").startswith("live"), "that it is live")
        self.assertFalse(self.find("#token")[0].is_displayed())
        self.press_when_there("tr[data-version='0'] .roll-back")
        self.press("#ask-yes")
        self.assertIn("larger scope", self.answer_of_server("fresh: the server refused."))
        self.assertTrue(self.find("#token")[0].is_displayed())

    def test_says_that_the_connection_is_lost_and_finds_the_server_again(self):
        self.expected = ["net::ERR"]
        self.until(lambda: self.level("health") == "good", "health")
        icon = self.attribute("#icon", "href")
        began = self.server.json("/v2/models/fresh/history")[0]["t"]
        self.server.stop()
        self.until(lambda: "connection lost" in self.browser.title, "that the connection is lost")
        self.until(lambda: self.text("#health .big") == "Lost", "that it is lost")
        self.assertRegex(self.text("#link"), r"trying again in \d+ s")
        self.assertNotEqual(self.attribute("#icon", "href"), icon)
        self.server.start()
        self.until(lambda: self.level("health") == "good" and self.level("serving") == "good", "that it is back")
        self.assertNotIn("lost", self.browser.title)
        history = self.server.json("/v2/models/fresh/history")
        self.assertLess(history[0]["t"], began + 12, "it knows what was before it stopped")
        self.assertIsNone(history[0]["p99_seconds"])

    def test_names_no_other_place_and_says_something_without_scripts(self):
        status, page = self.server.ask("/", token=None)
        self.assertEqual(status, 200)
        self.assertLess(len(page.encode()), 60_000)
        self.assertIn("<noscript>", page)
        self.assertNotIn("innerHTML", page)
        self.assertNotRegex(page.replace("http://www.w3.org/2000/svg", ""), "https?://")  # that is a name, not a place

    def test_promtool_has_nothing_to_say_about_the_metrics(self):
        status, metrics = self.server.ask("/metrics")
        self.assertEqual(status, 200)
        self.assertIn("freshet_predictions_total", metrics)
        checked = subprocess.run(["promtool", "check", "metrics"], input=metrics, text=True, capture_output=True,
                                 timeout=20, check=False)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))


class ReplayPicture(unittest.TestCase):
    """What `freshet replay --curve` draws."""

    def test_fits_into_its_frame(self):
        with tempfile.TemporaryDirectory(prefix="freshet-replay-") as at:
            subprocess.run([PROGRAM, "data", "generate", "--kind", "sea", "--rows", "60000", "-o", f"{at}/sea.csv"],
                           check=True, timeout=30)
            subprocess.run([PROGRAM, "replay", f"{at}/sea.csv", "--compare", "baseline,baseline+,velox,continuous",
                            "--quiet", "--curve", f"{at}/replay.svg"],
                           check=True, timeout=60, stdout=subprocess.DEVNULL)
            if PICTURES:
                shutil.copy(f"{at}/replay.svg", os.path.join(PICTURES, "replay.svg"))
            browser = new_browser()
            try:
                browser.get(f"file://{at}/replay.svg")
                width, height, boxes = browser.execute_script(
                    "const frame = document.documentElement; return [frame.width.baseVal.value,"
                    " frame.height.baseVal.value, [...document.querySelectorAll('text, polyline')].map(one => {"
                    " const box = one.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]; })]")
            finally:
                browser.quit()
            self.assertGreater(len(boxes), 15)
            for left, top, right, bottom in boxes:
                self.assertTrue(left >= 0 and top >= 0 and right <= width and bottom <= height,
                                (left, top, right, bottom))


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    unittest.main(verbosity=2)
