// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Dora's communication-expanded planning (CEP) graph: a task graph whose transfers are to be scheduled.

#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/tasks/task_graph.hpp>

/// Schedules of transfers and device orders of pipelines. Transfer schedulers keep the devices, durations and orders of compute tasks.
namespace hetplan::schedule {

/// Priority (smaller first) and earliest start of a chunk.
struct chunk_rule {
  int priority = 0;
  seconds release = {};

  friend bool operator==(const chunk_rule&, const chunk_rule&) = default;
};

/// Rules by message of a cep_graph, one for each of its chunks in order; every message has at least one.
using message_rules = std::vector<std::vector<chunk_rule>>;

/// The CEP graph: compute tasks and transfers as nodes, dependencies and device orders as edges.
///
/// A *message* is the unit of a plan's transfer rules: the transfers of one kind between two devices for one pair of stages and one
/// microbatch, in generation for all tokens; a stage's reduction has one message per pair of neighbours. The network must outlive the
/// graph.
///
/// Throws   invalid_input if a transfer is cut into chunks already (expand the plan without its transfer rules) or blocks its devices
///          (nothing can be decided about it).
/// Source   Dora, section 4.2.
class cep_graph {
 public:
  cep_graph(tasks::task_graph g, const hetplan::network& net);
  cep_graph(tasks::task_graph, const hetplan::network&& the_network_must_outlive_it) = delete;

  [[nodiscard]] const tasks::task_graph& tasks() const { return graph_; }
  [[nodiscard]] const hetplan::network& network() const { return network_; }
  [[nodiscard]] std::size_t messages() const { return transfers_of_.size(); }
  [[nodiscard]] std::uint32_t message_of(std::uint32_t transfer) const { return message_of_[transfer]; }
  /// Returns the transfers of a message, in ascending order.
  [[nodiscard]] std::span<const std::uint32_t> transfers_of(std::size_t message) const { return transfers_of_[message]; }
  /// Returns a lower bound on the latency of every schedule of these transfers.
  [[nodiscard]] seconds bound() const { return bound_; }

  /// Returns the task graph under the given rules: the chunks of a transfer form a chain, and the first one takes its latency.
  ///
  /// Transfers are numbered by original transfer, then by chunk. A transfer's own release stays a lower limit.
  /// Complexity  O(nodes + dependencies).  Throws  invalid_input unless every message has a rule for at least one chunk.
  [[nodiscard]] tasks::task_graph with(const message_rules& rules) const;

  /// Returns the given rules in the form that a plan stores.
  [[nodiscard]] std::vector<transfer_rule> transfer_rules(const message_rules& rules) const;

 private:
  void check(const message_rules& rules) const;

  /// Sets the fields of chunk k of a transfer. The transfer's own release stays a lower limit.
  static void set(tasks::transfer& chunk, const tasks::transfer& whole, const std::vector<chunk_rule>& rules, std::size_t k);

  [[nodiscard]] tasks::task_graph cut(const message_rules& rules) const;

  tasks::task_graph graph_;
  const hetplan::network& network_;
  std::vector<std::uint32_t> message_of_;                 ///< by transfer
  std::vector<std::vector<std::uint32_t>> transfers_of_;  ///< by message
  seconds bound_ = {};
};

/// Returns the rules that a user's model made for the graph's messages, if they are valid.
///
/// @param who  the model's name in error messages.
/// Throws      invalid_model if a message is missing, has no chunk or more than `most_chunks`, or if a release is not finite.
/// Complexity  O(chunks).
[[nodiscard]] message_rules checked(message_rules rules, const cep_graph& cep, const char* who);

}  // namespace hetplan::schedule

#ifndef HETPLAN_SEPARATE
#include <hetplan/schedule/cep_graph.ipp>
#endif
