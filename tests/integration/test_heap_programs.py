"""Programs that people use, with the heap agent and without: the same output and status, every allocation
accounted for; counts as heaptrack's; and servers that answer the same, of which each byte has a stack."""

import contextlib
import hashlib
import http.client
import re
import shutil
import socket
import subprocess

import pytest

from runs import run, wait_until
from test_heap import LIBRARIES, watch  # noqa: F401

REPOSITORY = """git init -q . && git config user.name a && git config user.email a@b &&
for i in 1 2 3 4; do seq $i 500 > f$i; git add f$i; GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' \
GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' git commit -q -m c$i; done &&
git gc -q && git log --stat --format=%H && git diff HEAD~2 HEAD --shortstat"""
SHELL = """a=(); for i in {1..3000}; do a+=("$i:${RANDOM:0:0}x"); done; echo "${#a[@]} ${a[2999]}"
(cd / && echo *) | tr ' ' '\\n' | sort | head -n 5; f() { local x=$1; ((x > 0)) && f $((x - 1)); }; f 200; echo "$(f 3)$?"
trap 'echo bye' EXIT; kill -USR1 $$ 2>/dev/null & wait; exit 3"""
PYTHON = """
import json, re, subprocess, threading
rows = [{"n": n, "text": str(n) * 20} for n in range(3000)]
print(len(json.dumps(rows)), sum(int(m) for m in re.findall(r'"n": (\\d+)', json.dumps(rows))))
threads = [threading.Thread(target=lambda: sorted(str(i) for i in range(20000))) for _ in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
print(subprocess.run(["sh", "-c", "echo child; exit 5"], capture_output=True).returncode)
"""
SQL = """create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
insert into t select i, hex(i * 7919) from n;
create index at on t(b); select count(*), sum(length(b)), max(b) from t where b > '4';
select group_concat(b) from (select b from t order by b desc limit 9); drop table nothing;"""
PROGRAMS = {
    "bash": ["bash", "-c", SHELL], "git": ["sh", "-c", REPOSITORY],
    "python3": ["/usr/bin/python3", "-c", PYTHON], "sqlite3": ["sqlite3", ":memory:", SQL],
    "gcc": ["sh", "-c", "gcc -O2 -g -o prog prog.c && ./prog && gcc -S -O1 -g0 -o - prog.c; gcc -c wrong.c"],
}
SOURCE = '#include <stdio.h>\nint main(void) { for (int i = 0; i < 9; i++) printf("%d\\n", i * i); return 0; }\n'


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"there is no {program}")


