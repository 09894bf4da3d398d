"""What goes wrong around a server of jobs: it is killed, its disk is full, its clients are hostile."""

import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time

import pytest

from engines import ENGINES, Serve, answers, missing
from runs import run, wait_until

ROUNDS = int(os.environ.get("SONDE_KILLS", "12"))  # `make soak` has 200


def rss(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


@pytest.fixture(params=["sqlite", "redis", "clickhouse"])
def store(request, tmp_path):
    """The address of a store that outlives the server; None is the server's own file."""
    if request.param == "sqlite":
        yield None
        return
    if missing(request.param):
        pytest.skip(f"{missing(request.param)} is not installed")
    engine = ENGINES[request.param][0](tmp_path / "engine")
    yield engine.url
    engine.kill()


def test_s1_s2_killed_during_ingest(serve, store):
    """kill -9 again and again while clients push and retry: 0 acknowledged lost, 0 doubled."""
    server = serve("--quiet", store=store)
    server.ask("/api/jobs", {"id": 2001})
    acknowledged, stop = set(), threading.Event()

    def client(number):
        part = 0
        while not stop.is_set():
            key = f"{number}-{part}"
            try:
                status, _, _ = server.raw("/api/jobs/2001/batches", {"key": key, "counts": [
                    {"executable": "app", "function": "hot", "events": {"cpu": 1}},
                    {"executable": "app", "function": key, "events": {"cpu": 1}}]}, timeout=10)
            except OSError:
                time.sleep(0.02)  # no answer: the same part again
                continue
            if status in (200, 201):
                acknowledged.add(key)
                part += 1

    clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for one in clients:
        one.start()
    for _ in range(ROUNDS):
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before, 60)
        time.sleep(random.random() * 0.1)
        server.kill()
        server.start()
        server.wait()
    stop.set()
    for one in clients:
        one.join()
    wait_until(lambda: server.ask("/healthz")["waiting"] == 0, 60)
    table = server.ask("/api/jobs/2001/profile")
    values = {row["function"]: row["values"][0] for row in table["rows"]}
    assert acknowledged <= set(values), acknowledged - set(values)
    doubled = {name for name, value in values.items() if name != "hot" and value != 1}
    assert not doubled, doubled
    assert values["hot"] == len(values) - 1  # half visible would break this


def test_s4_locked_and_damaged(serve, sonde, tmp_path):
    import sqlite3
    server = serve()
    server.ask("/api/jobs", {"id": 2001})
    other = sqlite3.connect(server.folder / "data/jobs.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = server.push(2001, "k", {"f": 1})  # after a while it goes to the journal
    assert answer["queued"]
    other.execute("ROLLBACK")
    other.close()
    wait_until(lambda: server.ask("/healthz")["waiting"] == 0, 30)
    assert server.value(2001, "f") == 1
    server.kill()
    with open(server.folder / "data/jobs.db", "r+b") as file:
        file.write(b"this is no database " * 200)
    for ending in ("-wal", "-shm"):
        pathlib.Path(f"{server.folder}/data/jobs.db{ending}").unlink(missing_ok=True)
    broken = sonde("serve", "--data", server.folder / "data", "--port", 0)
    assert broken.status == 1 and "damaged" in broken.stderr, broken


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can mount here")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", folder])
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(server, name):
    """Pushes until the disk is full; how many were stored."""
    for stored in range(400):
        status, _, body = server.raw("/api/jobs/2001/batches", {"key": f"{name}{stored}", "counts": [
            {"executable": "app", "function": f"{name}-{stored}-{n}-{'x' * 200}", "events": {"cpu": 1}}
            for n in range(50)]})
        assert status in (201, 507), body
        if status == 507:
            return stored
    raise AssertionError("the disk is never full")


def test_s5_disk_full(sonde_path, environment, small_disk):
    """507 on writes, reads go on, also after a restart while it is full; then all is well again."""
    server = Serve(sonde_path, environment, small_disk, "--quiet")
    try:
        server.ask("/api/jobs", {"id": 2001})
        stored = fill(server, "first")
        assert stored > 0
        assert len(server.ask("/api/jobs/2001/profile")["rows"]) == 50 * stored
        try:
            with open(small_disk / "ballast", "wb", buffering=0) as file:
                while file.write(b"x" * 4096) == 4096:
                    pass
        except OSError:
            pass
        server.kill()
        server.start()
        server.wait()
        assert len(server.ask("/api/jobs/2001/profile")["rows"]) == 50 * stored
        stored += fill(server, "second")
        assert len(server.ask("/api/jobs/2001/profile")["rows"]) == 50 * stored
        subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
        server.push(2001, "room", {"f": 1})
        assert server.value(2001, "f") == 1
    finally:
        server.kill()


