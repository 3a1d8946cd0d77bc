// Makes a case smaller while a law still does not hold: drops statements, replaces expressions by
// their operands, takes clients and records away, and rounds values. What is left is checked again,
// so only well-typed programs come out.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <sstream>

#include "starfold/syntax/parser.h"
#include "tests/laws/law.h"

namespace starfold::laws {
namespace {

struct Edit {
  Span span;
  std::string text;
};

class Edits {
 public:
  explicit Edits(const std::string& text) {
    file_ = sources_.add("law.fold", text);
    const ast::File parsed = parse(sources_, file_, diagnostics_);
    block(parsed.items);
  }
  // Large cuts first.
  std::vector<Edit> take() {
    std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) {
      return a.span.end - a.span.begin - a.text.size() > b.span.end - b.span.begin - b.text.size();
    });
    return std::move(edits_);
  }

 private:
  void block(const ast::Block& statements) {
    for (const ast::Stmt& stmt : statements) {
      edits_.push_back({stmt.span, ""});
      std::visit([&](const auto& node) { parts(node); }, stmt.node);
    }
  }
  void parts(const ast::Import&) {}
  void parts(const ast::SizeDecl&) {}
  void parts(const ast::Input& n) {
    if (n.fallback) expr(*n.fallback);
  }
  void parts(const ast::Fn& n) {
    block(n.body);
    if (n.value) expr(*n.value);
  }
  void parts(const ast::Let& n) { expr(*n.value); }
  void parts(const ast::State& n) { expr(*n.value); }
  void parts(const ast::Update& n) { expr(*n.value); }
  void parts(const ast::Repeat& n) {
    block(n.body);
    if (n.count->text != "1") edits_.push_back({n.count->span, "1"});
    if (n.until) {
      edits_.push_back({Span{file_, n.close.end, n.until->span.end}, ""});
      expr(*n.until);
    }
  }
  void parts(const ast::Trace& n) { expr(*n.value); }
  void parts(const ast::Demand& n) { expr(*n.value); }
  void parts(const ast::Output& n) {
    if (n.value) expr(*n.value);
  }

  void expr(const ast::Expr& e) {
    const std::string whole(sources_.text(e.span));
    for (const ast::ExprPtr& arg : e.args) {
      const std::string part(sources_.text(arg->span));
      const bool atom = arg->kind == ast::ExprKind::name || arg->kind == ast::ExprKind::number ||
                        arg->kind == ast::ExprKind::call;
      edits_.push_back({e.span, atom ? part : "(" + part + ")"});
      expr(*arg);
    }
    for (const ast::Subscript& s : e.subscripts) {
      if (s.first && s.first->kind != ast::ExprKind::number) expr(*s.first);
    }
    for (const char* simple : {"0", "1"}) {
      if (whole.size() > 1) edits_.push_back({e.span, simple});
    }
  }

  SourceMap sources_;
  Diagnostics diagnostics_;
  std::uint32_t file_ = 0;
  std::vector<Edit> edits_;
};

std::string without_blank_lines(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" ") != std::string::npos) out += line + "\n";
  }
  return out;
}

// The case with another text, without what the text no longer names.
Case with_text(Case c, std::string text) {
  c.program.text.text = std::move(text);
  const Compiled again = compiled(c);
  if (!again.error.empty()) return c;
  std::set<std::string> names;
  for (const ir::Input& input : again.program->compilation.program.inputs) names.insert(input.name);
  for (const ir::SizeVariable& size : again.program->compilation.program.sizes)
    names.insert(size.name);
  const auto gone = [&](const std::string& name) { return names.count(name) == 0; };
  std::erase_if(c.program.inputs, [&](const InputSpec& input) { return gone(input.name); });
  std::erase_if(c.federation.settings.shared, [&](const auto& entry) { return gone(entry.first); });
  std::erase_if(c.federation.settings.sizes, [&](const auto& entry) { return gone(entry.first); });
  for (Client& client : c.federation.clients) {
    std::erase_if(client.arrays, [&](const auto& entry) { return gone(entry.first); });
  }
  return c;
}

