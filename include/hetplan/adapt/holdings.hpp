// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The noun for where the model is: which device holds which weights, and whose cache is where.

#include <map>
#include <vector>

#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>

namespace hetplan::adapt {

/// A part of a tensor's optimizer state, as fractions of it: [from, to).
struct state_part {
  double from = 0;
  double to = 1;
  [[nodiscard]] double size() const { return to - from; }
  friend bool operator==(const state_part&, const state_part&) = default;
};

/// What every device holds: tensors of weights with their optimizer state, and in generation the caches of sequences.
///
/// Devices of a stage that shares out optimizer state (stage::shard) hold all of the weights and their own part of the
/// state: the i-th of n equal ones, in the stage's list order.
///
/// Layers of a weight group share one tensor: a device that holds one of them holds them all. A plan gives a device what its
/// stages run. After a switch a device keeps what the new plan gives it and the backups that it was asked for; it does not
/// keep what it held before, because a plan may need all of its memory.
///
/// A plain value; it remembers devices that are gone, so that one that comes back finds what it held.
/// Complexity  has, add of one layer: O(1) (a group: the same). Memory O(devices x layers + layers x sequences).
/// Source      semantics, sections 2 and 10.
class holdings {
 public:
  holdings() = default;
  /// Nobody holds anything.
  holdings(const planning_graph& model, std::size_t devices);

  [[nodiscard]] std::size_t devices() const { return devices_; }
  [[nodiscard]] std::size_t layers() const { return tensor_.size(); }
  /// The layer that stands for a layer's tensor: the first of its weight group, or the layer itself.
  [[nodiscard]] layer_id tensor_of(layer_id l) const { return tensor_[l.index()]; }
  /// Does it hold the weights?
  [[nodiscard]] bool has(device_id d, layer_id l) const { return held_[at(d, l)] != 0; }
  /// The parts of the optimizer's state that a device holds beside a layer's weights: ascending, apart; all of it unless shared out.
  [[nodiscard]] std::vector<state_part> state_of(device_id d, layer_id l) const;
  /// Does some device hold only a part of the optimizer's state?
  [[nodiscard]] bool has_parts(layer_id l) const;
  /// The devices that hold a layer's tensor, ascending.
  [[nodiscard]] std::vector<device_id> holders(layer_id l) const;

  void add(device_id d, layer_id l);
  /// Weights with a part of the optimizer's state, beside the parts that are there.
  void add(device_id d, layer_id l, state_part part);

  /// Sequences with a cache; 0 outside generation.
  [[nodiscard]] long long sequences() const { return tensor_.empty() ? 0 : static_cast<long long>(cache_owner_.size() / tensor_.size()); }
  /// Whose memory has the cache of a layer for a sequence; an invalid id: nobody's, it is lost.
  [[nodiscard]] device_id cache_owner(layer_id l, long long sequence) const { return cache_owner_[cache_at(l, sequence)]; }
  /// Makes room for the caches of so many sequences, which nobody owns yet.
  void set_sequences(long long count) { cache_owner_.assign(tensor_.size() * static_cast<std::size_t>(count), device_id()); }
  void set_cache_owner(layer_id l, long long sequence, device_id d) { cache_owner_[cache_at(l, sequence)] = d; }

  friend bool operator==(const holdings&, const holdings&) = default;

 private:
  [[nodiscard]] std::size_t at(device_id d, layer_id l) const { return d.index() * tensor_.size() + tensor_[l.index()].index(); }
  [[nodiscard]] std::size_t cache_at(layer_id l, long long sequence) const;

  std::size_t devices_ = 0;
  std::vector<layer_id> tensor_;                          ///< by layer
  std::vector<char> held_;                                ///< device x layer; only the first layer of a group is used
  std::map<std::size_t, std::vector<state_part>> parts_;  ///< by the same index, where a device holds no more of the state
  std::vector<device_id> cache_owner_;                    ///< sequence x layer
};

/// A tensor's optimizer state, cut wherever a part of it begins or ends that some device holds or that is needed.
[[nodiscard]] std::vector<state_part> state_pieces(layer_id tensor, const std::vector<state_part>& needed, const holdings& held);

/// In generation: the caches are those of the sequences that a plan's devices serve, and no others. Devices of a stage own
/// contiguous ranges of each of its microbatches, in list order.
///
/// Complexity  O(layers x sequences).
void give_caches(holdings& held, const plan& p);

/// What the devices of a plan hold while it runs: the weights and optimizer's state of their stages, and in generation the caches of the
/// sequences that they serve.
///
/// @param p        a valid plan.
/// @param devices  of the cluster, used or not.
/// Complexity      O(layers of all stages x devices per stage); generation: and O(layers x sequences).
/// Source          semantics, sections 2 and 6.
[[nodiscard]] holdings holdings_of(const plan& p, const planning_graph& model, std::size_t devices);

/// Does a change from one plan to the other leave everything where it is, caches included?
[[nodiscard]] bool moves_nothing(const plan& from, const plan& to);

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/holdings.ipp>
#endif