def test_s6_slow_clients(serve):
    """Half requests and slow readers hold nobody up."""
    server = serve("--quiet")
    server.ask("/api/jobs", {"id": 2001})
    held = []
    for _ in range(300):
        one = socket.create_connection(("127.0.0.1", server.port))
        one.sendall(b"POST /api/jobs/2001/batches HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        held.append(one)
    start = time.monotonic()
    for number in range(20):
        server.push(2001, f"k{number}", {"f": 1})
    assert time.monotonic() - start < 10
    assert server.value(2001, "f") == 20
    for one in held:
        one.close()


def test_s6_slow_readers(serve, sonde_path):
    """Who asks for much and reads none of it keeps nobody else from an answer."""
    server = serve("--quiet", "--threads", "4")
    server.ask("/api/jobs", {"id": 2001})
    server.push(2001, "k", {f"f{n}-{'x' * 200}": n + 1 for n in range(20000)})
    held = []
    for _ in range(16):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", server.port))
        one.sendall(b"GET /api/jobs/2001/profile HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        held.append(one)
    for one in held:
        assert one.recv(12) == b"HTTP/1.1 200"
    for number in range(20):
        server.push(2001, f"k{number}", {"f": 1})
    assert server.ask("/api/jobs/2001/profile?event=cpu&top=1")["rows"][0]["values"] == [20000]
    if b"__asan_init" not in sonde_path.read_bytes():  # which keeps what is freed
        assert rss(server.process.pid) < 512 << 20
    for one in held:
        one.close()


def cpu(pid):
    """Seconds of CPU that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_s17_given_up(serve):
    """A question that nobody waits for any more, or that takes too long, is not worked on to its end."""
    server = serve("--quiet", "--threads", "2")
    server.ask("/api/jobs", {"id": 2001})
    for part in range(3):
        server.push(2001, f"k{part}", {f"f{n}": n + 1 for n in range(part * 40000, part * 40000 + 40000)})
    before = cpu(server.process.pid)
    assert len(server.ask("/api/jobs/2001/profile")["rows"]) == 120000
    whole = cpu(server.process.pid) - before
    before = cpu(server.process.pid)
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", server.port)) as one:
            one.sendall(b"GET /api/jobs/2001/profile HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    server.ask("/api/jobs/2001")  # its turn comes after theirs
    assert cpu(server.process.pid) - before < 10 * whole
    hurried = serve("--quiet", "--query-time", "1ms", store=f"sqlite:{server.folder}/data/jobs.db")
    status, _, body = hurried.raw("/api/jobs/2001/profile")
    assert status == 400 and b"--query-time" in body
    assert hurried.ask("/healthz")["status"] == "ok"


def test_s7_burst(serve):
    server = serve("--quiet", "--rate", "20")
    statuses = [server.raw("/api/jobs")[0] for _ in range(80)]
    assert 429 in statuses and 200 in statuses
    status, headers, _ = next(answer for answer in
                              (server.raw("/api/jobs") for _ in range(200)) if answer[0] == 429)
    assert headers["Retry-After"]


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_s9_bombs(serve, sonde_path, encoding):
    """Refused within a second, without growing."""
    server = serve("--quiet")
    server.ask("/api/jobs", {"id": 2001})
    packed = subprocess.run(["sh", "-c", f"head -c 400000000 /dev/zero | {encoding} -1"],
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if packed.returncode:
        pytest.skip(f"{encoding} is not installed")
    bomb = packed.stdout
    before = rss(server.process.pid)
    for path in ("/api/jobs/2001/batches", "/api/jobs/2001/profiles"):
        start = time.monotonic()
        status, _, body = server.raw(path, bomb, headers={"Content-Encoding": encoding})
        assert status == 413, body
        assert time.monotonic() - start < 2  # one second on a quiet machine
    if encoding == "gzip":
        status, _, _ = server.raw("/api/jobs/2001/profiles", bomb)
        assert status == 413
    if b"__asan_init" not in sonde_path.read_bytes():  # which keeps what is freed
        assert rss(server.process.pid) - before < 96 << 20


def test_s10_s11_tokens(serve, sonde, tmp_path):
    """No, wrong, revoked, weak token: 401 or 403 on every route; none is ever in the log."""
    data = tmp_path / "serve0/data"
    tokens = {role: sonde("serve", "token", "add", "--role", role, "--data", data).stdout.strip()
              for role in ("read", "write", "admin")}
    server = serve()
    assert all(len(token) > 40 for token in tokens.values())
    assert tokens["read"] not in (data / "tokens").read_text()
    listed = sonde("serve", "token", "list", "--data", data).stdout
    assert "read" in listed and tokens["read"] not in listed
    folder = pathlib.Path(__file__).parents[2] / "src/serve"
    source = "".join((folder / name).read_text() for name in ("jobs.c", "shelf.c"))
    routes = [(line.split("{HTTP_")[1].split(",")[0], line.split('"')[1], line.split("ROLE_")[1].split(",")[0])
              for line in source.splitlines() if "{HTTP_" in line]
    assert len(routes) >= 21
    for method, pattern, role in routes:
        path = pattern.replace("{id}", "2001").replace("{key}", "k").replace("{kind}", "profile").replace("*", "")
        for token, wanted in ((None, 401), ("wrong", 401), (tokens["read"], 403)):
            server.token = token
            status = server.raw(path, b"{}" if method == "POST" else None, method)[0]
            if role == "NONE":
                assert status == 200
            elif token == tokens["read"] and role == "READ":
                assert status not in (401, 403), path
            else:
                assert status == wanted, (path, token, status)
            time.sleep(0.06)  # a wrong token costs its sender some patience
    server.token = tokens["write"]
    server.ask("/api/jobs", {"id": 2001})
    assert sonde("serve", "token", "remove", "write", "--data", data).status == 0
    assert server.raw("/api/jobs")[0] == 401  # at once
    for token in tokens.values():
        assert token not in server.output


def test_s10_first_token_of_a_running_server(serve, sonde):
    """From the first token on nobody comes in without, also when the last one is taken away again."""
    server = serve()
    server.ask("/api/jobs", {"id": 2001})
    words = ("--data", server.folder / "data")
    token = sonde("serve", "token", "add", "--role", "write", "--name", "ci", *words).stdout.strip()
    server.ask("/api/jobs", status=401)
    server.token = token
    server.ask("/api/jobs")
    assert sonde("serve", "token", "remove", "ci", *words).status == 0
    server.ask("/api/jobs", status=401)
    server.token = None
    server.ask("/api/jobs", status=401)
    server.ask("/healthz")


def test_s10_damaged_tokens_open_no_door(serve):
    server = serve()
    (server.folder / "data/tokens").write_text("what is this?\n")
    server.ask("/api/jobs", status=401)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_tokens_belong_to_who_serves(sonde, tmp_path):
    """Root makes them for a server that runs as another user, who must be able to read them."""
    folder = tmp_path / "data"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    assert sonde("serve", "token", "add", "--role", "read", "--data", folder).status == 0
    for name in ("tokens", "tokens.lock"):
        made = (folder / name).stat()
        assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (65534, 65534, 0o600), name


def test_beyond_loopback(sonde, tmp_path):
    bare = sonde("serve", "--bind", "0.0.0.0", "--port", 0, "--data", tmp_path / "d")
    assert bare.status == 2 and "token" in bare.stderr
    sonde("serve", "token", "add", "--role", "write", "--data", tmp_path / "d")
    plain = sonde("serve", "--bind", "0.0.0.0", "--port", 0, "--data", tmp_path / "d")
    assert plain.status == 2 and "--tls-cert" in plain.stderr


def test_tls(serve, sonde, environment, root, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", tmp_path / "key", "-out", tmp_path / "crt"], check=True,
                   stderr=subprocess.DEVNULL)
    server = serve("--tls-cert", tmp_path / "crt", "--tls-key", tmp_path / "key")
    environment["SONDE_SERVER"] = f"https://localhost:{server.port}"
    refused = sonde("job", "list")  # nobody vouches for it
    assert refused.status == 1 and "SONDE_CA" in refused.stderr, refused
    environment["SONDE_CA"] = str(tmp_path / "crt")
    assert sonde("job", "create", "--id", "2001").stdout == "2001\n"
    python = run([sys.executable, root / "examples/job_client.py"],
                 env={**environment, "PYTHONPATH": str(root / "python")})
    assert python.status == 0 and "parse" in python.stdout, python
    subprocess.run(["gcc", "-I", root / "include", root / "examples/job_client.c", "-lcurl", "-o",
                    tmp_path / "client"], check=True)
    assert run([tmp_path / "client"], env=environment).status == 0


def test_s12_s13_foreign_pages(serve):
    server = serve("--quiet")
    status = server.raw("/api/jobs", {"id": 2001}, headers={"Origin": "http://evil.example"})[0]
    assert status == 403
    assert server.raw("/api/jobs", headers={"Host": "evil.example"})[0] == 421


HOSTILE = "<script>alert(1)</script>\x1b[31m'\"&\u202e"


def test_s14_names(serve, sonde, environment):
    """Names are data wherever they go."""
    server = serve("--quiet")
    environment["SONDE_SERVER"] = server.url
    server.ask("/api/jobs", {"id": 2001, "info": HOSTILE})
    server.ask("/api/jobs/2001/batches", {"key": "k", "host": HOSTILE, "counts": [
        {"executable": HOSTILE, "function": "=cmd|" + HOSTILE, "events": {HOSTILE: 1}}]})
    body = server.raw("/api/jobs/2001/profile")[2].decode()
    assert "<script>" not in body
    shown = sonde("job", "show", "2001").stdout + sonde("job", "list").stdout
    assert "\x1b" not in shown
    table = server.raw("/api/jobs/2001/profile?format=csv")[2].decode()
    assert '"\'=cmd' in table
    headers = server.raw("/api/jobs")[1]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_s15_traversal(serve):
    server = serve("--quiet")
    server.ask("/api/jobs", {"id": 2001})
    for path in ("/api/jobs/../../etc/passwd", "/api/jobs/2001/recordings/..%2f..%2fetc%2fpasswd",
                 "/api/jobs/%2e%2e/x", "/api/jobs/2001%00", "/api/jobs/-1", "/api/jobs/20o1"):
        assert server.raw(path)[0] in (400, 404), path


def test_s16_cardinality(serve):
    server = serve("--quiet", "--events-max", "5")
    server.ask("/api/jobs", {"id": 2001})
    statuses = []
    for number in range(7):
        status, _, body = server.raw("/api/jobs/2001/batches", {"key": f"k{number}", "counts": [
            {"function": "f", "events": {f"event{number}": 1}}]})
        statuses.append(status)
    assert statuses == [201] * 5 + [429] * 2
    assert b"event6" in body
    assert server.push(2001, "fine", {})["duplicate"] is False


def test_s17_query_of_death(serve):
    server = serve("--quiet", "--rows-max", "1000")
    server.ask("/api/jobs", {"id": 2001})
    server.push(2001, "k", {f"f{n}": n + 1 for n in range(3000)})
    status, _, body = server.raw("/api/jobs/2001/profile")
    assert status == 400 and b"top" in body
    rows = server.ask("/api/jobs/2001/profile?event=cpu&top=50")["rows"]
    assert [row["values"][0] for row in rows] == list(range(3000, 2950, -1))
    assert server.raw("/api/jobs/2001/profile?event=cpu&top=99999999999")[0] == 400


def test_s8_s18_malformed(serve):
    server = serve("--quiet")
    for junk in (b"\0" * 100 + b"\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"POST /api/jobs HTTP/1.1\r\nHost: localhost\r\n"
                 b"Content-Length: -1\r\n\r\n", b"\xff\xfe" * 500 + b"\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", server.port)) as one:
            one.sendall(junk)
            one.settimeout(5)
            assert one.recv(100)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 505", b"HTTP/1.1 501", b"")
    for body in (b"", b"{", b"[]", b'{"id": 99999}', b'{"id": "2001"}', b'{"info": 5}', b"\0"):
        assert server.raw("/api/jobs", body, "POST")[0] == 400, body
    assert answers(server.port) and server.process.poll() is None
    assert server.ask("/healthz") == {"status": "ok", "store": "up", "waiting": 0}


def test_s19_clocks(serve):
    """Times are the server's: a client a year off changes nothing."""
    server = serve("--quiet")
    server.ask("/api/jobs", {"id": 2001})
    year = int(time.time()) + 366 * 86400
    server.ask(f"/ingest?name=x.cpu&job=2001&from={year}&until={year + 10}", "main;f 5\n")
    points = server.ask("/api/jobs/2001/curve?event=cpu")["points"]
    assert abs(points[0][0] - time.time()) < 3600
