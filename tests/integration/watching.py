"""Targets under the agent alone: tests/agent/watch is the collector, this reads what it wrote."""

import bisect
import json
import subprocess

from runs import run


class Report:
    """What a watch wrote. Frames are "path+hex address in the file", outermost first."""

    def __init__(self, path):
        self.data = json.loads(path.read_text())
        self.symbols = {}

    def __getattr__(self, name):
        return self.data[name]

    def function(self, frame):
        """The function around a frame, by the symbol table of its file."""
        path, _, address = frame.rpartition("+")
        if path not in self.symbols:
            self.symbols[path] = read_symbols(path)
        starts, names = self.symbols[path]
        at = bisect.bisect_right(starts, int(address, 16)) - 1
        return names[at] if at >= 0 else "?"

    def stacks_by_name(self):
        """(names outermost first, samples, ns) of each stack."""
        for stack, (count, value) in self.stacks.items():
            yield [self.function(frame) for frame in stack.split(";")], count, value

    def share(self, name):
        """How much of the CPU time was spent with `name` on the stack, in percent."""
        within = sum(value for names, _, value in self.stacks_by_name() if name in names)
        return 100 * within / sum(value for _, value in self.stacks.values())


def read_symbols(path):
    listing = subprocess.run(["nm", "-n", "--defined-only", path], text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    lines = [line.split() for line in listing.splitlines()]
    code = [(int(line[0], 16), line[2]) for line in lines if len(line) == 3 and line[1] in "tTwWi"]
    return [start for start, _ in code], [name for _, name in code]


class Watch:
    """Runs commands under the agent and alone."""

    def __init__(self, build, folder, environment):
        self.watch = build / "tests/agent/watch"
        self.library = build / "src/agent/libsonde.so"
        self.report = folder / "watch.json"
        self.environment = environment
        self.rows = folder / "rows"

    def run(self, command, options=(), rate=1000, env=None, **more):
        """The run, and the report if there is one."""
        self.report.unlink(missing_ok=True)
        done = run([self.watch, "-r", rate, "-c", self.rows, "-o", self.report, *options,
                    self.library, *command], env={**self.environment, **(env or {})}, **more)
        return done, Report(self.report) if self.report.exists() else None

    def compare(self, command, options=(), rate=1000, env=None, **more):
        """The same with and without; every sample accounted for. Returns the report."""
        alone = run(command, env={**self.environment, **(env or {})}, **more)
        under, report = self.run(command, options, rate, env, **more)
        assert under.status == alone.status, (alone, under)
        assert under.stdout == alone.stdout, (alone, under)
        assert report.generated == report.recorded + report.lost
        assert not any(process["damaged"] for process in report.processes)
        assert not report.time_went_back
        return report
