"""Objects, strings and buffers that come and go, some that stay, and deep recursion while at it.
`alloc.py [SCALE]`; CPU seconds on stderr."""

import sys
import time

kept = []


def row(i):
    return [i * j for j in range(50)], {f"key {j}": 1.5 * j for j in range(30)}


def text(i):
    return ",".join(str(i + j) for j in range(40))


def buffer(i):
    return bytearray(2000 + i % 64 * 512)


class Node:
    def __init__(self, left, right):
        self.left = left
        self.right = right


def tree(depth):
    return Node(tree(depth - 1), tree(depth - 1)) if depth else None


def churn(n):
    window = [None] * 2000
    for i in range(n):
        window[i * 7919 % 2000] = row(i), text(i)
        window[i * 104729 % 2000] = buffer(i)
        if i % 50 == 0:
            kept.append(bytes(4096))


def main():
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    start = time.process_time()
    churn(int(80000 * scale))
    for _ in range(max(1, int(6 * scale))):
        tree(15)
    print(f"cpu {time.process_time() - start:.3f}", file=sys.stderr)


main()
