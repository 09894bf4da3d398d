"""What else is asked of Python: blocked threads, who holds the lock, names of threads, tasks of asyncio,
the kernel's part, extensions that call back, and processes that run already."""

import os
import re
import shutil
import subprocess

import pytest

from pythons import (FOUND, everywhere, folded, minor, name_of, python, script, slept,
                     some_python)

pytestmark = pytest.mark.skipif(not FOUND, reason="no interpreter was found")


def total(stacks, *wanted):
    """Samples whose frames have all of `wanted`, in this order."""
    def has(frames):
        rest = iter(frames)
        return all(name in rest for name in wanted)
    return sum(count for frames, count in stacks if has(frames))


def plain(stacks):
    """Qualified names as versions before 3.11 have them."""
    return [([frame.rpartition(".")[2] for frame in frames], count) for frames, count in stacks]


def names(recording):
    rows = recording.show("--threads", "--json").json["sections"]["threads"]["rows"]
    return {row["name"] for row in rows}


BLOCKED = """
    import threading, time


    def nap():
        time.sleep(0.3)


    def doze():
        for _ in range(3):
            nap()


    t = threading.Thread(target=doze)
    t.start()
    t.join()
    """


def test_blocked_threads(everywhere, python):
    recording = everywhere(BLOCKED, "--wall")[python]
    waited = slept(recording)
    assert 0.8e9 < waited["nap"] < 1.6e9 and waited["doze"] == waited["nap"], waited
    lock = folded(recording, "--event", "off-cpu:lock")
    assert total(plain(lock), "<module>", "join"), lock


def test_waiting_is_charged_to_the_holder(harness, some_python, script):
    app = script("""
        import threading, time


        def greedy(end):
            while time.time() < end:
                spin(20000)


        def polite(end):
            while time.time() < end:
                time.sleep(0.001)


        end = time.time() + 1
        threads = [threading.Thread(target=f, args=(end,)) for f in (greedy, polite)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        """)
    recording = harness(some_python, app, options=["--waiting"]).record()
    waits = folded(recording, "--event", "off-cpu:gil")
    assert total(waits, "polite") > 0.3 * sum(count for _, count in waits) > 5, waits
    held = folded(recording, "--event", "waited-for")
    assert total(held, "greedy", "spin") > 0.3 * sum(count for _, count in held) > 5, held
    assert not total(held, "sleep"), held


def test_only_the_holder(harness, some_python, script):
    """compress() lets the lock go while it works."""
    app = script("""
        import threading, zlib

        data = bytes(range(256)) * 40000


        def outside():
            for _ in range(6):
                zlib.compress(data, 9)


        def inside():
            for _ in range(60):
                spin(20000)


        t = threading.Thread(target=outside)
        t.start()
        inside()
        t.join()
        """)
    everything = folded(harness(some_python, app, options=["--rate", "997"]).record())
    assert total(everything, "outside") > 50
    only = folded(harness(some_python, app, options=["--rate", "997", "--gil"],
                          output="gil.sonde").record())
    assert total(only, "outside") < 0.1 * total(only, "inside"), only
    assert total(only, "inside", "spin") > 0.9 * total(everything, "inside", "spin") / 2


NAMED = """
    import threading, time


    class Mine(threading.Thread):
        def __init__(self):
            self.first = 1
            super().__init__(name="größer")

        def run(self):
            time.sleep(0.9)


    threads = [Mine(), threading.Thread(target=time.sleep, args=(0.9,), name="worker 7")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    """


def test_names_of_threads(everywhere, python):
    assert names(everywhere(NAMED)[python]) == {"MainThread", "größer", "worker 7"}


ASYNC = """
    import asyncio


    async def inner(n):
        spin(n)
        await asyncio.sleep(0)


    async def worker(n):
        for _ in range(100):
            await inner(n)


    async def items(n):
        for _ in range(100):
            spin(n)
            yield 1


    async def consumer(n):
        async for _ in items(n):
            pass


    async def main():
        loop = asyncio.get_event_loop()
        work = [("big", worker(30000)), ("small", worker(10000)), ("reader", consumer(10000))]
        tasks = []
        for name, coroutine in work:
            tasks.append(loop.create_task(coroutine))
            if hasattr(tasks[-1], "set_name"):
                tasks[-1].set_name(name)
        await asyncio.gather(*tasks)


    asyncio.new_event_loop().run_until_complete(main())
    """


