// The state of one check; its parts are in one file per construct.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "starfold/check/name_index.h"

namespace starfold {

// Functions written out may not outgrow these: a chain of calls can be exponential.
inline constexpr std::size_t max_inlined_calls = 50'000;
inline constexpr std::size_t max_inlined_expressions = 500'000;
// Expressions inside expressions through all calls; each takes a piece of the stack.
inline constexpr int max_depth = 2'000;
// Beyond so many errors nothing more is looked at.
inline constexpr std::size_t max_errors = 1'000;
// The search for warnings ends after so many nodes in all.
inline constexpr std::size_t max_searched = 5'000'000;
// No value has more axes.
inline constexpr std::size_t max_rank = 32;

// The nodes of an expression: one, several for a tuple, none after a reported mistake.
using Value = std::vector<ir::NodeId>;

using Names = std::set<std::string, std::less<>>;
using Sizes = std::map<std::string, Size, std::less<>>;

// What a name stands for.
struct Binding {
  enum class Kind { value, state, size, broken } kind = Kind::value;
  ir::NodeId node = ir::no_node;
  Size size;
  Span span;
  bool used = false;
  bool is_let = false;         // an unused one is worth a warning
  std::size_t level = 0;       // how many blocks were open: its node is one of that program
  bool carried = false;        // by the batches around: it may be updated
  std::size_t definition = 0;  // in the index of names, from 1; 0 when it is in none
};

// A block's names. Inner scopes may hide outer ones.
struct Scope {
  std::map<std::string, Binding, std::less<>> names;
  ir::LoopId loop = ir::no_loop;
};

// A function and what its definition tells every call.
struct Function {
  const ast::Fn* fn = nullptr;
  bool broken = false;       // its definition has mistakes: calls of it say nothing more
  std::vector<Type> params;  // in its own sizes and record sets
  struct Unknown {
    std::string size;
    std::size_t param;
    std::size_t axis;
  };
  std::vector<Unknown> solution;  // which axis tells each of its sizes, in this order
  Names variables;                // the names it differentiates by
  // Whether it is given functions: then only a call can be checked.
  bool takes_functions() const;
};

// A file of functions.
struct Module {
  std::string name;  // empty for the program itself
  // Functions only: others call them by the module's name, so they may be named like operations.
  bool library = false;
  ast::File owned;  // the tree of an imported module; the program's stays with its caller
  const ast::File* file = nullptr;
  std::map<std::string, Function, std::less<>> functions;
  std::map<std::string, Module*, std::less<>> imports;  // null after a reported mistake
};

// A function that another one was given.
struct Given {
  Module* module = nullptr;
  const Function* function = nullptr;
};

// What is visible while one function body, or the program, is checked.
struct Frame {
  Module* module = nullptr;
  std::vector<Scope> scopes;
  bool function = false;
  Sizes sizes;  // a function's own sizes at this call
  std::map<std::string, std::string, std::less<>> record_sets;  // and its record sets
  const Names* variables = nullptr;                             // names to differentiate by
  Span call;                                                    // where it was called
  std::size_t number = 0;                                       // of this call, from 1
  std::map<std::string, Binding, std::less<>> ended;            // names of loops that are over
  std::map<std::string, Given, std::less<>> given;              // functions, by parameter
};

// A block whose body is being read: the program around it waits.
struct OpenBlock {
  ir::Program outer;
  ir::Local local;
  std::vector<ir::NodeId> operands;         // nodes of the outer program
  std::map<ir::NodeId, ir::NodeId> inside;  // and what they are inside
  std::set<ir::NodeId> base_numbers;
};

// The states that a loop body updates and does not declare itself, each once.
void updated_states(const ast::Block& body, std::vector<std::string>& found, Names& seen);

class Checker {
 public:
  // With an index it writes down what names mean.
  Checker(SourceMap& sources, const CheckOptions& options, Diagnostics& diagnostics,
          NameIndex* names = nullptr)
      : sources_(sources), options_(options), diagnostics_(diagnostics), names_(names) {}

  ir::Program run(const ast::File& file);

 private:
  enum class TypeUse { input, annotation };

  // modules.cpp
  void load_functions(Module& module);
  void load_function(Module& module, const ast::Fn& fn);
  void load_import(Module& module, const ast::Import& import);
  Function* callee_of(Module& module, const ast::Expr& call) const;
  void find_recursion(Module& module);
  void check_definitions(Module& module);
  void check_definition(Module& module, Function& function);
  void add_variable(const ast::Expr& expr, Names& variables) const;
  void parameters(Function& function);
  void find_solution(Function& function);

