"""Nothing but calls: recursion, small methods, C functions. `calls.py [DEPTH]`; CPU seconds on stderr."""

import sys
import time


def climb(n):
    return 1 if n < 2 else climb(n - 1) + climb(n - 2)


class Counter:
    def __init__(self):
        self.value = 0

    def add(self, n):
        self.value += n

    def get(self):
        return self.value


def methods(n):
    counter = Counter()
    for i in range(n):
        counter.add(i)
        counter.get()
    return counter.value


def builtins(n):
    total = 0
    for i in range(n):
        total += len("four") + abs(i)
    return total


def main():
    depth = int(sys.argv[1]) if len(sys.argv) > 1 else 29
    start = time.process_time()
    climb(depth)
    methods(1000000)
    builtins(1000000)
    print(f"cpu {time.process_time() - start:.3f}", file=sys.stderr)


main()