def test_tasks_are_roots(harness, python, script):
    if minor(python) < 8:
        pytest.skip("tasks have no names before 3.8")
    recording = harness(python, script(ASYNC), options=["--rate", "997"]).record()
    stacks = folded(recording)
    share = {name: total(stacks, "task " + name) for name in ("big", "small", "reader")}
    assert share["small"] > 20 and 2 < share["big"] / share["small"] < 4.5, share
    assert total(stacks, "task big", "worker", "inner", "spin") > 0.9 * share["big"]
    assert total(stacks, "task reader", "consumer", "items", "spin") > 0.9 * share["reader"]
    roots = {frames[0] for frames, _ in stacks if "inner" in frames}
    assert roots <= {"task big", "task small", "<module>"}, roots


def test_generators(harness, python, script):
    """Where a generator is run is where it stands, also when the collector closes it."""
    app = script("""
        import gc


        def steps():
            try:
                while True:
                    yield spin(20000)
            finally:
                spin(600000)


        def user():
            g = steps()
            for _ in range(30):
                next(g)
            g.send(None)
            loop = [g]
            loop.append(loop)


        def main():
            user()
            gc.collect()


        main()
        """)
    stacks = folded(harness(python, app, options=["--rate", "997"]).record())
    assert total(stacks, "main", "user", "steps", "spin") > 10, stacks
    closed = [(frames, count) for frames, count in stacks if "steps" in frames and "user" not in frames]
    assert total(closed, "main", "steps", "spin") > 5, stacks


def test_kernel_frames(harness, some_python, script):
    if os.geteuid():
        pytest.skip("the kernel's side may not be seen by this user")
    app = script("""
        import os


        def reads():
            zero = os.open("/dev/zero", os.O_RDONLY)
            for _ in range(1500):
                os.read(zero, 1 << 20)


        reads()
        """)
    stacks = folded(harness(some_python, app, options=["--rate", "997"]).record())
    assert total(stacks, "reads", "do_syscall_64", "vfs_read") > 0.6 * total(stacks, "reads") > 10
    without = folded(harness(some_python, app, options=["--rate", "997", "--no-kernel"],
                             output="user.sonde").record())
    assert total(without, "reads") and not total(without, "do_syscall_64")


EXTENSION = r"""
#include <Python.h>

static __attribute__((noinline)) PyObject *deeper(PyObject *function, int left)
{
    PyObject *made = left ? deeper(function, left - 1) : PyObject_CallObject(function, NULL);
    __asm__ volatile("" ::: "memory");
    return made;
}

static PyObject *call(PyObject *self, PyObject *function)
{
    (void)self;
    return deeper(function, 2);
}

static PyMethodDef methods[] = {{"call", call, METH_O, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "backwards", NULL, -1, methods, NULL,
                                    NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_backwards(void)
{
    return PyModule_Create(&module);
}
"""


