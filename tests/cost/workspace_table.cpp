// SPDX-License-Identifier: BSL-1.0
/// Temporary memory of intervals of blocks, against a loop over their layers.

#include <algorithm>
#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include <hetplan/cost/workspace_table.hpp>

#include "support/random_source.hpp"

namespace test_workspace_table {

using namespace hetplan;

TEST_CASE("a workspace table gives the largest temporary memory of any blocks for any samples") {
  for (std::uint64_t seed = test::first_seed(); seed < test::first_seed() + 60; ++seed) {
    test::random_source random(seed);
    INFO("seed " << seed);
    planning_graph_builder b("chain", 4, random.chance(0.5) ? 1 : 16);
    const int layers = random.integer(1, 20);
    for (int i = 0; i < layers; ++i) {
      b.add_layer({.name = std::to_string(i),
                   .forward_flops = flops{},
                   .weight_group = random.chance(0.3) ? "g" + std::to_string(random.integer(0, 1)) : "",
                   .workspace = random.chance(0.6) ? bytes(random.integer(0, 9)) : bytes{},
                   .scratch = random.chance(0.6) ? bytes(random.integer(0, 300)) : bytes{},
                   .forward_workspace = random.chance(0.6) ? bytes(random.integer(0, 9)) : bytes{}});
      if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), 1_B);
    }
    const planning_graph model = std::move(b).build();
    layer_sequence sequence;
    for (std::size_t l = 0; l < model.size(); ++l) {
      if (sequence.blocks.empty() || random.chance(0.6)) sequence.blocks.emplace_back();
      sequence.blocks.back().push_back(layer_id(l));
    }
    const bool training = random.chance(0.5);
    const workspace_table table(model, sequence, {.mode = training ? mode::training : mode::inference});
    const auto of = [&](const layer& l, int samples) {
      const double tokens = 1.0 * model.tokens_per_sample() * samples;
      return training ? l.workspace.value() * tokens + l.scratch.value() : l.forward_workspace.value() * tokens;
    };
    for (std::size_t first = 0; first <= sequence.size(); ++first) {
      for (std::size_t last = first; last <= sequence.size(); ++last) {
        for (const int samples : {1, 2, 7, 1000}) {
          double largest = 0;
          for (std::size_t k = first; k < last; ++k) {
            for (const layer_id l : sequence.blocks[k]) largest = std::max(largest, of(model[l], samples));
          }
          for (int group = 0; training && group < static_cast<int>(model.weight_groups().size()); ++group) {
            double least = 1e300;
            int members = 0;
            for (std::size_t k = first; k < last; ++k) {
              for (const layer_id l : sequence.blocks[k]) {
                if (model[l].weight_group != group) continue;
                ++members;
                least = std::min(least, model[l].scratch.value());
              }
            }
            if (members > 1) largest = std::max(largest, (members + 1) * least);
          }
          REQUIRE(table.bytes(first, last, samples) == largest);
        }
      }
    }
  }
}

}  // namespace test_workspace_table
