// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Models of numbered blocks and plans that split them, for tests of exports.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cluster/topology.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

#include "support/random_source.hpp"
#include "support/split_text.hpp"

namespace hetplan::test {

/// Returns a chain of an embedding, blocks and a head, of two layers each.
inline planning_graph block_model(int blocks) {
  planning_graph_builder b("blocks");
  std::vector<std::string> names{"tokens", "embed"};
  for (int i = 0; i < blocks; ++i) {
    for (const char* part : {".attn", ".mlp"}) names.push_back("l" + std::to_string(i) + part);
  }
  names.insert(names.end(), {"norm", "lm_head"});
  for (std::size_t i = 0; i < names.size(); ++i) {
    b.add_layer({.name = names[i], .forward_flops = flops(1), .weight = bytes(1)});
    if (i > 0) b.add_edge(layer_id(i - 1), layer_id(i), bytes(1));
  }
  return std::move(b).build();
}

/// Returns devices d0, d1, ... Plans use them in reverse, so that a stage's number is not mistaken for its device.
inline cluster row_of_devices(int n) {
  std::vector<device> all;
  for (int i = 0; i < n; ++i) all.push_back({.name = "d" + std::to_string(i), .memory = 1_GB, .compute = 1_TFLOP_per_s});
  return {"row", std::move(all), shared_medium{1_GB_per_s}};
}

/// A split of `block_model` as blocks per stage. A first or last stage of 0 blocks has only the embedding or the head.
struct block_split {
  std::vector<int> blocks;

  [[nodiscard]] int stages() const { return static_cast<int>(blocks.size()); }
  [[nodiscard]] int device_of(int stage) const { return stages() - 1 - stage; }
  [[nodiscard]] int total() const {
    int sum = 0;
    for (const int b : blocks) sum += b;
    return sum;
  }
  /// Returns the device of each block and, last, of the head.
  [[nodiscard]] std::vector<int> owners() const {
    std::vector<int> all;
    for (int s = 0; s < stages(); ++s) all.insert(all.end(), static_cast<std::size_t>(blocks[static_cast<std::size_t>(s)]), device_of(s));
    all.push_back(device_of(stages() - 1));
    return all;
  }
  [[nodiscard]] hetplan::plan plan(mode how = mode::inference) const {
    hetplan::plan p{.model = "blocks", .cluster = "row"};
    p.workload.mode = how;
    int next = 0;
    const int last = 2 * total() + 3;
    for (int s = 0; s < stages(); ++s) {
      stage st{.name = "s" + std::to_string(s)};
      int end = s + 1 == stages() ? last + 1 : next + 2 * blocks[static_cast<std::size_t>(s)] + (s == 0 ? 2 : 0);
      for (; next < end; ++next) st.layers.push_back(layer_id(next));
      st.devices.push_back({.device = device_id(device_of(s))});
      p.stages.push_back(std::move(st));
    }
    return p;
  }
};

/// Calls f with every split of the blocks into stages of at least one block.
template <class F>
void for_all_splits(int blocks, int stages, F&& f, block_split so_far = {}) {
  if (stages == 1) {
    so_far.blocks.push_back(blocks);
    f(so_far);
    return;
  }
  for (int first = 1; first + stages - 1 <= blocks; ++first) {
    block_split next = so_far;
    next.blocks.push_back(first);
    for_all_splits(blocks - first, stages - 1, f, next);
  }
}

/// Calls f with random splits over 2 to 6 devices; some isolate the embedding or the head. Failures name the seed.
template <class F>
void for_random_splits(int count, bool may_be_alone, F&& f) {
  for (std::uint64_t seed = first_seed(); seed < first_seed() + static_cast<std::uint64_t>(count); ++seed) {
    INFO("seed " << seed);
    random_source random(seed);
    const int blocks = random.pick(std::vector{28, 32, 36, 80});
    block_split s{random.split(blocks, random.integer(2, 6))};
    if (may_be_alone && random.chance(0.3)) s.blocks.insert(s.blocks.begin(), 0);
    if (may_be_alone && random.chance(0.3)) s.blocks.push_back(0);
    f(s);
  }
}

inline std::string option(const std::string& line, const std::string& name) {
  const auto at = line.find(" " + name + " ");
  INFO(line << "  has no " << name);
  REQUIRE(at != std::string::npos);
  const auto first = at + name.size() + 2;
  return line.substr(first, line.find_first_of(" \n", first) - first);
}

}  // namespace hetplan::test