@pytest.mark.parametrize("options", [[], ["-s", "4096"]], ids=["exact", "sampled"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_not_notice(watch, tmp_path, name, options):  # noqa: F811
    needs(name)
    said = []
    for way in ("alone", "under"):
        folder = tmp_path / way
        folder.mkdir()
        (folder / "prog.c").write_text(SOURCE)
        (folder / "wrong.c").write_text("int main(void) { return nothing; }\n")
    alone = run(PROGRAMS[name], env=watch.environment, cwd=tmp_path / "alone")
    under, heaps = watch.run(PROGRAMS[name], options, cwd=tmp_path / "under")
    for done in (alone, under):
        said.append((done.status, done.stdout, done.stderr))
    assert said[0] == said[1]
    assert heaps.generated > 1000 or options
    for process in heaps.processes:
        assert process["generated"] == process["recorded"] + process["lost"] and not process["damaged"], process


@pytest.mark.parametrize("command", [["sqlite3", ":memory:", SQL], ["sort", "/etc/services"]], ids=lambda c: c[0])
def test_counts_are_heaptracks(watch, tmp_path, command):  # noqa: F811
    needs("heaptrack", "heaptrack_print", command[0])
    done = run(["heaptrack", "-o", tmp_path / "track", *command], env=watch.environment, timeout=120)
    track, = tmp_path.glob("track.*")
    told = run(["heaptrack_print", "-f", track], env=watch.environment, timeout=120).stdout
    calls = int(re.search(r"calls to allocation functions: (\d+)", told).group(1))
    peak = size_of(re.search(r"peak heap memory consumption: (\S+)", told).group(1))
    leaked = size_of(re.search(r"total memory leaked: (\S+)", told).group(1))
    # Its library is in C++, whose own library allocates once for exceptions to come, and has that freed at the end.
    library = (LIBRARIES / "libstdc++.so.6").resolve()
    under, heaps = watch.run(command, preload=library)
    process, = heaps.processes
    assert under.stdout in done.stdout  # heaptrack adds words of its own
    assert process["allocations"] == calls
    # It rounds to three digits, and the environment of the two is not equally long.
    assert abs(process["peak"] - peak) <= 0.006 * peak + 512
    live = process["live"] - heaps.of(library)[2]
    assert abs(live - leaked) <= 0.006 * leaked + 512


def size_of(text):
    number, unit = re.fullmatch(r"([\d.]+)([BKMG])", text).groups()
    return float(number) * 1000 ** "BKMG".index(unit)


@contextlib.contextmanager
def serving(command, port, **more):
    """The body has it stopped; how it ended is in the list that is given."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, start_new_session=True, **more)
    ended = []

    def answers():
        assert process.poll() is None, process.stderr.read()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False
    try:
        wait_until(answers, 60)
        yield ended
        ended.append(process.wait(60))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stderr.close()


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def accounts_of(sonde, recording):
    answer = sonde("report", recording, "--heap", "--top", "0", "--json")
    assert answer.status == 0, answer
    sections = answer.json["sections"]
    facts = sections["profiler"]["facts"]
    assert facts["allocations_generated"] == facts["allocations_recorded"] + facts["allocations_lost"] > 0, facts
    assert facts["allocations_lost"] == 0, facts
    return sections


NGINX = """daemon off; master_process on; worker_processes 2; pid {folder}/pid; error_log {folder}/error.log;
user root; events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  gzip on; gzip_min_length 1; gzip_types text/plain;
  server {{ listen 127.0.0.1:{port}; root {folder}/www; default_type text/plain;
    location /again/ {{ proxy_pass http://127.0.0.1:{port}/; }}
    location /said {{ return 200 "said $arg_x\\n"; }} }} }}
"""


def nginx_answers(port):
    """What it says to a few hundred requests, of several kinds."""
    digest = hashlib.sha256()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    paths = ["/small", "/large", "/again/small", "/again/large", "/none", "/said?x=1", "/../x"]
    for i in range(210):
        connection.request("GET", paths[i % len(paths)], headers={"Accept-Encoding": "gzip"} if i % 2 else {})
        answer = connection.getresponse()
        digest.update(f"{answer.status} {answer.reason} {answer.getheader('Content-Encoding')}".encode())
        digest.update(answer.read())
    connection.close()
    return digest.hexdigest()


@pytest.mark.parametrize("mode", ["exact", "sampled"])
def test_nginx_answers_the_same(sonde, sonde_path, environment, tmp_path, mode):
    needs("nginx")
    (tmp_path / "www").mkdir()
    (tmp_path / "www/small").write_text("small\n")
    (tmp_path / "www/large").write_text("".join(f"line {i}\n" for i in range(20000)))
    (tmp_path / "www").chmod(0o755)
    port = free_port()
    (tmp_path / "nginx.conf").write_text(NGINX.format(folder=tmp_path, port=port))
    command = ["nginx", "-c", tmp_path / "nginx.conf", "-p", tmp_path]
    recording = tmp_path / "nginx.sonde"
    heard, statuses = [], []
    for before in ([], [sonde_path, "run", "-q", f"--heap={mode}", "-o", recording, "--"]):
        with serving([*before, *command], port, env=environment) as ended:
            heard.append(nginx_answers(port))
            assert run([*command, "-s", "quit"], env=environment).status == 0
        statuses += ended
    assert heard[0] == heard[1] and statuses == [0, 0]
    assert "alert" not in (tmp_path / "error.log").read_text()
    sections = accounts_of(sonde, recording)
    assert len(sections["heaps"]["rows"]) == 3  # the master and its workers


def redis_says(port):
    """Redis under the load of its own benchmark, then a digest of what it holds."""
    load = run(["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-n", "4000", "-c", "20", "-t",
                "set,get,lpush,sadd,zadd,hset", "-r", "500", "-d", "60", "-q"], timeout=120)
    assert load.status == 0, load

    def ask(*words):
        return run(["redis-cli", "-p", str(port), *words]).stdout
    script = """redis.call('flushall'); for i = 1, 2000 do redis.call('set', 'k' .. i, string.rep('x', i % 97))
        redis.call('rpush', 'l' .. i % 7, i); redis.call('zadd', 'z', i % 13, i); end return redis.call('dbsize')"""
    return ask("eval", script, "0") + ask("debug", "digest") + ask("lrange", "l3", "0", "-1") + ask("zcard", "z")


@pytest.mark.parametrize("mode", ["exact", "sampled"])
def test_redis_answers_the_same_and_is_attributed(sonde, sonde_path, environment, tmp_path, mode):
    needs("redis-server", "redis-benchmark")
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path,
               "--enable-debug-command", "yes"]
    recording = tmp_path / "redis.sonde"
    heard, statuses = [], []
    for before in ([], [sonde_path, "run", "-q", f"--heap={mode}", "--heap-interval", "4K", "-o", recording, "--"]):
        with serving([*before, *command], port, env=environment) as ended:
            heard.append(redis_says(port))
            run(["redis-cli", "-p", str(port), "shutdown", "nosave"])
        statuses += ended
    assert heard[0] == heard[1] and heard[0].startswith("20") and statuses == [0, 0]
    sections = accounts_of(sonde, recording)
    rows = sections["live"]["rows"]
    known = sum(row["value"] for row in rows if re.search(r"\b(main|start_thread|call_init)\b", row["whole_stack"]))
    assert known >= 0.999 * sum(row["value"] for row in rows) > 500000, [row["whole_stack"] for row in rows]
    assert {"createSharedObjects", "initServer"} <= set(re.findall(r"\w+", " ".join(r["whole_stack"] for r in rows)))
