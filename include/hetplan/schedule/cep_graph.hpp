// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's communication-expanded planning graph: a task graph and what may be decided about its transfers.

#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/tasks/task_graph.hpp>

/// Decides when transfers run. Compute tasks keep their devices, durations and orders.
namespace hetplan::schedule {

/// A chunk's priority (smaller first) and the time before which it does not start.
struct chunk_rule {
  int priority = 0;
  seconds release = {};

  friend bool operator==(const chunk_rule&, const chunk_rule&) = default;
};

/// By message of a cep_graph: its chunks, in order; at least one each.
using message_rules = std::vector<std::vector<chunk_rule>>;

/// The CEP graph: compute tasks and transfers as nodes, dependencies and device orders as edges.
///
/// A *message* is what one rule of a plan speaks of: the transfers of one kind between two devices for one pair of stages
/// and one microbatch, in generation those of every token; a stage's reduction has one message per pair of neighbours.
/// Refers to the network, which must outlive it.
///
/// Throws   invalid_input if a transfer is cut into chunks already (expand the plan without its transfer rules) or blocks its
///          devices (there is nothing to decide about it).
/// Source   Dora, section 4.2.
class cep_graph {
 public:
  cep_graph(tasks::task_graph g, const hetplan::network& net);
  cep_graph(tasks::task_graph, const hetplan::network&& the_network_must_outlive_it) = delete;

  [[nodiscard]] const tasks::task_graph& tasks() const { return graph_; }
  [[nodiscard]] const hetplan::network& network() const { return network_; }
  [[nodiscard]] std::size_t messages() const { return transfers_of_.size(); }
  [[nodiscard]] std::uint32_t message_of(std::uint32_t transfer) const { return message_of_[transfer]; }
  /// The transfers of a message, in the order of their numbers.
  [[nodiscard]] std::span<const std::uint32_t> transfers_of(std::size_t message) const { return transfers_of_[message]; }
  /// No schedule of these transfers ends earlier.
  [[nodiscard]] seconds bound() const { return bound_; }

  /// The task graph with these rules: chunks follow one another, the latency is the first one's.
  ///
  /// Chunks of transfer t stand where t stood: they are numbered in the order of transfers, then of chunks.
  /// A transfer's own release stays a lower limit.
  /// Complexity  O(nodes + dependencies).  Throws  invalid_input unless there are rules for every message, one chunk at least.
  [[nodiscard]] tasks::task_graph with(const message_rules& rules) const;

  /// The same rules as a plan carries them.
  [[nodiscard]] std::vector<transfer_rule> transfer_rules(const message_rules& rules) const;

 private:
  void check(const message_rules& rules) const;

  /// Chunk k of a transfer, whose own release stays a lower limit.
  static void set(tasks::transfer& chunk, const tasks::transfer& whole, const std::vector<chunk_rule>& rules, std::size_t k);

  [[nodiscard]] tasks::task_graph cut(const message_rules& rules) const;

  tasks::task_graph graph_;
  const hetplan::network& network_;
  std::vector<std::uint32_t> message_of_;                 ///< by transfer
  std::vector<std::vector<std::uint32_t>> transfers_of_;  ///< by message
  seconds bound_ = {};
};

/// Rules that somebody's model made for the graph's messages.
///
/// @param who  the model's name in messages.
/// Throws      invalid_model: rules that forget a message, leave one without a chunk, or never release a chunk.
/// Complexity  O(chunks).
[[nodiscard]] message_rules checked(message_rules rules, const cep_graph& cep, const char* who);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/cep_graph.ipp>
#endif
