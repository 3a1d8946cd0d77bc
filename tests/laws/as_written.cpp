// A reader of programs: no graph, no types kept, no inlining. Names have values, and values have
// shapes; the types that rows ask for are made from the shapes at hand.
#include <cmath>
#include <variant>

#include "starfold/base/error.h"
#include "starfold/runtime/reference.h"
#include "starfold/syntax/parser.h"
#include "tests/laws/evaluate.h"

namespace starfold::laws {
namespace {

struct Value {
  Tensor tensor;
  std::optional<std::size_t> star;
  std::string record_set;

  Type type() const {
    Type result;
    for (std::size_t k = 0; k < tensor.rank(); ++k) {
      result.dims.push_back(star == k ? Dim::record(record_set) : Dim::of(tensor.shape[k]));
    }
    return result;
  }
};

struct File {
  SourceMap sources;
  Diagnostics diagnostics;
  ast::File tree;
  explicit File(const std::string& text) {
    sources.add("text", text);
    tree = parse(sources, 0, diagnostics);
  }
};

class Reader {
 public:
  Reader(const ProgramText& text, const Federation& federation, SizeValues sizes,
         const Signature& signature)
      : main_(text.text),
        federation_(federation),
        declared_(std::move(sizes)),
        signature_(signature) {
    for (const auto& [name, module] : text.modules) modules_.emplace(name, module);
  }

  Results run() {
    Frame frame;
    frame.file = &main_;
    frame.sizes = declared_;
    frame_ = &frame;
    frame.scopes.emplace_back();
    for (const ast::Stmt& stmt : main_.tree.items) statement(stmt);
    return std::move(results_);
  }

 private:
  using Values = std::vector<Value>;
  struct Frame {
    const File* file = nullptr;
    std::vector<std::map<std::string, Value>> scopes;
    SizeValues sizes;
    bool function = false;
  };

  Value* find(const std::string& name) {
    for (auto at = frame_->scopes.rbegin(); at != frame_->scopes.rend(); ++at) {
      const auto found = at->find(name);
      if (found != at->end()) return &found->second;
    }
    return nullptr;
  }
  void define(const std::string& name, Value value) {
    frame_->scopes.back().insert_or_assign(name, std::move(value));
  }

  // --- statements

  void statement(const ast::Stmt& stmt) {
    std::visit([&](const auto& node) { run(node); }, stmt.node);
  }
  void run(const ast::Import&) {}
  void run(const ast::Fn&) {}
  void run(const ast::SizeDecl& n) {
    const auto set = federation_.settings.sizes.find(n.name.text);
    frame_->sizes[n.name.text] =
        set != federation_.settings.sizes.end() ? set->second : size(*n.value);
  }
  void run(const ast::Input& n) {
    Value value;
    for (std::size_t k = 0; k < n.type.dims.size(); ++k) {
      if (!n.type.dims[k].star) continue;
      value.star = k;
      value.record_set = n.type.dims[k].record_set;
    }
    if (value.star) {
      std::vector<Tensor> parts;
      for (const Client& client : federation_.clients)
        parts.push_back(client.arrays.at(n.name.text));
      value.tensor = concatenated(parts, *value.star);
    } else {
      const auto set = federation_.settings.shared.find(n.name.text);
      value.tensor =
          set != federation_.settings.shared.end() ? set->second : one(*n.fallback).tensor;
    }
    define(n.name.text, std::move(value));
  }
  void run(const ast::Let& n) {
    Values values = expression(*n.value);
    for (std::size_t i = 0; i < n.names.size(); ++i)
      define(n.names[i].text, std::move(values.at(i)));
  }
  void run(const ast::State& n) { define(n.name.text, one(*n.value)); }
  void run(const ast::Update& n) {
    Value value = one(*n.value);
    *find(n.name.text) = std::move(value);
  }
  void run(const ast::Repeat& n) {
    const double count = one(*n.count).tensor.item();
    for (double i = 0; i < count; ++i) {
      frame_->scopes.emplace_back();
      for (const ast::Stmt& stmt : n.body) statement(stmt);
      const bool stop = n.until && one(*n.until).tensor.item() != 0;
      frame_->scopes.pop_back();
      if (stop) break;
    }
  }
  void run(const ast::Trace& n) {
    const Value value = one(*n.value);
    if (!frame_->function) results_.traces[n.name.text].push_back(value.tensor.item());
  }
  void run(const ast::Demand& n) { one(*n.value); }
  void run(const ast::Output& n) {
    results_.outputs[n.name.text] = n.value ? one(*n.value).tensor : find(n.name.text)->tensor;
  }

