"""Just enough of protocol buffers to write pprof files of any shape, as other languages' tools do."""

import gzip


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A number, or bytes (a text, a message)."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(**fields):
    """Fields named f1, f2 ...: a number, bytes, or a list of them."""
    out = b""
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            out += field(int(name[1:]), one)
    return out


class Pprof:
    """A profile under construction; ids are handed out in order."""

    def __init__(self, *types):
        self.strings, self.parts, self.count = [""], [], 0
        for kind, unit in types:
            self.parts.append(field(1, message(f1=self.text(kind), f2=self.text(unit))))

    def text(self, string):
        if string not in self.strings:
            self.strings.append(string)
        return self.strings.index(string)

    def add(self, number, **fields):
        self.count += 1
        self.parts.append(field(number, message(f1=self.count, **fields)))
        return self.count

    def function(self, name, system="", file="", start=0):
        return self.add(5, f2=self.text(name), f3=self.text(system), f4=self.text(file), f5=start)

    def location(self, *lines, mapping=0, address=0):
        """`lines` are (function, line), the innermost first; line None leaves the field out."""
        packed = [message(f1=function) if line is None else message(f1=function, f2=line)
                  for function, line in lines]
        return self.add(4, f2=mapping, f3=address, f4=packed)

    def mapping(self, path, start, limit, offset=0, build_id="", functions=0):
        return self.add(3, f2=start, f3=limit, f4=offset, f5=self.text(path),
                        f6=self.text(build_id), f7=functions)

    def sample(self, locations, *values, **labels):
        tags = [message(f1=self.text(key), f3=value) if isinstance(value, int)
                else message(f1=self.text(key), f2=self.text(value))
                for key, value in labels.items()]
        self.parts.append(field(2, message(f1=b"", f2=b"") + field(1, b"".join(map(varint, locations)))
                                + field(2, b"".join(map(varint, values)))
                                + b"".join(field(3, tag) for tag in tags)))

    def write(self, path, packed=True):
        data = b"".join(self.parts) + b"".join(field(6, string) for string in self.strings)
        path.write_bytes(gzip.compress(data) if packed else data)
        return path
