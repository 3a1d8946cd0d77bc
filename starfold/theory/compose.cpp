// cor:one-round-shared-postprocessing: programs after each other as one program, put together from their
// texts and checked like anything a user writes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "starfold/theory/factorization.h"
#include "starfold/theory/program_text.h"

namespace starfold {
namespace {

using program_text::checked;
using program_text::name_of;
using program_text::Parsed;
using program_text::refuse;

using Renaming = std::map<std::string, Size, std::less<>>;

// A program as its text, its tree and its types.
struct Piece {
  Piece(const std::string& text, const std::string& part_name, const Signature& signature)
      : what(part_name), program(checked(text, what, signature)), parsed(text, what) {}
  std::string what;
  ir::Program program;
  Parsed parsed;
};

Type renamed(Type type, const Renaming& sizes) {
  for (Dim& dim : type.dims) {
    if (dim.star) continue;
    const std::optional<Size> size = dim.size.substitute(sizes);
    if (!size) refuse("a size is too large");
    dim.size = *size;
  }
  return type;
}

// A name for a value in the composed text, and its type there.
struct Value {
  std::string name;
  Type type;
};

class Composition {
 public:
  Composition(const std::string& all_texts, const Signature& signature)
      : signature_(signature), all_texts_(all_texts) {}

  // The text of the first program, with its outputs as names.
  void begin(const Piece& part) {
    const ast::Block& items = part.parsed.file.items;
    for (const ast::Stmt& stmt : items) note(part, stmt);
    for (const ir::SizeVariable& size : part.program.sizes) taken_.insert(size.name);
    text_ = part.parsed.whole_text() + "\n";
    std::map<std::string, std::string> names;
    for (auto stmt = items.rbegin(); stmt != items.rend(); ++stmt) {
      const auto* output = std::get_if<ast::Output>(&stmt->node);
      if (output == nullptr) continue;
      const std::string& name = output->name.text;
      const bool free = !is_taken(name) && signature_.find(name) == nullptr;
      names[name] = !output->value || free ? name : fresh(name + "_out");
      const std::string let = output->value ? fmt::format("let {} = {}", names[name],
                                                          part.parsed.text(output->value->span))
                                            : "";
      text_.replace(stmt->span.begin, stmt->span.end - stmt->span.begin, let);
    }
    for (const auto& [name, local] : names) taken_.insert(local);
    for (const ir::Output& output : part.program.outputs)
      give(part, output.name, {names.at(output.name), part.program.graph[output.node].type()});
    for (const ast::Stmt& stmt : items) {
      if (const auto* input = std::get_if<ast::Input>(&stmt.node))
        keep_input(part, *input, declared(part, *input).type);
    }
  }

  // Another program as a function of its inputs: its names are its own, and its sizes are found from its
  // arguments. With `after`, inputs named like outputs so far take their values. Returns what the names
  // of its outputs stand for.
  std::vector<std::pair<std::string, Value>> add(const Piece& part, bool after) {
    Renaming sizes = known_sizes(part, after);
    std::vector<std::string> params;
    std::vector<std::string> args;
    std::vector<std::string> body;
    std::vector<std::string> outputs;
    std::vector<std::string> results;
    std::string before;
    for (const ast::Stmt& stmt : part.parsed.file.items) {
      const std::string text = part.parsed.text(stmt.span);
      if (const auto* input = std::get_if<ast::Input>(&stmt.node)) {
        params.push_back(
            fmt::format("{} : {}", input->name.text, part.parsed.text(input->type.span)));
        args.push_back(argument(part, *input, after, sizes, before));
      } else if (const auto* output = std::get_if<ast::Output>(&stmt.node)) {
        outputs.push_back(output->name.text);
        results.push_back(output->value ? fresh(fmt::format("result_{}", outputs.size()))
                                        : output->name.text);
        if (output->value)
          body.push_back(
              fmt::format("let {} = {}", results.back(), part.parsed.text(output->value->span)));
      } else if (std::holds_alternative<ast::Import>(stmt.node)) {
        if (definitions_.emplace(text, text).second) text_ = text + "\n" + text_;
      } else if (std::holds_alternative<ast::SizeDecl>(stmt.node) ||
                 std::holds_alternative<ast::Fn>(stmt.node)) {
        if (is_new(part, stmt)) before += text + "\n";
      } else {
        body.push_back(text);
      }
    }
    if (results.empty()) refuse(part.what + " has no output");
    const std::vector<std::string> names = call(before, params, args, body, results);
    std::vector<std::pair<std::string, Value>> made;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Type type = part.program.graph[part.program.outputs[i].node].type();
      made.emplace_back(outputs[i], Value{names[i], renamed(type, sizes)});
    }
    return made;
  }

