// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/server_links.hpp>

#include <algorithm>
#include <variant>

#include <hetplan/core/at_most.hpp>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE server_links::server_links(const edge_cloud& cloud, const std::vector<serving_fault>& faults, const request_stream& clock,
                                          double span_s)
    : cloud_(&cloud), span_s_(span_s) {
  links_.reserve(cloud.size());
  for (const auto& s : cloud.servers) links_.push_back({s.uplink.value(), s.downlink.value(), s.latency.value()});
  for (const auto& f : faults) {
    const auto* slow = std::get_if<slow_link>(&f.what);
    if (slow == nullptr) continue;
    auto& l = links_[f.server.index()];
    if (l.slow < 0) {
      l.slow = static_cast<std::int32_t>(slow_.size());
      slow_.emplace_back();
    }
    slow_[static_cast<std::size_t>(l.slow)].push_back(
        {clock.since_first_s(f.at.value()), clock.since_first_s(slow->until.value()), slow->factor});
  }
}

HETPLAN_INLINE double server_links::factor(const link& l, double at_s) const {
  double f = 1;
  if (l.slow < 0) return f;
  for (const auto& t : slow_[static_cast<std::size_t>(l.slow)]) {
    if (at_most(t.from_s, at_s, span_s_) && !at_most(t.until_s, at_s, span_s_)) f *= t.factor;
  }
  return f;
}

HETPLAN_INLINE double server_links::send_s(server_id from, server_id to, double now_s, double size_b) {
  auto& l = links_[from.index()];
  const double begin_s = std::max(now_s, l.up_free_s);
  l.up_free_s = begin_s + size_b / (l.up * factor(l, begin_s));
  return l.up_free_s + l.latency_s + links_[to.index()].latency_s;
}

HETPLAN_INLINE double server_links::receive_s(server_id to, double now_s, double size_b) {
  auto& l = links_[to.index()];
  const double begin_s = std::max(now_s, l.down_free_s);
  l.down_free_s = begin_s + size_b / (l.down * factor(l, begin_s));
  return l.down_free_s;
}

HETPLAN_INLINE double server_links::answer_s(server_id from, server_id to, double size_b, double at_s) const {
  if (from == to) return 0;
  const auto& a = links_[from.index()];
  const auto& b = links_[to.index()];
  return a.latency_s + b.latency_s + size_b / std::min(a.up * factor(a, at_s), b.down * factor(b, at_s));
}

}  // namespace HETPLAN_NAMESPACE::serve