  // search.cpp
  bool varies_with(ir::NodeId node, const std::function<bool(ir::NodeId)>& on, ir::NodeId oldest,
                   bool smoothly);

  // statements.cpp
  void statement(const ast::Stmt& stmt);
  void size_declaration(const ast::SizeDecl& decl);
  void input(const ast::Input& decl);
  ir::NodeId default_value(const ast::Input& decl, const Type& type);
  void let(const ast::Let& let);
  void state(const ast::State& state);
  void update(const ast::Update& update);
  void repeat(const ast::Repeat& repeat, Span span);
  std::vector<std::string> open_loop(const ast::Repeat& repeat, ir::LoopId id, ir::Loop loop);
  void until(const ast::Repeat& repeat, ir::LoopId loop);
  void trace(const ast::Trace& trace);
  void demand(const ast::Demand& demand, Span span);
  void output(const ast::Output& output);
  void close_scope(Span whole);

  // blocks.cpp
  Value each_client(const ast::Expr& expr);
  void batches(const ast::Repeat& repeat, Span span);
  bool at_client() const;
  bool refuse_inside(const char* what, Span span, const char* help);
  void private_state(const ast::State& state);
  std::optional<ir::NodeId> repeated(ir::NodeId value, const Type& type, Span span);
  void keep(const ast::Output& keep);
  void open_block(ir::Local local);
  ir::NodeId capture(std::size_t block, ir::NodeId node);
  ir::NodeId resolve(const Binding& binding);
  std::optional<ir::NodeId> any_record(const std::string& record_set);
  Value close_block(std::vector<ir::NodeId> first, Span span);
  std::string record_set_here() const;

  // name_index.cpp
  bool records_names() const;
  void record_definition(const ast::Name& name, Binding& binding);
  void record_definition(Definition::Kind kind, const ast::Name& name, std::vector<Type> types);
  void record_function(const Module& module, const ast::Fn& fn);
  void record_module(const Module& module, const ast::Name& name, std::uint32_t file);
  void record_use(Span span, Span definition);
  void record_word(const ast::Expr& expr, const Value& value);
  void end_visible(const Scope& scope, Span whole);
  void finish_names(const ast::File& file);
  Span place(Span span) const;

  // names.cpp
  Binding* find(std::string_view name);
  bool define(const ast::Name& name, Binding binding);
  void define_broken(const ast::Name& name);
  void name_type(const ast::Name& name, const Type& type);
  ir::NodeId bind_variable(ir::NodeId node, const ast::Name& name);
  void call_node(ir::NodeId node, const std::string& name);
  bool is_lost(std::string_view name) const;
  bool check_reserved(const ast::Name& name);
  std::nullopt_t unknown_name(const std::string& text, Span span, const char* what = "value");
  std::vector<std::string> visible_names() const;
  std::optional<Label> size_origin(const Size& size) const;

  // types.cpp
  std::optional<Type> type_of(const ast::TypeExpr& written, TypeUse use);
  std::optional<Dim> dim_of(const ast::Dim& written, TypeUse use);
  // The size an expression stands for; nullopt when it is none (reported if `report`).
  std::optional<Size> size_of(const ast::Expr& expr, bool report,
                              TypeUse use = TypeUse::annotation);
  std::optional<Size> size_of_name(const ast::Expr& expr, bool report, TypeUse use);
  std::optional<Size> size_of_operator(const ast::Expr& expr, bool report, TypeUse use);
  std::optional<Size> fail_size(const ast::Expr& expr, bool report, const char* label);
  std::optional<Size> positive_size(const ast::Expr& expr);
  bool check_positive(const Size& size, Span span);
  // With `repeats` a shared value may stand for every record.
  bool check_declared(const ast::TypeExpr& written, const Type& actual, const ast::Expr& value,
                      bool repeats = false);

  // expressions.cpp
  Value expression(const ast::Expr& expr);
  Value expression_by_kind(const ast::Expr& expr);
  std::optional<ir::NodeId> single(const ast::Expr& expr);
  std::optional<ir::NodeId> shared_scalar(const ast::Expr& expr, const char* what);
  Value name(const ast::Expr& expr);
  Value unary(const ast::Expr& expr);
  Value list(const ast::Expr& expr);
  Value index(const ast::Expr& expr);
  std::optional<Size> position(const ast::Expr& expr);
  std::optional<Slice> slice_of(const ast::Subscript& subscript, const Dim* dim);
  Value transpose(const ast::Expr& expr);
  std::optional<std::vector<ir::NodeId>> singles(const std::vector<ast::ExprPtr>& args,
                                                 std::size_t count);

