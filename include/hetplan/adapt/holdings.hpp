// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Holdings: which device holds which weights, optimizer states and caches.

#include <map>
#include <vector>

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

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/holdings.ipp>
#endif
