// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/serving_flows.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string_view>
#include <vector>

#include <hetplan/draw/clock_scale.hpp>
#include <hetplan/draw/page.hpp>
#include <hetplan/draw/report_tables.hpp>
#include <hetplan/draw/svg.hpp>

namespace hetplan::draw::detail {

/// One ring as a circle.
class ring_circle {
 public:
  ring_circle(const serving_view& view, std::size_t ring, double x, double y, double radius, double half)
      : view_(view), x_(x), y_(y), radius_(radius), half_(half), first_(ring * static_cast<std::size_t>(view.cloud.ring.group)),
        size_(std::min(view.cloud.size() - first_, static_cast<std::size_t>(view.cloud.ring.group))) {}

  void paint(svg_writer& out, const std::vector<serve::offload_flow>& flows, double most) const {
    out.path(circle(radius_, x_, y_), "none", {}, " class=\"ring\"");
    for (const auto& f : flows) band(out, f, most);
    const double dot = std::clamp(0.3 * 2 * std::numbers::pi * radius_ / static_cast<double>(size_), 1.2, 5.0);
    for (std::size_t k = 0; k < size_; ++k) {
      const auto& t = view_.history.servers[first_ + k];
      const std::string hover = view_.cloud.servers[first_ + k].name + "\n" + grouped(static_cast<long long>(t.entered)) +
                                " requests entered, " + grouped(static_cast<long long>(t.passed_on)) + " passed on";
      const double a = angle(k);
      out.path(circle(dot, x_ + radius_ * std::cos(a), y_ + radius_ * std::sin(a)), palette::quiet.hex(), hover);
    }
    names(out);
  }

 private:
  [[nodiscard]] static std::string circle(double r, double x, double y) {
    const std::string d = fixed(2 * r), rr = fixed(r);
    return "M" + fixed(x - r) + " " + fixed(y) + "a" + rr + " " + rr + " 0 1 0 " + d + " 0a" + rr + " " + rr + " 0 1 0-" + d + " 0Z";
  }
  /// Clockwise from the top.
  [[nodiscard]] double angle(std::size_t k) const {
    return 2 * std::numbers::pi * (static_cast<double>(k) / static_cast<double>(size_) - 0.25);
  }
  /// From the sender, wide, to the receiver, narrow; bent to the left of the way, so that the way back lies beside it.
  void band(svg_writer& out, const serve::offload_flow& f, double most) const {
    const double a = angle(f.from.index() - first_), b = angle(f.to.index() - first_);
    const double x1 = std::cos(a), y1 = std::sin(a), x2 = std::cos(b), y2 = std::sin(b);  // on a circle of radius 1
    const double length = std::hypot(x2 - x1, y2 - y1), nx = -(y2 - y1) / length, ny = (x2 - x1) / length;
    const double xc = 0.55 * (x1 + x2) / 2 - 0.07 * nx, yc = 0.55 * (y1 + y2) / 2 - 0.07 * ny;
    const double wide = std::max(0.9, 0.11 * radius_ * static_cast<double>(f.requests) / most), narrow = std::max(0.5, 0.3 * wide);
    const auto at = [&](double x, double y, double off) {
      return fixed(x_ + radius_ * x + off * nx, 1) + " " + fixed(y_ + radius_ * y + off * ny, 1);
    };
    const double middle = (wide + narrow) / 4;
    out.path("M" + at(x1, y1, wide / 2) + "Q" + at(xc, yc, middle) + " " + at(x2, y2, narrow / 2) + "L" + at(x2, y2, -narrow / 2) + "Q" +
                 at(xc, yc, -middle) + " " + at(x1, y1, -wide / 2) + "Z",
             "#1f5fa8", view_.name(f.from) + " → " + view_.name(f.to) + "\n" + grouped(static_cast<long long>(f.requests)) + " requests",
             " class=\"flow\"");
  }
  /// As many as there is room for, on the outside.
  void names(svg_writer& out) const {
    const double most = radius_ > 130 ? 24 : 8;
    const auto step = static_cast<std::size_t>(std::ceil(static_cast<double>(size_) / most));
    const auto limit = std::min<std::size_t>(14, static_cast<std::size_t>((half_ - radius_ - 13) / 5.9));
    for (std::size_t k = 0; k == 0 || k + step <= size_; k += step) {
      const double a = angle(k), x = std::cos(a), y = std::sin(a);
      const std::string_view anchor = std::abs(x) < 0.12 ? "middle" : x > 0 ? "start" : "end";
      out.text(x_ + (radius_ + 11) * x, y_ + (radius_ + 11) * y + 4 + 3 * y, fitted(view_.cloud.servers[first_ + k].name, limit),
               {.size = 10.5, .fill = palette::quiet, .anchor = anchor});
    }
  }