  void give(const Piece& part, const std::string& name, Value value) {
    if (!values_.emplace(name, std::move(value)).second)
      refuse(fmt::format("{} gives out {}, as one before it does", part.what, name));
  }

  void line(const std::string& text) { text_ += text + "\n"; }
  const std::string& text() const { return text_; }

 private:
  bool is_taken(const std::string& name) const { return taken_.count(name) != 0; }
  std::string fresh(const std::string& name) const {
    return program_text::unused(name, all_texts_ + text_);
  }

  // What a statement of the first program defines.
  void note(const Piece& part, const ast::Stmt& stmt) {
    taken_.insert(name_of(stmt));
    if (const auto* let = std::get_if<ast::Let>(&stmt.node)) {
      for (const ast::Name& name : let->names) taken_.insert(name.text);
    }
    const std::string text = part.parsed.text(stmt.span);
    if (std::holds_alternative<ast::Import>(stmt.node)) definitions_.emplace(text, text);
    if (std::holds_alternative<ast::SizeDecl>(stmt.node) ||
        std::holds_alternative<ast::Fn>(stmt.node))
      definitions_.emplace(name_of(stmt), text);
  }

  static std::string default_of(const Piece& part, const ast::Input& input) {
    return input.fallback ? part.parsed.text(input.fallback->span) : "";
  }
  static const ir::Input& declared(const Piece& part, const ast::Input& input) {
    return *std::find_if(part.program.inputs.begin(), part.program.inputs.end(),
                         [&](const ir::Input& other) { return other.name == input.name.text; });
  }
  void keep_input(const Piece& part, const ast::Input& input, Type type) {
    inputs_[input.name.text] = {input.name.text, std::move(type)};
    defaults_[input.name.text] = default_of(part, input);
  }

  // Whether a size or function is not yet defined in the same words.
  bool is_new(const Piece& part, const ast::Stmt& stmt) {
    const std::string name = name_of(stmt);
    const auto same = definitions_.find(name);
    if (same != definitions_.end() && same->second == part.parsed.text(stmt.span)) return false;
    if (is_taken(name))
      refuse(fmt::format("{} defines {}, as one before it does", part.what, name));
    taken_.insert(name);
    definitions_.emplace(name, part.parsed.text(stmt.span));
    return true;
  }

  // The value that an input takes; null when it is a new input of the whole.
  const Value* given(const std::string& name, bool after) const {
    const auto value = values_.find(name);
    if (after && value != values_.end()) return &value->second;
    const auto input = inputs_.find(name);
    return input == inputs_.end() ? nullptr : &input->second;
  }

  // A part's sizes in those of the whole: what its given inputs tell, and new names for the others.
  Renaming known_sizes(const Piece& part, bool after) {
    Renaming sizes;
    for (const ir::Input& input : part.program.inputs) {
      const Value* value = given(input.name, after);
      if (value == nullptr || value->type.rank() != input.type.rank()) continue;
      for (std::size_t k = 0; k < input.type.rank(); ++k) {
        const Dim& dim = input.type.dims[k];
        const auto variable = dim.star ? std::nullopt : dim.size.as_variable();
        if (variable && !value->type.dims[k].star)
          sizes.emplace(std::string(*variable), value->type.dims[k].size);
      }
    }
    for (const ir::SizeVariable& size : part.program.sizes) {
      if (size.value || sizes.count(size.name) != 0) continue;
      const std::string name = is_taken(size.name) ? fresh(size.name + "_") : size.name;
      sizes.emplace(size.name, Size::variable(name));
      taken_.insert(name);
    }
    return sizes;
  }

