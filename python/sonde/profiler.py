"""A recording of the running program, started and stopped by itself."""

import atexit
import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time

from . import _library, lines, spans

# Which frames stacks have, and how the collector is told.
FRAMES = {"python": ["--no-native", "--no-kernel"], "native": ["--no-python"], "both": []}
RSS_HZ_MAX = 1000
_lock = threading.Lock()
_running = None  # the Profiler whose collector there is


def _in_child():
    """The recording is the parent's; a child is in it, and what it does with profiles are spans."""
    global _lock, _running
    _lock = threading.Lock()
    if _running:
        _running._forget()
        _running = None


os.register_at_fork(after_in_child=_in_child)


@atexit.register
def _at_exit():
    if _running:
        _running._end()


class Profiler:
    """Records this process from start() to stop(), into the file `path`.

    what          "python", "native" or "both": which frames the stacks have
    filter        patterns of files, such as "*/app/*": whose calls are traced
    follow_forks  children as well
    stacks        False: no samples of the CPU, only what is traced, spans, counters and lines
    rss_hz        how often resident memory is looked at, 0 for not at all
    trace         every call

    Under `sonde run` there is a recording already: then nothing is started, the part between
    start() and stop() is a span of that recording, and `path` is None.
    """

    def __init__(self, path=None, what="both", filter=None, follow_forks=True, stacks=True,
                 rss_hz=20, trace=False):
        if what not in FRAMES:
            raise ValueError(f"what is one of {', '.join(FRAMES)}, not {what!r}")
        if rss_hz not in range(RSS_HZ_MAX + 1):
            raise ValueError(f"rss_hz is a whole number up to {RSS_HZ_MAX}, not {rss_hz!r}")
        patterns = [filter] if isinstance(filter, str) else filter or []
        if not isinstance(patterns, (list, tuple)) or not all(isinstance(p, str) for p in patterns):
            raise ValueError(f"filter is a pattern of files or a list of them, not {filter!r}")
        self.path = os.fsdecode(path) if path is not None else None
        self.what = what
        self.filter = list(patterns)
        self.follow_forks = follow_forks
        self.stacks = stacks
        self.rss_hz = int(rss_hz)
        self.trace = trace
        self._collector = None
        self._span = None
        self._environment = {}
        self._started = False

    def _forget(self):
        """In a child, which has nothing to wait for."""
        self._collector.stderr.close()
        self._collector.returncode = 0
        self._collector = None

    # ---- a collector of our own

    def _command(self, invitation):
        options = ["--rate", "499"] if self.stacks else ["--no-samples"]
        options += FRAMES[self.what]
        options += ["--rss-rate", str(self.rss_hz)]
        if not self.follow_forks:
            options.append("--no-follow")
        if self.trace:
            options.append("--trace")
        for pattern in self.filter:
            options += ["--trace-only", pattern]
        return [_library.command(), "attach", "--quiet", "--force", "--output", self.path,
                "--invite", f"/dev/fd/{invitation}", *options, str(os.getpid())]

    def _begin(self):
        if self.path is None:
            self.path = time.strftime(f"python-{os.getpid()}-%Y%m%d-%H%M%S.sonde")
        read, write = os.pipe()
        try:
            self._collector = subprocess.Popen(
                self._command(write), pass_fds=[write], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise _library.NotAvailable(f"sonde cannot be started: {error}") from None
        finally:
            os.close(write)
        said = []
        with os.fdopen(read) as invitation:
            for line in invitation:
                if line == "\n":
                    break
                said.append(line.rstrip("\n"))
        if not said:
            why = self._collector.communicate()[1].decode(errors="replace").strip()
            self._collector = None
            raise _library.NotAvailable(why or "the collector ended before it began")
        try:
            self._join(dict(line.split("=", 1) for line in said))
        except BaseException:
            self._end()
            raise

    def _join(self, variables):
        # Children that are started by exec find the session in their environment, or do not.
        self._environment = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        library = _library.loaded()
        if library:
            library.sonde_python_join()
        else:
            library = _library.load()  # its constructor joins
        if not self.follow_forks:
            self._restore()
        if not library.sonde_is_traced():
            raise _library.NotAvailable("this interpreter cannot be recorded from inside")
        if self.trace and library.sonde_python_trace(1) != 0:
            raise _library.NotAvailable("calls of this interpreter cannot be traced: it is older "
                                        "than 3.8, or a build that sonde does not know")
        lines.begin(library)

    def _restore(self):
        for name, value in self._environment.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._environment = {}

    # ---- what there is to call

    def start(self):
        global _running
        with _lock:
            if _running or self._span:
                raise RuntimeError("a profiler is running already")
            if spans.is_recorded():
                self._span = spans.span(self.path or "sonde.profile")
                self.path = None
                self._span.__enter__()
                if self.trace:
                    _library.loaded().sonde_python_trace(1)
                lines.begin(_library.loaded())
            else:
                self._begin()
                _running = self
            self._started = True
        return self

    def stop(self):
        """Ends the recording and gives its path. Once more does nothing more."""
        global _running
        if not self._started:
            raise RuntimeError("this profiler was not started")
        if self._span:
            if self.trace:
                _library.loaded().sonde_python_trace(0)
            self._span.__exit__()
            self._span = None
            return None
        collector = self._end()
        if collector and collector.returncode != 0:
            why = collector.said or f"the collector ended with status {collector.returncode}"
            raise RuntimeError(f"the recording was not finished: {why}")
        return self.path

    def _end(self):
        """The collector that has ended now, or None."""
        global _running
        collector, self._collector = self._collector, None
        if not collector:
            return None
        library = _library.loaded()
        if library:
            library.sonde_python_leave()
        self._restore()
        collector.send_signal(signal.SIGINT)
        collector.said = collector.communicate()[1].decode(errors="replace").strip()
        _running = None
        return collector

    def snapshot(self, path):
        """A copy of the recording as far as it is, which opens like any other. Calls are in it when
        their thread has ended."""
        if not self._collector:
            raise RuntimeError("there is no recording to take a snapshot of")
        told = subprocess.run([_library.command(), "ctl", str(self._collector.pid), "snapshot", "cpu"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, check=False)
        if told.returncode:
            raise RuntimeError("no snapshot could be taken: "
                               + told.stderr.decode(errors="replace").strip())
        shutil.copyfile(self.path, path)
        return path

    __enter__ = start

    def __exit__(self, *exception):
        self.stop()
        return False


@contextlib.contextmanager
def profile(path=None, **options):
    """``with sonde.profile("part.sonde", trace=True):``"""
    profiler = Profiler(path, **options)
    profiler.start()
    try:
        yield profiler
    finally:
        profiler.stop()