class Shrinker {
 public:
  Shrinker(Case from, const Law& law) : best_(std::move(from)), law_(law) {}

  Case run() {
    bool smaller = true;
    while (smaller && !late()) {
      smaller = texts();
      smaller = federations() || smaller;
      smaller = numbers() || smaller;
    }
    return best_;
  }

 private:
  bool late() const { return std::chrono::steady_clock::now() > deadline_; }

  bool keep(const Case& candidate) {
    if (!compiled(candidate).error.empty() || !law_(candidate)) return false;
    best_ = candidate;
    return true;
  }

  bool texts() {
    bool any = false;
    bool again = true;
    while (again && !late()) {
      again = false;
      const std::string text = best_.program.text.text;
      for (const Edit& edit : Edits(text).take()) {
        if (late()) break;
        std::string cut = text;
        cut.replace(edit.span.begin, edit.span.end - edit.span.begin, edit.text);
        cut = without_blank_lines(cut);
        if (cut.size() >= text.size()) continue;
        if (!keep(with_text(best_, cut))) continue;
        any = again = true;
        break;
      }
    }
    return any;
  }

  bool federations() {
    bool any = false;
    for (std::size_t i = 0;
         i < best_.federation.clients.size() && best_.federation.clients.size() > 1;) {
      Case c = best_;
      c.federation.clients.erase(c.federation.clients.begin() + static_cast<std::ptrdiff_t>(i));
      if (late() || !keep(c)) {
        ++i;
      } else {
        any = true;
      }
    }
    for (std::size_t i = 0; i < best_.federation.clients.size(); ++i) {
      while (!late() && drop_record(i)) any = true;
    }
    return any;
  }

  // Takes the last record of each record set away from a client, one set at a time.
  bool drop_record(std::size_t client) {
    std::set<std::string> sets;
    for (const InputSpec& input : best_.program.inputs) {
      if (input.type.federated()) sets.insert(input.type.record_set());
    }
    for (const std::string& set : sets) {
      Case c = best_;
      bool changed = false;
      for (const InputSpec& input : c.program.inputs) {
        if (!input.type.federated() || input.type.record_set() != set) continue;
        Tensor& tensor = c.federation.clients[client].arrays.at(input.name);
        const std::size_t axis = *input.type.record_axis();
        if (tensor.shape[axis] == 0) continue;
        std::int64_t inner = 1;
        for (std::size_t k = axis + 1; k < tensor.rank(); ++k) inner *= tensor.shape[k];
        std::vector<double> data;
        for (std::int64_t j = 0; j < tensor.count(); ++j) {
          if (j / inner % tensor.shape[axis] != tensor.shape[axis] - 1)
            data.push_back(tensor.data[static_cast<std::size_t>(j)]);
        }
        --tensor.shape[axis];
        tensor.data = std::move(data);
        changed = true;
      }
      if (changed && keep(c)) return true;
    }
    return false;
  }

  bool numbers() {
    bool any = false;
    const auto simplify = [](double x) { return std::isfinite(x) ? std::nearbyint(x) : x; };
    const auto attempt = [&](const auto& tensor_of) {
      Case c = best_;
      Tensor& tensor = tensor_of(c);
      const std::vector<double> before = tensor.data;
      for (double& x : tensor.data) x = simplify(x);
      if (tensor.data != before && !late() && keep(c)) any = true;
    };
    for (std::size_t i = 0; i < best_.federation.clients.size(); ++i) {
      for (const auto& [name, ignored] : Arrays(best_.federation.clients[i].arrays)) {
        attempt(
            [&, key = name](Case& c) -> Tensor& { return c.federation.clients[i].arrays.at(key); });
      }
    }
    for (const auto& [name, ignored] : Arrays(best_.federation.settings.shared)) {
      attempt([&, key = name](Case& c) -> Tensor& { return c.federation.settings.shared.at(key); });
    }
    return any;
  }

  Case best_;
  const Law& law_;
  std::chrono::steady_clock::time_point deadline_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
};

}  // namespace

Case shrink(Case from, const Law& law) { return Shrinker(std::move(from), law).run(); }

}  // namespace starfold::laws
