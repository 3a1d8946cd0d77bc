// The extension in a stand-in for VS Code: as much of its interface as the extension uses, around one document. Reads the folder of the
// extension, the command and a program's path from the arguments; prints what a user would see as one JSON object.
"use strict";
const fs = require("fs");
const Module = require("module");
const [, , folder, command, path] = process.argv;

class Position { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range {
  constructor(a, b, c, d) { this.start = new Position(a, b); this.end = new Position(c, d); }
}
class Emitter {
  constructor() {
    this.listeners = [];
    this.event = (listener) => { this.listeners.push(listener); return { dispose() {} }; };
  }
  fire(value) { for (const listener of this.listeners) listener(value); }
  dispose() {}
}
const uri = { toString: () => "file://" + path };
const document = { uri, languageId: "starfold", version: 1, text: fs.readFileSync(path, "utf8"), getText() { return this.text; } };
const providers = {};
const register = (name) => (selector, provider) => { providers[name] = provider; return { dispose() {} }; };
const problems = new Map();
const shown = [];
const published = new Emitter();
const opened = new Emitter(), closed = new Emitter(), changed = new Emitter();
const commands = {};
const vscode = {
  Position, Range, EventEmitter: Emitter,
  Location: class { constructor(uri, range) { Object.assign(this, { uri: uri.toString(), range }); } },
  Diagnostic: class { constructor(range, message, severity) { Object.assign(this, { range, message, severity }); } },
  DiagnosticRelatedInformation: class { constructor(location, message) { Object.assign(this, { location, message }); } },
  DiagnosticSeverity: { Error: 0, Warning: 1 },
  Hover: class { constructor(contents, range) { Object.assign(this, { contents, range }); } },
  MarkdownString: class { constructor(value) { this.value = value; } },
  CompletionItem: class { constructor(label, kind) { Object.assign(this, { label, kind }); } },
  InlayHint: class { constructor(position, label, kind) { Object.assign(this, { position, label, kind }); } },
  InlayHintKind: { Type: 1 },
  CodeLens: class { constructor(range, command) { Object.assign(this, { range, command }); } },
  TextEdit: { replace: (range, newText) => ({ range, newText }) },
  WorkspaceEdit: class { constructor() { this.edits = []; } replace(uri, range, newText) { this.edits.push({ range, newText }); } },
  Uri: { parse: (text) => ({ toString: () => text }) },
  languages: {
    createDiagnosticCollection: () => ({
      set: (uri, list) => { problems.set(uri.toString(), list); published.fire(); }, clear: () => problems.clear(), dispose() {},
    }),
    registerHoverProvider: register("hover"), registerDefinitionProvider: register("definition"),
    registerCompletionItemProvider: register("completion"), registerRenameProvider: register("rename"),
    registerDocumentFormattingEditProvider: register("format"), registerInlayHintsProvider: register("hints"),
    registerCodeLensProvider: register("lenses"),
  },
  commands: { registerCommand: (name, run) => { commands[name] = run; return { dispose() {} }; } },
  workspace: {
    textDocuments: [document], getConfiguration: () => ({ get: () => command }),
    onDidOpenTextDocument: opened.event, onDidCloseTextDocument: closed.event, onDidChangeTextDocument: changed.event,
  },
  window: { showErrorMessage: (text) => shown.push(text) },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

const next = () => new Promise((resolve) => published.event(resolve));

// The end of a document, then text put in there.
async function type(text) {
  const lines = document.text.split("\n");
  const end = new Position(lines.length - 1, lines[lines.length - 1].length);
  document.text += text;
  document.version += 1;
  const said = next();
  changed.fire({ document, contentChanges: [{ range: { start: end, end }, text }] });
  await said;
}

async function main() {
  const extension = require(folder + "/extension.js");
  const seen = { shown };
  const first = next();
  await extension.activate({ subscriptions: [] });
  if (shown.length) return seen;
  await first;
  seen.problems = problems.get(uri.toString());
  const beta = new Position(2, 8);
  seen.hover = await providers.hover.provideHover(document, beta);
  seen.definition = await providers.definition.provideDefinition(document, beta);
  seen.completion = await providers.completion.provideCompletionItems(document, new Position(2, 0));
  seen.rename = await providers.rename.provideRenameEdits(document, beta, "other");
  seen.refused = await providers.rename.provideRenameEdits(document, beta, "sum").catch((error) => error.message);
  seen.format = await providers.format.provideDocumentFormattingEdits(document);
  seen.hints = await providers.hints.provideInlayHints(document);
  seen.lenses = await providers.lenses.provideCodeLenses(document);
  await type("output x\n");
  seen.after = problems.get(uri.toString());
  const again = next();
  await commands["starfold.restart"]();
  await again;
  seen.restarted = problems.get(uri.toString());
  await extension.deactivate();
  return seen;
}

main().then((seen) => process.stdout.write(JSON.stringify(seen)));
