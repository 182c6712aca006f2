"""A real browser, driven through a pipe: what the pages do when somebody uses them."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time

import pytest


_ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
)  # fmt: skip
_PATIENCE_S = 60.0


class Browser:
    """One page of a headless Chromium. It speaks the DevTools protocol over two pipes: JSON, ended by a zero byte."""

    def __init__(self, program, profile):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The browser expects its ends of the pipes at the descriptors 3 and 4.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "browser", program, *_ARGUMENTS, f"--user-data-dir={profile}"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers, self._pending, self.events, self._session = itertools.count(1), b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        """End the browser."""
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)

    def call(self, method, **parameters):
        """Send a command and return its result; events that come meanwhile are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        """Wait for an event."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self):
        end = time.monotonic() + _PATIENCE_S
        while b"\0" not in self._pending:
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            received = os.read(self._read, 1 << 16)
            assert received, "the browser went away"
            self._pending += received
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)

    def open(self, path, width=1100, height=900, dark=False, script=True):
        """Open a file in a window of a size in CSS pixels."""
        self.events.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.media("screen", dark)
        self.call("Page.navigate", url=path.as_uri())
        self.wait_for("Page.loadEventFired")

    def media(self, kind, dark=False):
        """Show the page as on a screen or on paper, in a dark or a light scheme."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=kind, features=[scheme])

    def value(self, expression):
        """Evaluate JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key):
        """Press and release a key."""
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9}
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def screenshot(self, path):
        """Write a picture of the whole page."""
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True, format="png")
        path.write_bytes(base64.b64decode(picture["data"]))

    def paper(self):
        """Return the page as a PDF file."""
        self.call("Emulation.setEmulatedMedia", media="")
        printed = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(printed["data"])

    @property
    def requests(self):
        """Addresses that the page asked for."""
        events = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in events]

    @property
    def complaints(self):
        """What stands on the console."""
        kinds = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [event for event in self.events if event.get("method") in kinds]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser for the tests of one module; skips where none is installed."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("Chromium is not installed: the pages are checked by parsing only")
    one = Browser(program, tmp_path_factory.mktemp("profile"))
    yield one
    one.close()