def headers_of(path):
    asked = subprocess.run([path, "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
                           capture_output=True, text=True, check=True).stdout.strip()
    return asked if os.path.exists(os.path.join(asked, "Python.h")) else None


def test_extension_that_calls_back(harness, python, script, tmp_path):
    headers = headers_of(python)
    if not headers or not shutil.which("cc"):
        pytest.skip(f"no headers for {name_of(python)}, or no compiler")
    source = tmp_path / "backwards.c"
    source.write_text(EXTENSION)
    subprocess.run(["cc", "-O1", "-g", "-shared", "-fPIC", f"-I{headers}", source,
                    "-o", tmp_path / "backwards.so"], check=True)
    app = script("""
        import backwards


        def innermost():
            return spin(4000)


        def middle():
            return backwards.call(innermost)


        for _ in range(400):
            backwards.call(middle)
        """)
    stacks = folded(harness(python, app, options=["--rate", "997"]).record())
    spun = total(stacks, "spin")
    wanted = ["<module>", "call", "deeper", "deeper", "deeper", "middle", "call", "deeper", "deeper",
              "deeper", "innermost", "spin"]
    assert total(stacks, *wanted) > 0.95 * spun > 20, stacks[:5]


ENDLESS = """
    import threading, time


    def one():
        spin(30000)


    def two():
        spin(10000)


    def nap():
        time.sleep(60)


    threading.Thread(target=nap, name="napping", daemon=True).start()
    print("ready", flush=True)
    end = time.time() + 60
    while time.time() < end:
        one()
        two()
    """


@pytest.fixture
def attached(sonde, recording, started, tmp_path):
    """attached(python, app, options) -> the recording of a process that ran already, and itself"""
    def call(path, app, *options):
        process = started([path, app], stdout=subprocess.PIPE)
        process.stdout.readline()
        made = sonde("attach", "-o", tmp_path / "attach.sonde", "--duration", "700ms",
                     "--rate", "997", *options, process.pid)
        assert made.status == 0, made
        assert process.poll() is None
        return recording(tmp_path / "attach.sonde"), process
    return call


def test_attach(attached, python, script):
    recording, process = attached(python, script(ENDLESS))
    maps = open(f"/proc/{process.pid}/maps").read()
    assert "libsonde" not in maps, "something was put into the process"
    stacks = folded(recording)
    whole = sum(count for _, count in stacks)
    assert total(stacks, "<module>", "one", "spin") + total(stacks, "<module>", "two", "spin") > \
        0.75 * whole > 10, stacks[:5]
    assert 1.5 < total(stacks, "one") / total(stacks, "two") < 6
    assert "MainThread" in names(recording)


def test_attach_with_pauses(attached, some_python, script):
    """The thread is stopped for each sample, which then is never another moment's; not for long."""
    recording, _ = attached(some_python, script(ENDLESS), "--pause")
    stacks = folded(recording)
    whole = sum(count for _, count in stacks)
    known = total(stacks, "<module>", "one", "spin") + total(stacks, "<module>", "two", "spin")
    assert known > 0.75 * whole > 10, stacks[:5]
    said = next(note for note in recording.report().notes if "threads were stopped" in note)
    stops, longest, _, over, missed = map(int, re.findall(r"[0-9]+(?= samples| us| ms in| stops| did)",
                                                          said))
    assert stops > 0.5 * (stops + missed) > 9, said  # a thread that has no CPU need not be stopped
    assert over <= 0.05 * stops, said


def test_attach_to_the_blocked(attached, some_python, script):
    recording, _ = attached(some_python, script("""
        import time


        def waits():
            time.sleep(0.02)


        print("ready", flush=True)
        for _ in range(2000):
            waits()
        """), "--wall")
    assert slept(recording)["waits"] > 3e8


def test_attach_without_native(attached, some_python, script):
    recording, _ = attached(some_python, script(ENDLESS), "--no-native", "--no-kernel")
    for frames, _ in folded(recording):
        assert "spin" not in frames or frames[-1] == "spin", frames


CYCLE = """
    import ctypes, sys, threading, time


    def victim():
        while True:
            time.sleep(0.001)


    def find(offset):
        frame = sys._current_frames()[t.ident]
        return id(frame), offset


    t = threading.Thread(target=victim, daemon=True)
    t.start()
    time.sleep(0.1)
    frame = sys._current_frames()[t.ident]
    while frame.f_back:
        outermost, frame = frame.f_back, frame.f_back
    # The outermost frame's caller becomes the frame itself.
    ctypes.c_uint64.from_address(id(outermost) + 24).value = id(outermost)
    print("ready", flush=True)
    time.sleep(60)
    """


def test_attach_ends_on_a_cycle(attached, script):
    """Frames are objects up to 3.10: the caller's address lies at the same place in all of them."""
    old = [path for path in FOUND if 8 <= minor(path) <= 10]
    if not old:
        pytest.skip("no Python from 3.8 to 3.10")
    recording, process = attached(old[0], script(CYCLE), "--wall")
    assert any("rejected" in note for note in recording.report().notes), recording.report().notes
    process.kill()


def test_greenlets(harness, script):
    """Python on pieces of the stack: the frames of a greenlet are its own, and its function's work is
    that function's."""
    path = next((path for path in FOUND if subprocess.run(
        [path, "-c", "import greenlet"], capture_output=True, check=False).returncode == 0), None)
    if not path:
        pytest.skip("no interpreter has greenlet")
    app = script("""
        import greenlet
        def one():
            for _ in range(150):
                spin(20000)
                second.switch()
        def two():
            for _ in range(150):
                spin(20000)
                first.switch()
        first, second = greenlet.greenlet(one), greenlet.greenlet(two)
        first.switch()
    """)
    made = harness(path, app, options=["--rate", "997"]).record()
    stacks = [(frames, n) for frames, n in folded(made) if "one" in frames or "two" in frames]
    total = sum(n for _, n in stacks)
    leaves = sum(n for frames, n in stacks if frames[:2] in (["one", "spin"], ["two", "spin"]))
    assert total > 50 and leaves > 0.9 * total, stacks
