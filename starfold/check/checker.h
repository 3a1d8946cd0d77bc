// The state of one check; its parts are in one file per construct.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "starfold/check/check.h"

namespace starfold {

// The nodes of an expression: one, several for a tuple, none after a reported mistake.
using Value = std::vector<ir::NodeId>;

// What a name stands for.
struct Binding {
  enum class Kind { value, state, size, broken } kind = Kind::value;
  ir::NodeId node = ir::no_node;
  Size size;
  Span span;
  bool used = false;
  bool is_let = false;  // an unused one is worth a warning
};

// A block's names. Inner scopes may hide outer ones.
struct Scope {
  std::map<std::string, Binding, std::less<>> names;
  ir::LoopId loop = ir::no_loop;
};

// A file of functions.
struct Module {
  std::string name;  // empty for the program itself
  ast::File file;    // empty for the program, which its caller keeps
  std::map<std::string, const ast::Fn*, std::less<>> functions;
  std::map<std::string, Module*, std::less<>> imports;
  std::set<const ast::Fn*> broken;  // definitions with mistakes: calls of them say nothing more
};

// What is visible while one function body, or the program, is checked.
struct Frame {
  Module* module = nullptr;
  std::vector<Scope> scopes;
  bool function = false;
  std::map<std::string, Size, std::less<>> sizes;               // a function's own sizes at this call
  std::map<std::string, std::string, std::less<>> record_sets;  // and its record sets
  Span call;                                                    // where it was called
};

class Checker {
 public:
  Checker(SourceMap& sources, const CheckOptions& options, Diagnostics& diagnostics)
      : sources_(sources), options_(options), diagnostics_(diagnostics) {}

  ir::Program run(const ast::File& file);

 private:
  enum class TypeUse { input, parameter, annotation };

  // modules.cpp
  void load_functions(Module& module, const ast::Block& items);
  void load_import(Module& module, const ast::Import& import);
  void find_recursion(Module& module);
  void check_definitions(Module& module);
  void check_definition(Module& module, const ast::Fn& fn);

  // statements.cpp
  void statement(const ast::Stmt& stmt);
  void size_declaration(const ast::SizeDecl& decl);
  void input(const ast::Input& decl);
  void let(const ast::Let& let);
  void state(const ast::State& state);
  void update(const ast::Update& update);
  void repeat(const ast::Repeat& repeat, Span span);
  void until(const ast::Repeat& repeat, ir::LoopId loop);
  void trace(const ast::Trace& trace);
  void output(const ast::Output& output);
  void close_scope();

  // names.cpp
  Binding* find(std::string_view name);
  bool define(const ast::Name& name, Binding binding);
  void name_type(const ast::Name& name, const Type& type);
  ir::NodeId bind_variable(const ast::Expr& value, ir::NodeId node, std::string_view name);
  std::nullopt_t unknown_name(const std::string& text, Span span);
  std::vector<std::string> visible_names() const;
  std::optional<Label> size_origin(const Size& size) const;

  // types.cpp
  std::optional<Type> type_of(const ast::TypeExpr& written, TypeUse use);
  std::optional<Dim> dim_of(const ast::Dim& written, TypeUse use);
  // The size an expression stands for; nullopt when it is none (reported if `report`).
  std::optional<Size> size_of(const ast::Expr& expr, bool report, TypeUse use = TypeUse::annotation);
  std::optional<Size> size_of_name(const ast::Expr& expr, bool report, TypeUse use);
  std::optional<Size> positive_size(const ast::Expr& expr);
  bool check_declared(const std::optional<ast::TypeExpr>& written, const Type& actual, const ast::Expr& value);

  // expressions.cpp
  Value expression(const ast::Expr& expr);
  std::optional<ir::NodeId> single(const ast::Expr& expr);
  std::optional<ir::NodeId> shared_scalar(const ast::Expr& expr, const char* what);
  Value name(const ast::Expr& expr);
  Value unary(const ast::Expr& expr);
  Value list(const ast::Expr& expr);
  Value index(const ast::Expr& expr);
  Value transpose(const ast::Expr& expr);
  std::optional<std::vector<ir::NodeId>> singles(const std::vector<ast::ExprPtr>& args, std::size_t count);
  Value apply(const Op& op, const std::vector<ir::NodeId>& args, const std::vector<const ast::Expr*>& written,
              Span span, Attrs attrs = {}, std::optional<std::vector<WrittenAxis>> axes = std::nullopt,
              std::vector<Span> slice_spans = {});

  // calls.cpp
  Value call(const ast::Expr& expr);
  Value call_operation(const ast::Expr& expr);
  Value derivative(const ast::Expr& expr, const Op& op);
  Value call_function(const ast::Expr& expr, Module& module, const ast::Fn& fn);
  bool match_parameter(Frame& frame, const ast::Param& param, const Type& type, const ast::Expr& arg);
  Value inline_body(Frame frame, const ast::Fn& fn);
  std::optional<std::vector<WrittenAxis>> written_axes(const ast::Expr& expr);
  Value fail_no_operation(const ast::Expr& expr);
  Value fail_arity(const ast::Expr& expr, const Op& op);

  // base.cpp
  void check_base(const Op& op, const std::vector<Type>& args, Span span);

  ir::Node make_node(ir::Kind kind, Type type, Span span) const;
  ir::NodeId constant(Tensor value, Span span);
  const Type& type(ir::NodeId id) const { return program_.graph[id].type(); }
  std::string text(Span span) const;
  void report(Diagnostic diagnostic);
  Frame& frame() { return frames_.back(); }
  const Frame& frame() const { return frames_.back(); }
  Scope& scope() { return frame().scopes.back(); }
  ir::LoopId current_loop() const { return frame().scopes.back().loop; }

  SourceMap& sources_;
  const CheckOptions& options_;
  Diagnostics& diagnostics_;
  ir::Program program_;
  std::map<std::string, std::unique_ptr<Module>, std::less<>> modules_;
  std::vector<std::string> importing_;  // modules being loaded, for cycles
  std::vector<Frame> frames_;
  std::set<ir::NodeId> bound_;          // nodes that some name stands for
  std::uint32_t next_variable_ = 0;
  bool defining_ = false;               // inside the check of a definition, not of a call
  std::size_t inlined_calls_ = 0;
  std::size_t inlined_expressions_ = 0;
};

// Functions written out may not outgrow this: a chain of calls can be exponential.
inline constexpr std::size_t max_inlined_calls = 50'000;
inline constexpr std::size_t max_inlined_expressions = 2'000'000;

}  // namespace starfold
