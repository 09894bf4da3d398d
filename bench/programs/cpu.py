"""Python that computes, and calls back from C: `cpu.py [SCALE]`; CPU seconds on stderr."""

import json
import re
import sys
import time


def numbers(n):
    total = 0.0
    for i in range(1, n):
        total += i * 0.5 / (i + 1)
    return total


def sorting(n):
    return sorted(range(n), key=lambda x: x * 7919 % 1009)


def documents(n):
    text = json.dumps([{"id": i, "name": f"item {i}", "tags": ["a", "b"]} for i in range(n)])
    return len(re.sub("[0-9]+", lambda match: match.group()[::-1], text)), len(json.loads(text))


def primes(n):
    sieve = bytearray([1]) * n
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            for j in range(i * i, n, i):
                sieve[j] = 0
    return sum(sieve)


def main():
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    start = time.process_time()
    for _ in range(max(1, int(8 * scale))):
        numbers(800000)
        sorting(100000)
        documents(8000)
        primes(300000)
    print(f"cpu {time.process_time() - start:.3f}", file=sys.stderr)


main()
