"""`sonde run --live` and `attach --live`: what viewers get, what commands do, who is let in, and that
the target notices none of it."""

import contextlib
import json
import os
import resource
import signal
import socket
import threading
import time

import pytest

from live import Session
from runs import wait_until

BLOCK = 65536


@pytest.fixture
def live(started, sonde_path, tmp_path):
    """live(program, ...) -> Session"""
    def start(*command, options=(), mode="run", name="live.sonde"):
        path, errors = tmp_path / name, tmp_path / (name + ".err")
        with open(errors, "w", encoding="utf-8") as file:
            words = [*command] if mode == "attach" else ["--", *command]
            process = started([sonde_path, mode, "--live", "-o", path, *options, *words],
                              stderr=file, start_new_session=True)
        groups.append(process.pid)
        return Session(process, errors, path)
    groups = []
    yield start
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def test_a_viewer_that_leaves_and_returns_misses_nothing(live, target, recording):
    session = live(target("grows"), 5, 2, options=["--heap"])
    document = session.document()
    first = session.events(start=document.sequence)
    assert first.follow(document, until=1) == "delta"
    first.close()
    seen = document.sequence
    time.sleep(1.5)  # away
    again = session.events(last=seen)
    assert again.follow(document) == "end"
    again.close()
    assert session.end() == 0
    kept = int(session.process.stdout.read())
    report = recording(session.path).report()
    totals = report.facts("totals")
    sums = document.sums()
    assert sums["cpu"] == (totals["samples"], totals["value_recorded"])
    assert document.head["meta"]["complete"]
    heap = recording(session.path).report("--event", "heap:live").facts("totals")
    assert sums["heap:live"][1] == heap["value_recorded"]
    sites = recording(session.path).report("--event", "heap:live", "--top", "0").rows("functions")
    grown = next(row for row in sites if row["name"] == "site_grow")
    assert (grown["total"], grown["total_samples"]) == (kept * BLOCK, kept)


def test_a_viewer_that_comes_late_gets_the_same(live, target, recording):
    session = live(target("grows"), 3, options=["--live-linger", "3s"])
    early = session.document()
    assert session.events(start=early.sequence).follow(early) == "end"
    late = session.document()  # the recording has ended, the page is still there
    assert late.sums() == early.sums()
    assert session.events(start=late.sequence).follow(late) == "end"
    assert session.end() == 0
    totals = recording(session.path).report().facts("totals")
    assert late.sums()["cpu"] == (totals["samples"], totals["value_recorded"])


def test_who_was_away_too_long_is_told_to_start_over(live, target):
    session = live(target("grows"), 120)
    session.document()
    (_, event, _) = next(iter(session.events(last=9999)))
    assert event == "reset"


def test_views_while_it_runs_have_names_and_shares(live, target):
    session = live(target("shares"), 60000000)
    wait_until(lambda: session.ask("GET", "/api/views/functions?top=5")[0] == 200)

    def names():
        rows = session.view("functions", top=20, sort="total")["sections"]["functions"]["rows"]
        shares = {row["name"]: row["total_percent"] for row in rows}
        assert len(shares) == len(rows), rows  # each once, however it got its name
        return shares
    wait_until(lambda: "most" in names() and "main" in names())
    wait_until(lambda: json.loads(session.get("/api/status"))["samples"] > 1000)
    shares = names()
    assert abs(shares["most"] - 60) < 8, shares
    status, data = session.ask("GET", "/api/views/nothing")
    assert status == 404 and "there is no view 'nothing'" in json.loads(data)["error"]
    status, data = session.ask("GET", "/api/views/functions?pid=x")
    assert status == 400 and json.loads(data)["status"] == 400


ROUTES = ["/", "/page.js", "/api/snapshot", "/api/events", "/api/status", "/api/views/functions",
          "/api/recording", "/api/nothing"]


def test_every_route_needs_the_token(live, target):
    session = live(target("grows"), 120)
    for route in ROUTES:
        check_guards(session, route)
    status, _ = session.ask("POST", "/api/control", "{}", token=False)
    assert status == 401


