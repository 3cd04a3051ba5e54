// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The report's Gantt chart: the critical path, a row per device with what it sends, a row per network resource.

#include <array>
#include <string>
#include <vector>

#include <hetplan/draw/gantt_rows.hpp>
#include <hetplan/draw/report_run.hpp>
#include <hetplan/draw/report_time_chart.hpp>

namespace hetplan::draw::detail {

/// Where the seconds of the critical path go.
enum class critical_part { computing, transfer, latency, lost, held };
inline constexpr std::size_t critical_part_count = static_cast<std::size_t>(critical_part::held) + 1;

struct critical_part_style {
  std::string_view name, about;
  color fill;
};
[[nodiscard]] critical_part_style style_of(critical_part p);
[[nodiscard]] std::array<double, critical_part_count> parts_of(const critical_link& l, bool compute);

class report_timeline {
 public:
  explicit report_timeline(const report_run& run);

  [[nodiscard]] std::string paint() &&;

 private:
  /// Every moment is somebody's: a task, or a transfer with its latency and what it lost to others.
  void critical_path(row_box box);

  void link(const critical_link& l, row_box box);

  /// The transfers that leave a device, from their start (latency included) to their end, in lanes; returns the height.
  double sends(device_id d, double top);

  void resource_row(row_painter& rows, const resource_view& r, row_box box);

  [[nodiscard]] std::string legend() const;
  [[nodiscard]] static std::string swatch(const std::string& fill, std::string_view more = "");

  [[nodiscard]] std::string notes() const;

  const report_run& run_;
  time_chart chart_;
  std::vector<resource_view> resources_;
  zooming_bars bars_;
  std::size_t devices_ = 0, hidden_ = 0, merged_ = 0;
  bool contended_ = false;
};

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/report_timeline.ipp>
#endif
