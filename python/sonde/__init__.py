"""sonde, from inside a Python program: recordings of a part of it, spans and counters on its
timeline, lines of chosen functions. Pure Python over libsonde.so, which `sonde run` brings along and
which is loaded from where the command `sonde` lies otherwise; without either, spans and counters
do nothing and cost next to nothing.

    import sonde

    with sonde.profile("part.sonde", trace=True):
        work()

    with sonde.span("load"):
        load()
    sonde.counter("queue", len(queue))

    @sonde.profile_lines
    def parse(text): ...
"""

from ._library import NotAvailable
from .lines import profile_lines
from .profiler import Profiler, profile
from .spans import counter, is_recorded, mark, span

__all__ = ["Client", "NotAvailable", "Profiler", "counter", "is_recorded", "mark", "profile",
           "profile_lines", "span"]


def __getattr__(name):
    # Only who talks to a server needs what that takes.
    if name == "Client":
        from .client import Client
        return Client
    raise AttributeError(f"module 'sonde' has no attribute {name!r}")


def load_ipython_extension(shell):
    from . import magics
    magics.register(shell)