  // --- expressions

  Value one(const ast::Expr& expr) { return std::move(expression(expr).at(0)); }

  static Value scalar(double value) { return {Tensor::scalar(value), std::nullopt, ""}; }

  Values expression(const ast::Expr& expr) {
    switch (expr.kind) {
      case ast::ExprKind::number:
        return {scalar(expr.number)};
      case ast::ExprKind::name: {
        if (const Value* value = find(expr.text)) return {*value};
        return {scalar(static_cast<double>(frame_->sizes.at(expr.text)))};
      }
      case ast::ExprKind::unary:
      case ast::ExprKind::binary: {
        Values args;
        for (const ast::ExprPtr& arg : expr.args) args.push_back(one(*arg));
        const Op* op = signature_.find(expr.text, static_cast<int>(args.size()), false);
        if (op == nullptr) throw std::logic_error("no row " + expr.text);
        return apply(*op, std::move(args));
      }
      case ast::ExprKind::transpose: {
        Attributes attributes;
        attributes.axes = {{false, "", 2, {}}, {false, "", 1, {}}};
        return apply(*signature_.find("permute"), {one(*expr.args[0])}, attributes);
      }
      case ast::ExprKind::list: {
        Values args;
        for (const ast::ExprPtr& arg : expr.args) args.push_back(one(*arg));
        return apply(*signature_.find("[,]"), std::move(args));
      }
      case ast::ExprKind::tuple: {
        Values parts;
        for (const ast::ExprPtr& arg : expr.args) parts.push_back(one(*arg));
        return parts;
      }
      case ast::ExprKind::index:
        return index(expr);
      case ast::ExprKind::call:
        return call(expr);
      case ast::ExprKind::each_client:
      case ast::ExprKind::invalid:
        break;
    }
    throw std::logic_error("no expression");
  }

  std::int64_t size(const ast::Expr& expr) {
    switch (expr.kind) {
      case ast::ExprKind::number:
        return static_cast<std::int64_t>(expr.number);
      case ast::ExprKind::name:
        return frame_->sizes.at(expr.text);
      case ast::ExprKind::unary:
        return -size(*expr.args[0]);
      default:
        break;
    }
    const std::int64_t a = size(*expr.args[0]);
    const std::int64_t b = size(*expr.args[1]);
    if (expr.text == "+") return a + b;
    if (expr.text == "-") return a - b;
    if (expr.text == "*") return a * b;
    return static_cast<std::int64_t>(std::pow(a, b));
  }

  bool is_size(const ast::Expr& expr) {
    if (expr.kind == ast::ExprKind::number) return true;
    if (expr.kind == ast::ExprKind::name) return find(expr.text) == nullptr;
    if (expr.kind != ast::ExprKind::unary && expr.kind != ast::ExprKind::binary) return false;
    for (const ast::ExprPtr& arg : expr.args) {
      if (!is_size(*arg)) return false;
    }
    return true;
  }

  Values index(const ast::Expr& expr) {
    const Value of = one(*expr.args[0]);
    const ast::Subscript& first = expr.subscripts.front();
    if (expr.subscripts.size() == 1 && first.kind == ast::Subscript::Kind::index &&
        !is_size(*first.first)) {
      return apply(*signature_.find("[e]"), {of, one(*first.first)});
    }
    Attributes attributes;
    std::size_t axis = 0;
    for (const ast::Subscript& s : expr.subscripts) {
      Slice slice;
      switch (s.kind) {
        case ast::Subscript::Kind::new_axis:
          slice.kind = Slice::Kind::new_axis;
          break;
        case ast::Subscript::Kind::index:
          slice.kind = Slice::Kind::index;
          slice.first = slice.last = Size(size(*s.first));
          break;
        case ast::Subscript::Kind::range:
          slice.kind = Slice::Kind::range;
          slice.first = Size(s.first ? size(*s.first) : 1);
          slice.last = Size(s.last ? size(*s.last) : of.tensor.shape[axis]);
          break;
        default:
          break;
      }
      if (s.kind != ast::Subscript::Kind::new_axis) ++axis;
      attributes.slices.push_back(slice);
    }
    return apply(*signature_.find("[:]"), {of}, attributes);
  }

