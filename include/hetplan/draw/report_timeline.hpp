// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's Gantt chart: the critical path, a row per device with what it sends, a row per network resource.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/gantt.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/trace_view.hpp>
#include <hetplan/simulate/wait_states.hpp>

namespace hetplan::draw::detail {

/// A judged plan, read once for all sections of the report: resources, the critical chain, what sharing cost each transfer. Its arguments
/// must outlive it.
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
  bool merged = false;  ///< bars are averages: too much happened for one per task

  report_run(const hetplan::plan& p, const hetplan::cluster& c, const hetplan::judgement& j, std::size_t max_bars);

  [[nodiscard]] double latency_s() const { return judgement.trace.latency.value(); }
  [[nodiscard]] bool critical(tasks::node_id n) const { return critical_[n] != 0; }
  [[nodiscard]] bool used(device_id d) const { return judgement.graph.used[d.index()] != 0; }

  /// Seconds that a transfer took because it shared its route.
  [[nodiscard]] double lost_s(std::size_t t) const;

  /// The most other transfers at a time on a resource of the transfer's route, and the name of that resource.
  [[nodiscard]] std::pair<std::uint32_t, std::string> most_others(std::size_t t) const;

  /// The reason why a task or transfer did not start earlier; "" where nothing kept it.
  [[nodiscard]] std::string why(tasks::node_id n) const;

  /// Lines of a bar's hover text behind its name, times and bytes, each after a line break.
  [[nodiscard]] std::string hover_lines(tasks::node_id n) const;

 private:
  static constexpr std::size_t none = ~std::size_t{0};

  wait_states wait_states_;
  std::vector<char> critical_;            ///< by node
  std::vector<std::size_t> of_resource_;  ///< index into `resources`
  bool prioritised_ = false;
};

/// What the seconds of the critical path are spent on.
enum class critical_part { computing, transfer, latency, lost, held };
inline constexpr std::size_t critical_part_count = static_cast<std::size_t>(critical_part::held) + 1;

struct critical_part_style {
  std::string_view name, about;
  color fill;
};
[[nodiscard]] critical_part_style style_of(critical_part p);
[[nodiscard]] std::array<double, critical_part_count> parts_of(const critical_link& l, bool compute);

/// The timeline of the report, with its legend and notes.
[[nodiscard]] std::string timeline_chart(const report_run& run);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/draw/report_timeline.ipp>
#endif
