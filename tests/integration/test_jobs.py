"""Jobs as people use them: server, create, two clients at once, list, dump, remove; pushes that wait
for a server; clients of one's own."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys
import threading
import urllib.request

import pytest
import yaml

from runs import run, wait_until


@pytest.fixture
def at(serve, environment, tmp_path):
    """A server, and sonde's commands turned to it."""
    server = serve()
    environment["SONDE_SERVER"] = server.url
    environment["SONDE_SPOOL"] = str(tmp_path / "spool")
    return server


def bench_batch(number):
    return {"key": f"bench-{number}", "host": "bench1",
            "bench": [{"name": "app", "run": {"real": 1.5 + number / 10, "cycles": 1000 + number,
                                              "branch-misses": number}}]}


def test_walk_through(sonde, at, target, tmp_path):
    """The whole of it: one client profiles while another one benchmarks, on the same job."""
    made = sonde("job", "create", "--id", "2001", "--info", "the first experiment")
    assert made.status == 0 and made.stdout == "2001\n", made
    assert sonde("job", "create", "--id", "2001").status != 0
    assert "taken" in (again := sonde("job", "create", "--id", "2001")).stderr or \
        "already" in again.stderr
    for wrong in ("2000", "10000", "0", "x"):
        assert sonde("job", "create", "--id", wrong).status == 2
    assert sonde("job", "create", "--info", "next").stdout == "2002\n"

    results = {}

    def profile():
        results["profile"] = sonde("run", "--to", at.url, "--job", "2001", "--keep", "-e",
                                   "cpu,page-faults", "--", target("shares"))

    def bench():
        for number in range(10):
            at.ask("/api/jobs/2001/batches", bench_batch(number))

    clients = [threading.Thread(target=profile), threading.Thread(target=bench)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert results["profile"].status == 0, results["profile"]
    assert "added to job 2001" in results["profile"].stderr

    listed = sonde("job", "list")
    assert "2001" in listed.stdout and "the first experiment" in listed.stdout, listed
    shown = sonde("job", "show", "2001")
    assert "10 benchmark runs" in shown.stdout and "1 recording\n" in shown.stdout, shown
    assert "page-faults" in shown.stdout

    dumped = tmp_path / "profile.csv"
    assert sonde("job", "show", "2001", "--profile", "-o", dumped).status == 0
    rows = list(csv.DictReader(io.StringIO(dumped.read_text())))
    assert {"executable", "function", "cpu", "page-faults"} <= set(rows[0])
    assert {row["executable"] for row in rows} == {"shares"}
    total = sum(int(row["cpu"]) for row in rows)
    work = sum(int(row["cpu"]) for row in rows if row["function"] == "work")
    assert total > 1e8 and work > 0.8 * total, rows
    dumped = tmp_path / "bench.json"
    assert sonde("job", "show", "2001", "--bench", "-o", dumped).status == 0
    runs = json.loads(dumped.read_text())["runs"]
    assert [entry["run"]["branch-misses"] for entry in runs] == list(range(10))
    as_csv = sonde("job", "show", "2001", "--bench", "--format", "csv").stdout.splitlines()
    assert "real,cycles,branch-misses" in as_csv[0] and len(as_csv) == 11

    key = at.ask("/api/jobs/2001/recordings")["recordings"][0]["key"]
    kept = tmp_path / "kept.sonde"
    assert sonde("job", "show", "2001", "--recording", key, "-o", kept).status == 0
    assert "work" in sonde("report", kept).stdout

    refused = sonde("job", "remove", "2001")
    assert refused.status == 2 and "--yes" in refused.stderr
    assert sonde("job", "remove", "2001", "--yes").status == 0
    assert sonde("job", "show", "2001").status == 1
    assert "2001" not in sonde("job", "list").stdout


def test_walk_through_by_commands_alone(sonde, at, target, started, sonde_path, tmp_path):
    """As the tools of before were used: create, profile and benchmark at once from two clients, list,
    dump both, remove; nothing but sonde's own commands."""
    server = ("--server", at.url)
    assert sonde("job", "create", "--id", "2001", "--info", "branch of Monday", *server).stdout == "2001\n"
    profiling = started([sonde_path, "run", "--to", at.url, "--job", "2001", "-e", "cpu,page-faults", "--",
                         target("shares")])
    benchmark = started([sonde_path, "bench", "--to", at.url, "--job", "2001", "-n", "6", "-w", "1",
                         "--no-functions", "-e", "context-switches", "--", target("short"), 5])
    for client in (profiling, benchmark):
        _, err = client.communicate(timeout=120)
        assert client.returncode == 0 and "added to job 2001" in err, err

    listed = sonde("job", "list", *server).stdout
    assert "2001" in listed and "branch of Monday" in listed
    dumped = tmp_path / "benchmark.json"
    assert sonde("job", "show", "2001", "--bench", "-o", dumped, *server).status == 0
    runs = json.loads(dumped.read_text())["runs"]
    assert [entry["run"]["session"]["round"] for entry in runs] == [1, 2, 3, 4, 5, 6]
    assert {entry["name"] for entry in runs} == {"short"}
    assert len({entry["run"]["session"]["key"] for entry in runs}) == 1
    for entry in runs:
        assert 0 < entry["run"]["real"] < 60 and entry["run"]["page faults"] > 0
        assert {"user", "sys", "switches", "forced switches", "context-switches"} <= set(entry["run"])
    dumped = tmp_path / "profiling.csv"
    assert sonde("job", "show", "2001", "--profile", "-o", dumped, *server).status == 0
    rows = list(csv.DictReader(io.StringIO(dumped.read_text())))
    assert max(rows, key=lambda row: int(row["cpu"]))["function"] == "work"
    assert sum(int(row["page-faults"]) for row in rows) > 0

    assert sonde("job", "remove", "2001", "--yes", *server).status == 0
    assert "2001" not in sonde("job", "list", *server).stdout


def test_benchmarks_have_a_history(sonde, at, target):
    """Each round of two variants is there with its functions; one that found no server waits."""
    sonde("job", "create", "--id", "2001")
    compare = ("bench", "-n", "3", "-w", "0", "--job", "2001", "--compare",
               f"old={target('mixture')} 20000", f"new={target('mixture')} 20000 1300")
    done = sonde(*compare)
    assert done.status == 0 and "3 rounds added to job 2001" in done.stderr, done
    runs = at.ask("/api/jobs/2001/bench")["runs"]
    assert [(entry["name"], entry["run"]["session"]["round"]) for entry in runs] == \
        [(name, number) for number in (1, 2, 3) for name in ("old", "new")]
    functions = {entry["function"]: entry["seconds"] for entry in runs[0]["run"]["functions"]}
    assert {"reading", "suspect", "writing"} <= set(functions) and 0 < functions["suspect"] < 60
    assert runs[1]["run"]["command"].endswith("20000 1300")
    at.kill()
    done = sonde(*compare)
    assert done.status == 0 and "3 parts wait on disk" in done.stderr, done
    at.start()
    at.wait()
    assert "3 parts sent" in sonde("push", "--flush").stderr
    assert "0 parts sent" in sonde("push", "--flush").stderr
    runs = at.ask("/api/jobs/2001/bench")["runs"]
    assert len(runs) == 12 and len({entry["run"]["session"]["key"] for entry in runs}) == 2
    missing = sonde("bench", "-n", "1", "--job", "2002", "--", "true")
    assert missing.status == 1 and "no job 2002" in missing.stderr
    assert sonde("bench", "-n", "1", "--to", at.url, "--", "true").status == 2
    shown = sonde("job", "show", "2001", "--bench").stdout
    medians = [line.split()[:2] for line in shown.partition("Medians")[2].splitlines()[1:]]
    assert medians[:5] == [["3", "old"], ["3", "new"]] * 2 + [[]], shown


def test_what_people_read(sonde, at, tmp_path, environment):
    """Tables fit a terminal of 80 columns; one is one; what is not there is said, not left blank."""
    environment["COLUMNS"] = "80"
    sonde("job", "create", "--id", "2001", "--info", "a description that goes on and on " * 8)
    for kind, hint in (("--profile", "sonde run --to"), ("--bench", "sonde bench"), ("--recordings", "--keep")):
        shown = sonde("job", "show", "2001", kind)
        assert shown.status == 0 and not shown.stdout and hint in shown.stderr, shown
    measures = {"real": 0.0215, "user": 0.0203, "sys": 0.001, "page faults": 1234567, "switches": 12,
                "forced switches": 345, "a counter with a long name": 1, "instructions": 10 ** 15}
    at.push(2001, "bench", {"f": 1}, bench=[{"name": "namespace::program" * 5, "run": measures}])
    shown = sonde("job", "show", "2001")
    assert "1 push · 1 benchmark run · 0 recordings" in shown.stdout, shown
    bench = sonde("job", "show", "2001", "--bench")
    assert bench.stdout.count("21.5 ms") == bench.stdout.count("1,234,567") == 2, bench  # median, and run
    for text in (shown.stdout, bench.stdout, sonde("job", "list").stdout):
        assert max(map(len, text.splitlines())) <= 80, text
    assert "1000000000000000" in sonde("job", "show", "2001", "--bench", "--format", "csv").stdout
    folded = tmp_path / "a.folded"
    folded.write_text("main;parse 10\n")
    assert "1 part sent" in sonde("push", "--job", "2001", folded).stderr
    assert "nothing was added" in sonde("push", "--job", "2001", folded).stderr
    missing = sonde("push", "--job", "2001", tmp_path / "missing").stderr
    assert missing.count("missing:") == 1, missing
    at.kill()
    assert "Connection refused; is 'sonde serve' running" in sonde("job", "list").stderr


def test_counts_are_added(sonde, at, tmp_path):
    """(old) 10 + (new) 7 = 17, and a new event is a new column."""
    sonde("job", "create", "--id", "2001")
    for name, lines in (("a", "main;parse 10\n"), ("b", "main;parse 7\nmain;emit 2\n")):
        folded = tmp_path / f"{name}.folded"
        folded.write_text(lines)
        pushed = sonde("push", "--job", "2001", folded)
        assert pushed.status == 0, pushed
    sonde("push", "--job", "2001", tmp_path / "a.folded")  # again: counts once
    assert at.value(2001, "parse", "samples") == 17
    sonde("push", "--again", "--job", "2001", tmp_path / "a.folded")
    assert at.value(2001, "parse", "samples") == 27
    (tmp_path / "c.folded").write_text("main;other 1\n")
    both = sonde("push", "--job", "2001", tmp_path / "a.folded", tmp_path / "c.folded").stderr
    assert "2 parts sent" in both and "1 had been there already" in both
    at.push(2001, "other", {"parse": 5})
    table = at.ask("/api/jobs/2001/profile")
    assert set(table["columns"]) == {"samples", "cpu"}
    folded = sonde("job", "show", "2001", "--profile", "-e", "samples", "--format", "folded").stdout
    assert "main;parse 27" in folded and "main;emit 2" in folded


def test_server_away(sonde, at, tmp_path):
    """Pushes wait on disk, and each is sent once when the server is there."""
    sonde("job", "create", "--id", "2001")
    at.kill()
    for number in range(3):
        folded = tmp_path / f"{number}.folded"
        folded.write_text(f"main;parse {10 + number}\n")
        pushed = sonde("push", "--job", "2001", folded)
        assert pushed.status == 0 and "wait" in pushed.stderr, pushed
    assert len(list((tmp_path / "spool").glob("*.part"))) == 3
    at.start()
    at.wait()
    assert "3 parts sent" in sonde("push", "--flush").stderr
    assert not list((tmp_path / "spool").glob("*.part"))
    assert at.value(2001, "parse", "samples") == 33
    sonde("push", "--flush")
    assert at.value(2001, "parse", "samples") == 33


def test_run_streams(sonde, at, started, sonde_path, tmp_path, recording):
    """What a program does is at the server while it still runs; the sum at the end is exact."""
    sonde("job", "create", "--id", "2001")
    file = tmp_path / "go-on"
    file.touch()
    running = started([sonde_path, "run", "--to", at.url, "--job", "2001", "--keep", "--",
                       "sh", "-c", f"while [ -e {file} ]; do :; done; exit 124"])
    wait_until(lambda: at.ask("/api/jobs/2001")["batches"] >= 1, 30)
    assert running.poll() is None
    early = sum(event["value"] for event in at.ask("/api/jobs/2001")["events"])
    assert early > 0
    file.unlink()
    running.communicate(timeout=60)
    assert running.returncode == 124
    events = {event["name"]: event["value"] for event in at.ask("/api/jobs/2001")["events"]}
    kept = tmp_path / "kept.sonde"
    key = at.ask("/api/jobs/2001/recordings")["recordings"][0]["key"]
    assert sonde("job", "show", "2001", "--recording", key, "-o", kept).status == 0
    assert events["cpu"] == recording(kept).report().facts("totals")["value_recorded"] > early


def test_run_without_job(sonde, at, target):
    missing = sonde("run", "--to", at.url, "--job", "2001", "--", target("short"))
    assert missing.status == 125 and "no job 2001" in missing.stderr
    half = sonde("run", "--to", at.url, "--", target("short"))
    assert half.status == 2
    at.ask("/api/jobs", {"id": 2001})
    nothing = sonde("run", "--to", at.url, "--job", "2001", "--", "/no/such/program")
    assert nothing.status == 127 and len(nothing.stderr.splitlines()) == 1, nothing


def test_run_server_away(sonde, at, target, tmp_path):
    sonde("job", "create", "--id", "2001")
    at.kill()
    made = sonde("run", "--to", at.url, "--job", "2001", "--", target("shares"))
    assert made.status == 0 and "waits on disk" in made.stderr, made
    assert "part waits on disk until" in made.stderr and "added to job" not in made.stderr, made
    at.start()
    at.wait()
    sonde("push", "--flush")
    assert at.value(2001, "work") > 1e8


def test_many_clients(at):
    """40 clients at once on one job, each push sent twice: nothing lost, nothing counted twice."""
    at.ask("/api/jobs", {"id": 2001})
    failures = []

    def client(number):
        try:
            for part in range(5):
                for _ in range(2):
                    at.push(2001, f"{number}-{part}", {"hot": 3, f"own{number}": 1})
        except AssertionError as failure:
            failures.append(failure)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(40)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert not failures, failures[0]
    assert at.value(2001, "hot") == 40 * 5 * 3
    assert at.value(2001, "own7") == 5
    assert at.ask("/api/jobs/2001")["batches"] == 200


def test_pyroscope(at):
    """What a client of Pyroscope sends, in the forms that it has, also twice."""
    folded = "main;serve;parse 30\nmain;serve;emit 10\n"
    path = "/ingest?name=web.cpu%7Bhostname%3Dweb1%2Cregion%3Deu%7D&from=100&until=110" \
           "&sampleRate=100&spyName=pyspy"
    first = at.ask(path, folded)
    assert at.ask(path, folded)["duplicate"] and not first["duplicate"]
    job = at.ask("/api/jobs")["jobs"][0]
    assert job["info"] == "web"
    assert at.value(job["id"], "parse") == 300_000_000  # 30 samples of 10 ms
    profile = at.raw(f"/debug/pprof/profile?job={job['id']}")[2]
    assert gzip.decompress(profile)
    pprof = at.ask("/ingest?name=web.cpu&from=1&until=2&format=pprof", profile)
    assert pprof["counts"] > 0
    edge = "----edge"
    form = (f'--{edge}\r\nContent-Disposition: form-data; name="profile"; filename="p"\r\n\r\n'
            ).encode() + profile + f"\r\n--{edge}--\r\n".encode()
    assert at.ask("/ingest?name=web.cpu&from=3&until=4", form, headers={
        "Content-Type": f"multipart/form-data; boundary={edge}"})["counts"] > 0
    assert at.value(job["id"], "parse") == 900_000_000
    at.ask("/ingest?name=web.cpu&format=jfr", b"x", status=400)
    at.ask("/ingest", b"x", status=400)


def test_pyroscope_finds_its_job(at):
    """Whatever happened to the job since the last profile of the application."""
    at.ask("/api/jobs", {"id": 2001, "info": "other"})
    path = "/ingest?name=web.cpu&from="
    at.ask(path + "1", "main;f 1\n")
    at.ask(path + "2", "main;f 2\n")
    assert at.value(2002, "f") == 30_000_000
    at.ask("/api/jobs/2002", method="DELETE", status=204)
    at.ask("/api/jobs", {"id": 2002, "info": "not that one"})
    at.ask(path + "3", "main;f 4\n")
    jobs = {job["info"]: job["id"] for job in at.ask("/api/jobs")["jobs"]}
    assert at.value(jobs["web"], "f") == 40_000_000 and at.value(2002, "f") == 0


def test_pyroscope_makes_no_more_jobs_than_allowed(serve):
    server = serve("--jobs-max", "2")
    for name in ("one", "two"):
        server.ask(f"/ingest?name={name}.cpu", "main;f 1\n")
    refused = server.raw("/ingest?name=three.cpu", "main;f 1\n")
    assert refused[0] == 507 and b"--jobs-max" in refused[2]
    server.ask("/ingest?name=two.cpu&from=5", "main;f 1\n")


def test_pieces_of_a_body_are_all_read(at):
    """gzip and zstd may come in several pieces; what follows them is no part."""
    at.ask("/api/jobs", {"id": 2001})
    whole = json.dumps({"key": "k", "counts": [{"executable": "a", "function": "f",
                                                "events": {"cpu": 5}}]}).encode()
    pieces = gzip.compress(whole[:20]) + gzip.compress(whole[20:])
    headers = {"Content-Encoding": "gzip"}
    assert at.raw("/api/jobs/2001/batches", pieces + b"more", headers=headers)[0] == 400
    at.ask("/api/jobs/2001/batches", pieces, headers=headers)
    assert at.value(2001, "f") == 5


def test_pyroscope_at_once(at):
    """The first profiles of an application come from many machines at once: one job has them all."""
    ready = threading.Barrier(16)

    def client(number):
        ready.wait()
        at.ask(f"/ingest?name=fleet.cpu%7Bhost%3Dweb{number}%7D&from={number}", f"main;f{number} 1\n")

    clients = [threading.Thread(target=client, args=(number,)) for number in range(16)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    jobs = at.ask("/api/jobs")["jobs"]
    assert [(job["info"], job["batches"]) for job in jobs] == [("fleet", 16)]


def test_scraped_pprof(at, tmp_path):
    """What a scraper pulls, read by pprof itself."""
    at.ask("/api/jobs", {"id": 2001})
    at.ask("/api/jobs/2001/batches", {"key": "k", "stacks": [
        {"executable": "app", "stack": "main;parse", "events": {"cpu": 30_000_000}},
        {"executable": "app", "stack": "main;emit", "events": {"cpu": 10_000_000}}]})
    file = tmp_path / "p.pb.gz"
    file.write_bytes(at.raw("/debug/pprof/profile?job=2001")[2])
    top = run(["go", "tool", "pprof", "-top", file]).stdout
    assert "30ms 75.00%" in top and "main" in top, top
    at.ask("/debug/pprof/profile?job=2002", status=404)
    at.ask("/debug/pprof/nothing?job=2001", status=404)


def test_scraped_for_a_while(at, tmp_path):
    """?seconds=: what is added in that time and nothing of before, while others are served."""
    at.ask("/api/jobs", {"id": 2001})
    stack = {"executable": "app", "stack": "main;before", "events": {"cpu": 30_000_000}}
    at.ask("/api/jobs/2001/batches", {"key": "k", "stacks": [stack]})
    answers = []

    def scrape():
        answers.append(at.raw("/debug/pprof/profile?job=2001&seconds=2"))

    clients = [threading.Thread(target=scrape) for _ in range(40)]  # more than there are threads
    for client in clients:
        client.start()
    number = 0
    while any(client.is_alive() for client in clients):
        number += 1
        at.ask("/api/jobs/2001/batches", {"key": f"k{number}", "stacks": [
            {**stack, "stack": "main;during", "events": {"cpu": 1_000_000}}]})
    assert [status for status, _, _ in answers] == [200] * 40
    file = tmp_path / "p.pb.gz"
    file.write_bytes(answers[0][2])
    top = run(["go", "tool", "pprof", "-top", file]).stdout
    assert "during" in top and "before" not in top, top
    for wrong in ("job=2001&seconds=-1", "job=2001&seconds=86400", "seconds=1"):
        at.ask(f"/debug/pprof/profile?{wrong}", status=400)
    at.ask("/debug/pprof/profile?job=2002&seconds=1", status=404)


def test_compare(at):
    for job, value in ((2001, 10), (2002, 30)):
        at.ask("/api/jobs", {"id": job})
        at.push(job, "k", {"parse": value, "same": 5})
    table = at.ask("/api/compare?a=2001&b=2002&event=cpu")
    assert table["columns"] == ["2001", "2002"]
    assert {row["function"]: row["values"] for row in table["rows"]} == \
        {"parse": [10, 30], "same": [5, 5]}
    at.push(2001, "k2", {"only": 7, "more": 6})
    at.push(2002, "k2", {"more": 90})
    table = at.ask("/api/compare?a=2001&b=2002&event=cpu&top=2")
    assert {row["function"]: row["values"] for row in table["rows"]} == \
        {"more": [6, 90], "parse": [10, 30]}


def test_watched_live(at):
    """What many machines add is told of as it is added."""
    at.ask("/api/jobs", {"id": 2001})
    with urllib.request.urlopen(at.url + "/api/jobs/live", timeout=30) as stream:
        lines = (line.decode().strip() for line in stream)
        assert "event: reset" in next(line for line in lines if line.startswith("event"))
        at.push(2001, "k", {"f": 1, "g": 2}, host="web1")
        at.push(2001, "k", {"f": 1, "g": 2}, host="web1")  # sent again: nothing is added
        at.push(2001, "k2", {}, host="web2", bench=[{"name": "app", "run": {"real": 1}}])
        told = []
        while len(told) < 2:
            line = next(line for line in lines if line.startswith("data:") and "batches" in line)
            told += json.loads(line.removeprefix("data:"))["batches"]
    assert [(one["job"], one["host"], one["counts"], one["runs"]) for one in told] == \
        [(2001, "web1", 2, 0), (2001, "web2", 0, 1)]


def test_metrics(at):
    at.ask("/api/jobs", {"id": 2001})
    at.push(2001, "k", {"f": 1})
    text = at.raw("/metrics")[2].decode()
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples["sonde_batches_total"] == "1"
    assert samples["sonde_store_up"] == "1"
    assert int(samples["sonde_http_requests_total"]) >= 2


def test_python_client(at, root, environment):
    """The example of docs, as it stands there."""
    done = run([sys.executable, root / "examples/job_client.py"],
               env={**environment, "PYTHONPATH": str(root / "python")})
    assert done.status == 0, done
    assert "parse" in done.stdout and "17" in done.stdout


def test_c_client(at, root, environment, tmp_path):
    program = tmp_path / "client"
    subprocess.run(["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", root / "include",
                    root / "examples/job_client.c", "-lcurl", "-o", program], check=True)
    done = run([program], env=environment)
    assert done.status == 0, done
    job = int(done.stdout.split()[-1])
    assert at.value(job, "parse", "cache-misses") == 17


def resolve(document, item):
    while "$ref" in item:
        names, item = item["$ref"].removeprefix("#/").split("/"), document
        for name in names:
            item = item[name]
    return item


def test_api_document(at, root):
    """Every route of the document is there, and every route that is there is in the document."""
    text = (root / "docs/API.md").read_text()
    routes = "".join((root / "src/serve" / name).read_text() for name in ("jobs.c", "shelf.c"))
    for line in routes.splitlines():
        if '"/' in line and "HTTP_" in line and '"/*"' not in line:
            path = line.split('"')[1]
            assert path in text, f"{path} is not in docs/API.md"
    document = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    documented = {(method.upper(), path) for path, item in document["paths"].items()
                  for method in item if method != "parameters"}
    there = {tuple(found) for found in re.findall(r'\{HTTP_([A-Z]+), "([^"]+)"', routes)}
    assert documented == there - {("GET", "/*")}  # the page's own files
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            stated = [resolve(document, one) for one in item.get("parameters", []) + operation.get("parameters", [])]
            assert all(one["in"] in ("path", "query") and "type" in one["schema"] for one in stated), path
            assert {one["name"] for one in stated if one["in"] == "path"} == set(re.findall(r"{(\w+)}", path))
            assert operation["summary"] and operation["responses"], path