  // An application before it is typed.
  struct Application {
    const Op& op;
    std::vector<ir::NodeId> args;
    std::vector<const ast::Expr*> written;  // the operands, one for each of `args`
    Span span;
    Attrs attrs = {};
    std::optional<std::vector<WrittenAxis>> axes = std::nullopt;
    std::vector<Span> slice_spans = {};
  };
  Value apply(Application application);
  bool check_ranks(const std::vector<Type>& types, Span span);

  // calls.cpp
  Value call(const ast::Expr& expr);
  Value call_of_module(const ast::Expr& expr);
  Value call_operation(const ast::Expr& expr);
  std::optional<Size> size_argument(const ast::Expr& expr, const Op& op);
  Value derivative(const ast::Expr& expr, const Op& op);
  std::optional<ir::NodeId> derivative_variable(const ast::Expr& call, const ast::Expr& variable);
  std::optional<std::vector<WrittenAxis>> written_axes(const ast::Expr& expr);
  Value fail_no_operation(const ast::Expr& expr);
  Value fail_arity(const ast::Expr& expr);
  void use_arguments(const ast::Expr& expr);

  // functions.cpp
  Value call_function(const ast::Expr& expr, Module& module, const Function& function);
  std::optional<Given> given_function(const ast::Param& param, const ast::Expr& arg);
  bool within_limits();
  bool match_arguments(Frame& callee, const ast::Expr& call, const Function& function,
                       const std::vector<ir::NodeId>& args);
  bool match_axes(Frame& callee, const ast::Param& param, const Type& pattern, const Type& actual,
                  const ast::Expr& arg);
  bool match_sizes(Frame& callee, const ast::Param& param, const Type& pattern, const Type& actual,
                   const ast::Expr& arg);
  bool fail_argument(const ast::Param& param, const Type& actual, const ast::Expr& arg,
                     std::string detail, std::string help = {});
  Value inline_body(Frame callee, const ast::Fn& fn, const std::vector<ir::NodeId>& args);
  Value result_of(const ast::Fn& fn);

  // base.cpp
  void report_base(const std::string& why, Span span, std::string label, std::string help);
  bool is_base_number(ir::NodeId id) const;
  void check_base(const Op& op, const Attrs& attrs, const std::vector<Type>& args,
                  const std::vector<ir::NodeId>& nodes, const std::vector<Span>& spans, Span span);
  void check_base_value(ir::NodeId id, Span span);
  void check_base_loop(const ast::Repeat& repeat, ir::NodeId count);
  void check_base_input(const Type& type, Span span);

  ir::Node make_node(ir::Kind kind, Type type, Span span) const;
  ir::NodeId constant(Tensor value, Span span);
  const Type& type(ir::NodeId id) const { return program_.graph[id].type(); }
  std::string text(Span span) const;
  void report(Diagnostic diagnostic);
  // Nobody reads on after so many mistakes.
  bool given_up() const { return diagnostics_.error_count() > max_errors; }
  // Warnings are said where something is written, not at every call of it.
  bool says_warnings() const { return !frame().function || defining_; }
  Frame& frame() { return frames_.back(); }
  const Frame& frame() const { return frames_.back(); }
  Scope& scope() { return frame().scopes.back(); }
  ir::LoopId current_loop() const { return frame().scopes.back().loop; }

  SourceMap& sources_;
  const CheckOptions& options_;
  Diagnostics& diagnostics_;
  NameIndex* names_;
  ir::Program program_;
  std::map<std::string, std::unique_ptr<Module>, std::less<>> modules_;
  std::vector<std::string> importing_;  // modules being loaded, for cycles
  std::vector<Frame> frames_;
  std::map<std::string, Span, std::less<>> outer_names_;  // of the program, for its functions
  std::map<std::string, int, std::less<>> traces_;        // names and how often they are taken
  std::map<std::string, Span, std::less<>> outputs_;
  std::map<std::string, Span, std::less<>> keeps_;
  std::vector<OpenBlock> blocks_;  // those around what is being read, from the outside in
  std::uint32_t next_variable_ = 0;
  bool defining_ = false;          // inside the check of a definition, not of a call
  std::size_t definition_at_ = 0;  // the frame of that definition; 0 when there is none
  int depth_ = 0;                  // of expressions within expressions and calls
  std::size_t inlined_calls_ = 0;
  std::size_t inlined_expressions_ = 0;
  std::size_t searched_ = 0;           // nodes looked at for warnings
  bool outgrown_ = false;              // a limit was reported
  std::set<ir::NodeId> base_numbers_;  // made of literals and sizes, element by element
};

}  // namespace starfold
