"""fake_node.py NODE.toml: answers on the node's socket as `starfold node serve` does, with what it was asked: for tests of what carries.

Some requests are answered otherwise: `close` not at all, `long` with a length beyond all limits, `slow N` after N seconds.
"""
import os
import pathlib
import signal
import socketserver
import sys
import time
import tomllib


class Handler(socketserver.StreamRequestHandler):

    def handle(self):
        while len(prefix := self.rfile.read(8)) == 8:
            request = self.rfile.read(int.from_bytes(prefix, "little"))
            if request == b"close":
                return
            if request == b"long":
                self.wfile.write(b"\xff" * 8)
                return
            if request.startswith(b"slow "):
                time.sleep(float(request[5:]))
            self.wfile.write(len(request).to_bytes(8, "little") + request)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def main():
    toml = pathlib.Path(sys.argv[1])
    path = toml.parent / tomllib.loads(toml.read_text())["socket"]
    path.unlink(missing_ok=True)
    os.umask(0o077)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Server(str(path), Handler) as server:
        print("listening", flush=True)
        try:
            server.serve_forever()
        finally:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