  const serving_view& view_;
  double x_, y_, radius_, half_;  ///< half: of the place that it has
  std::size_t first_, size_;
};

/// The flows that are drawn, by ring.
struct ring_flows {
  std::size_t ring = 0;
  std::uint64_t requests = 0;  ///< of all flows of the ring
  std::vector<serve::offload_flow> shown = {};
};

[[nodiscard]] HETPLAN_INLINE std::string ring_circles(const serving_view& view, const std::vector<ring_flows>& rings, double most) {
  const std::size_t columns = std::min<std::size_t>(rings.size(), 4);
  const double radius = rings.size() == 1 ? 190 : rings.size() == 2 ? 150 : 84;
  const double wide = rings.size() == 1 ? 620 : 1180 / static_cast<double>(columns), high = 2 * radius + 86;
  svg_writer out;
  for (std::size_t i = 0; i < rings.size(); ++i) {
    const double left = wide * static_cast<double>(i % columns), top = high * static_cast<double>(i / columns), middle = left + wide / 2;
    if (view.rings() > 1)
      out.text(middle, top + 16,
               "ring " + std::to_string(rings[i].ring) + ": " + grouped(static_cast<long long>(rings[i].requests)) + " passed on",
               {.size = 11.5, .anchor = "middle", .weight = 600});
    ring_circle(view, rings[i].ring, middle, top + 44 + radius, radius, wide / 2).paint(out, rings[i].shown, most);
  }
  const double rows = std::ceil(static_cast<double>(rings.size()) / static_cast<double>(columns));
  const double width = rings.size() == 1 ? wide : 1180;
  return std::move(out).embedded(width, high * rows, "Requests passed on between servers",
                                 std::string(" id=\"flows\"") + (rings.size() == 1 ? " style=\"min-width:0\"" : ""));
}

[[nodiscard]] HETPLAN_INLINE std::string flows_table(const serving_view& view, const std::vector<serve::offload_flow>& largest,
                                                     double all) {
  std::string text =
      "<table id=\"largest-flows\"><thead><tr><th>From</th><th>To</th><th class=\"n\">Requests</th><th>Of all passed on</th></tr></thead>\n"
      "<tbody>\n";
  constexpr std::size_t most_rows = 12;
  for (std::size_t i = 0; i < std::min(most_rows, largest.size()); ++i) {
    const double share = static_cast<double>(largest[i].requests) / all;
    text += "<tr>" + cell(view.name(largest[i].from)) + cell(view.name(largest[i].to)) +
            cell(grouped(static_cast<long long>(largest[i].requests)), " class=\"n\"") + meter(share, false, percent(share)) + "</tr>\n";
  }
  return "<div>" + text + "</tbody></table></div>\n";
}

/// How often requests had been passed on when they ended.
[[nodiscard]] HETPLAN_INLINE std::string offload_bar(const serving_view& view) {
  const auto& counts = view.history.offloads;
  std::uint64_t all = 0;
  for (const auto n : counts) all += n;
  if (all == 0) return {};
  std::string bar = "<div class=\"named\"><span>passed on</span><div class=\"share\">",
              legend = "<div class=\"legend\" id=\"offload-counts\">";
  for (std::size_t h = 0; h < counts.size(); ++h) {
    if (counts[h] == 0) continue;
    const color c =
        mix(palette::category_line_color(h > 0 ? 1 : 0), palette::paper, h > 0 ? std::max(0.0, 0.75 - 0.15 * static_cast<double>(h)) : 0.5);
    const double share = static_cast<double>(counts[h]) / static_cast<double>(all);
    const std::string words = h == 0 ? "never" : h == 1 ? "once" : h == 2 ? "twice" : std::to_string(h) + " times";
    bar += "<i style=\"width:" + fixed(100 * share, 3) + "%;background-color:" + c.hex() + "\"></i>";
    legend += "<span>" + swatch(c) + words + " <b>" + grouped(static_cast<long long>(counts[h])) + "</b> (" + xml_text(percent(share)) +
              ")</span>";
  }
  return bar + "</div></div>\n" + legend + "</div>\n";
}

HETPLAN_INLINE std::string flows_section(const serving_view& view) {
  std::vector<serve::offload_flow> flows = view.history.flows;  // by from, then to
  std::ranges::stable_sort(flows, std::ranges::greater(), &serve::offload_flow::requests);
  std::string text = offload_bar(view);
  if (flows.empty()) return text + "<p class=\"note\">No request was passed on.</p>\n";
  double all = 0;
  for (const auto& f : flows) all += static_cast<double>(f.requests);

  std::vector<ring_flows> rings(view.rings());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    auto& r = rings[view.ring_of(flows[i].from)];
    r.requests += flows[i].requests;
    if (i < most_flows) r.shown.push_back(flows[i]);
  }
  for (std::size_t k = 0; k < rings.size(); ++k) rings[k].ring = k;
  std::ranges::stable_sort(rings, std::ranges::greater(), &ring_flows::requests);
  const auto quiet = std::ranges::find_if(rings, [](const ring_flows& r) { return r.shown.empty(); });
  const auto active = static_cast<std::size_t>(std::ranges::count_if(rings, [](const ring_flows& r) { return r.requests > 0; }));
  rings.erase(quiet, rings.end());
  if (rings.size() > most_rings) rings.resize(most_rings);
  std::ranges::sort(rings, {}, &ring_flows::ring);

  std::size_t drawn = 0;
  double told = 0;
  for (const auto& r : rings) {
    drawn += r.shown.size();
    for (const auto& f : r.shown) told += static_cast<double>(f.requests);
  }
  const std::string picture = ring_circles(view, rings, static_cast<double>(flows.front().requests));
  text += rings.size() == 1 ? "<div class=\"beside\">\n" + picture + flows_table(view, flows, all) + "</div>\n"
                            : scrolling(picture) + flows_table(view, flows, all);
  if (drawn < flows.size()) {
    text += "<p class=\"note\">The " + grouped(static_cast<long long>(drawn)) + " largest of " +
            grouped(static_cast<long long>(flows.size())) + " flows are drawn: " + xml_text(percent(told / all)) +
            " of all that was passed on";
    if (rings.size() < active) text += ", in " + std::to_string(rings.size()) + " of " + std::to_string(active) + " rings";
    text += ".</p>\n";
  }
  return text;
}

}  // namespace hetplan::draw::detail
