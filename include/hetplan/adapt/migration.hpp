// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Holdings, the weights, optimizer states and caches on each device, and migrations, the bytes that a switch of plans moves.

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <hetplan/adapt/timeline.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::adapt {

/// A part of a tensor's optimizer state: the fractions [from, to).
struct state_part {
  double from = 0;
  double to = 1;
  [[nodiscard]] double size() const { return to - from; }
  friend bool operator==(const state_part&, const state_part&) = default;
};

/// What each device holds: tensors of weights with their optimizer state and, in generation, the caches of sequences.
///
/// The devices of a stage with sharded optimizer state (stage::shard) hold all of the weights and their own part of the state: the
/// i-th of n equal parts, in the stage's list order. Layers of a weight group share one tensor.
///
/// A plan gives a device what its stages run. After a switch a device keeps that and the backups assigned to it, but nothing else,
/// because a plan may need all of its memory. Devices that are gone are remembered: they may return.
/// Complexity  has, add of one layer: O(1) (a group: the same). Memory O(devices x layers + layers x sequences).
/// Source      semantics, sections 2 and 10.
class holdings {
 public:
  holdings() = default;
  /// Creates empty holdings.
  holdings(const planning_graph& model, std::size_t devices);

  [[nodiscard]] std::size_t devices() const { return devices_; }
  [[nodiscard]] std::size_t layers() const { return tensor_.size(); }
  /// Returns the layer that represents a layer's tensor: the first of its weight group, or the layer itself.
  [[nodiscard]] layer_id tensor_of(layer_id l) const { return tensor_[l.index()]; }
  /// True if the device holds the weights.
  [[nodiscard]] bool has(device_id d, layer_id l) const { return held_[at(d, l)] != 0; }
  /// Returns the parts of the optimizer state that a device holds beside a layer's weights, ascending, disjoint; all unless sharded.
  [[nodiscard]] std::vector<state_part> state_of(device_id d, layer_id l) const;
  /// True if some device holds only a part of the optimizer state.
  [[nodiscard]] bool has_parts(layer_id l) const;
  /// Returns the devices that hold a layer's tensor, ascending.
  [[nodiscard]] std::vector<device_id> holders(layer_id l) const;

  void add(device_id d, layer_id l);
  /// Adds weights with a part of the optimizer state, in addition to the parts that are there.
  void add(device_id d, layer_id l, state_part part);

  /// Returns the number of sequences with a cache; 0 outside generation.
  [[nodiscard]] long long sequences() const { return tensor_.empty() ? 0 : static_cast<long long>(cache_owner_.size() / tensor_.size()); }
  /// Returns the device with the cache of a layer for a sequence; an invalid id: the cache is lost.
  [[nodiscard]] device_id cache_owner(layer_id l, long long sequence) const { return cache_owner_[cache_at(l, sequence)]; }
  /// Reserves the caches of so many sequences, without owners.
  void set_sequences(long long count) { cache_owner_.assign(tensor_.size() * static_cast<std::size_t>(count), device_id()); }
  void set_cache_owner(layer_id l, long long sequence, device_id d) { cache_owner_[cache_at(l, sequence)] = d; }

  friend bool operator==(const holdings&, const holdings&) = default;

 private:
  [[nodiscard]] std::size_t at(device_id d, layer_id l) const { return d.index() * tensor_.size() + tensor_[l.index()].index(); }
  [[nodiscard]] std::size_t cache_at(layer_id l, long long sequence) const;

  std::size_t devices_ = 0;
  std::vector<layer_id> tensor_;                          ///< by layer
  std::vector<char> held_;                                ///< device x layer; only the first layer of a group is used
  std::map<std::size_t, std::vector<state_part>> parts_;  ///< by the same index, if a device holds only these parts of the state
  std::vector<device_id> cache_owner_;                    ///< sequence x layer
};

/// Returns the pieces of a tensor's optimizer state, cut wherever a held or needed part begins or ends.
[[nodiscard]] std::vector<state_part> state_pieces(layer_id tensor, const std::vector<state_part>& needed, const holdings& held);

/// Assigns, in generation, the caches to the devices that serve the sequences of a plan; all others are dropped. Devices of a stage
/// own contiguous ranges of each of its microbatches, in list order.
///
/// Complexity  O(layers x sequences).
void give_caches(holdings& held, const plan& p);

/// Returns what the devices of a plan hold while it runs: weights and optimizer state of their stages, and caches.
/// @param p        a valid plan.
/// @param devices  of the cluster, used or not.
/// Complexity      O(layers of all stages x devices per stage); generation: and O(layers x sequences).
/// Source          semantics, sections 2 and 6.
[[nodiscard]] holdings holdings_of(const plan& p, const planning_graph& model, std::size_t devices);

/// True if a switch from one plan to the other moves nothing, caches included.
[[nodiscard]] bool moves_nothing(const plan& from, const plan& to);

/// True if these weights never change: all of them outside training, frozen ones in training.
[[nodiscard]] inline bool is_immutable(const layer& l, const workload& w) { return w.mode != mode::training || !l.trainable; }

/// Returns the bytes of the optimizer state alone.
[[nodiscard]] inline bytes moved_state(const layer& l, const workload& w) { return bytes(trained_bytes_of(l, w).state); }
/// Returns the bytes of a layer that a device needs: its weights, and the optimizer state of a trained layer.
///
/// Gradients are not moved: a switch happens between iterations; nor are copies of weights.  Source  semantics, section 10.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w) {
  return bytes(trained_bytes_of(l, w).weights) + moved_state(l, w);
}
/// Returns the bytes of the weights with these parts of the optimizer state.
[[nodiscard]] inline bytes moved_bytes(const layer& l, const workload& w, const std::vector<state_part>& parts) {
  if (parts == std::vector<state_part>{{}}) return moved_bytes(l, w);
  bytes total(trained_bytes_of(l, w).weights);
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

/// Returns the migration of only what is missing, in one round: for each device and tensor of the next plan that the device does
/// not hold, W (1 + optimizer_factor) if it is trained, otherwise W; in generation also the cache of every sequence whose device
/// changes (as the plain memory model has it, for each layer). A weight group moves once per device. If a plan shards the optimizer
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
