// SPDX-License-Identifier: BSL-1.0
#pragma once
/// List scheduling of transfers, whole or cut into chunks: the most urgent chunk first.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <hetplan/schedule/transfer_priority.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::schedule {

struct list_options {
  int chunks = 1;  ///< per transfer; each has its own urgency
};

/// A chunk of a message. A sequence of all chunks, most urgent first, defines a schedule.
struct message_chunk {
  std::uint32_t message = 0;
  std::uint32_t chunk = 0;

  friend auto operator<=>(const message_chunk&, const message_chunk&) = default;
};

/// Returns rules that rank chunks by their position in a sequence, which holds every chunk of every message once.
[[nodiscard]] inline message_rules rules_of_sequence(std::size_t messages, const std::vector<message_chunk>& sequence) {
  message_rules rules(messages);
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    auto& mine = rules[sequence[i].message];
    if (mine.size() <= sequence[i].chunk) mine.resize(sequence[i].chunk + 1);
    mine[sequence[i].chunk].priority = static_cast<int>(i);
  }
  return rules;
}

/// Returns the chunks by descending urgency under a priority rule, with longest paths in the graph of chunks.
///
/// A message of several transfers is as urgent as its most urgent one. Ties: by message, then by chunk.
/// Complexity  O(n log n) in the chunks, and the longest paths.
/// Throws      invalid_input (chunks < 1), invalid_model (an urgency that is not a number).
template <transfer_priority Priority = critical_path_first>
[[nodiscard]] std::vector<message_chunk> urgency_sequence(const cep_graph& cep, const Priority& priority = {},
                                                          const list_options& options = {}) {
  if (options.chunks < 1) throw invalid_input("list_schedule: chunks = " + std::to_string(options.chunks) + "; expected >= 1");
  const auto w = static_cast<std::size_t>(options.chunks);
  const tasks::task_graph g = cep.with(message_rules(cep.messages(), std::vector<chunk_rule>(w)));
  const tasks::path_times paths = tasks::longest_paths(g, cep.network());
  std::vector<double> urgency(cep.messages() * w, -std::numeric_limits<double>::infinity());
  for (std::uint32_t t = 0; t < g.transfers.size(); ++t) {  // a transfer's chunks have consecutive numbers
    const tasks::node_id n = g.node_of_transfer(t);
    const double u = priority.urgency(g.transfers[t], {paths.earliest_start_s[n], paths.alone_s[n], paths.tail_s[n]});
    if (std::isnan(u)) throw invalid_model("transfer priority: urgency(transfer " + std::to_string(t) + ") = nan; expected a number");
    const std::uint32_t whole = t / static_cast<std::uint32_t>(w);
    double& most = urgency[cep.message_of(whole) * w + t % w];
    most = std::max(most, u);
  }
  std::vector<message_chunk> sequence;
  for (std::uint32_t f = 0; f < cep.messages(); ++f) {
    for (std::uint32_t k = 0; k < w; ++k) sequence.push_back({f, k});
  }
  std::stable_sort(sequence.begin(), sequence.end(), [&](const message_chunk& a, const message_chunk& b) {
    return urgency[a.message * w + a.chunk] > urgency[b.message * w + b.chunk];
  });
  return sequence;
}

/// Returns the simulated schedule of transfers by a priority rule. It may be slower than uncontrolled transfers, unlike local_search.
/// Complexity  one simulation beside urgency_sequence.
/// Throws      as urgency_sequence.   Determinism  yes.
/// Source      Dora, section 4.2. Deviation: transfers are whole by default, since under `priority` a more urgent transfer pre-empts the
///             others anyway (transfer_priority).
template <transfer_priority Priority = critical_path_first>
[[nodiscard]] network_schedule list_schedule(const cep_graph& cep, const Priority& priority = {}, const list_options& options = {}) {
  return follow(cep, rules_of_sequence(cep.messages(), urgency_sequence(cep, priority, options)));
}

}  // namespace hetplan::schedule
