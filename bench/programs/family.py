"""Eight forked Pythons, four at a time, two threads each: `family.py [LOOPS]`; seconds on stderr."""

import os
import sys
import threading
import time


def work(n):
    total, window = 0, [None] * 200
    for i in range(n):
        window[i % 200] = [i] * 20 + [str(i)]
        total += sum(range(10))
    return total


def child(n):
    threads = [threading.Thread(target=work, args=(n,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    loops = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
    start, living = time.perf_counter(), 0
    for _ in range(8):
        if not os.fork():
            child(loops)
            os._exit(0)
        living += 1
        if living == 4:
            os.wait()
            living -= 1
    while living:
        os.wait()
        living -= 1
    print(f"cpu {time.perf_counter() - start:.3f}", file=sys.stderr)


main()
