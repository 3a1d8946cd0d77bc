"""Frames on pipes and sockets, as docs/flower.md has them. Numbers are least significant byte first."""
import struct

LIMIT = 256 << 20  # bytes of one frame; the shim at the site has the same
HEAD_LIMIT = 16 << 20  # bytes of a head in JSON


class Torn(Exception):
    """The other side ended in the middle of a frame, or says that it is too long."""


def read_exactly(stream, count):
    """count bytes; fewer only if the stream ends."""
    parts = []
    while count:
        part = stream.read(min(count, 1 << 20))
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def read_packed(stream, layout, at_start=False):
    """The numbers of a struct layout; None if the stream ends here and at_start says that it may."""
    size = struct.calcsize(layout)
    data = read_exactly(stream, size)
    if at_start and not data:
        return None
    if len(data) != size:
        raise Torn("the stream ended in the middle of a frame")
    return struct.unpack(layout, data)


def read_bytes(stream, length, limit=LIMIT):
    if length > limit:
        raise Torn(f"a frame of {length} bytes is longer than {limit}")
    data = read_exactly(stream, length)
    if len(data) != length:
        raise Torn("the stream ended in the middle of a frame")
    return data


def read_blob(stream, limit=HEAD_LIMIT):
    """Length in 8 bytes, and then the bytes; None at the end of the stream."""
    length = read_packed(stream, "<Q", at_start=True)
    return None if length is None else read_bytes(stream, length[0], limit)


def write_blob(stream, data):
    stream.write(struct.pack("<Q", len(data)) + data)
    stream.flush()


def read_request(stream):
    """(client, bytes), or None when the parent has closed its end."""
    head = read_packed(stream, "<IQ", at_start=True)
    return None if head is None else (head[0], read_bytes(stream, head[1]))


def write_answer(stream, client, status, data):
    stream.write(struct.pack("<IBQ", client, status, len(data)))
    stream.write(data)
    stream.flush()
