// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_places.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/heat_grid.hpp>
#include <hetplan/draw/report_time_chart.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// Services against servers, laid out as charts over time are: names on the left, totals on the right.
class place_matrix {
 public:
  /// @param value  of a server and a service.
  place_matrix(const serving_view& view, const std::function<double(std::size_t, std::size_t)>& value, std::vector<std::string> units)
      : view_(view), slots_(view.cloud, 250), totals_(view.services.size()) {
    const std::size_t n = view.services.size();
    grid_.left = time_chart::left;
    grid_.top = 6;
    grid_.width = time_chart::width - time_chart::left - time_chart::numbers;
    grid_.height = static_cast<double>(n) * (n <= 12 ? 26 : n <= 30 ? 18 : 13);
    grid_.units = std::move(units);
    for (const auto& s : slots_) grid_.columns.push_back(slots_.name(s));
    for (std::size_t l = 0; l < n; ++l) {
      std::vector<double> row;
      for (const auto& s : slots_) {
        double sum = 0;
        for (std::size_t k = 0; k < s.count; ++k) sum += value(s.first + k, l);
        totals_[l] += sum;
        row.push_back(sum / static_cast<double>(s.count));
      }
      grid_.rows.push_back(view.services[l].name);
      grid_.most.push_back(*std::ranges::max_element(row));
      grid_.values.push_back(std::move(row));
    }
    if (slots_.most_servers() > 1) {
      for (auto& unit : grid_.units) unit += " each";
    }
  }
  void one_scale() {
    if (!grid_.most.empty()) grid_.most = {*std::ranges::max_element(grid_.most)};
  }

  [[nodiscard]] std::string paint(std::string_view id, std::string_view label) && {
    const std::string grid_id = std::string(id) + "-grid";
    grid_.id = grid_id;
    detail::paint(out_, grid_);
    const double bottom = grid_.top + grid_.height;
    for (const std::size_t i : slots_.ring_edges()) {
      const double x = grid_.left + static_cast<double>(i) * grid_.column_width();
      out_.line(x, grid_.top, x, bottom + 6, palette::paper, slots_.size() > 100 ? 1.5 : 3);
    }
    for (std::size_t l = 0; l < grid_.rows.size(); ++l) {
      const double y = grid_.top + (static_cast<double>(l) + 0.5) * grid_.row_height(), size = std::min(12.5, grid_.row_height() * 0.8);
      out_.text(0, y + 0.36 * size, fitted(grid_.rows[l], static_cast<std::size_t>((time_chart::left - 12) / (0.66 * size))),
                {.size = size, .weight = 600});
      out_.text(time_chart::width, y + 4, short_number(totals_[l]), {.size = 11, .fill = palette::quiet, .anchor = "end"});
      if (l > 0) {
        const double line = grid_.top + static_cast<double>(l) * grid_.row_height();
        out_.line(grid_.left, line, grid_.left + grid_.width, line, palette::paper, 1.5);
      }
    }
    return finish(id, label, bottom);
  }

 private:
  [[nodiscard]] std::string finish(std::string_view id, std::string_view label, double bottom) {
    const double wide = grid_.column_width();
    std::size_t longest = 1;
    for (const auto& s : view_.cloud.servers) longest = std::max(longest, characters(s.name));
    const std::size_t shown = std::min<std::size_t>(longest, 14);
    const double room = (svg_writer::prose_width(std::string(shown, 'x'), 10.5) + 10) / wide;
    for (const auto& t : slots_.labels(room)) {
      const double x = grid_.left + (static_cast<double>(t.slot) + 0.5) * wide;
      out_.line(x, bottom + 1, x, bottom + 5, palette::frame);
      const double half = svg_writer::prose_width(fitted(t.text, shown), 10.5) / 2;
      out_.text(std::min(x, time_chart::width - half), bottom + 18, fitted(t.text, shown),
                {.size = 10.5, .fill = palette::quiet, .anchor = "middle"});
    }
    if (view_.rings() == 1) return std::move(out_).embedded(time_chart::width, bottom + 24, label, " id=\"" + std::string(id) + "\"");
    std::vector<std::size_t> edges = slots_.ring_edges();
    edges.insert(edges.begin(), 0);
    edges.push_back(slots_.size());
    for (std::size_t r = 0; r + 1 < edges.size(); ++r) {
      const double from = grid_.left + static_cast<double>(edges[r]) * wide + 2,
                   to = grid_.left + static_cast<double>(edges[r + 1]) * wide - 2;
      out_.line(from, bottom + 27, to, bottom + 27, palette::frame, 2);
      const std::string text = "ring " + std::to_string(r), few = std::to_string(r);
      const std::string& fits = svg_writer::prose_width(text, 10.5) < to - from ? text : few;
      if (svg_writer::prose_width(fits, 10.5) < to - from + 4)
        out_.text((from + to) / 2, bottom + 41, fits, {.size = 10.5, .fill = palette::quiet, .anchor = "middle"});
    }
    return std::move(out_).embedded(time_chart::width, bottom + 46, label, " id=\"" + std::string(id) + "\"");
  }

  const serving_view& view_;
  server_slots slots_;
  std::vector<double> totals_;
  heat_grid grid_;
  svg_writer out_;
};

HETPLAN_INLINE std::string credit_matrix(const serving_view& view) {
  if (!view.is_detailed()) return {};
  std::vector<std::string> units;
  for (std::size_t l = 0; l < view.services.size(); ++l) units.push_back(view.unit(l) + " served");
  return place_matrix(
             view, [&](std::size_t s, std::size_t l) { return view.history.credit_by_server[s][l]; }, std::move(units))
      .paint("credit-matrix", "Who served what where");
}

HETPLAN_INLINE std::string gpu_matrix(const serving_view& view) {
  std::vector<std::vector<double>> given(view.cloud.size(), std::vector<double>(view.services.size()));
  for (const auto& i : view.first.instances) {
    const double share = view.services[i.what.index()].variants[static_cast<std::size_t>(i.variant)].compute_share;
    if (i.device) given[i.device->server.index()][i.what.index()] += share;
    for (const auto& g : i.gpus) given[g.server.index()][i.what.index()] += share;
  }
  place_matrix matrix(view, [&](std::size_t s, std::size_t l) { return given[s][l]; }, {"GPUs"});
  matrix.one_scale();
  return std::move(matrix).paint("gpu-matrix", "GPUs that services have where");
}

}  // namespace HETPLAN_NAMESPACE::draw::detail
