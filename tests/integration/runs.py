"""Runs of programs: status, signal and output, with a time-out; recordings and what reports say of
them; and the comparison of a program under sonde with itself alone that every fault of a target is
tested with."""

import concurrent.futures
import json
import math
import os
import signal
import subprocess
import time

TIMEOUT = 60


def clean_environment(home):
    """No settings but the test's own; colours off; nothing of the user's folders."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("SONDE_", "XDG_", "CPUPROFILE", "HEAPPROFILE", "LD_"))}
    return {**kept, "SONDE_CONF": "", "HOME": str(home), "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}


class Run:
    """A finished program."""

    def __init__(self, command, returncode, stdout, stderr, seconds):
        self.command = [str(word) for word in command]
        self.returncode = returncode  # as in subprocess: negative for a signal
        self.status = 128 - returncode if returncode < 0 else returncode  # as in a shell
        self.stdout = stdout
        self.stderr = stderr
        self.seconds = seconds

    @property
    def json(self):
        return json.loads(self.stdout)

    def __repr__(self):
        return (f"{' '.join(self.command)}: status {self.status} after {self.seconds:.2f} s\n"
                f"--- stdout\n{self.stdout[-2000:]}\n--- stderr\n{self.stderr[-2000:]}")


def run(command, timeout=TIMEOUT, env=None, input=None, cwd=None, **more):
    """Runs to the end. A time-out kills the whole process group and is an assertion failure."""
    start = time.monotonic()
    process = subprocess.Popen(
        [str(word) for word in command], env=env, cwd=cwd, text=True, errors="replace",
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **more)
    try:
        stdout, stderr = process.communicate(input, timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        raise AssertionError(f"no end within {timeout} s: {command}\n{stdout}\n{stderr}") from None
    return Run(command, process.returncode, stdout, stderr, time.monotonic() - start)


def wait_until(holds, seconds=20):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as listed:
        return [int(child) for child in listed.read().split()]


def samples_in(recording):
    """How many there are so far; it is written once a second."""
    said = recording.show("--json", status=None)
    return Report(said.json).facts("totals")["samples"] if said.stdout else 0


class Report:
    """What `sonde report --json` said."""

    def __init__(self, answer):
        self.answer = answer
        self.sections = answer["sections"]

    def facts(self, section):
        return self.sections[section]["facts"]

    def rows(self, section):
        return self.sections[section]["rows"] if section in self.sections else []

    @property
    def notes(self):
        return [note["text"] for note in self.sections["notes"]["notes"]]

    @property
    def profiler(self):
        """generated, recorded, lost, stacks, stacks_cut ..."""
        return self.facts("profiler")

    @property
    def processes(self):
        return self.rows("processes")

    def share(self, function):
        """Percent of everything with this function on the stack."""
        return sum(row["total_percent"] for row in self.rows("functions")
                   if row["name"] == function)

    def check_shares(self, **expected):
        """Percent by function, as close as so many samples can be expected to come."""
        samples = self.facts("totals")["samples"]
        for function, percent in expected.items():
            chance = 4 * (percent * (100 - percent) / samples) ** 0.5
            share = self.share(function)
            assert abs(share - percent) <= max(chance, 1), (function, share, samples)

    def waited(self, cause):
        """Nanoseconds."""
        return sum(row["value"] for row in self.rows("waits") if row["cause"] == cause)

    def check_accounts(self):
        """Every sample is accounted for, also against what the kernel counted by itself.

        A thread's last part of a period is never sampled, so the two may differ by that much.
        A program that runs for less than a period at a time is met by chance: the square root of
        the number of times is the deviation.
        """
        said = self.profiler
        assert said["generated"] == said["recorded"] + said["lost"], said
        totals = self.facts("totals")
        if totals["event"] != "cpu" or not totals["samples"]:
            return
        counted = sum(process["cpu_counted"] or 0 for process in self.processes)
        period = totals.get("period") or 4e6  # the kernel's tick
        sampled = totals["value_recorded"] + said["lost"] * period
        threads = sum(process["threads"] for process in self.processes)
        slack = 0.05 * counted + period * (threads + 2) * totals["cpus"]
        by_chance = 3.5 * period * math.sqrt(said["generated"])
        assert abs(sampled - counted) < max(slack, by_chance), (sampled, counted, threads, said)


class Recording:
    """A file of sonde's, and the run that made it."""

    def __init__(self, sonde, environment, path, made=None):
        self.sonde = sonde
        self.environment = environment
        self.path = path
        self.made = made

    def show(self, *options, command="report", status=0):
        """A command on it; `status` None if any will do."""
        done = run([self.sonde, command, *options, self.path], env=self.environment)
        assert done.status == status or status is None, done
        return done

    def report(self, *options, status=0):
        return Report(self.show("--json", *options, status=status).json)


class Harness:
    """One program alone and under `sonde run`; `check` is what must hold for any target."""

    def __init__(self, sonde, environment, path, command, options=(), timeout=TIMEOUT, under=(),
                 **more):
        self.sonde = sonde
        self.under = under  # what runs sonde
        self.environment = environment
        self.path = path
        self.command = command
        self.options = options
        self.timeout = timeout
        self.more = more
        self.recording = None  # that check() made

    def alone(self):
        return run(self.command, self.timeout, self.environment, **self.more)

    def record(self):
        self.path.unlink(missing_ok=True)
        made = run([*self.under, self.sonde, "run", "-o", self.path, *self.options, "--", *self.command],
                   self.timeout, self.environment, **self.more)
        assert self.path.exists(), made
        return Recording(self.sonde, self.environment, self.path, made)

    def report(self):
        """Of a new recording."""
        return self.record().report()

    def both(self, together):
        """The program alone and recorded; at the same time, if it does not matter how long it takes."""
        if not together:
            return self.alone(), self.record()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            alone = pool.submit(self.alone)
            recording = self.record()
            return alone.result(), recording

    def check(self, together=False):
        """Same status, signal and output; the recording opens and accounts for every event.

        Returns the report, for what the test has to say beyond that; self.recording is what it is of.
        """
        alone, recording = self.both(together)
        self.recording = recording
        under = recording.made
        assert under.status == alone.status, (alone, under)
        assert under.stdout == alone.stdout, (alone, under)
        assert [line for line in under.stderr.splitlines() if not line.startswith("sonde")] == \
            alone.stderr.splitlines(), (alone, under)
        samples = int(under.stderr.rpartition("sonde: ")[2].split()[0].replace(",", ""))
        report = recording.report(status=0 if samples else 1)
        assert report.profiler["recorded"] == samples, under
        assert report.facts("run")["complete"] == "yes"
        report.check_accounts()
        return report
