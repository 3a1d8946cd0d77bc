// JSON-RPC over the streams of a process, with the headers of the Language Server Protocol.
"use strict";
const { spawn } = require("child_process");

class Connection {
  // onNotification(method, params) and onEnd(reason) are called when something arrives, or nothing more will.
  constructor(command, args, onNotification, onEnd) {
    this.waiting = Buffer.alloc(0);
    this.open = new Map(); // questions without an answer yet
    this.ids = 0;
    this.ended = false;
    this.onNotification = onNotification;
    this.onEnd = onEnd;
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
    this.process.on("error", (error) => this.end(error.message));
    this.process.on("exit", (code) => this.end(`it ended with code ${code}`));
    this.process.stdin.on("error", () => {}); // its end is told by "exit"
    this.process.stdout.on("data", (piece) => this.receive(piece));
  }

  send(message) {
    if (this.ended) return;
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.process.stdin.write(body);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params) {
    if (this.ended) return Promise.reject(new Error("the language server is not running"));
    const id = ++this.ids;
    return new Promise((resolve, reject) => {
      this.open.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  receive(piece) {
    this.waiting = Buffer.concat([this.waiting, piece]);
    for (;;) {
      const end = this.waiting.indexOf("\r\n\r\n");
      if (end < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(this.waiting.toString("ascii", 0, end))[1]);
      const begin = end + 4;
      if (this.waiting.length < begin + length) return;
      const message = JSON.parse(this.waiting.toString("utf8", begin, begin + length));
      this.waiting = this.waiting.subarray(begin + length);
      this.take(message);
    }
  }

  take(message) {
    if (message.method) return this.onNotification(message.method, message.params);
    const question = this.open.get(message.id);
    this.open.delete(message.id);
    if (!question) return;
    if (message.error) question.reject(new Error(message.error.message));
    else question.resolve(message.result);
  }

  end(reason) {
    if (this.ended) return;
    this.ended = true;
    for (const question of this.open.values()) question.reject(new Error(reason));
    this.open.clear();
    this.onEnd(reason);
  }
}

module.exports = { Connection };
