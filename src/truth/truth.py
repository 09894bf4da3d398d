"""truth.py lines|calls FILE: work whose lines and calls are known; FILE gets what is true of it.

The Python half of sonde-truth; see docs/VERIFY.md.
"""

import sys
import time

ROUNDS = 260
OUTER = 8000


def lines(out, clock=time.thread_time):
    """Three lines that take about 60, 30 and 10 % of the time."""
    part = [0.0, 0.0, 0.0]
    size, start = 20000, clock()
    for turn in range(ROUNDS):
        size = size * 421 % 30011 + 10000  # rounds of changing length
        begin = clock()
        sum(range(size * 6))
        first = clock()
        sum(range(size * 3))
        second = clock()
        sum(range(size))
        part[0] += first - begin
        part[1] += second - first
        part[2] += clock() - second
    whole = clock() - start
    first = lines.__code__.co_firstlineno
    out.write("kind python lines\nevent cpu\nwithin lines\nbound 3%\n")
    for line, spent in zip((first + 7, first + 9, first + 11), part):
        out.write(f"line truth.py:{line} {100 * spent / whole:.3f}%\n")


def truth_inner(number):
    return number + sum(range(50))


def truth_outer(number):
    for _ in range(9):
        number = truth_inner(number)
    return number


def truth_recurses(number):
    return number + truth_recurses(number - 1) if number else 0


def calls(out):
    """As many calls as it says."""
    number = 0
    for _ in range(OUTER):
        number = truth_outer(number) + truth_recurses(4)
    out.write("kind python calls\nevent calls\nbound 0.1%\n")
    out.write(f"count truth_outer {OUTER}\ncount truth_inner {9 * OUTER}\n")
    out.write(f"count truth_recurses {5 * OUTER}\n")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("lines", "calls"):
        sys.exit("usage: truth.py lines|calls FILE")
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write("truth 1\n")
        before = time.process_time_ns()
        {"lines": lines, "calls": calls}[sys.argv[1]](out)
        out.write(f"spent {time.process_time_ns() - before}\n")


if __name__ == "__main__":
    main()
