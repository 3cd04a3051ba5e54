// SPDX-License-Identifier: BSL-1.0
/// Training's memory: the judge against the allocator's peak on one H100 (../shared/data/h100/memory.csv).

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/io/json_document.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/shared_data.hpp"
#include "support/split_text.hpp"

namespace test_measured_memory {

using namespace hetplan;
using hetplan::test::shared_data;

namespace {

/// The "gpt2" of the measurement has GPT-2's sizes and vocabulary, but the blocks of Llama: 151.9 M parameters by its static bytes.
constexpr zoo::language_model gpt2_sized =
    zoo::llama_like({.layers = 12, .hidden = 768, .heads = 12, .kv_heads = 12, .head_dim = 64, .intermediate = 3072}, 50257, 2048, true);

planning_graph model_of(const std::string& name, int tokens, precision dtype) {
  const zoo::model_options options{.tokens = tokens, .dtype = dtype};
  return name == "gpt2" ? zoo::build_language_model(name, gpt2_sized, options) : zoo::model(name, options);
}

/// Returns the judge's peak of one device that trains with one microbatch.
double judged_bytes(const planning_graph& model, int batch, optimizer named, recomputation saved) {
  const cluster one("one", {device{.name = "h100", .memory = 80_GB, .compute = 1_TFLOP_per_s}}, shared_medium{1_Gbit_per_s});
  plan p{.model = model.name(), .cluster = "one", .workload = {.optimizer = named}, .microbatch_size = batch};
  stage all{.name = "all", .devices = {{device_id(0), batch}}, .recompute = saved};
  for (const layer& l : model.layers()) all.layers.push_back(l.id);
  p.stages = {all};
  return judge(p, model, one, roofline{}).evaluation.peak_memory().value();
}

}  // namespace

TEST_CASE("training takes what the allocator's peak was on an H100, and at most 15 % more") {
  const auto file = shared_data("data/h100/memory.csv");
  if (!file) return;
  std::ifstream in(*file);
  std::string line;
  std::getline(in, line);
  std::map<std::string, std::vector<double>> ratios;  // by model and mode
  while (std::getline(in, line)) {
    const auto field = test::split_text(line, ',');
    const std::string &model = field[0], &dtype = field[2], &rule = field[3];
    const bool amp = dtype == "amp";
    const optimizer named = rule == "adamw" ? amp ? optimizer::adamw_amp : optimizer::adamw
                            : rule == "sgd" ? optimizer::sgd
                            : amp           ? optimizer::sgd_momentum_amp
                                            : optimizer::sgd_momentum;
    const recomputation saved = field[4] == "1" ? recomputation::blocks : recomputation::none;
    const planning_graph m = model_of(model, std::stoi(field[6]), dtype == "fp32" ? precision::fp32 : precision::bf16);
    const double ratio = judged_bytes(m, std::stoi(field[5]), named, saved) / std::stod(field[7]);
    CAPTURE(line, ratio);
    CHECK((ratio >= 1 && ratio <= 1.15));
    const std::string optimizer = rule == "adamw" ? "AdamW" : rule == "sgd" ? "SGD" : "SGD with momentum";
    ratios["| " + model + " | " + dtype + " | " + optimizer + (field[4] == "1" ? " | blocks" : " | –")].push_back(ratio);
  }
  CHECK(ratios.size() == 16);
  const std::string page = io::read_text(std::string(HETPLAN_SOURCE_DIR) + "/docs/reference/zoo.md");
  for (auto& [row, all] : ratios) {
    std::sort(all.begin(), all.end());
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, " | %zu | %.3f | %.3f | %.3f |\n", all.size(), all.front(), all[all.size() / 2], all.back());
    INFO("docs/reference/zoo.md has the row\n" << row << numbers);
    CHECK(page.find("\n" + row + numbers) != std::string::npos);
  }
}

}  // namespace test_measured_memory
