"""libsonde.so preloaded by itself, for who knows gperftools: its variables, its files, its pprof."""

import re
import shutil
import signal
import subprocess
import time

import pytest

from runs import run


@pytest.fixture
def alone(build, environment):
    """alone([program, ...], CPUPROFILE=...) -> Run"""
    def start(command, **variables):
        env = {**environment, "LD_PRELOAD": str(build / "src/agent/libsonde.so"),
               **{name: str(value) for name, value in variables.items()}}
        return run(command, env=env, timeout=60)
    return start


@pytest.fixture
def pprof(tmp_path):
    if not shutil.which("go"):
        pytest.skip("go tool pprof is not installed")

    def call(program, file, *options):
        done = run(["go", "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0", *options,
                    program, file],
                   env={"PATH": "/usr/bin:/bin:/usr/lib/go/bin", "HOME": str(tmp_path),
                        "PPROF_TMPDIR": str(tmp_path)}, timeout=120)
        assert done.status == 0, done
        rows = re.findall(r"^\s*([\d.]+)(\w*)\s+[\d.]+%\s+[\d.]+%\s+([\d.]+)(\w*)\s+[\d.]+%\s+(\S+)",
                          done.stdout, re.M)
        scale = {"": 1, "ms": 1e-3, "s": 1, "B": 1, "kB": 1024, "MB": 1 << 20}
        return {name: (float(flat) * scale[unit], float(total) * scale[total_unit])
                for flat, unit, total, total_unit, name in rows}
    return call


def test_inert_without_variables(alone, target):
    bare = run([target("heap"), "simple"])
    with_it = alone([target("heap"), "simple"])
    assert (with_it.status, with_it.stdout, with_it.stderr) == (0, bare.stdout, "")


def test_cpu(alone, target, pprof, tmp_path):
    file = tmp_path / "cpu"
    bare = run([target("shares"), "3000000"])
    done = alone([target("shares"), "3000000"], CPUPROFILE=file, CPUPROFILE_FREQUENCY=200)
    assert (done.status, done.stdout, done.stderr) == (bare.status, bare.stdout, bare.stderr)
    rows = pprof(target("shares"), file)
    whole = sum(flat for flat, _ in rows.values())
    share = {name: total / whole for name, (_, total) in rows.items()}
    count = whole * 200
    spread = 3.5 * (0.25 / max(count, 1)) ** 0.5 + 0.02
    assert count > 20
    assert share["most"] == pytest.approx(0.6, abs=spread)
    assert share["some"] == pytest.approx(0.3, abs=spread)


def test_real_time_sees_sleep(alone, target, pprof, tmp_path):
    file = tmp_path / "cpu"
    done = alone(["/bin/sleep", "0.6"], CPUPROFILE=file, CPUPROFILE_REALTIME=1)
    assert done.status == 0
    words = file.read_bytes()
    assert int.from_bytes(words[8:16], "little") == 3
    assert int.from_bytes(words[24:32], "little") == 10000
    assert int.from_bytes(words[40:48], "little") > 0  # samples of something
    assert b"libc.so.6" in words


def test_a_signal_switches_and_numbers(build, environment, target, tmp_path):
    file = tmp_path / "cpu"
    env = {**environment, "LD_PRELOAD": str(build / "src/agent/libsonde.so"),
           "CPUPROFILE": str(file), "CPUPROFILESIGNAL": str(int(signal.SIGUSR2))}
    with subprocess.Popen([target("shares"), "1000000000"], env=env, stdout=subprocess.DEVNULL) as p:
        try:
            time.sleep(0.3)
            for _ in range(4):
                p.send_signal(signal.SIGUSR2)
                time.sleep(0.4)
        finally:
            p.kill()
    assert not file.exists()
    first, second = (tmp_path / name for name in ("cpu.0", "cpu.1"))
    assert first.stat().st_size > 1000 and second.stat().st_size > 1000
    assert not (tmp_path / "cpu.2").exists()


def test_heap(alone, target, pprof, tmp_path):
    done = alone([target("heap"), "simple"], HEAPPROFILE=tmp_path / "h",
                 HEAP_PROFILE_ALLOCATION_INTERVAL=100000)
    truth = dict(zip(("allocations", "bytes", "live"), map(int, done.stdout.split()), strict=False))
    files = sorted(tmp_path.glob("h.*.heap"))
    assert [f.name for f in files] == [f"h.{i:04}.heap" for i in range(1, len(files) + 1)]
    assert len(files) == 4  # three times 100000 bytes, and the end
    head = re.match(r"heap profile: +(\d+): +(\d+) \[ *(\d+): +(\d+)\] @ heapprofile",
                    files[-1].read_text())
    assert int(head[2]) == truth["live"]
    assert (int(head[3]), int(head[4])) == (truth["allocations"], truth["bytes"])
    rows = pprof(target("heap"), files[-1], "-sample_index=inuse_space")
    assert sum(flat for flat, _ in rows.values()) == truth["live"]
    assert any(name.startswith("site_") for name in rows)


def test_growth_in_use(alone, target, tmp_path):
    alone([target("heap"), "phases"], HEAPPROFILE=tmp_path / "h", HEAP_PROFILE_INUSE_INTERVAL=700000)
    live = [int(re.match(r"heap profile: +\d+: +(\d+)", f.read_text())[1])
            for f in sorted(tmp_path.glob("h.*.heap"))]
    assert live[-1] == 100000
    assert 700000 <= live[0] <= 800000 and 1400000 <= live[1] <= 1600000


def test_children_have_files_of_their_own(alone, target, tmp_path):
    """The shell itself ends by _exit, so it has none."""
    alone(["/bin/sh", "-c", f"{target('shares')} 100000; {target('shares')} 100000; exit 0"],
          CPUPROFILE=tmp_path / "cpu")
    names = sorted(f.name for f in tmp_path.glob("cpu*"))
    assert len(names) == 2 and all(re.fullmatch(r"cpu_\d+", name) for name in names)


def test_the_api_does_nothing_unasked(target):
    assert run([target("marks")]).stdout == "0 -1 -1 -1 marks\n"


def test_the_api(alone, target, tmp_path):
    done = alone([target("marks")], HEAPPROFILE=tmp_path / "h")
    assert done.stdout == "1 0 0 0 first\n"
    head = re.match(r"heap profile: +(\d+): +(\d+)", (tmp_path / "h.0001.heap").read_text())
    assert (int(head[1]), int(head[2])) == (50, 50000)


def test_the_api_in_a_recording(sonde, target, tmp_path):
    path = tmp_path / "x.sonde"
    done = sonde("run", "--heap", "-o", path, "--", target("marks"))
    assert done.status == 0 and done.stdout.startswith("1 0 0 -1 ")
    rows = sonde("report", path, "--heap", "--json").json["sections"]["live"]["rows"]
    assert sum(row["value"] for row in rows if "while_on" in row["stack"]) == 50000
    assert not any("while_off" in row["stack"] for row in rows)