def check_guards(session, route):
    for headers in ({}, {"Authorization": "Bearer nonsense"}, {"Cookie": "sonde=1"}):
        status, data = session.ask("GET", route, token=False, headers=headers)
        assert status == 401, (route, headers, data)
        assert "token" in json.loads(data)["error"]
    for headers in ({"Host": "evil.example"}, {"Host": "127.0.0.1.evil.example"}):
        assert session.ask("GET", route, headers=headers)[0] == 421
    assert session.ask("GET", route, headers={"Origin": "http://evil.example"})[0] == 403


KEEPER = """
import functools, time
kept = []
def grow(_):
    kept.append(bytearray(100000))
    return _
def fill():
    functools.reduce(lambda a, _: grow(a), range(10))
for _ in range(600):
    fill()
    time.sleep(0.05)
"""


def test_who_holds_memory_is_told_without_the_interpreters_ways(live):
    """`sonde top` shows the same stacks as the page and the finished recording."""
    session = live("/usr/bin/python3", "-c", KEEPER, options=["--heap"])
    session.document()

    def frames():
        for stack in json.loads(session.get("/api/top"))["heap"]["stacks"]:
            named = not any(name.startswith("python3") for name in stack["frames"])  # those come a little later
            if named and {"grow", "<module>"} <= set(stack["frames"]):
                return stack["frames"]
        return None
    wait_until(frames)
    told = frames()
    python = [name for name in told if name in ("grow", "fill.<locals>.<lambda>", "fill", "<module>")]
    assert python == ["grow", "fill.<locals>.<lambda>", "fill", "<module>"]
    assert not [name for name in told[1:] if name.startswith(("_PyFunction_", "_PyObject_", "_PyEval_", "PyObject_Call"))], told


def test_commands_do_what_they_say(live, target, recording, sonde):
    session = live(target("grows"), 15, 1, options=["--heap"])
    session.document()

    def status():
        return json.loads(session.get("/api/status"))["session"]
    wait_until(lambda: (status() or {}).get("heap"))  # its agent is there
    wait_until(lambda: json.loads(session.get("/api/top"))["heap"]["bytes"] > 2 * BLOCK)  # and met some
    assert session.order(command="mark", text="here <b>\nnow")["ok"]
    taken = session.order(command="snapshot", what="heap")
    assert taken["ok"] and "heap:snapshot-1" in taken["text"], taken
    assert session.order(command="stop", what="cpu")["ok"] and status()["cpu"] is False
    time.sleep(0.3)  # what was under way
    before = status()["samples"]
    time.sleep(0.7)
    assert status()["samples"] == before
    assert session.order(command="start", what="cpu")["ok"] and status()["cpu"] is True
    wait_until(lambda: status()["samples"] > before)
    assert session.order(command="rate", hz=50)["ok"] and status()["rate"] == 50
    refused = session.order(command="stop", what="cpu", pid=1)
    assert not refused["ok"] and "no such process" in refused["error"]
    assert not session.order(command="dance")["ok"]
    assert not session.order(command="rate", hz=0)["ok"]
    # The same by its socket, found by a process of the session.
    pid = status()["processes"][0]["pid"]
    assert "marked at" in sonde("ctl", pid, "mark", "by", "hand").stdout
    assert sonde("ctl", pid, "stop", "cpu", "1").status == 1
    assert session.end() == 0
    made = recording(session.path)
    notes = made.report("--notes").notes
    assert any("here <b>" in note for note in notes) and any("by hand" in note for note in notes)
    snapshot = made.report("--event", "heap:snapshot-1").facts("totals")
    assert snapshot["value_recorded"] > BLOCK


def test_the_heap_can_be_switched_off_and_on(live, target, recording):
    session = live(target("grows"), 5, options=["--heap"])
    session.document()
    wait_until(lambda: json.loads(session.get("/api/status"))["session"]["heap"] == 1)
    assert session.order(command="stop", what="heap")["ok"]
    time.sleep(1)
    assert session.order(command="start", what="heap")["ok"]
    assert session.end() == 0
    kept = int(session.process.stdout.read())
    rows = recording(session.path).report("--event", "heap:live", "--top", "0").rows("functions")
    seen = sum(row["total_samples"] for row in rows if row["name"] == "site_grow")
    assert 0 < seen < kept, (seen, kept)


