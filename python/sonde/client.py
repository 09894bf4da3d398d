"""A client of `sonde serve`: jobs, counts of events by function, benchmark results.

    from sonde.client import Client

    client = Client("http://127.0.0.1:10000")
    job = client.create(info="parser, new table")
    with client.batch(job) as batch:
        batch.count("app", "parse", {"cache-misses": 10, "cycles": 1200})
        batch.bench("app", {"real": 1.5})

A batch is sent once as a whole when its block ends; it has a key, so that sending it again after
a lost answer counts nothing twice, which is what `send` does by itself. Standard library alone.
"""

import json
import os
import secrets
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request

__all__ = ["Batch", "Client", "ServerError"]


class ServerError(Exception):
    """The server said no; `status` is that of HTTP, the text its own sentence."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Batch:
    """What is added to a job as one: all of it or nothing."""

    def __init__(self, client, job, key=None):
        self.client = client
        self.job = job
        self.key = key or secrets.token_hex(16)
        self.counts = []
        self.stacks = []
        self.results = []

    def count(self, executable, function, events):
        """Adds to the counts of a function: {"cache-misses": 10, ...}."""
        self.counts.append({"executable": executable, "function": function, "events": dict(events)})

    def stack(self, executable, frames, events):
        """The same of a whole stack, outermost frame first."""
        path = ";".join(frame.replace(";", ":") for frame in frames)
        self.stacks.append({"executable": executable, "stack": path, "events": dict(events)})

    def bench(self, name, run):
        """One run of a benchmark: {"real": 1.5, "cycles": 1200, ...}."""
        self.results.append({"name": name, "run": dict(run)})

    def send(self):
        """True if it was new, False if the server had it already."""
        return self.client.send(self)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.send()


class Client:
    """The server at `url` ($SONDE_SERVER), with `token` ($SONDE_TOKEN); `ca` ($SONDE_CA) is a file of
    certificates to trust."""

    def __init__(self, url=None, token=None, retries=5, timeout=30, ca=None):
        self.url = (url or os.environ.get("SONDE_SERVER") or "http://127.0.0.1:10000").rstrip("/")
        self.token = token or os.environ.get("SONDE_TOKEN")
        self.retries = retries
        self.timeout = timeout
        ca = ca or os.environ.get("SONDE_CA")
        self._tls = ssl.create_default_context(cafile=ca) if ca else None

    def create(self, info="", id=None):
        """Makes a job and returns its number: `id` (2001 to 9999), or the next free one."""
        wanted = {"info": info} if id is None else {"id": id, "info": info}
        return self._json("POST", "/api/jobs", wanted)["id"]

    def jobs(self):
        return self._json("GET", "/api/jobs")["jobs"]

    def job(self, id):
        return self._json("GET", f"/api/jobs/{id}")

    def remove(self, id):
        self._ask("DELETE", f"/api/jobs/{id}")

    def profile(self, id, event=None, top=None):
        """Rows like {"executable": ..., "function": ..., "events": {...}}, the largest first."""
        query = {key: value for key, value in (("event", event), ("top", top)) if value is not None}
        table = self._json("GET", f"/api/jobs/{id}/profile?{urllib.parse.urlencode(query)}")
        return [{"executable": row["executable"], "function": row["function"],
                 "events": dict(zip(table["columns"], row["values"]))} for row in table["rows"]]

    def bench(self, id):
        return self._json("GET", f"/api/jobs/{id}/bench")["runs"]

    def batch(self, id, key=None):
        return Batch(self, id, key)

    def send(self, batch):
        """Sends a batch until the server has it, or `retries` attempts have failed."""
        body = {"key": batch.key, "host": socket.gethostname(), "counts": batch.counts,
                "stacks": batch.stacks, "bench": batch.results}
        for attempt in range(self.retries + 1):
            try:
                answer = self._json("POST", f"/api/jobs/{batch.job}/batches", body)
                return not answer["duplicate"]
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                if attempt == self.retries:
                    raise
            except ServerError as refused:
                if refused.status not in (429, 503, 507) or attempt == self.retries:
                    raise
            time.sleep(min(0.1 * 2 ** attempt, 5))
        return False

    def _ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout, context=self._tls) as answer:
                return answer.read()
        except urllib.error.HTTPError as refused:
            raise ServerError(refused.code, _sentence(refused)) from None

    def _json(self, method, path, body=None):
        return json.loads(self._ask(method, path, body))


def _sentence(refused):
    try:
        return json.loads(refused.read())["error"]
    except (ValueError, KeyError):
        return f"status {refused.code}"
