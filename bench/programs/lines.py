"""Two sorts, decorated as line_profiler and memory_profiler want it; a list that grows line by line.
CPU seconds on stderr."""

import random
import sys
import time

try:
    profile
except NameError:
    def profile(function):
        return function


@profile
def insertion(array):
    for i in range(len(array)):
        value = array[i]
        j = i - 1
        while j >= 0 and value < array[j]:
            array[j + 1] = array[j]
            j -= 1
        array[j + 1] = value
    return array


@profile
def quick(array):
    if len(array) <= 1:
        return array
    pivot = array[0]
    low = [x for x in array[1:] if x < pivot]
    high = [x for x in array[1:] if x >= pivot]
    return quick(low) + [pivot] + quick(high)


def main():
    random.seed(3)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    start = time.process_time()
    for _ in range(count):
        array = [random.randint(0, 1000) for _ in range(100)]
        assert insertion(array[:]) == quick(array)
    print(f"cpu {time.process_time() - start:.3f}", file=sys.stderr)


main()
