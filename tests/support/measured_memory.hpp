// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Training's memory on one H100, as measured (../shared/data/h100/memory.csv) and as judged: for a test and a page.

#include <fstream>
#include <string>
#include <vector>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/zoo/models.hpp>

#include "support/split_text.hpp"

namespace hetplan::test {

struct memory_row {
  std::string model, dtype, optimizer;
  bool by_blocks = false;  ///< activations of blocks are made again
  int batch = 1, tokens = 1;
  double peak_bytes = 0;  ///< of the allocator
};

inline std::vector<memory_row> read_memory_rows(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  std::vector<memory_row> all;
  while (std::getline(in, line)) {
    const auto field = split_text(line, ',');
    all.push_back({field[0], field[2], field[3], field[4] == "1", std::stoi(field[5]), std::stoi(field[6]), std::stod(field[7])});
  }
  return all;
}

/// The "gpt2" of the measurement has GPT-2's sizes and vocabulary, but the blocks of Llama: 151.9 M parameters by its static bytes.
inline constexpr zoo::language_model gpt2_sized =
    zoo::llama_like({.layers = 12, .hidden = 768, .heads = 12, .kv_heads = 12, .head_dim = 64, .intermediate = 3072}, 50257, 2048, true);

/// Returns the judge's peak of one device that trains with one microbatch. Under autocast the model is the one in bf16.
inline double judged_bytes(const memory_row& r) {
  const bool amp = r.dtype == "amp";
  const zoo::model_options options{.tokens = r.tokens, .dtype = r.dtype == "fp32" ? precision::fp32 : precision::bf16};
  const planning_graph model = r.model == "gpt2" ? zoo::build_language_model(r.model, gpt2_sized, options) : zoo::model(r.model, options);
  const optimizer named = r.optimizer == "adamw" ? amp ? optimizer::adamw_amp : optimizer::adamw
                          : r.optimizer == "sgd" ? optimizer::sgd
                          : amp                  ? optimizer::sgd_momentum_amp
                                                 : optimizer::sgd_momentum;
  const cluster one("one", {device{.name = "h100", .memory = 80_GB, .compute = 1_TFLOP_per_s}}, shared_medium{1_Gbit_per_s});
  plan p{.model = model.name(), .cluster = "one", .workload = {.optimizer = named}, .microbatch_size = r.batch};
  stage all{.name = "all", .devices = {{device_id(0), r.batch}}, .recompute = r.by_blocks ? recomputation::blocks : recomputation::none};
  for (const layer& l : model.layers()) all.layers.push_back(l.id);
  p.stages = {all};
  return judge(p, model, one, roofline{}).evaluation.peak_memory().value();
}

}  // namespace hetplan::test
