// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What the report knows about a run beyond its picture: the critical chain, and what sharing cost each transfer.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/draw/trace_view.hpp>
#include <hetplan/simulate/critical_chain.hpp>

namespace hetplan::draw::detail {

/// A judged plan, read once for all parts of the page. Refers to its arguments, which must outlive it.
///
/// Complexity  that of the critical chain and of trace_view::resources.
class report_run {
 public:
  const hetplan::plan& plan;
  const hetplan::cluster& cluster;
  const hetplan::judgement& judgement;
  trace_view view;
  std::vector<resource_view> resources;
  std::vector<critical_link> chain;
  bool merged = false;  ///< too much happened for a bar per task

  report_run(const hetplan::plan& p, const hetplan::cluster& c, const hetplan::judgement& j, std::size_t max_bars);

  [[nodiscard]] double latency_s() const { return judgement.trace.latency.value(); }
  [[nodiscard]] bool critical(tasks::node_id n) const { return critical_[n] != 0; }
  [[nodiscard]] bool used(device_id d) const { return judgement.graph.used[d.index()] != 0; }

  /// Seconds that a transfer took because it shared its route.
  [[nodiscard]] double lost_s(std::size_t t) const;

  /// With how many others at a time a transfer shared a resource of its route, at most; and which resource.
  [[nodiscard]] std::pair<std::uint32_t, std::string> most_others(std::size_t t) const;

  /// Why it did not start earlier, as a sentence; "" where nothing kept it.
  [[nodiscard]] std::string why(tasks::node_id n) const;

  /// What a bar says on hover beside its name, times and bytes: each line begins with a line break.
  [[nodiscard]] std::string hover_lines(tasks::node_id n) const;

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  waits waits_;
  std::vector<char> critical_;            ///< by node
  std::vector<std::size_t> of_resource_;  ///< index into `resources`
  bool prioritised_ = false;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/report_run.ipp>
#endif
