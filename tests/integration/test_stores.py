"""One suite for every store of jobs, on the real engines; what is of an engine's own after that."""

import json
import os
import re
import sqlite3
import subprocess
import threading
import time

import pytest

from engines import ENGINES, ClickHouse, Redis, missing
from runs import run, wait_until


AWAY = float(os.environ.get("SONDE_AWAY", "0"))  # seconds; `make soak` has 60


@pytest.fixture(scope="module")
def started_engine(tmp_path_factory):
    """started_engine("cluster") -> the one that all tests here share; ended with the last of them"""
    running = {}

    def find(name):
        if missing(name):
            pytest.skip(f"{missing(name)} is not installed")
        if name not in running:
            running[name] = ENGINES[name][0](tmp_path_factory.mktemp(name))
        return running[name]
    yield find
    for one in running.values():
        one.kill()


@pytest.fixture(params=list(ENGINES))
def engine(request, started_engine):
    return started_engine(request.param)


def test_suite(engine, built):
    """The cases that SQLite passes in the unit tests."""
    done = run([built("tests/unit/store/test_store")], timeout=240,
               env={**os.environ, "SONDE_STORE": engine.url})
    assert done.status == 0, done
    assert "17 test(s) run" in done.stdout + done.stderr


def test_migrate_and_show(engine, serve, sonde, tmp_path):
    """From a server's own file into the engine, and all is there."""
    first = serve()
    first.ask("/api/jobs", {"id": 2101, "info": "to be moved"})
    for part in range(3):
        first.push(2101, f"part{part}", {"parse": 10, f"only{part}": 1},
                   bench=[{"name": "app", "run": {"real": part}}])
    first.kill(15)
    moved = sonde("serve", "migrate", f"sqlite:{first.folder}/data/jobs.db", engine.url, timeout=120)
    assert moved.status == 0, moved
    assert "moved 1 jobs with 4 counts, 3 benchmark results" in moved.stdout
    second = serve(store=engine.url)
    assert second.value(2101, "parse") == 30
    assert [entry["run"]["real"] for entry in second.ask("/api/jobs/2101/bench")["runs"]] == [0, 1, 2]
    assert second.push(2101, "part1", {"parse": 10})["duplicate"]
    assert second.value(2101, "parse") == 30
    second.ask("/api/jobs/2101", method="DELETE", status=204)


def contents(server, job):
    """All that a job holds, as its server tells it."""
    data = bytes(range(256)) * 20
    recording = server.ask(f"/api/jobs/{job}/recordings")["recordings"][0]
    assert server.raw(f"/api/jobs/{job}/recordings/{recording['key']}")[2] == data
    return {what: server.ask(f"/api/jobs/{job}/{what}") for what in ("profile", "bench", "recordings")} | {
        "job": server.ask(f"/api/jobs/{job}"), "curve": server.ask(f"/api/jobs/{job}/curve?event=cpu"),
        "stacks": server.raw(f"/api/jobs/{job}/profile?format=folded&event=cpu")[2]}


def test_migrate_from_each_to_the_next(started_engine, serve, sonde, tmp_path):
    """Around through every engine that is here and back into a file: it is all as it was."""
    first = serve()
    first.ask("/api/jobs", {"id": 2150, "info": "around ü"})
    head = {"key": "one", "host": "h", "counts": [{"executable": "a", "function": "f", "events": {"cpu": 7, "x": 1}}],
            "stacks": [{"executable": "a", "stack": "main;f", "events": {"cpu": 7}}],
            "bench": [{"name": "b", "run": {"real": 0.5}}], "recording": {"name": "r.sonde", "size": 5120}}
    first.ask("/api/jobs/2150/batches", json.dumps(head).encode() + b"\n" + bytes(range(256)) * 20)
    before = contents(first, 2150)
    first.kill(15)
    urls = [f"sqlite:{first.folder}/data/jobs.db",
            *(started_engine(name).url for name in ENGINES if not missing(name)), f"sqlite:{tmp_path}/back.db"]
    for source, to in zip(urls, urls[1:]):
        moved = sonde("serve", "migrate", source, to, timeout=120)
        assert moved.status == 0, (source, to, moved)
        again = sonde("serve", "migrate", source, to, timeout=120)
        assert again.status == 0 and "had been moved before" in again.stdout, again
        server = serve(store=to)
        after = contents(server, 2150)
        assert after == before, (source, to)
        assert server.push(2150, "one", {"f": 7})["duplicate"], (source, to)
        server.kill(15)


