// SPDX-License-Identifier: BSL-1.0
// Service times from simulated plans: a language model too large for one GPU, as a pipeline over two and over four.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/hetplan.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/zoo/models.hpp>

using namespace hetplan;

cluster pcie(int gpus) {
  std::vector<device> all;
  for (int d = 0; d < gpus; ++d) {
    all.push_back({.name = "P100-" + std::to_string(d),
                   .memory = 16_GB,
                   .compute = 9.3_TFLOP_per_s,
                   .memory_bandwidth = 400_GB_per_s,
                   .launch = 8_us});
  }
  return {"server", std::move(all), shared_medium{10_GB_per_s, 10_us}};
}

int main() {
  const planning_graph prompt = zoo::model("llama3-8b", {.tokens = 512}), token = zoo::model("llama3-8b", {.tokens = 1});
  const auto planner = [](const planning_problem& q) { return recipes::pipeline(q, minimize_response{}, 1); };
  std::vector<serve::variant_times> variants;
  for (const int gpus : {2, 4}) {
    variants.push_back(
        serve::judged_service_time(prompt, token, pcie(gpus), roofline{}, planner, {.largest = 8, .context = 1024, .tokens = 4}));
  }
  const serve::service_time_table times({variants});  // one service with these two variants

  for (std::size_t v = 0; v < variants.size(); ++v) {
    const auto& [pass, per_token_s, step] = variants[v];
    std::printf("%d GPUs\n", v == 0 ? 2 : 4);
    for (std::size_t i = 0; i < pass.batch.size(); ++i) {
      std::printf("  batch %d: prompts %6.0f ms", pass.batch[i], 1e3 * pass.seconds_at[i]);
      if (i < step.batch.size()) std::printf(", a token each %5.1f ms", 1e3 * step.seconds_at[i]);
      std::printf("\n");
    }
  }
}
