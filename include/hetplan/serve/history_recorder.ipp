// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/history_recorder.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <hetplan/core/at_most.hpp>
#include <hetplan/core/error.hpp>

namespace HETPLAN_NAMESPACE::serve {

HETPLAN_INLINE history_recorder::history_recorder(const edge_cloud& cloud, const std::vector<service>& services, const request_stream& all,
                                                  const serving_options& o)
    : services_(&services), all_(&all), span_s_(all.span().value()), has_ended_(all.size()), detailed_(cloud.size() <= most_detailed) {
  bin_s_ = o.bin.value() > 0 ? o.bin.value() : std::max(span_s_ / 100, 1e-9);
  history_.bin = seconds(bin_s_);
  history_.begin = all.first_arrival();
  history_.services.resize(services.size());
  history_.servers.resize(cloud.size());
  history_.offloads.resize(8);
  history_.offered.reserve(static_cast<std::size_t>(span_s_ / bin_s_) + 2);
  if (detailed_) by_server_.resize(cloud.size() * services.size());
  if (o.detail == history_detail::records) history_.records.resize(all.size());
}

HETPLAN_INLINE std::size_t history_recorder::bin_of(double time_s) const {
  const double whole = std::floor(std::min(time_s / bin_s_, 1e15));
  return static_cast<std::size_t>(at_most((whole + 1) * bin_s_, time_s) ? whole + 1 : whole);
}

HETPLAN_INLINE void history_recorder::end(request_number r, const request& what, const request_record& how, double latency_s) {
  auto& totals = history_.services[what.service.index()];
  ++totals.ended[static_cast<std::size_t>(how.outcome)];
  totals.asked += asked(what);
  totals.credit += how.credit;
  if (latency_s >= 0) totals.latency.add(latency_s);
  auto& server = history_.servers[how.server.index()];
  server.credit += how.credit;
  ++server.ended;
  if (detailed_) by_server_[how.server.index() * history_.services.size() + what.service.index()] += how.credit;
  const auto hops = static_cast<std::size_t>(how.offloads);
  if (hops >= history_.offloads.size()) history_.offloads.resize(hops + 1);
  ++history_.offloads[hops];
  if (how.credit > 0) {
    // The last bin holds all that is later: a long stream must not make millions of bins.
    const auto bin = std::min(bin_of(how.end_s), static_cast<std::size_t>(2 * span_s_ / bin_s_ + 100));
    if (bin >= history_.goodput.size()) history_.goodput.resize(bin + 1, std::vector<double>(history_.services.size()));
    history_.goodput[bin][what.service.index()] += how.credit;
  }
  credit_ += how.credit;
  if (how.credit > 0) last_end_s_ = std::max(last_end_s_, how.end_s);
  ++ended_;
  HETPLAN_ASSERT(!has_ended_[r]);
  has_ended_[r] = true;
  if (history_.records.empty()) return;
  history_.records[r] = how;
  history_.records[r].end_s = std::max(what.arrival_s, history_.begin.value() + how.end_s);  // the sum may be rounded down
}

HETPLAN_INLINE void history_recorder::open_offered(double arrival_s) {
  const auto bin = bin_of(arrival_s);
  history_.offered.resize(bin + 1, std::vector<double>(history_.services.size()));
  offered_until_s_ = static_cast<double>(bin + 1) * bin_s_;
}

HETPLAN_INLINE void history_recorder::add_up_flows() {
  std::ranges::sort(flows_, [](const offload_flow& a, const offload_flow& b) { return a.from != b.from ? a.from < b.from : a.to < b.to; });
  std::size_t kept = 0;
  for (std::size_t k = 0; k < flows_.size(); ++k) {
    if (kept > 0 && flows_[kept - 1].from == flows_[k].from && flows_[kept - 1].to == flows_[k].to) {
      flows_[kept - 1].requests += flows_[k].requests;
    } else {
      flows_[kept++] = flows_[k];
    }
  }
  flows_.resize(kept);
  flows_added_up_ = kept;
}

HETPLAN_INLINE void history_recorder::waiting(std::vector<std::uint32_t> by_server, double now_s) {
  const auto bin = bin_of(now_s);
  while (history_.waiting.size() < bin) history_.waiting.emplace_back(history_.servers.size());
  history_.waiting.push_back(std::move(by_server));
  next_waiting_s_ = static_cast<double>(bin + 1) * bin_s_;
}

HETPLAN_INLINE service_history history_recorder::take(std::uint64_t requests) {
  add_up_flows();
  history_.flows = std::move(flows_);
  const auto width = static_cast<std::ptrdiff_t>(history_.services.size());
  for (auto row = by_server_.begin(); row != by_server_.end(); row += width) history_.credit_by_server.emplace_back(row, row + width);
  history_.duration = seconds(std::max(last_end_s_, span_s_));
  while (history_.offloads.size() > 1 && history_.offloads.back() == 0) history_.offloads.pop_back();
  // The promise that every request ends exactly once.
  HETPLAN_ASSERT(history_.result.result == outcome::stopped || ended_ == requests);
  return std::move(history_);
}

}  // namespace HETPLAN_NAMESPACE::serve