def test_migrate_refuses(serve, sonde, tmp_path):
    """What is not there, and a store into itself: its counts would be there twice."""
    server = serve()
    server.ask("/api/jobs", {"id": 2001})
    server.push(2001, "k", {"f": 7})
    own = f"sqlite:{server.folder}/data/jobs.db"
    itself = sonde("serve", "migrate", own, own)
    assert itself.status != 0 and "job 2001 of its own" in itself.stderr, itself
    assert server.value(2001, "f") == 7
    nothing = sonde("serve", "migrate", f"sqlite:{tmp_path}/nothing.db", f"sqlite:{tmp_path}/to.db")
    assert nothing.status != 0 and "there is no store" in nothing.stderr, nothing
    assert not (tmp_path / "nothing.db").exists() and not (tmp_path / "to.db").exists()


def test_two_servers_one_engine(engine, serve):
    """Any of them answers; a batch sent to both counts once."""
    pair = [serve(store=engine.url), serve(store=engine.url)]
    pair[0].ask("/api/jobs", {"id": 2200, "info": "shared"})
    for number in range(20):
        assert not pair[number % 2].push(2200, f"k{number}", {"f": 1})["duplicate"]
        assert pair[1 - number % 2].push(2200, f"k{number}", {"f": 1})["duplicate"]
    assert pair[0].value(2200, "f") == pair[1].value(2200, "f") == 20
    pair[1].ask("/api/jobs/2200", method="DELETE", status=204)
    pair[0].ask("/api/jobs/2200", status=404)


def test_tables_are_the_same(engine, serve):
    """Whatever the store: cpu first, then events by name; rows by the first value, then by the next."""
    server = serve(store=engine.url)
    server.ask("/api/jobs", {"id": 2300})
    server.ask("/api/jobs/2300/batches", {"key": "k", "counts": [
        {"executable": "app", "function": name, "events": events} for name, events in (
            ("faults", {"page-faults": 10 ** 9, "branch-misses": 5}), ("small", {"cpu": 1}), ("same", {"cpu": 7}),
            ("large", {"cpu": 90, "page-faults": 1}), ("also", {"cpu": 7}), ("missed", {"branch-misses": 6}))]})
    table = server.ask("/api/jobs/2300/profile")
    assert table["columns"] == ["cpu", "branch-misses", "page-faults"]
    assert [row["function"] for row in table["rows"]] == ["large", "also", "same", "small", "missed", "faults"]
    top = server.ask("/api/jobs/2300/profile?event=cpu&top=3")["rows"]
    assert [(row["function"], row["values"]) for row in top] == [("large", [90]), ("also", [7]), ("same", [7])]
    server.ask("/api/jobs/2300", method="DELETE", status=204)


def test_s3_redis_away(serve, sonde, tmp_path):
    """Acknowledgements go on while Redis is gone, and everything is there once it is back."""
    redis = Redis(tmp_path / "redis")
    try:
        server = serve(store=redis.url)
        server.ask("/api/jobs", {"id": 2001})
        server.push(2001, "before", {"f": 1})
        server.ask("/ingest?name=web.cpu&from=1", "main;g 1\n")  # makes job 2002
        assert "Sonde-Stale" not in server.raw("/api/jobs/2001/profile")[1]
        redis.kill()
        end, sent = time.monotonic() + AWAY, 0
        while sent < 10 or time.monotonic() < end:
            answer = server.push(2001, f"away{sent}", {"f": 1})
            assert answer["queued"], answer
            sent += 1
        assert server.ask("/ingest?name=web.cpu&from=2", "main;g 2\n")["queued"]
        assert server.ask("/healthz")["status"] == "stale"
        assert server.ask("/healthz")["waiting"] == sent + 1
        server.ask("/api/jobs", status=503)
        status, headers, body = server.raw("/api/jobs/2001/profile")  # as it was known
        assert status == 200 and int(headers["Sonde-Stale"]) >= 0
        assert b'"values":[1]' in body
        stale = sonde("job", "show", "2001", "--profile", "--server", server.url)
        assert "is away" in stale.stderr and "f" in stale.stdout, stale
        server.kill()  # what was acknowledged outlives the server too
        server.start()
        server.wait()
        redis.start()
        redis.wait()
        wait_until(lambda: server.ask("/healthz")["waiting"] == 0, 30 + 5 * AWAY)
        assert server.ask("/healthz")["status"] == "ok"
        assert server.value(2001, "f") == 1 + sent
        assert server.push(2001, "away3", {"f": 1})["duplicate"]
        assert server.value(2001, "f") == 1 + sent
        assert server.value(2002, "g") == 30_000_000
        assert any(line.get("level") == "error" and "away" in line["message"] for line in server.log)
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$", line["time"]) for line in server.log)
    finally:
        redis.kill()


