"""A headless Chromium, driven over its debugging pipe: no ports, no libraries, no network.

    with Browser(tmp_path) as browser:
        page = browser.open(path)
        assert page.value("document.title") == "..."
        page.key("Escape")
"""

import json
import os
import pathlib
import select
import shutil
import subprocess
import time

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-extensions", "--window-size=1280,800", "--remote-debugging-pipe"]


def find():
    """The path of a Chromium, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    def __init__(self, folder, *flags):
        self.folder = pathlib.Path(folder) / "chromium"
        self.flags = flags
        self.number = 0
        self.events = []
        self.pending = b""

    def __enter__(self):
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        # Chromium reads commands on 3 and writes answers on 4.
        shell = f'exec "$0" "$@" 3<&{to_child} 4>&{from_child}'
        self.child = subprocess.Popen(
            ["/bin/bash", "-c", shell, find(), *FLAGS, *self.flags,
             f"--user-data-dir={self.folder}", "about:blank"],
            pass_fds=(to_child, from_child), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.child.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.child.kill()
            self.child.wait()
        os.close(self.out)
        os.close(self.into)

    def receive(self, deadline):
        while b"\0" not in self.pending:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise TimeoutError("Chromium did not answer")
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise OSError("Chromium has gone")
            self.pending += piece
        message, _, self.pending = self.pending.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, timeout=60, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, query="", wait="document.readyState === 'complete'"):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri() + query)
        page.until(wait)
        return page


class Page:
    def __init__(self, browser, session):
        self.browser = browser
        self.session = session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def value(self, expression):
        """What a JavaScript expression gives; the page's own policy does not bind it."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "threw"))
        return answer["result"].get("value")

    def until(self, expression, seconds=30):
        deadline = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"still not so: {expression}")
            time.sleep(0.05)

    def key(self, key, text=None):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def click(self, x, y):
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                      clickCount=1)

    def hover(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def complaints(self):
        """Uncaught exceptions, console errors and refused resources so far."""
        self.value("0")
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, parameters = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(parameters["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] == "error":
                found.append(str(parameters["args"]))
        return found

    def requests(self):
        """Addresses that the page asked for."""
        self.value("0")
        return [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("sessionId") == self.session
                and event["method"] == "Network.requestWillBeSent"]

    def dialogs(self):
        self.value("0")
        return [event["params"]["message"] for event in self.browser.events
                if event.get("sessionId") == self.session
                and event["method"] == "Page.javascriptDialogOpening"]

    def picture(self, path):
        import base64
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
