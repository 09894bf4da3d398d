"""`--heap` on Python: the line that asked for memory, native code between, arenas or each object, and
many processes in one recording."""

import pytest

from pythons import FOUND, folded, held, python, script, some_python

pytestmark = pytest.mark.skipif(not FOUND, reason="no interpreter was found")
MIB = 1 << 20


def lines(recording, function, event="heap:peak"):
    rows = recording.show("--json", "--lines", "--event", event).json["sections"]["lines"]["rows"]
    return {row["line"]: row["total"] for row in rows if row["function"] == function}


def test_a_large_list_at_its_line(harness, python, script):
    app = script("""
        def make():
            a = 1
            b = [2] * (2 * 10 ** 7)
            return a


        def outer():
            make()


        outer()
        """)
    run = harness(python, app, options=["--heap"])
    report = run.check()
    recording = run.recording
    bytes_of = held(recording)
    assert abs(bytes_of["make"] - 152.6 * MIB) < MIB
    assert bytes_of["outer"] >= bytes_of["make"]
    at = lines(recording, "make")
    assert max(at, key=at.get) == 10 and abs(at[10] - 152.6 * MIB) < MIB, at
    assert report.profiler["lost"] == 0
    assert not any("allocator of its own" in note for note in report.notes), report.notes


def test_who_keeps_what(harness, some_python, script):
    """Buffers that C code allocates belong to the line of Python that asked for them."""
    app = script("""
        import array

        kept = []


        def leak():
            kept.append(bytearray(100000))


        def brief():
            return array.array("d", bytes(80000))


        def run():
            for _ in range(50):
                leak()
                brief()


        run()
        import os
        os._exit(0)
        """)
    recording = harness(some_python, app, options=["--heap"]).record()
    live = held(recording, "heap:live")
    assert abs(live["leak"] - 5000000) < 50000, live
    assert live.get("brief", 0) < 200000, live
    taken = held(recording, "heap:allocated")
    assert abs(taken["brief"] - 50 * 160000) < 0.1 * 50 * 160000, taken
    stacks = folded(recording, "--event", "heap:live")
    ways = [frames for frames, _ in stacks if "leak" in frames]
    assert ways and all(frames.index("run") < frames.index("leak") < len(frames) - 1
                        for frames in ways), ways


def test_many_deep_stacks(harness, some_python, script):
    """As imports of many modules have them: none goes without its stack."""
    app = script("""
        def down(depth, way):
            if depth == 0:
                bytearray(1000)
            elif way & 1:
                down(depth - 1, way >> 1)
            else:
                down(depth - 1, way >> 1)


        import sys
        for way in range(24000):
            down(100 if sys.version_info >= (3, 11) else 50, way)  # each of C's frames, too, before
        """)
    report = harness(some_python, app, options=["--heap"]).check()
    assert not any("allocating stacks" in note for note in report.notes), report.notes


def test_arenas(harness, some_python, script):
    app = script("""
        def objects():
            return [(i, str(i)) for i in range(100000)]


        kept = objects()
        """)
    recording = harness(some_python, app, options=["--heap"]).record()
    assert held(recording)["objects"] > 8 * MIB, held(recording)


def test_each_object(harness, some_python, script):
    app = script("""
        class Node:
            __slots__ = ("left", "right")


        def nodes(n):
            return [Node() for _ in range(n)]


        def main():
            kept = nodes(20000)
            del kept
            return nodes(10000)


        main()
        """)
    run = harness(some_python, app, options=["--heap", "--pymalloc"])
    run.check()
    taken = held(run.recording, "heap:allocated")
    assert 30000 * 32 < taken["nodes"] < 30000 * 250, taken["nodes"]
    peak = held(run.recording)["nodes"]
    assert 20000 * 32 < peak < 20000 * 120, peak


def test_no_native_in_the_heap(harness, some_python, script):
    app = script("kept = [bytearray(5000) for _ in range(500)]\n")
    recording = harness(some_python, app, options=["--heap", "--no-native"]).record()
    mine = [frames for frames, _ in folded(recording, "--event", "heap:peak") if "<module>" in frames]
    assert mine and all("malloc" not in frame for frames in mine for frame in frames), mine


def test_a_pool_of_sixteen(harness, some_python, script):
    """One recording of all, whose peak is that of them together."""
    app = script("""
        import multiprocessing, time

        SIZE = 4 << 20


        def work(barrier):
            block = bytearray(SIZE)
            barrier.wait()
            time.sleep(0.2)
            return len(block)


        def start(b):
            global barrier
            barrier = b


        def job(_):
            return work(barrier)


        if __name__ == "__main__":
            multiprocessing.set_start_method("fork")
            barrier = multiprocessing.Barrier(16)
            with multiprocessing.Pool(16, start, (barrier,)) as pool:
                print(sum(pool.map(job, range(16), 1)))
        """)
    run = harness(some_python, app, options=["--heap"], timeout=120)
    report = run.check()
    assert len(report.processes) == 17
    tree = held(run.recording, "heap:tree-peak")
    assert abs(tree["work"] - 16 * (4 << 20)) < 0.03 * 16 * (4 << 20), tree["work"]


def test_threads_of_python(harness, some_python, script, tmp_path):
    app = script("""
        import threading

        kept = []


        def big():
            kept.append(bytearray(3 << 20))


        def small():
            kept.append(bytearray(1 << 20))


        for f in (big, small):
            t = threading.Thread(target=f, name=f.__name__)
            t.start()
            t.join()
        import time
        time.sleep(0.4)
        """)
    recording = harness(some_python, app, options=["--heap"]).record()
    at = held(recording)
    assert abs(at["big"] - 3 * MIB) < MIB / 4 and abs(at["small"] - MIB) < MIB / 4, at
    picture = tmp_path / "threads.svg"
    recording.show("--kind", "threads", "-o", picture, command="graph")
    assert "<svg" in picture.read_text()


def test_what_grew_between_two_marks(harness, some_python, script, root):
    """As a difference of two snapshots of tracemalloc: what came between and is still there."""
    app = script("""
        import sys
        sys.path.insert(0, %r)
        import sonde

        kept = []


        def before():
            kept.append(bytearray(3 << 20))


        def grows():
            kept.append(bytearray(2 << 20))
            bytearray(7 << 20)


        def after():
            kept.append(bytearray(5 << 20))


        before()
        sonde.mark("one")
        grows()
        sonde.mark("two")
        after()
        """ % str(root / "python"))
    recording = harness(some_python, app, options=["--heap"]).record()
    rows = recording.show("--heap", "--between", "one,two", "--json").json["sections"]
    at = {row["name"]: row["total"] for row in rows["functions"]["rows"]}
    assert abs(at["grows"] - (2 << 20)) < 4096, at
    assert "before" not in at and "after" not in at, at
    said = recording.show("--heap", "--between", "two,one", status=None)
    assert said.status == 1 and 'no mark "one" after the first' in said.stderr, said