def test_s3_redis_away_while_a_run_streams(serve, started, sonde, sonde_path, recording, environment,
                                           tmp_path):
    """A program that is recorded into a job notices nothing, and its sum is exact at the end."""
    redis = Redis(tmp_path / "redis")
    try:
        server = serve(store=redis.url)
        server.ask("/api/jobs", {"id": 2001})
        environment["SONDE_SPOOL"] = str(tmp_path / "spool")
        file = tmp_path / "go-on"
        file.touch()
        running = started([sonde_path, "run", "--to", server.url, "--job", "2001", "--keep", "--",
                           "sh", "-c", f"while [ -e {file} ]; do :; done; exit 7"])
        wait_until(lambda: server.ask("/api/jobs/2001")["batches"] >= 1, 30)
        redis.kill()
        end = time.monotonic() + AWAY
        wait_until(lambda: server.ask("/healthz")["waiting"] >= 1 and time.monotonic() > end, 30 + AWAY)
        redis.start()
        redis.wait()
        wait_until(lambda: server.ask("/healthz")["waiting"] == 0, 30 + AWAY)
        file.unlink()
        running.communicate(timeout=60)
        assert running.returncode == 7
        events = {event["name"]: event["value"] for event in server.ask("/api/jobs/2001")["events"]}
        key = server.ask("/api/jobs/2001/recordings")["recordings"][0]["key"]
        kept = tmp_path / "kept.sonde"
        assert sonde("job", "show", "2001", "--recording", key, "-o", kept, "--server",
                     server.url).status == 0
        totals = recording(kept).report().facts("totals")
        assert events["cpu"] == totals["value_recorded"] > AWAY * 0.5e9
    finally:
        redis.kill()


def test_s3_redis_read_only(serve, tmp_path):
    redis = Redis(tmp_path / "redis")
    try:
        server = serve(store=redis.url)
        server.ask("/api/jobs", {"id": 2001})
        redis.cli("replicaof", "127.0.0.1", "1")  # a replica of nobody: read-only
        assert server.push(2001, "k", {"f": 3})["queued"]
        redis.cli("replicaof", "no", "one")
        wait_until(lambda: server.ask("/healthz")["waiting"] == 0, 30)
        assert server.value(2001, "f") == 3
    finally:
        redis.kill()


def test_s3_redis_away_from_the_start(serve):
    """It serves all the same, and its end is no failure."""
    server = serve("--quiet", store="redis://127.0.0.1:1")
    assert server.ask("/healthz")["status"] == "stale"
    server.kill(15)
    assert server.process.returncode == 0 and "cannot" not in server.output, server.output


def test_s3_redis_slow(serve, tmp_path):
    """An engine that takes its time delays a push; who asks something else does not wait for it."""
    redis = Redis(tmp_path / "redis")
    try:
        server = serve(store=redis.url)
        server.ask("/api/jobs", {"id": 2001})
        redis.cli("client", "pause", "1500", "all")
        answers = []
        client = threading.Thread(target=lambda: answers.append(server.push(2001, "k", {"f": 3})))
        client.start()
        start = time.monotonic()
        assert server.ask("/healthz")["store"] == "up"
        assert client.is_alive() or time.monotonic() - start > 1.4
        client.join()
        wait_until(lambda: server.ask("/healthz")["waiting"] == 0, 30)
        assert not answers[0]["duplicate"] and server.value(2001, "f") == 3
        assert server.push(2001, "k", {"f": 3})["duplicate"]
    finally:
        redis.kill()


