# Threads in known places, which say where they are and then stay there. Runs on 3.6 and later.
#
#   T <kernel's thread id> <pthread id> <task's name: - no task, ? no name, Task-* a number>
#   F <name> TAB <qualified name> TAB <file> TAB <line>        innermost first
#   READY <number of threads>
import asyncio
import ctypes
import sys
import threading
import time

lock = threading.Lock()
libc = ctypes.CDLL(None)


def show(frame, task="-"):
    lines = ["T %d %d %s" % (libc.syscall(186), threading.get_ident(), task)]
    while frame:
        code = frame.f_code
        lines.append("F %s\t%s\t%s\t%d" % (code.co_name, getattr(code, "co_qualname", code.co_name),
                                           code.co_filename, frame.f_lineno))
        frame = frame.f_back
    with lock:
        print("\n".join(lines), flush=True)
        shown.append(threading.get_ident())


def stay(task="-"):
    show(sys._getframe(), task); time.sleep(1000)


class Première:
    class 内部:
        def 方法(self, deep):
            def clôture():
                return [stay() for _ in (
                    1,
                )]
            return clôture() if not deep else self.方法(deep - 1)

    @staticmethod
    def 𐌰𐌱():
        return Première.内部().方法(2)

    @property
    def value(self):
        return max([1, 2], key=lambda x: self.𐌰𐌱())


def inner_generator():
    yield 1
    yield (
        Première()
        .value
    )


def outer_generator():
    yield from inner_generator()


def generators():
    for _ in outer_generator():
        pass


def recurse(n):
    if n:
        return recurse(n - 1)
    stay()


def recurse_natively(n):
    """Through sorted(), so that every level is a call of the interpreter loop."""
    if n:
        return sorted([0, 1], key=lambda _: recurse_natively(n - 1))
    stay()


def strange_lines():
    """Lines far apart, backwards, and many instructions on one."""
    body = ["def jump(f, a):"]
    body += ["    a = %s" % " + ".join(["a"] * 400)]
    body += [""] * 700
    body += ["    b = [", "        a,"] + [""] * 200 + ["        f(", "            a", "        ),"]
    body += [""] * 150 + ["        a]"]
    body += ["    return b"]
    space = {}
    exec(compile("\n".join(body), "/sömewhere/名/😀.py", "exec"), space)
    space["jump"](lambda a: stay(), 0)


def long_names():
    space = {"stay": stay}
    name = "é" * 300
    exec("def %s():\n  stay()\n%s()" % (name, name), space)


async def leaf(name):
    await asyncio.sleep(0)
    stay(name)


async def middle(name):
    return await leaf(name)


async def start(named):
    """A name that is given, one that is made when asked for (so nobody asks here), or none."""
    make = getattr(asyncio, "create_task", asyncio.ensure_future)
    if sys.version_info < (3, 8):
        await make(middle("-" if sys.version_info < (3, 7) else "?"))
    elif named:
        await make(middle("Aufgabe ä"), name="Aufgabe ä")
    else:
        await make(middle("Task-*"))


def tasks(named):
    asyncio.set_event_loop(asyncio.new_event_loop())
    asyncio.get_event_loop().run_until_complete(start(named))


shown = []
threading.stack_size(64 << 20)
sys.setrecursionlimit(5000)
work = [(generators, ()), (recurse, (500,)), (recurse, (2000,)), (recurse_natively, (30,)),
        (strange_lines, ()), (long_names, ()), (tasks, (True,)), (tasks, (False,))]
for function, arguments in work:
    threading.Thread(target=function, args=arguments, daemon=True).start()
while len(shown) < len(work):
    time.sleep(0.001)
show(sys._getframe()); print("READY", len(shown), flush=True); time.sleep(1000)
