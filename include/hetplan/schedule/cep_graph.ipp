// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/schedule/cep_graph.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>

namespace hetplan::schedule {

HETPLAN_INLINE cep_graph::cep_graph(tasks::task_graph g, const hetplan::network& net) : graph_(std::move(g)), network_(net) {
  key_index seen;
  message_of_.reserve(graph_.transfers.size());
  for (std::uint32_t t = 0; t < graph_.transfers.size(); ++t) {
    const tasks::transfer& x = graph_.transfers[t];
    if (x.blocks())
      throw invalid_input("cep_graph: transfer " + std::to_string(t) +
                          " is part of its devices' work; expected transfers that overlap computing");
    if (x.chunk != 0)
      throw invalid_input("cep_graph: transfer " + std::to_string(t) + " is chunk " + std::to_string(x.chunk) +
                          " of another; expected whole transfers");
    const std::size_t message = seen.number(name_of_transfer(x));
    if (message == transfers_of_.size()) transfers_of_.emplace_back();
    transfers_of_[message].push_back(t);
    message_of_.push_back(static_cast<std::uint32_t>(message));
  }
  bound_ = tasks::contention_bound(graph_, network_);
}

HETPLAN_INLINE tasks::task_graph cep_graph::with(const message_rules& rules) const {
  check(rules);
  const bool whole = std::all_of(rules.begin(), rules.end(), [](const auto& r) { return r.size() == 1; });
  if (!whole) return cut(rules);
  tasks::task_graph g = graph_;
  for (std::size_t t = 0; t < g.transfers.size(); ++t) set(g.transfers[t], graph_.transfers[t], rules[message_of_[t]], 0);
  return g;
}

HETPLAN_INLINE std::vector<transfer_rule> cep_graph::transfer_rules(const message_rules& rules) const {
  std::vector<transfer_rule> out;
  if (!rules.empty()) check(rules);
  for (std::size_t f = 0; f < rules.size(); ++f) {
    const tasks::transfer& x = graph_.transfers[transfers_of_[f].front()];
    for (std::size_t k = 0; k < rules[f].size(); ++k) {
      out.push_back({.from = x.from,
                     .to = x.to,
                     .from_stage = x.from_stage,
                     .to_stage = x.to_stage,
                     .microbatch = x.microbatch,
                     .kind = x.kind,
                     .chunk = static_cast<int>(k),
                     .chunks = static_cast<int>(rules[f].size()),
                     .release = std::max(seconds(x.release_s), rules[f][k].release),
                     .priority = rules[f][k].priority});
    }
  }
  return out;
}

HETPLAN_INLINE void cep_graph::check(const message_rules& rules) const {
  const bool complete =
      rules.size() == messages() && std::none_of(rules.begin(), rules.end(), [](const auto& chunks) { return chunks.empty(); });
  if (!complete)
    throw invalid_input("cep_graph: rules for " + std::to_string(rules.size()) +
                        " flows, or a flow without a chunk; expected a chunk at least for each of " + std::to_string(messages()) +
                        " flows");
}

HETPLAN_INLINE message_rules checked(message_rules rules, const cep_graph& cep, const char* who) {
  const auto fail = [who](const std::string& what) { throw invalid_model(std::string(who) + ": " + what); };
  if (rules.size() != cep.messages())
    fail("rules for " + std::to_string(rules.size()) + " messages; expected all " + std::to_string(cep.messages()));
  for (std::size_t f = 0; f < rules.size(); ++f) {
    if (rules[f].empty()) fail("no chunk of message " + std::to_string(f) + "; expected at least one");
    if (rules[f].size() > static_cast<std::size_t>(most_chunks))
      fail(std::to_string(rules[f].size()) + " chunks of message " + std::to_string(f) + "; expected at most " +
           std::to_string(most_chunks));
    for (const chunk_rule& c : rules[f]) {
      if (!std::isfinite(c.release.value())) fail("a release of message " + std::to_string(f) + " is not finite; expected a time");
    }
  }
  return rules;
}

HETPLAN_INLINE void cep_graph::set(tasks::transfer& chunk, const tasks::transfer& whole, const std::vector<chunk_rule>& rules,
                                   std::size_t k) {
  chunk.chunk = static_cast<int>(k);
  chunk.priority = rules[k].priority;
  chunk.release_s = std::max(whole.release_s, rules[k].release.value());
  chunk.volume_bytes = whole.volume_bytes / static_cast<double>(rules.size());
  if (k > 0) chunk.latency_s = 0;
}

HETPLAN_INLINE tasks::task_graph cep_graph::cut(const message_rules& rules) const {
  using handle = tasks::task_graph_builder::handle;
  tasks::task_graph_builder out(graph_.device_order.size());
  std::vector<handle> first(graph_.size()), last(graph_.size());  // first and last chunk of a transfer
  for (const route& r : graph_.routes) out.add_route(r);
  for (tasks::node_id n = 0; n < graph_.size(); ++n) {
    if (!graph_.is_transfer(n)) {
      first[n] = last[n] = graph_.is_compute(n) ? out.add(graph_.computes[n]) : out.add_barrier();
      continue;
    }
    const tasks::transfer& whole = graph_.transfer_at(n);
    const auto& mine = rules[message_of_[n - graph_.computes.size()]];
    for (std::size_t k = 0; k < mine.size(); ++k) {
      tasks::transfer chunk = whole;
      set(chunk, whole, mine, k);
      const handle added = out.add(chunk);
      if (k == 0) first[n] = added;
      else out.depend(last[n], added);
      last[n] = added;
    }
  }
  for (tasks::node_id n = 0; n < graph_.size(); ++n) {
    for (const tasks::node_id m : graph_.successors_of(n)) out.depend(last[n], first[m]);
  }
  for (std::size_t d = 0; d < graph_.device_order.size(); ++d) {
    for (const tasks::node_id n : graph_.device_order[d]) out.append_to_order(first[n]);
    out.hold(device_id(d), graph_.static_bytes[d]);
    if (graph_.used[d] != 0) out.use(device_id(d));
  }
  return std::move(out).build();
}

}  // namespace hetplan::schedule
