// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Migrations: the bytes that a switch of plans moves, either only what is missing or the whole model through one device.

#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/holdings.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/energy_model.hpp>

namespace hetplan::adapt {

/// True if these weights never change: all of them outside training, frozen ones in training.
[[nodiscard]] inline bool is_immutable(const layer& l, const workload& w) { return w.mode != mode::training || !l.trainable; }

/// Returns the bytes of a layer that a device needs: W, or W (1 + optimizer_factor) with the optimizer state of a trained layer.
///
/// Gradients are not moved: a switch happens between iterations.  Source  semantics, section 10.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w) {
  return is_immutable(l, w) ? l.weight : l.weight * (1 + w.optimizer_factor);
}
/// Returns the bytes of the optimizer state alone.
[[nodiscard]] inline bytes moved_state(const layer& l, const workload& w) {
  return is_immutable(l, w) ? bytes{} : l.weight * w.optimizer_factor;
}
/// Returns the bytes of the weights with these parts of the optimizer state.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w, const std::vector<state_part>& parts) {
  if (parts == std::vector<state_part>{{}}) return moved_bytes(l, w);
  bytes total = l.weight;
  for (const state_part& p : parts) total += moved_state(l, w) * p.size();
  return total;
}

/// A transfer from one device to another.
struct fetch {
  device_id from;
  device_id to;
  bytes volume;
  bool immutable = true;              ///< true for weights that never change, which may move while another plan runs
  std::vector<layer_id> layers = {};  ///< layers whose tensors or caches move; the first of a weight group stands for it

  friend bool operator==(const fetch&, const fetch&) = default;
};

/// The transfers that a plan needs before it can run: consecutive rounds of simultaneous fetches.
struct migration {
  hetplan::status status = {};  ///< infeasible: a tensor without a present holder or without a route
  std::vector<std::vector<fetch>> rounds = {};
  bytes lost_cache = {};  ///< of sequences whose device is gone, which have to be recomputed

  [[nodiscard]] bytes volume() const;
  [[nodiscard]] bool empty() const { return rounds.empty(); }
  friend bool operator==(const migration&, const migration&) = default;
};

/// True if a route exists and has capacity now. Routes without resources always have.
[[nodiscard]] bool is_open(const route* way, const conditions& now);

/// Splits a migration: first the immutable fetches, which may move in the background; second those that wait for a stop.
/// Source  Dora, section 4.3, asynchronous switching; semantics, section 10.
[[nodiscard]] std::pair<migration, migration> split_immutable(const migration& m);

namespace detail {

migration finished(migration m, const hetplan::status& found, std::vector<fetch> fetches);

}  // namespace detail

/// Returns the migration of only what is missing, in one round: for each device and tensor of the next plan that the device does
/// not hold, W (1 + optimizer_factor) if it is trained, otherwise W; in generation also the cache of every sequence whose device
/// changes (context x kv_bytes_per_token for each layer). A weight group moves once per device. If a plan shards the optimizer
/// state (stage::shard), weights and each missing part of the state move separately, a part from any of its holders.
///
/// Senders are chosen to balance the network's load. Tensors with one possible sender come first, then the largest. Each comes from
/// the present holder whose route finishes first with its load so far (work of a resource: bytes x weight / capacity now), then
/// from the route with the least total work, then from the smaller device. Then every choice is revised given the others, up to
/// eight times. Tensors with the same sender and receiver form one fetch. Devices with speed 0 still send and receive.
///
/// @param held  current holdings, also of devices that are gone: they are named if only they hold a tensor.
/// @param now   present devices and capacities.
/// @return      no rounds if nothing has to move. Infeasible: no rounds; the reason names the first layer without a present holder
///              and its former holders, or a layer whose holders have no route to the device (none at all, or of capacity 0).
/// Complexity   O(T log T + T N H) for T missing tensors, N devices, H resources per route; generation: and O(layers x sequences).
/// Throws       invalid_input (holdings or conditions of another model or cluster, a plan on a device that is gone).
/// Determinism  yes; fetches by (from, to, immutable last), layers ascending.
/// Source       Dora, section 4.3, delta switching; Asteroid, section 3.4, layer migration; semantics, section 10; senders: ours.
[[nodiscard]] migration delta_migration(const holdings& held, const plan& next, const planning_graph& model, const cluster& c,
                                        const conditions& now);

/// Returns the migration of heavy rescheduling: the coordinator gathers every tensor that it lacks, then sends every other device
/// all that the next plan gives it, even what the device holds already. Caches go straight to their new device in round two.
///
/// Gathering takes no memory: a coordinator has storage. Planning happens between the rounds and takes time of its own.
/// @return      two rounds, fewer if one has nothing to move; infeasible as in delta_migration.
/// Complexity   as delta_migration, with T = all tensors of all devices.
/// Throws       as delta_migration, and if the coordinator is gone.
/// Source       Asteroid, section 3.4: "aggregate stage models to coordinator, rerun the planning algorithm, and redistribute
///              weights based on the new configuration".
[[nodiscard]] migration through_coordinator(const holdings& held, const plan& next, device_id coordinator, const planning_graph& model,
                                            const cluster& c, const conditions& now);

/// The result of a simulated migration.
struct migration_run {
  bool ended = true;  ///< false: `until` came first; the numbers are partial
  seconds time = {};
  bytes moved = {};                          ///< by a whole run
  std::vector<bytes> sent = {};              ///< by device
  std::vector<bytes> received = {};          ///< by device
  std::vector<joules> energy = {};           ///< by device; 0 for those that take no part
  std::vector<bytes> carried = {};           ///< by resource: payload x weight
  std::vector<double> background_left = {};  ///< remaining bytes of the traffic beside it
};

/// Adds a migration to other work on the same network; barriers separate its rounds.
/// @param start           work before the first round, if any.
/// @param fetch_priority  of its transfers under `sharing::priority`: smaller first.
/// @return                what later work depends on: the barrier behind the last round, or `start` if nothing moves.
/// Complexity             O(fetches).
/// Throws                 invalid_input for an infeasible migration, or a fetch between devices without a route.
[[nodiscard]] std::optional<tasks::task_graph_builder::handle> add_migration(tasks::task_graph_builder& b, const migration& m,
                                                                             const cluster& c,
                                                                             std::optional<tasks::task_graph_builder::handle> start = {},
                                                                             int fetch_priority = 0);

/// Simulates a migration. Its transfers share the network fairly with each other and with the background transfers of the options.
///
/// Devices that take part draw the energy model's idle energy for the whole time plus the energy of their bytes; the others are not
/// charged. No migration is faster than max over resources of bytes x weight / capacity, round by round.
///
/// Complexity    that of simulate on one transfer per fetch.
/// Throws        invalid_input for an infeasible migration, or one that can never end (a capacity that stays 0, no `until`).
/// Determinism   as simulate.
/// Source        semantics, sections 6, 8 and 10.
[[nodiscard]] migration_run run_migration(const migration& m, const cluster& c, const simulator_options& options,
                                          const any_energy_model& energy = {});
/// Simulates a migration alone on the network.
[[nodiscard]] migration_run run_migration(const migration& m, const cluster& c, const conditions& now, const any_energy_model& energy = {});

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/migration.ipp>
#endif