  // The argument for an input: a value that is there, or a new input of the whole.
  std::string argument(const Piece& part, const ast::Input& input, bool after,
                       const Renaming& sizes, std::string& before) {
    const std::string& name = input.name.text;
    if (const Value* value = given(name, after)) {
      const bool is_input = !after || values_.count(name) == 0;
      if (is_input && defaults_.at(name) != default_of(part, input))
        refuse(fmt::format("{} gives {} another default than one before it", part.what, name));
      return value->name;
    }
    if (is_taken(name))
      refuse(fmt::format("{} defines {}, as one before it does", part.what, name));
    taken_.insert(name);
    const Type type = renamed(declared(part, input).type, sizes);
    before += fmt::format("input {} : {}", name, type.to_string());
    if (input.fallback) {
      std::set<std::string> changed;
      for (const auto& [size, now] : sizes) {
        if (!(now == Size::variable(size))) changed.insert(size);
      }
      const std::string used = program_text::first_used(*input.fallback, changed);
      if (!used.empty())
        refuse(fmt::format("the default of {} uses the size {}, which is {} in the whole", name,
                           used, sizes.at(used).to_string()));
      before += " = " + default_of(part, input);
    }
    before += "\n";
    keep_input(part, input, type);
    return name;
  }

  // Writes the function and its call; returns the names of its results.
  std::vector<std::string> call(const std::string& before, const std::vector<std::string>& params,
                                const std::vector<std::string>& args,
                                const std::vector<std::string>& body,
                                const std::vector<std::string>& results) {
    const std::string name = fresh(fmt::format("part_{}", ++parts_));
    std::vector<std::string> names;
    for (std::size_t i = 0; i < results.size(); ++i)
      names.push_back(fmt::format("{}_{}", name, i + 1));
    const auto listed = [](const std::vector<std::string>& all) {
      return all.size() == 1 ? all[0] : fmt::format("({})", fmt::join(all, ", "));
    };
    text_ += before;
    line(fmt::format("fn {}({}) {{", name, fmt::join(params, ", ")));
    for (const std::string& statement : body) line("  " + statement);
    line(fmt::format("  {}", listed(results)));
    line("}");
    line(fmt::format("let {} = {}({})", listed(names), name, fmt::join(args, ", ")));
    return names;
  }

  const Signature& signature_;
  const std::string& all_texts_;
  std::string text_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> definitions_;  // sizes and functions by name, imports
  std::map<std::string, Value> inputs_;
  std::map<std::string, std::string> defaults_;  // of inputs, as written
  std::map<std::string, Value> values_;          // outputs so far
  int parts_ = 0;
};

}  // namespace

std::string compose(const std::vector<std::string>& first, const std::string& post,
                    const Signature& signature) {
  if (first.empty()) refuse("there is no program to begin with");
  const Piece after(post, "the post-processing program", signature);
  for (const ir::Input& input : after.program.inputs) {
    if (input.type.federated())
      refuse(fmt::format("input {} of the post-processing program is federated", input.name));
  }
  std::string all_texts = post;
  for (const std::string& text : first) all_texts += "\n" + text;
  Composition whole(all_texts, signature);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const std::string what =
        first.size() == 1 ? "the first program" : fmt::format("first program {}", i + 1);
    const Piece part(first[i], what, signature);
    if (i == 0) {
      whole.begin(part);
    } else {
      for (auto& [name, value] : whole.add(part, false)) whole.give(part, name, std::move(value));
    }
  }
  for (const auto& [name, value] : whole.add(after, true))
    whole.line(fmt::format("output {} = {}", name, value.name));
  checked(whole.text(), "the composed program", signature);
  return whole.text();
}

}  // namespace starfold
