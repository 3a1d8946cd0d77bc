// starfold_contestant KIND key=value ...: prepares, prints "ready", then answers each line "run K" with one
// line of JSON, until its input ends. With KIND generate or generate_parquet it writes data and ends.
#include "bench/contestant.h"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace starfold::bench {

Arguments::Arguments(int count, char** words) {
  for (int i = 0; i < count; ++i) {
    const std::string word = words[i];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::runtime_error("not key=value: " + word);
    words_[word.substr(0, equals)] = word.substr(equals + 1);
  }
}

const std::string& Arguments::text(const std::string& key) const {
  const auto found = words_.find(key);
  if (found == words_.end()) throw std::runtime_error(fmt::format("{}=... is missing", key));
  return found->second;
}

std::string Arguments::text(const std::string& key, const std::string& otherwise) const {
  const auto found = words_.find(key);
  return found == words_.end() ? otherwise : found->second;
}

std::int64_t Arguments::number(const std::string& key, std::int64_t otherwise) const {
  const auto found = words_.find(key);
  return found == words_.end() ? otherwise : std::stoll(found->second);
}

std::map<std::string, std::string> Arguments::beginning_with(const std::string& prefix) const {
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : words_) {
    if (key.starts_with(prefix)) found[key.substr(prefix.size())] = value;
  }
  return found;
}

void on_threads(int threads, const std::function<void(int)>& body) {
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(body, i);
  body(0);
}

namespace {

const std::map<std::string, Contestant (*)(const Arguments&)> contestants = {
    {"engine", make_engine},
    {"support", make_support},
    {"federation", make_federation},
    {"read", make_read},
    {"dsyrk", make_dsyrk},
    {"multiply_add", make_multiply_add},
    {"scan", make_scan},
    {"masked", make_masked},
    {"unmasked", make_unmasked},
    {"noise", make_noise},
    {"rounded_noise", make_rounded_noise},
};
const std::map<std::string, void (*)(const Arguments&)> generators = {
    {"generate", generate_arrays},
    {"generate_parquet", generate_parquet},
};

// Long results are compared at about a hundred places. bench/peers/protocol.py takes the same.
std::vector<double> sample(const std::vector<double>& values) {
  const std::size_t step = std::max<std::size_t>(1, values.size() / 128);
  std::vector<double> taken;
  for (std::size_t i = 0; i < values.size(); i += step) taken.push_back(values[i]);
  return taken;
}

void serve(const Contestant& contestant) {
  contestant(0);  // warm: caches are filled, code is compiled
  std::cout << "ready" << std::endl;
  std::string word;
  int turn = 0;
  while (std::cin >> word >> turn) {
    const Outcome outcome = contestant(turn);
    nlohmann::json line = outcome.extras;
    if (line.is_null()) line = nlohmann::json::object();
    line["seconds"] = outcome.seconds;
    line["values"] = sample(outcome.values);
    std::cout << line.dump() << std::endl;
  }
}

// As on processors without AVX-512, where BENCH_VECTORS says avx2.
void limit_vectors() {
  const char* vectors = std::getenv("BENCH_VECTORS");
  if (vectors == nullptr) return;
  if (std::string_view(vectors) != "avx2")
    throw std::runtime_error("BENCH_VECTORS knows avx2 only");
  hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
}

int run(int argc, char** argv) {
  if (argc < 2) throw std::runtime_error("which contestant?");
  limit_vectors();
  const std::string kind = argv[1];
  const Arguments arguments(argc - 2, argv + 2);
  if (const auto generator = generators.find(kind); generator != generators.end()) {
    generator->second(arguments);
  } else if (const auto maker = contestants.find(kind); maker != contestants.end()) {
    serve(maker->second(arguments));
  } else {
    throw std::runtime_error("no contestant is called " + kind);
  }
  return 0;
}

}  // namespace
}  // namespace starfold::bench

int main(int argc, char** argv) {
  try {
    return starfold::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cout << "absent " << error.what() << std::endl;
    return 1;
  }
}
