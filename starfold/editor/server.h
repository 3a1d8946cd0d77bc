// The language server as a state machine: messages in, messages out. It reads no stream; serve.h does.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "starfold/editor/features.h"

namespace starfold::editor {

class Server {
 public:
  using Send = std::function<void(const std::string& body)>;

  // `library` is the folder where modules of the standard library can be written down for editors; empty for none.
  Server(Send send, std::string library);
  ~Server();

  // One message: answered at once if it asks something. Changes are only noted, so that keys typed fast cost one check.
  void receive(std::string_view body);
  // No message waits: checks what changed and says what is wrong with it.
  void settle();
  // A message that could not be taken: `why` is said to the editor.
  void refuse(const std::string& why);

  // The editor has said goodbye.
  bool ended() const { return ended_; }
  // What the process ends with: 0 after an orderly shutdown.
  int exit_code() const { return shut_down_ ? 0 : 1; }

 private:
  struct Document;
  using Json = nlohmann::json;

  Json request(const std::string& method, const Json& params);
  void notification(const std::string& method, const Json& params);
  Json initialize(const Json& params);
  void open(const Json& params);
  void change(const Json& params);
  void close(const Json& params);
  Document& document(const Json& params);
  // The document with its analysis brought up to date, as features see it.
  View view(Document& document) const;
  void analyze(Document& document) const;
  void touch(const Document& changed);
  ModuleLoader loader(const Document& document) const;
  AddressOf address(const Document& document) const;
  std::vector<std::string> modules_beside(const Document& document) const;
  Json rename_answer(Document& document, std::uint32_t offset, const Json& params) const;
  void answer(const Json& id, const Json& result);
  void fail(const Json& id, int code, const std::string& message);

  Send send_;
  std::string library_;
  std::map<std::string, std::unique_ptr<Document>> documents_;  // by address
  Encoding encoding_ = Encoding::utf16;
  bool initialized_ = false;
  bool shut_down_ = false;
  bool ended_ = false;
};

}  // namespace starfold::editor
