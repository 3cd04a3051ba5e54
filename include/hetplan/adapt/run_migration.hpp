// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a migration takes: its fetches are transfers, and the simulator runs them like any others.

#include <optional>
#include <vector>

#include <hetplan/adapt/migration.hpp>
#include <hetplan/cost/any_energy_model.hpp>

namespace hetplan::adapt {

/// A migration on the network.
struct migration_run {
  bool ended = true;  ///< false: `until` came first, and the numbers are as far as it came
  seconds time = {};
  bytes moved = {};                          ///< of a whole run
  std::vector<bytes> sent = {};              ///< by device
  std::vector<bytes> received = {};          ///< by device
  std::vector<joules> energy = {};           ///< by device; 0 for those that take no part
  std::vector<bytes> carried = {};           ///< by resource: payload x weight
  std::vector<double> background_left = {};  ///< of the traffic beside it [B]
};

/// Adds a migration to other work on the same network; rounds are joined by barriers.
///
/// @param start           what the first round waits for, if anything.
/// @param fetch_priority  of its transfers, for runs under `sharing::priority`: smaller first.
/// @return                what work that waits for the migration depends on: the barrier behind the last round, or `start` if
///                        nothing moves.
/// Complexity             O(fetches).
/// Throws                 invalid_input for an infeasible migration, or a fetch between devices without a route.
[[nodiscard]] std::optional<tasks::task_graph_builder::handle> add_migration(tasks::task_graph_builder& b, const migration& m,
                                                                             const cluster& c,
                                                                             std::optional<tasks::task_graph_builder::handle> start = {},
                                                                             int fetch_priority = 0);

/// Runs a migration, transfers sharing the network fairly with each other and with what the options put beside them.
///
/// Devices that take part draw what the energy model charges an idle device for the whole time, and for their bytes; the
/// others are not charged. No migration is faster than max over resources of bytes x weight / capacity, round by round.
///
/// Complexity    that of simulate on one transfer per fetch.
/// Throws        invalid_input for an infeasible migration, or one that can never end (a capacity that stays 0, no `until`).
/// Determinism   as simulate.
/// Source        semantics, sections 6, 8 and 10.
[[nodiscard]] migration_run run_migration(const migration& m, const cluster& c, const simulator_options& options,
                                          const any_energy_model& energy = {});
/// Alone on the network as it is now.
[[nodiscard]] migration_run run_migration(const migration& m, const cluster& c, const conditions& now, const any_energy_model& energy = {});

}  // namespace hetplan::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/run_migration.ipp>
#endif
