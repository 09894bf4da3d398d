"""Just enough of ELF to damage it: where sections are, and copies with bytes changed. The programs go
on running, since only what a profiler reads is touched."""

import random
import struct

SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
COMPRESSED = 0x800


class Elf:
    """A file's bytes, to be changed and written elsewhere."""

    def __init__(self, path):
        self.data = bytearray(path.read_bytes())
        (self.headers,) = struct.unpack_from("<Q", self.data, 0x28)
        self.count, self.names = struct.unpack_from("<HH", self.data, 0x3c)

    def header(self, index):
        return SECTION_HEADER.unpack_from(self.data, self.headers + index * SECTION_HEADER.size)

    def sections(self):
        """{name: (offset, size, flags)} of what is in the file."""
        names = self.header(self.names)[4]
        found = {}
        for index in range(1, self.count):
            name, kind, flags, _, offset, size = self.header(index)[:6]
            end = self.data.index(0, names + name)
            if kind != 8:  # SHT_NOBITS
                found[self.data[names + name:end].decode()] = (offset, size, flags)
        return found

    def scramble(self, section, seed, share=0.01):
        """Other bytes at random places of the section, at least one."""
        chance = random.Random(seed)
        offset, size, _ = self.sections()[section]
        for _ in range(max(1, int(size * share))):
            self.data[offset + chance.randrange(size)] = chance.randrange(256)

    def fill(self, section, byte):
        offset, size, _ = self.sections()[section]
        self.data[offset:offset + size] = bytes([byte]) * size

    def put(self, layout, at, *values):
        struct.pack_into(layout, self.data, at, *values)

    def write(self, path):
        path.write_bytes(self.data)
        path.chmod(0o755)
        return path
