# Loads inside.c's library into this interpreter and compares what it sees with sys._getframe, then
# lets signals walk the stack at any moment of a busy program. Runs on 3.6 and later; prints OK.
import asyncio
import ctypes
import sys
import time

inside = ctypes.CDLL(sys.argv[1])
inside.inside_cost.restype = ctypes.c_double
room = ctypes.create_string_buffer(1 << 20)


def compare():
    count = inside.inside_walk(room, ctypes.c_size_t(len(room))); frame = sys._getframe()
    told = []
    while frame:
        code = frame.f_code
        told.append("%s\t%s\t%d" % (code.co_name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    seen = room.value.decode().splitlines()
    assert count == len(told) and seen[1:] == told[1:], (count, seen, told)
    return count


def recurse(n, do):
    return recurse(n - 1, do) if n else do()


def nest(n, do):
    yield from nest(n - 1, do) if n else [do()]


def sort(n, do):
    return sorted([1, 2], key=lambda _: sort(n - 1, do)) if n else do()


class Tree:
    def __init__(self, n):
        self.left, self.right = (Tree(n - 1), Tree(n - 1)) if n else (None, None)

    def __iter__(self):
        if self.left:
            yield from self.left
        yield self
        if self.right:
            yield from self.right

    def __lt__(self, other):
        return id(self) < id(other)


async def ping(n):
    if n:
        await asyncio.sleep(0)
        await ping(n - 1)
    return n


async def gather():
    await asyncio.gather(*[ping(8) for _ in range(20)])


def fail(n):
    try:
        if n:
            fail(n - 1)
        raise KeyError(n)
    except KeyError:
        eval("[x for x in (1, 2, 3)]")


def busy(seconds):
    """As long, and longer where signals come slowly: the walks are what counts."""
    end, latest = time.time() + seconds, time.time() + 30
    loop = asyncio.new_event_loop()
    while time.time() < end or (inside.inside_walks() < 2000 and time.time() < latest):
        recurse(700, lambda: None)  # over the ends of chunks and back, which unmaps them
        recurse(90, lambda: recurse(90, lambda: None))
        sorted(Tree(6))
        fail(30)
        list(nest(20, lambda: None))
        loop.run_until_complete(gather())


fault = inside.inside_open()
assert fault == 0, fault
sys.setrecursionlimit(3000)
for shape, depths in ((recurse, (0, 20, 500, 1500)), (nest, (1, 30)), (sort, (3, 6))):
    for depth in depths:
        if shape is nest:
            list(nest(depth, compare))
        else:
            shape(depth, compare)
costs = [recurse(30, lambda: inside.inside_cost(20, 200)),
         list(nest(30, lambda: inside.inside_cost(20, 200)))[0]]
assert inside.inside_start(ctypes.c_ulong(id(sys._getframe().f_code))) == 0
busy(float(sys.argv[2]))
counts = (ctypes.c_ulong * 8)()
inside.inside_stop(counts)
counts = list(counts)
print("OK %d.%d: 20 frames in %.0f ns, of generators in %.0f ns; of %d walks by signal %d complete, "
      "%d unread, %d cycles, %d impossible, %d otherwise wrong"
      % (sys.version_info[0], sys.version_info[1], costs[0], costs[1], counts[7], counts[0],
         counts[2], counts[3], counts[4], counts[1] + counts[5] + counts[6]))
