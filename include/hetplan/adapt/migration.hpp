// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for what a switch of plans moves, and two ways to make one: what is missing, or all of it through one device.

#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/holdings.hpp>
#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/energy_model.hpp>

namespace hetplan::adapt {

// How many bytes a device needs of a layer before it can go on with it.

/// Does nothing change these weights? Outside training nothing does, in training the frozen ones stay.
[[nodiscard]] inline bool is_immutable(const layer& l, const workload& w) { return w.mode != mode::training || !l.trainable; }

/// What a device needs of a layer to go on: W, and with its optimizer's state W (1 + optimizer_factor) where it learns.
///
/// Gradients are not moved: a switch happens between iterations.  Source  semantics, section 10.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w) {
  return is_immutable(l, w) ? l.weight : l.weight * (1 + w.optimizer_factor);
}
/// Its optimizer's state alone.
[[nodiscard]] inline bytes moved_state(const layer& l, const workload& w) {
  return is_immutable(l, w) ? bytes{} : l.weight * w.optimizer_factor;
}
/// Its weights with these parts of the optimizer's state.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w, const std::vector<state_part>& parts) {
  if (parts == std::vector<state_part>{{}}) return moved_bytes(l, w);
  bytes total = l.weight;
  for (const state_part& p : parts) total += moved_state(l, w) * p.size();
  return total;
}

/// Bytes that one device sends another.
struct fetch {
  device_id from;
  device_id to;
  bytes volume;
  bool immutable = true;              ///< weights that nothing changes: may come while another plan runs
  std::vector<layer_id> layers = {};  ///< whose tensors or caches come; the first layer of a weight group stands for it

  friend bool operator==(const fetch&, const fetch&) = default;
};

/// What has to move before a plan can run: rounds that follow one another, the fetches of a round at the same time.
struct migration {
  hetplan::status status = {};  ///< infeasible: a tensor that nobody there holds, or no way for it
  std::vector<std::vector<fetch>> rounds = {};
  bytes lost_cache = {};  ///< of sequences whose device is gone: it has to be worked out again

  [[nodiscard]] bytes volume() const;
  [[nodiscard]] bool empty() const { return rounds.empty(); }
  friend bool operator==(const migration&, const migration&) = default;
};

/// Does a route exist and carry anything now? One without resources always does.
[[nodiscard]] bool is_open(const route* way, const conditions& now);

/// Takes the immutable fetches out of a migration: first what may come in the background, second what has to wait for a stop.
///
/// Source  Dora, section 4.3, asynchronous switching; semantics, section 10.
[[nodiscard]] std::pair<migration, migration> split_immutable(const migration& m);

namespace detail {

migration finished(migration m, const hetplan::status& found, std::vector<fetch> fetches);

}  // namespace detail

/// What is missing, and nothing else, in one round: for each device and each tensor that the next plan gives it and that it
/// does not hold, W (1 + optimizer_factor) in training where it learns, else W; in generation also the cache of every
/// sequence whose device changes (context x kv_bytes_per_token for each layer). A weight group comes once per device. Where a
/// plan shares out the optimizer's state (stage::shard), weights and each missing part of the state come by themselves,
/// a part from whoever holds it.
///
/// Senders are chosen so that the network's load is even: tensors with one possible sender first, then the largest; each
/// from the holder that is there whose way is done first with what it has to carry already (work of a resource: bytes x
/// weight / capacity now), then the way with the least work in total, then the smaller device; then every choice is made
/// again, given the others, up to eight times. Tensors that go the same way are one fetch. Devices with speed 0 send and
/// receive: they stand still, but answer.
///
/// @param held  who holds what now, devices that are gone included: they are named if only they hold a tensor.
/// @param now   who is there, and what the resources carry.
/// @return      no rounds if nothing has to move. Infeasible: no rounds; the reason names the first layer that nobody there
///              holds and who held it, or whose holders have no way to the device (none at all, or of capacity 0).
/// Complexity   O(T log T + T N H) for T missing tensors, N devices, H resources per route; generation: and O(layers x sequences).
/// Throws       invalid_input (holdings or conditions of another model or cluster, a plan on a device that is gone).
/// Determinism  yes; fetches by (from, to, immutable last), layers ascending.
/// Source       Dora, section 4.3, delta switching; Asteroid, section 3.4, layer migration; semantics, section 10. The choice
///              of senders is ours.
[[nodiscard]] migration delta_migration(const holdings& held, const plan& next, const planning_graph& model, const cluster& c,
                                        const conditions& now);

/// Heavy rescheduling: the coordinator gathers every tensor of the model that it lacks, then sends every other device all
/// that the next plan gives it, whether or not it holds it already. Caches go straight to their new device in round two.
///
/// Gathering takes no memory here: a coordinator has storage. Planning happens between the rounds and takes time of its own.
/// @return      two rounds, fewer where one has nothing to move; infeasible as in delta_migration.
/// Complexity   as delta_migration, with T = all tensors of all devices.
/// Throws       as delta_migration, and if the coordinator is gone.
/// Source       Asteroid, section 3.4: "aggregate stage models to coordinator, rerun the planning algorithm, and redistribute
///              weights based on the new configuration".
[[nodiscard]] migration through_coordinator(const holdings& held, const plan& next, device_id coordinator, const planning_graph& model,
                                            const cluster& c, const conditions& now);

// What a migration takes: its fetches are transfers, and the simulator runs them like any others.

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

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/migration.ipp>
#endif