  const ast::Fn* function(const File& file, const std::string& name) {
    for (const ast::Stmt& stmt : file.tree.items) {
      const auto* fn = std::get_if<ast::Fn>(&stmt.node);
      if (fn != nullptr && fn->name.text == name) return fn;
    }
    return nullptr;
  }

  Values call(const ast::Expr& expr) {
    const File* file = expr.module ? &modules_.at(expr.module->text) : frame_->file;
    if (const ast::Fn* fn = function(*file, expr.text)) return call_function(*file, *fn, expr);
    const Op* op =
        signature_.find(expr.text, static_cast<int>(expr.args.size()), expr.has_subscripts);
    const std::size_t values =
        op->first_size_arg < 0 ? expr.args.size() : static_cast<std::size_t>(op->first_size_arg);
    Values args;
    Attributes attributes;
    for (std::size_t i = 0; i < expr.args.size(); ++i) {
      if (i < values) args.push_back(one(*expr.args[i]));
      if (i >= values) attributes.sizes.emplace_back(size(*expr.args[i]));
    }
    for (const ast::Subscript& s : expr.subscripts) {
      const bool star = s.kind == ast::Subscript::Kind::star;
      attributes.axes.push_back(
          {star, "", star ? 0 : static_cast<std::int64_t>(s.first->number), s.span});
    }
    return apply(*op, std::move(args), attributes);
  }

  Values call_function(const File& file, const ast::Fn& fn, const ast::Expr& expr) {
    Frame callee;
    callee.file = &file;
    callee.function = true;
    callee.scopes.emplace_back();
    if (&file == &main_) callee.sizes = declared_;
    for (std::size_t i = 0; i < fn.params.size(); ++i) {
      Value value = one(*expr.args[i]);
      const auto& dims = fn.params[i].type.dims;
      for (std::size_t k = 0; k < dims.size(); ++k) {
        const bool own = !dims[k].star && dims[k].size->kind == ast::ExprKind::name;
        if (own) callee.sizes[dims[k].size->text] = value.tensor.shape[k];
      }
      callee.scopes.back().insert_or_assign(fn.params[i].name.text, std::move(value));
    }
    Frame* caller = std::exchange(frame_, &callee);
    for (const ast::Stmt& stmt : fn.body) statement(stmt);
    Values values = expression(*fn.value);
    frame_ = caller;
    return values;
  }

  // --- rows

  struct Attributes {
    std::vector<WrittenAxis> axes;
    std::vector<Size> sizes;
    std::vector<Slice> slices;
  };

  Values apply(const Op& op, Values args, const Attributes& attributes = {}) {
    Diagnostics ignored;
    TypeQuery query{op, {}, {}, {}, std::nullopt, {}, {}, {}, ignored, {}};
    Application application;
    for (const Value& arg : args) {
      query.args.push_back(arg.type());
      query.arg_spans.emplace_back();
      query.arg_texts.emplace_back();
      application.args.push_back(&arg.tensor);
      application.record_axes.push_back(arg.star);
    }
    if (!attributes.axes.empty()) query.axes = attributes.axes;
    query.attrs.sizes = attributes.sizes;
    query.attrs.slices = attributes.slices;
    query.slice_spans.resize(attributes.slices.size());
    const auto types = op.type(query);
    if (!types) throw std::logic_error(op.name + ": " + ignored.items().front().message);
    application.axes = query.attrs.axes;
    for (const Size& each : query.attrs.sizes) application.sizes.push_back(each.constant());
    for (const Slice& slice : query.attrs.slices) {
      application.slices.push_back({slice.kind, slice.first.constant(), slice.last.constant()});
    }
    std::vector<Tensor> tensors = op.meaning(application);
    Values values;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Type& type = (*types)[i];
      values.push_back(
          {std::move(tensors[i]), type.record_axis(), type.federated() ? type.record_set() : ""});
    }
    return values;
  }

  File main_;
  std::map<std::string, File> modules_;
  const Federation& federation_;
  SizeValues declared_;
  const Signature& signature_;
  Frame* frame_ = nullptr;
  Results results_;
};

}  // namespace

Results as_written(const ProgramText& text, const Federation& federation, const SizeValues& sizes,
                   const Signature& signature) {
  return Reader(text, federation, sizes, signature).run();
}

}  // namespace starfold::laws
