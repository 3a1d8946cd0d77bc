// A program is encode, merge, decode, and encode, merge, decode is a program.
//
// First a program is taken apart: what each round sends, computes, merges and decodes. Then a
// program is put together from encoders, merges and a decoder, and another one from a program and
// what should happen to its outputs.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "starfold/starfold.h"

using namespace starfold;

namespace {

Tensor column(std::vector<double> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Tensor({count}, std::move(values));
}

// Two clients with a few ages and charges each.
std::vector<Client> clients() {
  return {{"oslo", {{"age", column({41, 57, 66})}, {"charge", column({1.5, 2.5, 3.5})}}},
          {"bergen", {{"age", column({38, 72})}, {"charge", column({1.0, 4.0})}}}};
}

double run(const std::string& text, const std::string& output) {
  const auto program = compile_program({"example.fold", text, {}});
  return run_local(program, clients(), {}).results.outputs.at(output).item();
}

void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

}  // namespace

int main() {
  // Taken apart: the state space M, and what each component folds.
  const auto program = compile_program({"spread.fold",
                                        "input age : [*]\n"
                                        "let centre = mean[*](age)\n"
                                        "output spread = mean[*](abs(age - centre))\n",
                                        {}});
  std::printf("rounds of `spread`:\n");
  for (const Factorization& round : factor(*program->plan)) {
    std::printf("  round %d receives %zu values\n", round.round, round.theta.size());
    for (const Component& component : round.state) {
      std::printf("    %-28s merged by %s\n", component.expression.c_str(),
                  std::string(component.merge->name).c_str());
    }
  }
  check(factor(*program->plan).size() == 2, "the deviation needs the centre first");

  // Put together: the slope of charge on age, from five encoders and a decoder.
  const std::string slope = realize({"input age : [*]\ninput charge : [*]\n",
                                     {{"n", "count", "age", ""},
                                      {"sx", "sum", "age", ""},
                                      {"sy", "sum", "charge", ""},
                                      {"sxx", "sum", "age^2", ""},
                                      {"sxy", "sum", "age * charge", ""}},
                                     "slope",
                                     "(n * sxy - sx * sy) / (n * sxx - sx^2)"});
  std::printf("\na program from five encoders and a decoder:\n%s", slope.c_str());
  const double got = run(slope, "slope");
  std::printf("slope = %.6f\n", got);
  check(got > 0.08 && got < 0.1, "the slope");
  check(compile_program({"slope.fold", slope, {}})->plan->rounds == 1, "one round");

  // An encoder that folds is none.
  try {
    realize({"input age : [*]\n", {{"d", "sum", "abs(age - mean[*](age))", ""}}, "total", "d"});
    check(false, "a fold inside an encoder was accepted");
  } catch (const std::invalid_argument& error) {
    std::printf("\nrefused: %s\n", error.what());
  }

  // And then: what a shared-only program makes of another program's outputs is one program, with the
  // same single round.
  const std::string interval = compose({slope},
                                       "input slope : []\n"
                                       "input width : [] = 0.01\n"
                                       "output low = slope - width\n"
                                       "output high = slope + width\n");
  std::printf("\nwith an interval around it:\n%s", interval.c_str());
  check(compile_program({"interval.fold", interval, {}})->plan->rounds == 1, "still one round");
  check(run(interval, "high") - run(interval, "low") > 0.0199, "the interval");
  return 0;
}