def test_the_recording_so_far_in_any_format(live, target, sonde, tmp_path):
    session = live(target("grows"), 120, options=["--heap"])
    session.document()
    wait_until(lambda: json.loads(session.get("/api/status"))["samples"] > 50)
    for name in ("sonde", "pprof", "folded", "speedscope"):
        path = tmp_path / f"so-far.{name}"
        path.write_bytes(session.get(f"/api/recording?format={name}"))
        shown = sonde("report", path)
        assert shown.status == 0, (name, shown)
    names = json.loads(session.get("/api/status"))["formats"].replace(" and ", ", ").split(", ")
    assert {"sonde", "page", "chrome-trace", "callgrind", "json"} < set(names)
    for name in names:
        assert len(session.get(f"/api/recording?format={name}")) > 100, name
    assert session.get("/api/recording?format=page").startswith(b"<!DOCTYPE html>")
    status, data = session.ask("GET", "/api/recording?format=nothing")
    assert status == 400 and "no format" in json.loads(data)["error"]


def test_attached_processes_can_be_watched(live, target, started):
    busy = started([target("shares"), 100000000])
    time.sleep(0.2)
    session = live(busy.pid, mode="attach")
    document = session.document()
    wait_until(lambda: json.loads(session.get("/api/status"))["samples"] > 100, seconds=60)
    session.process.send_signal(signal.SIGINT)
    assert session.events(start=document.sequence).follow(document) == "end"
    assert session.end() == 0
    assert [p["pid"] for p in document.head["processes"]] == [busy.pid]
    assert document.sums()["cpu"][0] > 100
    assert busy.poll() is None


@pytest.mark.parametrize("name, arguments", [("exits", ["status", "3"]), ("exits", ["segv"]), ("killed", []), ("grows", ["1"])])
def test_the_target_is_the_same_as_alone(harness, name, arguments):
    one = harness(name, *arguments, options=["--live"])
    alone, under = one.alone(), one.record().made
    assert under.status == alone.status
    if name != "grows":
        assert under.stdout == alone.stdout


def test_two_hundred_viewers(live, recording, tmp_path):
    """All see every step to the end, and nothing is lost for it."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limit[1]), limit[1]))
    session = live("/bin/sh", "-c", "until [ -e \"$0\" ]; do :; done", tmp_path / "enough")
    session.document()
    request = (f"GET /api/events?from=0 HTTP/1.1\r\nHost: localhost\r\n"
               f"Authorization: Bearer {session.token}\r\n\r\n").encode()
    viewers = []
    for _ in range(200):
        viewer = socket.create_connection((session.host, session.port), timeout=60)
        viewer.sendall(request)
        viewers.append(viewer)
    heard = [b""] * len(viewers)

    def hear(part):
        for index in part:
            while data := viewers[index].recv(1 << 20):
                heard[index] += data
    threads = [threading.Thread(target=hear, args=(range(start, 200, 8),)) for start in range(8)]
    for thread in threads:
        thread.start()
    wait_until(lambda: json.loads(session.get("/api/status"))["viewers"] == 200)
    status = json.loads(session.get("/api/status"))
    # Each thread hears one viewer to its end before the next.
    wait_until(lambda: min(data.count(b"event: delta") for data in heard[:len(threads)]) >= 5, seconds=60)
    (tmp_path / "enough").touch()
    for thread in threads:
        thread.join()
    assert session.end() == 0
    assert status["viewers_dropped"] == 0
    steps = {data.count(b"event: delta") for data in heard}
    assert len(steps) == 1 and steps.pop() >= 5
    assert all(b"event: end" in data for data in heard)
    assert recording(session.path).report().profiler["lost"] == 0
    for viewer in viewers:
        viewer.close()


def test_a_live_page_that_cannot_be_had_is_a_sentence(sonde, target, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        made = sonde("run", "--live", "--live-port", taken.getsockname()[1], "-o",
                     tmp_path / "x.sonde", "--", target("exits"), "status", "0")
    assert made.status == 125 and "cannot listen" in made.stderr, made
