"""--redis: tables to a real server and commands from a real subscriber, also while the server comes and
goes."""

import json
import shutil
import socket
import subprocess
import time

import pytest

from runs import wait_until

pytestmark = pytest.mark.skipif(not shutil.which("redis-server"), reason="there is no redis-server")


class Redis:
    """A server on a free port, and a connection of the simplest kind."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.process = None
        self.url = f"redis://:secret@127.0.0.1:{self.port}/1"

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "",
             "--requirepass", "secret", "--dir", str(self.folder)], stdout=subprocess.DEVNULL)
        wait_until(lambda: self.connects())

    def connects(self):
        try:
            self.connect().close()
            return True
        except OSError:
            return False

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None


class Subscriber:
    def __init__(self, redis, *channels):
        self.socket = redis.connect()
        self.file = self.socket.makefile("rb")
        self.send("AUTH", "secret")
        assert self.read() == b"OK"
        if channels:
            self.send("SUBSCRIBE", *channels)
            for _ in channels:
                assert self.read()[0] == b"subscribe"

    def send(self, *words):
        data = b"*%d\r\n" % len(words)
        for word in words:
            word = str(word).encode()
            data += b"$%d\r\n%s\r\n" % (len(word), word)
        self.socket.sendall(data)

    def read(self):
        line = self.file.readline()
        assert line, "the server has gone"
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return self.file.read(int(rest) + 2)[:-2]
        assert kind == b"*", line
        return [self.read() for _ in range(int(rest))]

    def message(self, channel):
        """The next one on this channel."""
        while True:
            kind, name, data = self.read()
            if kind == b"message" and name.decode() == channel:
                return data.decode()

    def publish(self, channel, text):
        self.send("PUBLISH", channel, text)
        return self.read()


@pytest.fixture
def redis(tmp_path):
    server = Redis(tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def published(started, sonde_path, tmp_path, redis):
    """published(program, ...) -> Popen of sonde"""
    def start(*command, options=()):
        return started([sonde_path, "run", "-o", tmp_path / "r.sonde", "--redis", redis.url, "--interval",
                        "1s", "--limit", "5", *options, "--", *command])
    return start


@pytest.fixture
def growing(published, target, tmp_path):
    """growing(children, options=...) -> Popen of sonde, whose program goes on until `finish` ends it"""
    file = tmp_path / "go-on"
    file.touch()

    def start(children=0, **more):
        return published(target("grows"), 120, children, file, **more)

    def finish(process):
        """What sonde and the program have said in all."""
        file.unlink()
        return process.communicate(timeout=60)
    start.finish = finish
    return start


def test_tables_are_published(growing, redis):
    listener = Subscriber(redis, "cpu_profile", "cpu_profile_json", "memory_profile_data")
    process = growing(options=["--heap"])
    table = listener.message("cpu_profile")
    while "work" not in table:
        table = listener.message("cpu_profile")
    assert "self" in table and "\033" not in table
    rows = json.loads(listener.message("cpu_profile_json"))["sections"]["functions"]["rows"]
    assert rows[0]["name"] in ("work", "site_work") and len(rows) <= 6
    # Of the interval alone: two tables of a second each hold about as much.
    samples = [sum(row["self_samples"] or 0 for row in
                   json.loads(listener.message("cpu_profile_json"))["sections"]["functions"]["rows"])
               for _ in range(2)]
    assert max(samples) < 1500, samples
    memory = listener.message("memory_profile_data")
    while "site_grow" not in memory:
        memory = listener.message("memory_profile_data")
    out, err = growing.finish(process)
    assert process.returncode == 0 and int(out) > 0
    assert "messages were published, 0 could not be" in err


def test_a_process_is_selected_and_told_of(growing, redis):
    listener = Subscriber(redis, "memory_profile_status", "memory_profile_data_json")
    speaker = Subscriber(redis)
    process = growing(2, options=["--heap"])
    wait_until(lambda: speaker.publish("memory_profile", '{"command": "status"}') == 1)
    status = json.loads(listener.message("memory_profile_status"))
    while not status["session"] or len(status["session"]["processes"]) < 3:
        speaker.publish("memory_profile", '{"command": "status"}')
        status = json.loads(listener.message("memory_profile_status"))
    pid = status["session"]["processes"][1]["pid"]
    answer = {"ok": False}
    while not answer["ok"]:  # until the recording, which is a step behind, has told of it
        speaker.publish("memory_profile", pid)
        answer = json.loads(listener.message("memory_profile_status"))
    assert answer["selected"] == pid
    speaker.publish("memory_profile", 999999)
    answer = json.loads(listener.message("memory_profile_status"))
    assert not answer["ok"] and "no such process" in answer["error"] and answer["selected"] == pid
    speaker.publish("memory_profile", json.dumps({"command": "stop", "what": "heap", "pid": pid}))
    answer = json.loads(listener.message("memory_profile_status"))
    assert answer["ok"] and "is off" in answer["text"]
    speaker.publish("memory_profile", "nonsense")
    answer = json.loads(listener.message("memory_profile_status"))
    assert not answer["ok"] and "no command" in answer["error"]
    speaker.publish("memory_profile", 0)
    assert json.loads(listener.message("memory_profile_status"))["selected"] == "all"
    growing.finish(process)
    assert process.returncode == 0


def test_a_server_that_goes_and_returns(growing, redis):
    """The target notices nothing; what could not be sent is counted; then it goes on. The program runs
    until the server's return was seen: sonde looks for it ever more rarely, and a start takes its time."""
    listener = Subscriber(redis, "cpu_profile")
    process = growing()
    listener.message("cpu_profile")
    redis.stop()
    time.sleep(2.2)
    redis.start()
    again = Subscriber(redis, "cpu_profile")
    assert any("self" in again.message("cpu_profile") for _ in range(10)), "it ran little at first, perhaps"
    out, err = growing.finish(process)
    assert process.returncode == 0 and int(out) > 0
    lost = int(err.rpartition("published, ")[2].split()[0])
    assert 1 <= lost <= 20, err


def test_no_server_at_all(published, redis, target):
    redis.stop()
    process = published(target("exits"), "status", 3)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "could not be" in err


def test_a_bad_address_is_refused(sonde, target, tmp_path):
    made = sonde("run", "--redis", "http://x", "-o", tmp_path / "x.sonde", "--", target("exits"), "status", "0")
    assert made.status != 0 and "redis://" in made.stderr, made
