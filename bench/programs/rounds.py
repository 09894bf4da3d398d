"""A tree of processes that work, allocate and sleep in rounds, and note how long each round took: rounds.py FOLDER PROCESSES

Ends once FOLDER/enough is there. FOLDER/PID.json then has, of each round in ns: its end, how long it was, how much
of it was CPU time, how much a wait for a CPU, and how much nothing explains: the sleep that was asked for does not
count. How a process begins is left out.
"""

import json
import os
import sys
import time

ASKED = 10_000_000  # ns of sleep in a round
FIRST = 20  # rounds


def crunch(n):
    return sum(i * i for i in range(n))


class Clocks:
    """Wall, CPU time and time in the queue for a CPU, of one moment: a thread that loses its CPU while it reads them
    would otherwise count its wait to another round than the wall clock does."""

    def __init__(self):
        self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)

    def waited(self):
        return int(os.pread(self.file, 100, 0).split()[1])

    def read(self):
        waited = self.waited()
        while True:
            cpu, wall = time.thread_time_ns(), time.monotonic_ns()
            before, waited = waited, self.waited()
            if waited == before:
                return wall, cpu, waited


def serve(folder):
    clocks, kept, rounds = Clocks(), [], []
    last = clocks.read()
    while not os.path.exists(f"{folder}/enough"):
        crunch(3000)
        kept.append(bytearray(2048))
        if len(kept) > 400:
            del kept[:200]
        time.sleep(ASKED / 1e9)
        now = clocks.read()
        wall, cpu, waited = (a - b for a, b in zip(now, last))
        rounds.append((now[0], wall, cpu, waited, max(0, wall - cpu - waited - ASKED)))
        last = now
    with open(f"{folder}/{os.getpid()}.json", "w", encoding="utf-8") as file:
        json.dump(rounds[FIRST:], file)


def main():
    folder, processes = sys.argv[1], int(sys.argv[2])
    children = []
    for _ in range(1, processes):
        pid = os.fork()
        if not pid:
            serve(folder)
            os._exit(0)
        children.append(pid)
    serve(folder)
    for pid in children:
        os.waitpid(pid, 0)


main()
