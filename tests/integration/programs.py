"""The programs of tests/targets with the shortest arguments that still make their point, and the
status each ends with."""

import collections
import signal

Program = collections.namedtuple("Program", "name arguments status")


def program(name, *arguments, status=0):
    return Program(name, [str(argument) for argument in arguments], status)


# Known shares, depths, waits and lines.
TRUTHS = [
    program("shares", 50000),
    program("threads", 50000),
    program("tree", 50000),
    program("deep", 1000, 50000),
    program("sleeper", 10),
    program("short", 20),
    program("inline", 50000),
    program("faults", 100),
]

# Difficult to be inside of; the comment in each says which fault of a profiler it provokes.
FAULTS = [
    program("exits", "status", 3, status=3),
    program("exits", "signal", int(signal.SIGTERM), status=128 + signal.SIGTERM),
    program("exits", "segv", status=128 + signal.SIGSEGV),
    program("exits", "abort", status=128 + signal.SIGABRT),
    program("killed", 50000, status=128 + signal.SIGKILL),
    program("handlers"),
    program("smashed", 50000),
    program("forkstorm", 500),
    program("forkfirst", 3),
    program("forkmalloc", 50),
    program("spawn", 20),
    program("execchain", 5, 5000),
    program("closefds"),
    program("addresses"),
    program("seccomp", 50000),
    program("overflow", 10000, status=128 + signal.SIGSEGV),
    program("tinystacks", 500),
    program("altstack"),
    program("blocked", 50000),
    program("eintr", 30),
    program("owed"),
    program("both"),
    program("manythreads", 2000),
    program("tlsdtor", 400),
    program("churn", "@answer.so", 500),
    program("loading", "@waiting.so"),
    program("sigmalloc", 50),
    program("mailbox", 1, 1, 200),
    program("bound", 1, status=7),
    program("coroutines", 100),
    program("nomemory"),
    program("steady", 50000),
    program("limits"),
    program("clockjump", 50000),
]


def label(one):
    return "-".join([one.name, *(a for a in one.arguments if a.isalpha())])


def arguments_of(one, target):
    """Arguments with @NAME replaced by the path of that product."""
    return [target(a[1:]) if a.startswith("@") else a for a in one.arguments]
