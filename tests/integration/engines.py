"""Real servers for the stores of jobs, on loopback at free ports, ended with the test: Redis, a
Redis Cluster of six nodes, ClickHouse alone and over two shards; and `sonde serve` itself."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from runs import wait_until


def free_port(also=()):
    """A port that is free now; with `also`, so are the ports that far above it."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        if port + max((*also, 0)) > 65535:
            continue
        try:
            for offset in also:
                with socket.socket() as other:
                    other.bind(("127.0.0.1", port + offset))
            return port
        except OSError:
            continue


def answers(port):
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Process:
    """A server that was started here."""

    def __init__(self, command, folder, **more):
        self.command = [str(word) for word in command]
        self.folder = folder
        self.more = more
        self.process = None
        self.start()

    def start(self):
        with open(self.folder / "output", "ab") as output:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=output, cwd=self.folder, **self.more)

    def kill(self, number=signal.SIGKILL):
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(20)

    @property
    def output(self):
        return (self.folder / "output").read_text(errors="replace")


class Redis(Process):
    def __init__(self, folder, *options, port=None):
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        super().__init__(["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", folder,
                          "--save", "", "--appendonly", "yes", "--appendfsync", "always", *options],
                         folder)
        self.wait()

    def wait(self):
        wait_until(lambda: "PONG" in self.cli("ping") or "NOAUTH" in self.cli("ping"))

    def cli(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *map(str, words)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        return done.stdout.strip()

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"


class RedisCluster:
    """Three masters, a replica each."""

    def __init__(self, folder):
        self.nodes = []
        for index in range(6):
            self.nodes.append(Redis(folder / str(index), "--cluster-enabled", "yes",
                                    "--cluster-node-timeout", "1500", "--cluster-port",
                                    str(free_port()), port=free_port()))
        done = subprocess.run(["redis-cli", "--cluster", "create",
                               *[f"127.0.0.1:{node.port}" for node in self.nodes],
                               "--cluster-replicas", "1", "--cluster-yes"], text=True, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert done.returncode == 0, done.stdout
        wait_until(lambda: all("cluster_state:ok" in node.cli("cluster", "info")
                               for node in self.nodes), 30)
        wait_until(lambda: sum("role:slave" in node.cli("info", "replication") and
                               "master_link_status:up" in node.cli("info", "replication")
                               for node in self.nodes) == 3, 30)

    @property
    def url(self):
        return self.nodes[0].url

    def node_of(self, job):
        """The master that has a job."""
        slot = int(self.nodes[0].cli("cluster", "keyslot", f"{{{job}}}"))
        for line in self.nodes[0].cli("cluster", "nodes").splitlines():
            words = line.split()
            if "master" not in words[2]:
                continue
            for span in words[8:]:
                first, _, last = span.partition("-")
                if int(first) <= slot <= int(last or first):
                    port = int(words[1].split("@")[0].rpartition(":")[2])
                    return next(node for node in self.nodes if node.port == port)
        raise AssertionError("nobody has the job")

    def kill(self):
        for node in self.nodes:
            node.kill()


CLICKHOUSE = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/err</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{inter}</interserver_http_port><listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
<remote_servers><fleet>{shards}</fleet></remote_servers></yandex>"""
USERS = """<yandex><profiles><default><max_memory_usage>4000000000</max_memory_usage></default>
</profiles><users><default><password>{password}</password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users><quotas><default><interval>
<duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows>
<read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas></yandex>"""


class ClickHouse(Process):
    def __init__(self, folder, ports=None, shards=(), password=""):
        folder.mkdir(parents=True, exist_ok=True)
        self.http, self.tcp, inter = ports or (free_port(), free_port(), free_port())
        listed = "".join(f"<shard><replica><host>127.0.0.1</host><port>{tcp}</port></replica></shard>"
                         for tcp in shards or [self.tcp])
        (folder / "config.xml").write_text(CLICKHOUSE.format(
            folder=folder, http=self.http, tcp=self.tcp, inter=inter, shards=listed))
        (folder / "users.xml").write_text(USERS.format(password=password))
        super().__init__(["clickhouse-server", f"--config-file={folder}/config.xml"], folder)
        wait_until(lambda: answers(self.http), 60)

    @property
    def url(self):
        return f"clickhouse://127.0.0.1:{self.http}"


class ClickHouseShards:
    """Two servers, a Distributed table over both."""

    def __init__(self, folder):
        ports = [(free_port(), free_port(), free_port()) for _ in range(2)]
        self.servers = [ClickHouse(folder / str(index), three, [tcp for _, tcp, _ in ports])
                        for index, three in enumerate(ports)]

    @property
    def url(self):
        hosts = ",".join(f"127.0.0.1:{server.http}" for server in self.servers)
        return f"clickhouse://{hosts}/fleet?cluster=fleet"

    def kill(self):
        for server in self.servers:
            server.kill()


ENGINES = {"redis": (Redis, "redis-server"), "cluster": (RedisCluster, "redis-server"),
           "clickhouse": (ClickHouse, "clickhouse-server"),
           "shards": (ClickHouseShards, "clickhouse-server")}


def missing(name):
    program = ENGINES[name][1]
    return None if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") else program


class Serve(Process):
    """`sonde serve` on a free port; `ask` speaks HTTP with it."""

    def __init__(self, sonde, environment, folder, *options, store=None, port=None):
        folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.token = None
        words = [sonde, "serve", "--data", folder / "data", "--port", self.port, *options]
        if store:
            words += ["--store", store]
        super().__init__(words, folder, env=environment)
        self.wait()

    def wait(self, seconds=30):
        def up():
            assert self.process.poll() is None, self.output
            return answers(self.port)
        wait_until(up, seconds)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self):
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]

    def raw(self, path, data=None, method=None, headers=None, timeout=30):
        """Status, headers and body of an answer."""
        if isinstance(data, (dict, list)):
            data = json.dumps(data).encode()
        elif isinstance(data, str):
            data = data.encode()
        request = urllib.request.Request(self.url + path, data, headers or {}, method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                endless = (answer.headers["Content-Type"] or "").startswith("text/event-stream")
                return answer.status, answer.headers, b"" if endless else answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.headers, refused.read()

    def ask(self, path, data=None, method=None, status=200, **more):
        got, _, body = self.raw(path, data, method, **more)
        assert got == status or (status == 200 and got in (201, 202)), (path, got, body[:500])
        return json.loads(body) if body else None

    def push(self, job, key, counts=None, **more):
        """counts: {function: value} of event cpu."""
        rows = [{"executable": "app", "function": name, "events": {"cpu": value}}
                for name, value in (counts or {}).items()]
        return self.ask(f"/api/jobs/{job}/batches", {"key": key, "counts": rows, **more})

    def value(self, job, function, event="cpu"):
        table = self.ask(f"/api/jobs/{job}/profile")
        column = table["columns"].index(event) if event in table["columns"] else None
        return sum(row["values"][column] for row in table["rows"] if row["function"] == function) \
            if column is not None else 0
