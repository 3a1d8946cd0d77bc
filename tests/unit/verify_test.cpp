// The verifier of the IR: each invariant, broken once.
#include <gtest/gtest.h>

#include "starfold/base/error.h"
#include "starfold/compile/compile.h"
#include "starfold/ir/builder.h"
#include "starfold/ir/ir.h"

namespace starfold::testing {
namespace {

using ir::Kind;
using ir::Node;
using ir::NodeId;
using ir::Program;

const char* const kProgram = R"(input x : [*, p]
input w : [p] = ones(p)
state b : [p] = zeros(p)
repeat 3 {
  b <- b + sum[*](x * w)
} until max(b) > 5
let (values, vectors) = eigh(x' @ x)
let head = concat[1](b[1:1], values)
output head
output vectors
)";

Program program_of(const std::string& text) {
  Compilation compilation = compile("test.fold", text);
  EXPECT_TRUE(compilation.ok()) << text;
  return std::move(compilation.program);
}

// The program with one node changed.
Program with(const Program& program, const std::function<bool(const Node&)>& which,
             const std::function<void(Node&)>& change) {
  bool found = false;
  Program changed = ir::rebuild(program, [&](Program& to, Node node) {
    if (!found && which(node)) {
      found = true;
      change(node);
    }
    return to.graph.add(std::move(node));
  });
  EXPECT_TRUE(found);
  return changed;
}

std::string complaint(const Program& program) {
  try {
    ir::verify(program, "a test");
  } catch (const Bug& bug) {
    return bug.what();
  }
  return "";
}

std::function<bool(const Node&)> op(const std::string& name) {
  return [name](const Node& node) { return node.kind == Kind::apply && node.op->name == name; };
}
std::function<bool(const Node&)> kind(Kind wanted) {
  return [wanted](const Node& node) { return node.kind == wanted; };
}

TEST(Verify, AcceptsWhatTheCheckerMakes) { EXPECT_EQ(complaint(program_of(kProgram)), ""); }

// Each typing judgment is derived once more from those of the operands.
TEST(Verify, RunsTheTypingRulesAgain) {
  const Program program = program_of(kProgram);
  const Type wrong = Type::shared({Size::variable("q")});
  for (const char* name : {"sum", "*", "@", "max", ">", "concat", "[:]", "zeros", "permute"}) {
    const std::string said = complaint(with(program, op(name), [&](Node& node) {
      node.types[0] =
          node.federated() ? Type{{Dim::record(), Dim::of(Size::variable("q"))}} : wrong;
    }));
    EXPECT_NE(said.find("its rule says"), std::string::npos) << name << ": " << said;
    EXPECT_NE(said.find("after a test"), std::string::npos) << said;
  }
  EXPECT_NE(complaint(with(program, op("eigh"), [&](Node& node) { node.types[1] = wrong; })), "");
  EXPECT_NE(complaint(with(program, op("eigh"), [&](Node& node) { node.types.pop_back(); })), "");
  // An operand that the rule refuses, axes and sizes that give another type.
  EXPECT_NE(complaint(with(program, op("@"), [](Node& node) { node.args[1] = node.args[0]; }))
                .find("ill-typed"),
            std::string::npos);
  EXPECT_NE(complaint(with(program, op("sum"), [](Node& node) { node.attrs.axes = {1}; })), "");
  EXPECT_NE(complaint(with(program, op("sum"), [](Node& node) { node.attrs.axes = {7}; })), "");
  EXPECT_NE(complaint(with(program, op("zeros"), [](Node& node) { node.attrs.sizes = {2}; })), "");
  EXPECT_NE(complaint(with(program, op("[:]"), [](Node& node) { node.attrs.slices[0].last = 2; })),
            "");
}

TEST(Verify, KnowsWhatOtherNodesStandFor) {
  const Program program = program_of(kProgram);
  const auto wrong = [](Node& node) { node.types[0] = Type::shared({Size(99)}); };
  for (const Kind k :
       {Kind::constant, Kind::input, Kind::project, Kind::loop_param, Kind::loop_result})
    EXPECT_NE(complaint(with(program, kind(k), wrong)), "") << static_cast<int>(k);
  EXPECT_NE(complaint(with(program, kind(Kind::constant),
                           [](Node& node) { node.value.data.push_back(1); })),
            "");
  EXPECT_NE(complaint(with(program, kind(Kind::project), [](Node& node) { node.index = 2; })), "");
  EXPECT_NE(complaint(with(program, kind(Kind::loop_result), [](Node& node) { node.slot = 1; })),
            "");
  EXPECT_NE(complaint(with(program, kind(Kind::loop_param), [](Node& node) { node.index = 1; })),
            "");
}

TEST(Verify, ChecksInputsLoopsAndResults) {
  const Program program = program_of(kProgram);
  const auto broken = [&](const std::function<void(Program&)>& change) {
    Program changed = program;
    change(changed);
    return complaint(changed);
  };
  const NodeId x = program.inputs[0].node;
  const NodeId w = program.inputs[1].node;
  EXPECT_NE(broken([&](Program& p) { p.inputs[0].type = Type::scalar(); }), "");
  EXPECT_NE(broken([&](Program& p) { p.inputs[1].node = x; }), "");
  EXPECT_NE(broken([&](Program& p) { p.inputs[1].fallback = p.loops[0].count; }), "");
  EXPECT_NE(broken([&](Program& p) { p.inputs[1].fallback = x; }), "");
  EXPECT_NE(broken([&](Program& p) { p.loops[0].count = w; }), "");
  EXPECT_NE(broken([&](Program& p) { p.loops[0].until = w; }), "");
  EXPECT_NE(broken([&](Program& p) { p.loops[0].parent = 4; }), "");
  EXPECT_NE(broken([&](Program& p) { p.loops[0].carried[0].init = x; }), "");
  EXPECT_NE(broken([&](Program& p) { p.loops[0].carried[0].next = p.loops[0].count; }), "");
  EXPECT_NE(broken([&](Program& p) { p.loops[0].carried[0].param = p.loops[0].carried[0].init; }),
            "");
  EXPECT_NE(broken([&](Program& p) { p.outputs[0].node = x; }), "");
  EXPECT_NE(broken([&](Program& p) { p.outputs[0].node = ir::no_node; }), "");
  EXPECT_NE(broken([&](Program& p) { p.traces.push_back({"t", w, ir::no_loop, {}}); }), "");
}

}  // namespace
}  // namespace starfold::testing
