#include "starfold/editor/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "starfold/base/json.h"
#include "starfold/base/version.h"
#include "starfold/editor/library_files.h"
#include "starfold/editor/uri.h"

namespace starfold::editor {
namespace {

using nlohmann::json;

// Codes of JSON-RPC and of the protocol.
constexpr int parse_error = -32700;
constexpr int invalid_request = -32600;
constexpr int method_not_found = -32601;
constexpr int invalid_params = -32602;
constexpr int internal_error = -32603;
constexpr int not_initialized = -32002;
constexpr int request_failed = -32803;

// A request that is answered with a mistake.
struct Refusal {
  int code;
  std::string message;
};

std::uint32_t number(const json& value) {
  if (!value.is_number_unsigned()) throw Refusal{invalid_params, "a place is a number from 0"};
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(
      value.get<std::uint64_t>(), std::numeric_limits<std::uint32_t>::max()));
}

Place place(const json& value) { return {number(value.at("line")), number(value.at("character"))}; }

std::string text_of(const json& value) { return value.get<std::string>(); }

json position_encoding(Encoding encoding) {
  return encoding == Encoding::utf8 ? "utf-8" : encoding == Encoding::utf16 ? "utf-16" : "utf-32";
}

}  // namespace

// One open document and what is known about it.
struct Server::Document {
  std::string uri;
  std::string name;  // its path, or its address when it has none
  bool file = false;
  json version;
  Text text;
  bool dirty = true;     // changed since it was analyzed
  bool unspoken = true;  // its problems were not said since
  std::shared_ptr<const Analysis> now;
  std::shared_ptr<const Analysis> read;
  std::shared_ptr<const Analysis> planned;
};

Server::Server(Send send, std::string library)
    : send_(std::move(send)), library_(std::move(library)) {}
Server::~Server() = default;

void Server::answer(const Json& id, const Json& result) {
  send_(json_line({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}));
}

void Server::fail(const Json& id, int code, const std::string& message) {
  send_(json_line(
      {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}}));
}

void Server::refuse(const std::string& why) { fail(nullptr, parse_error, why); }

void Server::receive(std::string_view body) {
  const json message = parse_json(body);
  if (message.is_discarded()) return refuse("the message is not JSON");
  const bool called =
      message.is_object() && message.contains("method") && message["method"].is_string();
  if (!called) {
    // An answer of the editor's: nothing is asked of it.
    const bool reply = message.is_object() && message.contains("id") && !message.contains("method");
    return reply ? void() : fail(nullptr, invalid_request, "the message names no method");
  }
  const std::string method = message["method"];
  const json params = message.value("params", json::object());
  const bool asks = message.contains("id");
  const json id = asks ? message["id"] : json();
  if (asks && !id.is_string() && !id.is_number())
    return fail(nullptr, invalid_request, "an id is a number or a string");
  try {
    if (method == "exit") {
      ended_ = true;
      return;
    }
    if (!initialized_ && method != "initialize") {
      if (asks) fail(id, not_initialized, "the first message is `initialize`");
      return;
    }
    if (shut_down_) {
      if (asks) fail(id, invalid_request, "the server was shut down");
      return;
    }
    if (asks) {
      answer(id, request(method, params));
    } else {
      notification(method, params);
    }
  } catch (const Refusal& refusal) {
    if (asks) fail(id, refusal.code, refusal.message);
  } catch (const json::exception& error) {
    if (asks) fail(id, invalid_params, error.what());
  } catch (const std::exception& error) {
    if (asks) fail(id, internal_error, error.what());
  }
}

