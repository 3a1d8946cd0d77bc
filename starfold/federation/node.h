// The client's side: compiles the program itself, encodes its own records, refuses the rest. It knows
// nothing of sockets, threads or files.
#pragma once

#include <memory>

#include "starfold/federation/program.h"
#include "starfold/ops/standard.h"
#include "starfold/runtime/engine.h"

namespace starfold {

// Lets nodes of one process share the compilation of one program text.
class ProgramCache {
 public:
  explicit ProgramCache(const Signature& signature = standard_signature())
      : signature_(signature) {}
  std::shared_ptr<const CompiledProgram> get(const ProgramText& text, bool optimize);

 private:
  const Signature& signature_;
  std::shared_ptr<const CompiledProgram> last_;
  bool last_optimize_ = true;
};

class Node {
 public:
  Node(Client client, ProgramCache& cache, EngineOptions options = {});

  // The answer to a request, always a message: hello, state, or a refusal with its reason.
  Bytes handle(std::string_view request);

  const Client& client() const { return client_; }

  // Lets go of the arrays as they came, once the program that was started has laid them out. No other
  // program can be started after that.
  void release_arrays() { client_.arrays.clear(); }

 private:
  Message answer(const Message& request);
  Message start(const StartMessage& message);
  Message encode(const EncodeMessage& message);

  Client client_;
  ProgramCache& cache_;
  EngineOptions options_;
  std::shared_ptr<const CompiledProgram> program_;
  SizeValues sizes_;
  std::vector<const Round*> rounds_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace starfold
