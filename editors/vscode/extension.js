// Starts `starfold lsp` and connects it with the editor. VS Code and the server count alike, in UTF-16, so places pass as they are.
"use strict";
const vscode = require("vscode");
const { Connection } = require("./rpc");

const language = "starfold";
const selector = { language };

let server = null; // the connection, once it is initialized
let starting = null;
let problems = null;
let hintsChanged = null;
let lensesChanged = null;

const range = (r) => new vscode.Range(r.start.line, r.start.character, r.end.line, r.end.character);
const ours = (document) => document.languageId === language;
const named = (document) => ({ textDocument: { uri: document.uri.toString() } });
const at = (document, position) => ({ ...named(document), position: { line: position.line, character: position.character } });

function diagnostic(found) {
  const severity = found.severity === 1 ? vscode.DiagnosticSeverity.Error : vscode.DiagnosticSeverity.Warning;
  const shown = new vscode.Diagnostic(range(found.range), found.message, severity);
  shown.code = found.code;
  shown.source = found.source;
  shown.tags = found.tags;
  shown.relatedInformation = (found.relatedInformation || []).map(
    (other) => new vscode.DiagnosticRelatedInformation(location(other.location), other.message));
  return shown;
}

function location(found) {
  return new vscode.Location(vscode.Uri.parse(found.uri), range(found.range));
}

function onNotification(method, params) {
  if (method !== "textDocument/publishDiagnostics") return;
  problems.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnostic));
  hintsChanged.fire();
  lensesChanged.fire();
}

function open(connection, document) {
  if (!ours(document)) return;
  connection.notify("textDocument/didOpen", {
    textDocument: { uri: document.uri.toString(), languageId: language, version: document.version, text: document.getText() },
  });
}

async function start() {
  const command = vscode.workspace.getConfiguration("starfold").get("command") || "starfold";
  const connection = new Connection(command, ["lsp"], onNotification, (reason) => {
    if (server !== connection && starting !== connection) return; // it was stopped
    server = starting = null;
    problems.clear();
    vscode.window.showErrorMessage(`Starfold: \`${command} lsp\` is not running: ${reason}. The setting starfold.command names the command.`);
  });
  starting = connection;
  try {
    await connection.request("initialize", { processId: process.pid, rootUri: null, capabilities: { general: { positionEncodings: ["utf-16"] } } });
  } catch {
    return; // said when it ended
  }
  connection.notify("initialized", {});
  server = connection;
  for (const document of vscode.workspace.textDocuments) open(connection, document);
}

async function stop() {
  const connection = server;
  server = starting = null;
  if (!connection) return;
  try {
    await connection.request("shutdown", null);
  } catch {
    return; // it is gone already
  }
  connection.notify("exit", null);
}

// Asks the server; what it cannot answer is answered with nothing.
async function ask(method, params) {
  if (!server) return null;
  try {
    return await server.request("textDocument/" + method, params);
  } catch {
    return null;
  }
}

function completion(item) {
  const shown = new vscode.CompletionItem(item.label, item.kind - 1); // the protocol counts kinds from 1
  shown.detail = item.detail;
  shown.documentation = item.documentation;
  shown.sortText = item.sortText;
  return shown;
}

const providers = {
  hover: {
    async provideHover(document, position) {
      const found = await ask("hover", at(document, position));
      return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value), found.range && range(found.range));
    },
  },
  definition: {
    async provideDefinition(document, position) {
      const found = await ask("definition", at(document, position));
      return found && location(found);
    },
  },
  completion: {
    async provideCompletionItems(document, position) {
      return ((await ask("completion", at(document, position))) || []).map(completion);
    },
  },
  rename: {
    async prepareRename(document, position) {
      if (!server) throw new Error("the language server is not running");
      const found = await server.request("textDocument/prepareRename", at(document, position));
      return { range: range(found.range), placeholder: found.placeholder };
    },
    async provideRenameEdits(document, position, newName) {
      if (!server) throw new Error("the language server is not running");
      const found = await server.request("textDocument/rename", { ...at(document, position), newName });
      const edit = new vscode.WorkspaceEdit();
      for (const [uri, changes] of Object.entries(found.changes)) {
        for (const change of changes) edit.replace(vscode.Uri.parse(uri), range(change.range), change.newText);
      }
      return edit;
    },
  },
  format: {
    async provideDocumentFormattingEdits(document) {
      const edits = (await ask("formatting", named(document))) || [];
      return edits.map((edit) => vscode.TextEdit.replace(range(edit.range), edit.newText));
    },
  },
  hints: {
    async provideInlayHints(document) {
      const hints = (await ask("inlayHint", named(document))) || [];
      return hints.map((hint) => new vscode.InlayHint(new vscode.Position(hint.position.line, hint.position.character), hint.label, vscode.InlayHintKind.Type));
    },
  },
  lenses: {
    async provideCodeLenses(document) {
      const lenses = (await ask("codeLens", named(document))) || [];
      return lenses.map((lens) => new vscode.CodeLens(range(lens.range), { title: lens.command.title, command: "" }));
    },
  },
};

async function activate(context) {
  problems = vscode.languages.createDiagnosticCollection(language);
  hintsChanged = new vscode.EventEmitter();
  lensesChanged = new vscode.EventEmitter();
  providers.hints.onDidChangeInlayHints = hintsChanged.event;
  providers.lenses.onDidChangeCodeLenses = lensesChanged.event;
  const languages = vscode.languages;
  context.subscriptions.push(
    problems, hintsChanged, lensesChanged,
    languages.registerHoverProvider(selector, providers.hover),
    languages.registerDefinitionProvider(selector, providers.definition),
    languages.registerCompletionItemProvider(selector, providers.completion, "."),
    languages.registerRenameProvider(selector, providers.rename),
    languages.registerDocumentFormattingEditProvider(selector, providers.format),
    languages.registerInlayHintsProvider(selector, providers.hints),
    languages.registerCodeLensProvider(selector, providers.lenses),
    vscode.commands.registerCommand("starfold.restart", async () => {
      await stop();
      await start();
    }),
    vscode.workspace.onDidOpenTextDocument((document) => server && open(server, document)),
    vscode.workspace.onDidCloseTextDocument((document) => {
      if (server && ours(document)) server.notify("textDocument/didClose", named(document));
    }),
    vscode.workspace.onDidChangeTextDocument((event) => {
      if (!server || !ours(event.document) || event.contentChanges.length === 0) return;
      server.notify("textDocument/didChange", {
        textDocument: { uri: event.document.uri.toString(), version: event.document.version },
        contentChanges: event.contentChanges.map((change) => ({ range: change.range, text: change.text })),
      });
    }));
  await start();
}

module.exports = { activate, deactivate: stop };
