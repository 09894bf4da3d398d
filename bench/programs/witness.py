"""A thread on each CPU that goes before all others and should run every half millisecond: witness.py FOLDER

When it does not, nobody did: the machine was away. FOLDER/CPU.away has these times as [from, to] in ns, once
FOLDER/enough is there.
"""

import json
import os
import sys
import time

STEP = 500_000  # ns
LATE = 1_000_000


def watch(folder, cpu):
    os.sched_setaffinity(0, [cpu])
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    away, last, looks = [], time.monotonic_ns(), 0
    while looks % 100 or not os.path.exists(f"{folder}/enough"):
        time.sleep(STEP / 1e9)
        now = time.monotonic_ns()
        if now - last > LATE:
            away.append((last + STEP, now))
        last = now
        looks += 1
    with open(f"{folder}/{cpu}.away", "w", encoding="utf-8") as file:
        json.dump(away, file)


def main():
    cpus = sorted(os.sched_getaffinity(0))
    children = []
    for cpu in cpus[1:]:
        pid = os.fork()
        if not pid:
            watch(sys.argv[1], cpu)
            os._exit(0)
        children.append(pid)
    watch(sys.argv[1], cpus[0])
    for pid in children:
        os.waitpid(pid, 0)


main()
