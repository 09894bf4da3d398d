"""A client of a live session: requests with the token, the stream of events, and the page's document
(docs/PAGE.md) put together from a whole one and deltas, so that its sums can be compared."""

import base64
import http.client
import json
import re
import struct
import urllib.parse

from runs import wait_until


def unpack(data):
    """(head, columns) of a document."""
    assert data[:4] == b"SPD1", data[:40]
    (length,) = struct.unpack("<I", data[4:8])
    head = json.loads(data[8:8 + length])
    at, columns = 8 + length, {}
    for column in head["columns"]:
        columns[column["name"]] = numbers(data[at:at + column["bytes"]], column)
        at += column["bytes"]
    return head, columns


def numbers(data, column):
    rows, value, shift, last = [], 0, 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte & 128:
            continue
        if column["coding"] != "plain":
            value = value >> 1 ^ -(value & 1)
        if column["coding"] == "delta":
            last = value = last + value
        rows.append(value)
        value = shift = 0
    assert len(rows) == column["rows"], column
    return rows


class Document:
    """What a page knows: cells by (event, thread, stack)."""

    def __init__(self, data):
        self.head, self.cells, self.events = None, {}, {}
        self.sequence = None
        self.add(data, whole=True)

    def add(self, data, whole=False):
        head, columns = unpack(data)
        assert head["delta"] != whole
        assert whole or head["sequence"] == self.sequence + 1, (head["sequence"], self.sequence)
        self.sequence, self.head = head["sequence"], head
        for event, thread, stack, count, value in zip(
                *(columns["cell." + name] for name in ("event", "thread", "stack", "count", "value"))):
            cell = self.cells.setdefault((event, thread, stack), [0, 0])
            cell[0] += count
            cell[1] += value + count * head["events"][event]["period"]

    def sums(self):
        """{event: (count, value)}, modulo 2^64 as in the recording."""
        sums = {}
        for (event, _, _), (count, value) in self.cells.items():
            name = self.head["events"][event]["name"]
            before = sums.get(name, (0, 0))
            sums[name] = ((before[0] + count) % 2**64, (before[1] + value) % 2**64)
        return sums


class Session:
    """A `sonde run --live` or `attach --live` that was started with stderr going to a file."""

    def __init__(self, process, stderr, recording):
        self.process, self.stderr, self.path = process, stderr, recording
        wait_until(lambda: process.poll() is not None or "live at" in stderr.read_text())
        found = re.search(r"live at http://([^:]+):(\d+)/\?token=(\S+)", stderr.read_text())
        assert found, stderr.read_text()
        self.host, self.port, self.token = found[1], int(found[2]), found[3]

    def ask(self, method, path, body=None, token=True, headers=()):
        """(status, bytes)"""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        headers = dict(headers)
        if token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data

    def get(self, path):
        status, data = self.ask("GET", path)
        assert status == 200, (path, status, data[:300])
        return data

    def view(self, name, **query):
        return json.loads(self.get(f"/api/views/{name}?{urllib.parse.urlencode(query)}"))

    def order(self, **command):
        status, data = self.ask("POST", "/api/control", json.dumps(command))
        answer = json.loads(data)
        assert answer["ok"] == (status == 200), (status, answer)
        return answer

    def document(self):
        status = 503
        while status == 503:
            status, data = self.ask("GET", "/api/snapshot")
        return Document(data)

    def events(self, **how):
        return Events(self, **how)

    def end(self, timeout=60):
        assert self.process.wait(timeout) is not None
        return self.process.returncode


class Events:
    """The stream, read line by line."""

    def __init__(self, session, start=None, last=None):
        self.connection = http.client.HTTPConnection(session.host, session.port, timeout=60)
        headers = {"Authorization": f"Bearer {session.token}"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        query = "" if start is None else f"?from={start}"
        self.connection.request("GET", "/api/events" + query, headers=headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        assert self.answer.getheader("Content-Type") == "text/event-stream"

    def __iter__(self):
        """(id, event, data), until the other side closes."""
        fields = {}
        while True:
            line = self.answer.readline()
            if not line:
                return
            line = line.decode().rstrip("\n")
            if line.startswith(":"):
                continue
            if line:
                key, _, value = line.partition(": ")
                fields[key] = value
            elif fields:
                yield int(fields["id"]), fields["event"], fields["data"]
                fields = {}

    def follow(self, document, until=None):
        """Adds deltas to the document; stops at the end, or when `until` so many have come."""
        for number, event, data in self:
            if event == "delta":
                document.add(base64.b64decode(data))
                assert document.sequence == number
                if until is not None:
                    until -= 1
                    if until == 0:
                        return event
            else:
                return event
        return None

    def close(self):
        self.answer.close()
        self.connection.close()
