// Data meets program: sizes are solved from whatever fixes them, and what does not fit is refused.
#include "starfold/runtime/bind.h"

#include <gtest/gtest.h>

#include "starfold/base/error.h"
#include "starfold/compile/compile.h"
#include "starfold/federation/local.h"

namespace starfold {
namespace {

ir::Program program_of(const std::string& text) {
  Compilation compilation = compile("test.fold", text);
  EXPECT_TRUE(compilation.ok());
  return std::move(compilation.program);
}

std::string refusal(const auto& action) {
  try {
    action();
  } catch (const RunError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(Bind, EquationsWaitForEachOther) {
  const ir::Program program = program_of("input s : [p*p, p, p + q]\noutput y = sum(s)\n");
  Settings settings;
  settings.shared["s"] = Tensor(Shape{9, 3, 5});
  const SizeValues sizes = bind_settings(program, settings);
  EXPECT_EQ(sizes.at("p"), 3);
  EXPECT_EQ(sizes.at("q"), 2);
}

TEST(Bind, PowersAreSolvedBySearch) {
  const ir::Program program = program_of("input s : [p*p]\noutput y = sum(s)\n");
  Settings settings;
  settings.shared["s"] = Tensor(Shape{9});
  EXPECT_EQ(bind_settings(program, settings).at("p"), 3);
  settings.shared["s"] = Tensor(Shape{8});
  EXPECT_EQ(refusal([&] { bind_settings(program, settings); }),
            "input s, axis 1 is 8, but no positive p makes p*p equal to it");
}

// Where sizes come from settings too: none is 0, nor is what is made of them.
TEST(Bind, SizesOfZero) {
  const ir::Program program = program_of("size k = 3\nlet z = zeros(k - 1)\noutput s = sum(z)\n");
  const auto bound = [&](std::int64_t k) {
    Settings settings;
    settings.sizes["k"] = k;
    return refusal([&] { require_sizes(program, bind_settings(program, settings)); });
  };
  EXPECT_EQ(bound(2), "nothing was refused");
  EXPECT_EQ(bound(1), "z is [k - 1], but k - 1 is 0 here; sizes must be positive");
  EXPECT_EQ(bound(0), "the size k is set to 0; sizes must be positive");
  EXPECT_EQ(bound(-1), "the size k is set to -1; sizes must be positive");
}

// A size that only the clients' data fixes is compared with shared inputs once it is known.
TEST(Bind, SharedShapesAreCheckedWhenAllSizesAreKnown) {
  const std::string text =
      "input x : [*, p]\ninput y : [*, q]\ninput s : [p*q]\noutput t = sum(s) + sum[*, 2](x) + "
      "sum[*, 2](y)\n";
  const auto program = compile_program({"test.fold", text, {}});
  ASSERT_TRUE(program->plan);
  Client client{"a", {}};
  client.arrays["x"] = Tensor(Shape{4, 2}, 1.0);
  client.arrays["y"] = Tensor(Shape{4, 3}, 1.0);
  Settings settings;
  settings.shared["s"] = Tensor(Shape{6}, 1.0);
  EXPECT_EQ(run_local(program, {client}, settings).results.outputs.at("t").item(), 6 + 8 + 12);
  settings.shared["s"] = Tensor(Shape{5}, 1.0);
  const std::string expected = "input s, axis 1 is 5, but its size p*q with p = 2, q = 3 is 6";
  EXPECT_EQ(refusal([&] { run_local(program, {client}, settings); }), expected);
  EXPECT_EQ(refusal([&] { evaluate_reference(program->compilation.program, {client}, settings); }),
            expected);
}

}  // namespace
}  // namespace starfold