Server::Json Server::initialize(const Json& params) {
  const json offers =
      params.value("/capabilities/general/positionEncodings"_json_pointer, json::array());
  // The editor's favourite among those that it offers.
  const auto offered = [&](Encoding encoding) {
    return std::find(offers.begin(), offers.end(), position_encoding(encoding));
  };
  auto best = offers.end();
  for (const Encoding encoding : {Encoding::utf16, Encoding::utf8, Encoding::utf32}) {
    if (offered(encoding) >= best) continue;
    best = offered(encoding);
    encoding_ = encoding;
  }
  initialized_ = true;
  return {{"serverInfo", {{"name", "starfold"}, {"version", version()}}},
          {"capabilities",
           {{"positionEncoding", position_encoding(encoding_)},
            {"textDocumentSync", {{"openClose", true}, {"change", 2}}},
            {"hoverProvider", true},
            {"definitionProvider", true},
            {"completionProvider", {{"triggerCharacters", {"."}}}},
            {"renameProvider", {{"prepareProvider", true}}},
            {"documentFormattingProvider", true},
            {"inlayHintProvider", true},
            {"codeLensProvider", json::object()}}}};
}

Server::Document& Server::document(const Json& params) {
  const auto found = documents_.find(text_of(params.at("textDocument").at("uri")));
  if (found == documents_.end()) throw Refusal{invalid_params, "this document is not open"};
  return *found->second;
}

Server::Json Server::request(const std::string& method, const Json& params) {
  if (method == "initialize") {
    if (initialized_) throw Refusal{invalid_request, "the server is initialized already"};
    return initialize(params);
  }
  if (method == "shutdown") {
    shut_down_ = true;
    return nullptr;
  }
  const auto at = [&](Document& document) {
    return document.text.offset(place(params.at("position")), encoding_);
  };
  if (method == "textDocument/hover") {
    Document& asked = document(params);
    return hover(view(asked), at(asked));
  }
  if (method == "textDocument/definition") {
    Document& asked = document(params);
    return definition(view(asked), at(asked), address(asked), asked.uri);
  }
  if (method == "textDocument/completion") {
    Document& asked = document(params);
    return completion(view(asked), at(asked), modules_beside(asked));
  }
  if (method == "textDocument/prepareRename" || method == "textDocument/rename") {
    Document& asked = document(params);
    return rename_answer(asked, at(asked), params);
  }
  if (method == "textDocument/formatting") return layout(view(document(params)));
  if (method == "textDocument/inlayHint") return inlays(view(document(params)));
  if (method == "textDocument/codeLens") return lenses(view(document(params)));
  throw Refusal{method_not_found, fmt::format("there is no method `{}`", method)};
}

// With a new name, the edits; without one, whether there can be one.
Server::Json Server::rename_answer(Document& document, std::uint32_t offset,
                                   const Json& params) const {
  const View seen = view(document);
  std::string why_not;
  json answer;
  if (params.contains("newName")) {
    json edits = rename(seen, offset, text_of(params["newName"]), loader(document), why_not);
    if (why_not.empty()) answer["changes"][document.uri] = std::move(edits);
  } else if (const std::optional<Renamed> found = renamable(seen, offset, why_not)) {
    answer = {{"range", range_of(document.text, found->here, encoding_)},
              {"placeholder", found->name}};
  }
  if (!why_not.empty()) throw Refusal{request_failed, why_not};
  return answer;
}

void Server::notification(const std::string& method, const Json& params) {
  if (method == "textDocument/didOpen") return open(params);
  if (method == "textDocument/didChange") return change(params);
  if (method == "textDocument/didClose") return close(params);
  if (method == "workspace/didChangeWatchedFiles") {
    for (auto& [uri, document] : documents_) document->dirty = document->unspoken = true;
  }
  // Others need no answer.
}

void Server::open(const Json& params) {
  const json& given = params.at("textDocument");
  auto opened = std::make_unique<Document>();
  opened->uri = text_of(given.at("uri"));
  const std::optional<std::string> path = path_of(opened->uri);
  opened->name = path.value_or(opened->uri);
  opened->file = path.has_value();
  opened->version = given.value("version", json());
  opened->text = Text(text_of(given.at("text")));
  const Document& known = *opened;
  documents_.insert_or_assign(known.uri, std::move(opened));
  touch(known);
}

