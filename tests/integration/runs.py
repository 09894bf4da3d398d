"""Runs of programs: status, signal and output, with a time-out; and the comparison of a program
under sonde with itself alone that every fault of a target is tested with."""

import json
import os
import signal
import subprocess
import time

TIMEOUT = 60


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


class Harness:
    """One program alone and under `sonde run`; `check` is what must hold for any target."""

    def __init__(self, sonde, environment, folder, command, options=(), timeout=TIMEOUT, **more):
        self.sonde = sonde
        self.environment = environment
        self.recording = folder / "harness.sonde"
        self.command = command
        self.options = options
        self.timeout = timeout
        self.more = more

    def alone(self):
        return run(self.command, self.timeout, self.environment, **self.more)

    def under_sonde(self):
        return run([self.sonde, "run", "-o", self.recording, *self.options, "--", *self.command],
                   self.timeout, self.environment, **self.more)

    def report(self, *options):
        """`sonde report --json` of the recording; its status is 1 if there are no samples."""
        done = run([self.sonde, "report", "--json", *options, self.recording], self.timeout,
                   self.environment)
        report = done.json
        assert done.status == (0 if report["sections"]["totals"]["facts"]["samples"] else 1), done
        return report

    def check(self):
        """Same status, signal and output; the recording opens and accounts for every event.

        Returns the report, for what the test has to say beyond that.
        """
        alone, under = self.alone(), self.under_sonde()
        assert under.status == alone.status, (alone, under)
        assert under.stdout == alone.stdout, (alone, under)
        report = self.report()
        for count in report["sections"]["accounting"]["rows"]:
            assert count["generated"] == count["recorded"] + count["lost"], count
        return report
