# A busy thread, an idle one and a forked child in the same state. Runs on 3.6 and later; prints the
# ids of all of them, then READY.
import ctypes
import os
import sys
import threading
import time

libc = ctypes.CDLL(None)


def leaf(n):
    return n + 1


def branch(n):
    for i in range(50):
        n = leaf(n)
    return n


def spin():
    n = 0
    while True:
        n = branch(n)


def idle():
    time.sleep(1000)


def start(label):
    threading.Thread(target=idle, daemon=True).start()
    print(label, os.getpid(), libc.syscall(186), flush=True)
    if label == "CHILD":
        print("READY", flush=True)
    spin()


child = os.fork()
if child:
    start("PARENT")
else:
    libc.prctl(1, 9)  # ends with its parent
    time.sleep(0.2)
    start("CHILD")