void Server::change(const Json& params) {
  Document& changed = document(params);
  changed.version = params.at("textDocument").value("version", json());
  for (const json& piece : params.at("contentChanges")) {
    const std::string text = text_of(piece.at("text"));
    if (piece.contains("range")) {
      const json& range = piece["range"];
      changed.text.replace(changed.text.offset(place(range.at("start")), encoding_),
                           changed.text.offset(place(range.at("end")), encoding_), text);
    } else {
      changed.text = Text(text);
    }
    changed.dirty = changed.unspoken = true;
  }
  touch(changed);
}

void Server::close(const Json& params) {
  const std::string uri = document(params).uri;
  const std::unique_ptr<Document> closed = std::move(documents_.extract(uri).mapped());
  touch(*closed);  // what is on disk counts again
  send_(json_line({{"jsonrpc", "2.0"},
                   {"method", "textDocument/publishDiagnostics"},
                   {"params", {{"uri", uri}, {"diagnostics", json::array()}}}}));
}

// Programs that read this document as a module are to be checked again, and those for which it may be a module they lacked.
void Server::touch(const Document& changed) {
  for (auto& [uri, other] : documents_) {
    if (other.get() == &changed || !other->file || !changed.file) continue;
    const auto folder = [](const Document& one) {
      return std::filesystem::path(one.name).parent_path();
    };
    if (folder(*other) == folder(changed)) other->dirty = other->unspoken = true;
  }
}

void Server::settle() {
  for (auto& [uri, document] : documents_) {
    if (!document->unspoken) continue;
    document->unspoken = false;
    try {
      json said = {{"uri", uri}, {"diagnostics", problems(view(*document), address(*document))}};
      if (!document->version.is_null()) said["version"] = document->version;
      send_(json_line({{"jsonrpc", "2.0"},
                       {"method", "textDocument/publishDiagnostics"},
                       {"params", std::move(said)}}));
    } catch (const std::exception& error) {
      // A mistake of ours: it is said, and the next text is a new chance.
      send_(json_line({{"jsonrpc", "2.0"},
                       {"method", "window/logMessage"},
                       {"params", {{"type", 1}, {"message", error.what()}}}}));
    }
  }
}

// What an editor holds of a module counts more than what is on disk.
ModuleLoader Server::loader(const Document& document) const {
  if (!document.file) return {};
  return [this, &document, beside = starfold::modules_beside(document.name)](
             std::string_view module) -> std::optional<std::pair<std::string, std::string>> {
    const std::filesystem::path path =
        std::filesystem::path(document.name).parent_path() / (std::string(module) + ".fold");
    for (const auto& [uri, open] : documents_) {
      if (open->file && open->name == path) return std::pair(open->name, open->text.bytes());
    }
    return beside(module);
  };
}

AddressOf Server::address(const Document& document) const {
  return [this, &document](const std::string& name) -> std::string {
    if (name == document.name) return document.uri;
    for (const auto& [uri, open] : documents_) {
      if (open->name == name) return uri;
    }
    const std::string path = name.substr(0, 1) == "/" ? name : library_file(library_, name);
    return path.empty() ? "" : uri_of(path);
  };
}

// The modules that a program could import from its own folder.
std::vector<std::string> Server::modules_beside(const Document& document) const {
  constexpr std::size_t most = 1000;
  std::vector<std::string> names;
  if (!document.file) return names;
  namespace fs = std::filesystem;
  const fs::path own(document.name);
  std::error_code failed;
  for (fs::directory_iterator at(own.parent_path(), failed), end; !failed && at != end;
       at.increment(failed)) {
    const fs::path& path = at->path();
    if (path.extension() == ".fold" && path.filename() != own.filename() && names.size() < most)
      names.push_back(path.stem().string());
  }
  return names;
}

void Server::analyze(Document& document) const {
  document.dirty = false;
  auto found = std::make_shared<const Analysis>(
      editor::analyze(document.name, document.text.bytes(), loader(document)));
  document.now = found;
  if (found->names.complete) document.read = found;
  if (found->planned) document.planned = found;
}

View Server::view(Document& document) const {
  if (document.dirty) analyze(document);
  return {document.text, *document.now, document.read.get(), document.planned.get(), encoding_};
}

}  // namespace starfold::editor
