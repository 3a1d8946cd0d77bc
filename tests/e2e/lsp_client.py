"""An editor for tests: starts `starfold lsp` and speaks the Language Server Protocol with it."""
import json
import os
import pathlib
import select
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("STARFOLD", str(ROOT / "build" / "starfold"))


class Editor:
    def __init__(self, cache, encodings=None, initialize=True):
        self.process = subprocess.Popen([COMMAND, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, "XDG_CACHE_HOME": str(cache)}, bufsize=0)
        self.waiting = b""
        self.ids = 0
        self.version = 0
        self.notes = []  # notifications that nobody asked for yet
        if initialize:
            general = {"positionEncodings": encodings} if encodings else {}
            self.server = self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {"general": general}})
            self.tell("initialized", {})

    # Bytes and messages.
    def send_bytes(self, data):
        self.process.stdin.write(data)

    def send(self, message):
        body = json.dumps(message).encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def receive(self, timeout=60):
        """The next message of the server; None when it closed its stream."""
        end = time.monotonic() + timeout
        while True:
            head, found, rest = self.waiting.partition(b"\r\n\r\n")
            if found:
                length = int(head.split(b":")[1])
                if len(rest) >= length:
                    self.waiting = rest[length:]
                    return json.loads(rest[:length])
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the server says nothing")
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return None
            self.waiting += piece

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer_to(self, method, params):
        """The whole answer, be it a result or an error."""
        self.ids += 1
        self.send({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.ids and "method" not in message:
                return message
            self.notes.append(message)

    def ask(self, method, params=None):
        answer = self.answer_to(method, params if params is not None else {})
        assert "error" not in answer, answer
        return answer["result"]

    # Documents.
    def open(self, uri, text):
        self.uri = uri
        self.text = text
        self.version += 1
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "starfold", "version": self.version, "text": text}})

    def change(self, text):
        self.text = text
        self.version += 1
        self.tell("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": self.version}, "contentChanges": [{"text": text}]})

    def type(self, line, character, text):
        """One key, or a few: text put in at a place."""
        self.version += 1
        place = {"line": line, "character": character}
        self.tell("textDocument/didChange", {"textDocument": {"uri": self.uri, "version": self.version},
                                             "contentChanges": [{"range": {"start": place, "end": place}, "text": text}]})

    def problems(self):
        """The diagnostics of the newest version of the document."""
        while True:
            for index, note in enumerate(self.notes):
                if note.get("method") == "textDocument/publishDiagnostics":
                    params = note["params"]
                    if params["uri"] == self.uri and params.get("version") == self.version:
                        del self.notes[: index + 1]
                        return params["diagnostics"]
            self.notes.append(self.receive())

    def place(self, needle, which=0, inside=0):
        """Where a word stands for the `which`-th time, in UTF-16; for texts whose lines end with \\n."""
        offset = -1
        for _ in range(which + 1):
            offset = self.text.index(needle, offset + 1)
        before = self.text[: offset + inside]
        line = before.count("\n")
        last = before[before.rfind("\n") + 1:]
        return {"line": line, "character": len(last.encode("utf-16-le")) // 2}

    def at(self, method, place, **more):
        return self.ask("textDocument/" + method, {"textDocument": {"uri": self.uri}, "position": place, **more})

    def whole(self, method):
        return self.ask("textDocument/" + method, {"textDocument": {"uri": self.uri}})

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()


def applied(text, edits):
    """The text after edits of an answer; lines end with \\n, characters count as UTF-16."""
    lines = text.split("\n")

    def offset(place):
        line = lines[place["line"]].encode("utf-16-le")[: 2 * place["character"]].decode("utf-16-le")
        return sum(len(one) + 1 for one in lines[: place["line"]]) + len(line)

    for edit in sorted(edits, key=lambda e: offset(e["range"]["start"]), reverse=True):
        text = text[: offset(edit["range"]["start"])] + edit["newText"] + text[offset(edit["range"]["end"]):]
    return text
