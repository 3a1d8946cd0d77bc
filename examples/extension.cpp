// Operations of your own: a signature with one client-local and one shared-only primitive more, used
// in a federated run, and why there is no third kind.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "starfold/ops/standard.h"
#include "starfold/starfold.h"

using namespace starfold;

namespace {

using Shapes = std::span<const std::vector<Size>>;

void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

// `haversine(place, from)`: the distance of each record's latitude and longitude from a point. It
// speaks of one record: the shapes and values of its cells.
Signature::ClientLocal haversine() {
  Signature::ClientLocal primitive;
  primitive.name = "haversine";
  primitive.arity = 2;
  primitive.doc = "great-circle distance in km of [latitude, longitude] pairs, in degrees";
  primitive.cell_shape = [](Shapes cells) -> std::optional<std::vector<Size>> {
    const std::vector<Size> pair = {2};
    if (cells[0] != pair || cells[1] != pair) return std::nullopt;
    return std::vector<Size>{};
  };
  primitive.cell_value = [](std::span<const Tensor> cells) {
    const double degree = std::acos(-1.0) / 180;
    const auto [lat1, lon1] = std::pair(cells[0].data[0] * degree, cells[0].data[1] * degree);
    const auto [lat2, lon2] = std::pair(cells[1].data[0] * degree, cells[1].data[1] * degree);
    const double a = std::pow(std::sin((lat2 - lat1) / 2), 2) +
                     std::cos(lat1) * std::cos(lat2) * std::pow(std::sin((lon2 - lon1) / 2), 2);
    return Tensor::scalar(2 * 6371 * std::asin(std::sqrt(a)));
  };
  return primitive;
}

// `entropy(counts)`: of a shared vector of counts.
Signature::SharedOnly entropy() {
  Signature::SharedOnly primitive;
  primitive.name = "entropy";
  primitive.arity = 1;
  primitive.doc = "the entropy of a vector of counts, in bits";
  primitive.shape = [](Shapes shapes) -> std::optional<std::vector<Size>> {
    if (shapes[0].size() != 1) return std::nullopt;
    return std::vector<Size>{};
  };
  primitive.value = [](std::span<const Tensor> args) {
    double total = 0;
    for (const double count : args[0].data) total += count;
    double bits = 0;
    for (const double count : args[0].data) {
      if (count > 0) bits -= count / total * std::log2(count / total);
    }
    return Tensor::scalar(bits);
  };
  return primitive;
}

}  // namespace

int main() {
  Signature signature = standard_signature();
  signature.add(haversine());
  signature.add(entropy());

  ProgramOptions options;
  options.signature = &signature;
  const auto program =
      compile_program({"distance.fold",
                       "input place : [*, 2]\n"
                       "input from : [2]\n"
                       "let d = haversine(place, from)               # [*]: stays on each client\n"
                       "let near = sum[*](one_hot(1 + floor(d / 300), 3))\n"
                       "output farthest = max[*](d)\n"
                       "output bits = entropy(near)                  # []: shared\n",
                       {}},
                      options);
  check(program->plan != nullptr, "the program compiles");

  RunOptions run;
  run.signature = &signature;
  Settings settings;
  settings.shared["from"] = Tensor({2}, std::vector<double>{59.91, 10.75});  // Oslo
  const std::vector<Client> clients = {
      {"east", {{"place", Tensor({2, 2}, std::vector<double>{59.91, 10.75, 59.13, 11.39})}}},
      {"west", {{"place", Tensor({2, 2}, std::vector<double>{60.39, 5.32, 58.97, 5.73})}}}};
  const Results results = run_local(program, clients, settings, run).results;
  const double farthest = results.outputs.at("farthest").item();
  const double bits = results.outputs.at("bits").item();
  std::printf("the farthest record is %.0f km away; the rings have %.2f bits\n", farthest, bits);
  check(std::fabs(farthest - 305) < 5, "Bergen is about 305 km from Oslo");
  check(bits > 0.5 && bits < 1.5, "the entropy");

  // A third kind, from federated to shared, cannot be registered: a client-local primitive gives the
  // shape of one record's cell and gets its star back, a shared-only one is never asked.
  const auto refused = [&](const std::string& text) {
    const auto compiled = compile_program({"leak.fold", text, {}}, options);
    if (compiled->plan) return false;
    for (const Diagnostic& d : compiled->compilation.diagnostics.items())
      std::printf("refused: %s\n", d.message.c_str());
    return true;
  };
  check(refused("input place : [*, 2]\ninput from : [2]\noutput d = haversine(place, from)\n"),
        "a distance per record is no output");
  check(refused("input counts : [*]\noutput bits = entropy(counts)\n"),
        "records are no argument of a shared-only primitive");
  return 0;
}
