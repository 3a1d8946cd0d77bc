// The language server on any bytes: as a stream, as a program that is typed, and as questions at any place of it. It answers
// every question, and all that it says is JSON.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "fuzz/require.h"
#include "starfold/base/json.h"
#include "starfold/base/utf8.h"
#include "starfold/editor/server.h"
#include "starfold/editor/wire.h"

using namespace starfold;
using nlohmann::json;

namespace {

// What one server said: answers are counted.
struct Said {
  int answers = 0;
  void operator()(const std::string& body) {
    const json message = parse_json(body);
    require(message.is_object());
    answers += message.contains("id") ? 1 : 0;
  }
};

void as_stream(const std::string& bytes) {
  Said said;
  editor::Server server([&](const std::string& body) { said(body); }, "");
  editor::MessageReader reader;
  reader.add(bytes);
  for (editor::MessageReader::Next next = reader.next();
       next.kind == editor::MessageReader::Kind::message; next = reader.next())
    server.receive(next.body);
  server.receive(bytes);
  server.settle();
}

void as_program(const std::string& bytes) {
  Said said;
  editor::Server server([&](const std::string& body) { said(body); }, "");
  server.receive(R"({"id": 0, "method": "initialize", "params": {"capabilities": {}}})");
  const std::string text = valid_utf8(bytes);
  const json document = {{"uri", "untitled:1"}, {"version", 1}, {"text", text}};
  server.receive(
      json{{"method", "textDocument/didOpen"}, {"params", {{"textDocument", document}}}}.dump());
  server.settle();
  // A key somewhere, then every question at that place.
  const std::uint32_t seed = bytes.empty() ? 0 : static_cast<unsigned char>(bytes.back());
  const json place = {{"line", seed % 7}, {"character", seed % 31}};
  json change = {{"method", "textDocument/didChange"}};
  change["params"]["textDocument"] = {{"uri", "untitled:1"}, {"version", 2}};
  change["params"]["contentChanges"] = {
      {{"range", {{"start", place}, {"end", place}}}, {"text", seed % 2 == 0 ? "(" : " "}}};
  server.receive(change.dump());
  int asked = 1;
  for (const char* method : {"hover", "definition", "completion", "prepareRename", "rename",
                             "formatting", "inlayHint", "codeLens"}) {
    json question = {{"id", asked++}, {"method", std::string("textDocument/") + method}};
    question["params"] = {{"textDocument", {{"uri", "untitled:1"}}}, {"position", place}};
    if (std::string(method) == "rename") question["params"]["newName"] = "other";
    server.receive(question.dump());
    require(said.answers == asked);
  }
  server.settle();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t longest = 2000;  // longer ones are the parser's and the checker's business
  const std::string bytes(reinterpret_cast<const char*>(data), size < longest ? size : longest);
  as_stream(bytes);
  as_program(bytes);
  return 0;
}
