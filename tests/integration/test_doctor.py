"""`sonde doctor`: what it finds agrees with what then happens."""

import socket
import subprocess
import threading

import pytest

from runs import run


def findings(done):
    return {row["subject"]: row for row in done.json["sections"]["findings"]["rows"]}


def test_the_machine(sonde):
    found = findings(sonde("doctor", "--json"))
    counted = sonde("stat", "--json", "-o", "-", "-e", "cycles", "--", "true").json
    works = counted["sections"]["events"]["rows"][0]["value"] is not None
    assert (found["PMU"]["state"] == "well") == works
    assert {"perf events", "PMU", "capabilities", "ptrace", "BPF", "seccomp", "container",
            "control groups", "Redis"} <= set(found)
    for row in found.values():
        assert row["why"]
        assert row["state"] == "well" or (row["instead"] and row["cure"]), row


def test_a_filter_is_found(sonde_path, environment, target):
    found = findings(run([target("deny"), "perf", sonde_path, "doctor", "--json"],
                         env=environment))
    assert found["perf events"]["state"] == "missing" and found["seccomp"]["state"] == "limited"


def test_an_ordinary_user(nobody):
    found = findings(nobody("doctor", "--json"))
    assert found["control groups"]["state"] == "limited"
    assert nobody("run", "--cpu-limit", "1", "--", "true").status == 125


def test_frame_pointers(sonde, tmp_path):
    """As many functions set them as the compiler was told to let."""
    source, names = tmp_path / "x.c", [f"f{i}" for i in range(40)]
    source.write_text("int g(int);" + "".join(f"int {name}(int a) {{ return g(a) + g(a + 1); }}\n"
                                               for name in names) +
                      "int g(int a) { return a; } int main(int c, char **v) { return f0(c) < 0; }")
    found = {}
    for how in ("-fno-omit-frame-pointer", "-fomit-frame-pointer"):
        made = run(["gcc", "-O1", "-fno-inline", how, "-o", tmp_path / "x", source])
        assert made.status == 0, made
        why = findings(sonde("doctor", "--json", tmp_path / "x"))["frame pointers"]["why"]
        found[how] = [int(word) for word in why.split() if word.isdigit()]
    (with_them, all_of_them), (without, _) = found.values()
    assert all_of_them > with_them == len(names) + 1 and without == 0, found  # and main; not the leaf


def test_programs(sonde, target, tmp_path):
    good = findings(sonde("doctor", "--json", target("shares")))
    assert good["debug information"]["state"] == good["stacks"]["state"] == "well"
    assert len(good["build-id"]["why"]) == 40 and good["linking"]["state"] == "well"
    stripped = tmp_path / "stripped"
    assert run(["strip", "--remove-section=.note.gnu.build-id", "-o", stripped,
                target("shares")]).status == 0
    stripped.chmod(0o4755)
    found = findings(sonde("doctor", "--json", stripped))
    assert found["debug information"]["state"] == "limited"
    assert found["build-id"]["why"] == "none" and found["setuid"]["state"] == "limited"
    assert found["frame pointers"]["why"].startswith("0 of ")
    python = findings(sonde("doctor", "--json", "/usr/bin/python3"))
    assert "Python" in python


def test_which_python(sonde, started):
    """Its version is that which it tells itself, in the file and in a process."""
    said = subprocess.run(["/usr/bin/python3", "-c", "import sys; print(sys.version.split()[0])"],
                          capture_output=True, text=True, check=True).stdout.strip()
    in_file = findings(sonde("doctor", "--json", "/usr/bin/python3"))["Python"]
    assert f"CPython {said}," in in_file["why"] and in_file["state"] == "well"
    process = started(["/usr/bin/python3", "-c",
                       "import time; print(1, flush=True); time.sleep(600)"])
    assert process.stdout.readline() == "1\n"
    running = findings(sonde("doctor", "--json", process.pid))["Python"]
    assert f"CPython {said}, with the layout of 3." in running["why"]
    assert "Python" not in findings(sonde("doctor", "--json", "/bin/ls"))


def test_a_redis_answers_or_not(sonde):
    """Whoever answers PING as Redis does; nobody on a port that was just free; somebody mute."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = "127.0.0.1:%d" % server.getsockname()[1]

        def answer(reply):
            peer, _ = server.accept()
            with peer:
                assert peer.recv(100).upper().startswith(b"PING")
                peer.sendall(reply)
        for reply, state in ((b"+PONG\r\n", "well"), (b"-NOAUTH\r\n", "well"), (b"HTTP", "missing")):
            thread = threading.Thread(target=answer, args=(reply,))
            thread.start()
            found = findings(sonde("doctor", "--json", "--redis", f"redis://{where}/0"))["Redis"]
            thread.join()
            assert found["state"] == state, found
    found = findings(sonde("doctor", "--json", "--redis", where))["Redis"]
    assert found["state"] == "missing" and "Connection refused" in found["why"]


def test_run_names_what_it_falls_back_to(sonde_path, environment, target, tmp_path):
    """On its own terminal's lines, as well as in the recording."""
    done = run([target("deny"), "perf", sonde_path, "run", "-o", tmp_path / "r.sonde", "--",
                target("shares"), "50000"], env=environment)
    assert done.status == 0 and "timers inside the processes" in done.stderr, done
    assert "sonde doctor" in done.stderr
    assert run([sonde_path, "report", "--notes", tmp_path / "r.sonde"],
               env=environment).stdout.count("timers inside the processes") == 1


def test_a_process(sonde, started, target):
    process = started([target("sleeper")])
    found = findings(sonde("doctor", "--json", process.pid))
    assert str(process.pid) in found["process"]["why"]
    assert found["program"]["why"] == str(target("sleeper"))


@pytest.mark.parametrize("target_text, status", [
    ("/no/such", 1), ("no-such-program", 1), ("/etc/passwd", 1), ("/", 1), ("999999999", 1),
    ("0", 2), ("-1", 2)])
def test_what_is_not_there(sonde, target_text, status):
    done = sonde("doctor", target_text)
    assert done.status == status and len(done.stderr.splitlines()) == 1, done


def test_damaged_programs(sonde, target, tmp_path):
    whole = target("shares").read_bytes()
    for cut in (10, 64, 100, 1000, 4096, len(whole) - 100):
        path = tmp_path / f"cut{cut}"
        path.write_bytes(whole[:cut])
        assert sonde("doctor", path).status in (0, 1)
    for at in range(16, 64):
        path = tmp_path / "flipped"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xff]) + whole[at + 1:])
        assert sonde("doctor", path).status in (0, 1)
