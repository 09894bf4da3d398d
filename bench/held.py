"""What bench/programs/rounds.py and witness.py wrote: rounds less the times at which the machine itself was away."""

import bisect
import json


def read_away(folder):
    """Times of no CPU, joined."""
    joined = []
    for begin, end in sorted(pair for path in folder.glob("*.away") for pair in json.loads(path.read_text())):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return joined


def overlap(away, begin, end):
    i = max(0, bisect.bisect_left(away, [begin, 0]) - 1)
    total = 0
    while i < len(away) and away[i][0] < end:
        total += max(0, min(away[i][1], end) - max(away[i][0], begin))
        i += 1
    return total


def read_rounds(folder):
    """Of each round in ns: CPU time, time in the queue for a CPU, time that it was held."""
    away = read_away(folder)
    for path in folder.glob("*.json"):
        for end, wall, cpu, queue, held in json.loads(path.read_text()):
            gone = overlap(away, end - wall, end)
            yield cpu, max(0, queue - gone), max(0, held - gone)