def test_redis_password(serve, sonde, tmp_path):
    redis = Redis(tmp_path / "redis", "--requirepass", "s3cret/ü")
    try:
        wrong = sonde("serve", "--data", tmp_path / "d", "--port", 0, "--store",
                      f"redis://:wrong@127.0.0.1:{redis.port}")
        assert wrong.status != 0 and "password" in wrong.stderr
        assert "wrong@" not in wrong.stderr
        server = serve(store=f"redis://:s3cret%2F%C3%BC@127.0.0.1:{redis.port}")
        server.ask("/api/jobs", {"id": 2001})
        server.push(2001, "k", {"f": 3})
        assert server.value(2001, "f") == 3
        assert "s3cret" not in server.output
        redis.kill()
        for path in ("/healthz", "/metrics", "/api/jobs", "/api/jobs/2001/bench", "/no/such"):
            assert b"s3cret" not in server.raw(path)[2], path
    finally:
        redis.kill()


def test_clickhouse_password(serve, sonde, tmp_path):
    if missing("clickhouse"):
        pytest.skip("clickhouse-server is not installed")
    engine = ClickHouse(tmp_path / "clickhouse", password="s3cret")
    try:
        wrong = sonde("serve", "--data", tmp_path / "d", "--port", 0, "--store",
                      f"clickhouse://default:wrong@127.0.0.1:{engine.http}")
        assert wrong.status != 0 and "assword" in wrong.stderr and "wrong@" not in wrong.stderr, wrong
        server = serve(store=f"clickhouse://default:s3cret@127.0.0.1:{engine.http}")
        server.ask("/api/jobs", {"id": 2001})
        server.push(2001, "k", {"f": 3})
        assert server.value(2001, "f") == 3 and "s3cret" not in server.output
    finally:
        engine.kill()


def test_redis_tls(serve, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", tmp_path / "key", "-out", tmp_path / "crt"], check=True,
                   stderr=subprocess.DEVNULL)
    from engines import free_port
    secure = free_port()
    redis = Redis(tmp_path / "redis", "--tls-port", str(secure), "--tls-cert-file",
                  tmp_path / "crt", "--tls-key-file", tmp_path / "key", "--tls-auth-clients", "no",
                  "--tls-ca-cert-file", tmp_path / "crt")
    try:
        server = serve(store=f"rediss://localhost:{secure}?ca={tmp_path}/crt")
        server.ask("/api/jobs", {"id": 2001})
        server.push(2001, "k", {f"f{n}": n for n in range(5000)})
        assert server.value(2001, "f4999") == 4999
    finally:
        redis.kill()


def test_s3_cluster_failover(serve, started_engine):
    """The master of a job dies during ingest: its replica takes over, nothing acknowledged is lost."""
    cluster = started_engine("cluster")  # nobody uses it after this
    server = serve(store=cluster.url)
    server.ask("/api/jobs", {"id": 2001})
    victim = cluster.node_of(2001)
    sent = 0
    end = time.monotonic() + 60
    for number in range(60):
        if number == 20:
            victim.kill()
        server.push(2001, f"k{number}", {"f": 1})
        sent += 1
    wait_until(lambda: server.ask("/healthz")["waiting"] == 0, 60)
    assert time.monotonic() < end + 60
    wait_until(lambda: server.raw("/api/jobs/2001/profile")[0] == 200, 30)
    assert server.value(2001, "f") == sent
    for number in range(60):
        assert server.push(2001, f"k{number}", {"f": 1})["duplicate"]
    assert server.value(2001, "f") == sent


OLD_NODES = """
DROP INDEX nodes_hash;
CREATE TABLE old (id INTEGER PRIMARY KEY, executable TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (name, executable));
INSERT INTO old SELECT id, executable, name FROM nodes;
DROP TABLE nodes;
ALTER TABLE old RENAME TO nodes;
PRAGMA user_version = 2;
"""


def test_a_file_of_an_older_version_is_brought_up_to_date(serve):
    """Functions that are in it are found again: what comes now is added to what they have."""
    counts = {f"f{number}": number + 1 for number in range(50)}
    first = serve("--quiet")
    first.ask("/api/jobs", {"id": 2001})
    first.push(2001, "before", counts)
    first.kill()
    path = first.folder / "data/jobs.db"
    file = sqlite3.connect(path, isolation_level=None)
    file.executescript(OLD_NODES)
    file.close()
    second = serve("--quiet", store=f"sqlite:{path}")
    second.push(2001, "after", counts)
    rows = second.ask("/api/jobs/2001/profile")["rows"]
    second.kill()
    assert {row["function"]: row["values"][0] for row in rows} == {name: 2 * value for name, value in counts.items()}
    file = sqlite3.connect(path)
    assert file.execute("SELECT count(*) FROM nodes").fetchone() == (50,)
    assert file.execute("PRAGMA user_version").fetchone() == (3,)
