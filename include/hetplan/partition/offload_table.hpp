// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a stage of consecutive blocks takes longer if some of its weights lie below its device's memory.

#include <cstdint>
#include <optional>
#include <vector>

#include <hetplan/cluster/cluster.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>

namespace hetplan::partition {

/// Seconds that stages take longer with weights in tiers, for every device that has some. Layers that take a device as long and as many
/// bytes are one type, and a stage has so many of each: models of equal blocks have few types.
///
/// The choice is the one with the least time over the whole run (cheapest_tiers), at the degree of tensor parallelism that is fastest with
/// all weights in memory. A tier with a resource counts as if its device had that alone. No tier counts as faster than memory. In training
/// what is trained stays in memory.
///
/// Complexity  to build, as prefix_table once for each tier; a query: that of cheapest_tiers for the types of the stage.
/// Source      ours; semantics, sections 4 and 6.
class offload_table {
 public:
  /// Empty: no device has tiers.
  offload_table() = default;
  offload_table(const planning_graph& model, const layer_sequence& sequence, const cluster& c, const any_cost_model& cost,
                const any_memory_model& memory, const workload& w, const prefix_table& table);

  [[nodiscard]] bool has_tiers(device_id d) const { return !devices_.empty() && !devices_[d.index()].room.empty(); }
  /// Returns an upper bound on the bytes of blocks [first, last) that may leave a device's memory: its tiers' room, and the blocks'
  /// weights.
  [[nodiscard]] double most_freed(std::size_t first, std::size_t last, device_id d) const {
    return has_tiers(d) ? std::min(movable_[last] - movable_[first], devices_[d.index()].most_freed) : 0;
  }
  /// Returns the time that a stage on one device takes longer if `need` bytes leave its memory; nothing if they cannot.
  ///
  /// @param degree  as interval_time tells it.
  [[nodiscard]] std::optional<interval_time> cheapest(std::size_t first, std::size_t last, device_id d, int share, int degree,
                                                      double need) const;

 private:
  static constexpr long long most_nodes = 500;
  /// Additional seconds: of the mean pass, and as interval_time.
  struct added {
    double total = 0, backward = 0, first = 0, later = 0;
    friend bool operator==(const added&, const added&) = default;
  };
  struct layer_type {
    double freed = 0, weight = 0;
    std::vector<added> rows = {};            ///< by column of the device, then tier
    std::vector<std::uint32_t> before = {};  ///< prefix counts by block
  };
  /// A tensor of several layers, which leaves memory with all of a stage's layers that have it.
  struct shared_type {
    double freed = 0, weight = 0;
    std::vector<std::size_t> blocks = {};       ///< of its layers
    std::vector<std::vector<added>> rows = {};  ///< by layer: as layer_type
  };
  struct device_tiers {
    std::vector<double> room = {};  ///< bytes by tier
    double most_freed = 0;
    std::vector<int> degrees = {};
    std::vector<layer_type> types = {};
    std::vector<shared_type> shared = {};
  };
  void add_device(const planning_graph& model, const layer_sequence& sequence, const cluster& c, const device& d,
                  const any_cost_model& cost, const any_memory_model& memory, const workload& w, const prefix_table& table);

  std::vector<device_tiers> devices_;
  std::vector<double> movable_;  ///< prefix sums of bytes by block
  std::size_t shares_ = 0;
};

}  // namespace hetplan::partition

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/offload_table.ipp>
#endif
