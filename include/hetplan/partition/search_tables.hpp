// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a search over a layer sequence reads, worked out once for all microbatch sizes and device orders.

#include <vector>

#include <hetplan/cost/any_cost_model.hpp>
#include <hetplan/cost/any_energy_model.hpp>
#include <hetplan/cost/any_memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/sequence_cuts.hpp>

namespace hetplan::partition {

/// The sequence's times, bytes and cuts, and the classes of devices that nothing in them tells apart.
///
/// Complexity  that of prefix_table; classes: O(N * classes * (N + blocks * distinct shares)) for N devices.
/// Throws      invalid_model where a model answers what its concept forbids.
/// Source      the inputs of Dora's Algorithm 1; interchangeable devices as classes: our own.
struct search_tables {
  const planning_graph& model;
  const layer_sequence& sequence;
  const hetplan::cluster& cluster;
  prefix_table table;
  sequence_cuts cuts;
  crossing_table crossings;
  std::vector<energy_slopes> slopes;            ///< by device
  std::vector<std::vector<device_id>> classes;  ///< largest memory first, then the faster, then the smaller id

  search_tables(const planning_graph& m, const layer_sequence& s, const hetplan::cluster& c, const any_cost_model& cost,
                const any_memory_model& memory, const any_energy_model& energy, const workload& w, int max_share);
  // A temporary is gone at the end of the line.
  search_tables(const planning_graph&& the_model_must_outlive_it, const layer_sequence&, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;
  search_tables(const planning_graph&, const layer_sequence&& the_sequence_must_outlive_it, const hetplan::cluster&, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;
  search_tables(const planning_graph&, const layer_sequence&, const hetplan::cluster&& the_cluster_must_outlive_it, const any_cost_model&,
                const any_memory_model&, const any_energy_model&, const workload&, int) = delete;

  /// The layers of blocks [first, last), as a plan's stage lists them: by id; or, where boundaries between layers cost something, in the
  /// order of the row, which is what the table has priced.
  [[nodiscard]] std::vector<layer_id> layers_of(std::size_t first, std::size_t last) const;

  /// Seconds of one sample of the whole model.
  [[nodiscard]] double whole_model_s(device_id d) const;
};

}  // namespace hetplan::partition

#ifndef HETPLAN_COMPILED
#include <hetplan/partition/search_tables.ipp>
#endif
