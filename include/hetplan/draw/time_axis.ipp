// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/time_axis.hpp>

namespace hetplan::draw::detail {

HETPLAN_INLINE double round_step(double span, double most) {
  if (!(span > 0) || !std::isfinite(span)) return 1;
  const double rough = span / most, power = std::pow(10.0, std::floor(std::log10(rough)));
  return power * (rough / power <= 1 ? 1 : rough / power <= 2 ? 2 : rough / power <= 5 ? 5 : 10);
}

HETPLAN_INLINE tick_rule::tick_rule(const time_axis& on, time_labels kind) : axis(on), labels(kind) {
  constexpr std::array<double, 15> clock_steps{15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800};
  const bool clock = labels == time_labels::clock;
  // In long runs, labels less than a minute apart have three parts: "1 h 20 min 5 s".
  const double room = !clock ? 90 : axis.latency_s >= 3600 ? 115 : 80, most = std::max(2.0, std::floor(axis.width / room));
  const auto add = [&](double step, double number) {
    const double until = step * number * (1 + 1e-9);
    if (until >= axis.latency_s / largest_zoom && (steps.empty() || steps.back().first < until)) steps.emplace_back(until, step);
    return until;
  };
  const double decimal_until = clock ? std::min(axis.latency_s, 120 * (1 - 1e-9)) : axis.latency_s;
  for (double until = 0, seen = axis.latency_s / largest_zoom; until < decimal_until && seen < decimal_until; seen = until * (1 + 1e-6))
    until = add(round_step(seen, most), most);
  if (!clock || axis.latency_s < 120) return;
  if (!steps.empty()) steps.back().first = std::min(steps.back().first, decimal_until);
  double until = 0, step = 0;
  for (std::size_t i = 0; until < axis.latency_s; ++i) {
    step = i < clock_steps.size() ? clock_steps[i] : 2 * step;
    until = add(step, axis.width / (step < 60 ? room : 80));
  }
}

HETPLAN_INLINE double tick_rule::step_s(double span_s) const {
  for (const auto& [until_s, step] : steps) {
    if (span_s <= until_s) return step;
  }
  return steps.empty() ? 1 : steps.back().second;  // no step covers an infinite span
}

HETPLAN_INLINE std::string tick_rule::label(double at_s, double span_s) const {
  if (labels == time_labels::seconds) {
    const auto unit = std::ranges::find_if(units_of_time, [&](const unit_of_time& u) { return u.seconds <= 1 && span_s >= u.seconds; });
    const unit_of_time& fits = unit == units_of_time.end() ? units_of_time.back() : *unit;
    return fixed(at_s / fits.seconds, 6) + " " + std::string(fits.name);
  }
  std::string text;
  for (const unit_of_time& u : units_of_time) {
    if (at_s < u.seconds * (1 - 1e-9)) continue;
    const double n = u.seconds > 1 ? std::floor(at_s / u.seconds + 1e-9) : at_s / u.seconds;
    text += (text.empty() ? "" : " ") + fixed(n, 6) + " " + std::string(u.name);
    at_s = u.seconds > 1 ? at_s - n * u.seconds : 0;
  }
  return text.empty() ? "0" : text;
}

HETPLAN_INLINE void tick_rule::paint(svg_writer& out, double top, double bottom) const {
  const double step = step_s(axis.latency_s);
  for (int i = 0; i * step <= axis.latency_s * (1 + 1e-9) && i < 1000; ++i) {
    const double x = axis.at(i * step);
    out.line(x, top, x, bottom + 4, palette::grid);
    out.text(x, bottom + 20, label(i * step, axis.latency_s), {.fill = palette::quiet, .anchor = "middle"});
  }
}

HETPLAN_INLINE void paint_time_axis(svg_writer& out, const tick_rule& rule, double top, double bottom) {
  out.open_group(" class=\"ticks\"" + svg_writer::attribute("data-top", top) + svg_writer::attribute("data-bottom", bottom));
  rule.paint(out, top, bottom);
  out.close_group();
  out.line(rule.axis.left, bottom + 4, rule.axis.left + rule.axis.width, bottom + 4, palette::frame);
}

HETPLAN_INLINE std::string step_line(const std::vector<level>& levels, const time_axis& axis, row_box box, double full) {
  std::string d;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::string y = fixed(box.level(levels[i].value / full), 1);
    const double from = axis.at(levels[i].from_s);
    d += i > 0 && levels[i - 1].to_s == levels[i].from_s ? "V" + y : "M" + fixed(from) + " " + y;
    d += "H" + fixed(std::max(from + 0.8, axis.at(levels[i].to_s)));
  }
  return d;
}

HETPLAN_INLINE std::string step_area(const std::vector<level>& levels, const time_axis& axis, row_box box, double full) {
  std::string d;
  const std::string bottom = fixed(box.top + box.height, 1);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool begins = i == 0 || levels[i - 1].to_s != levels[i].from_s;
    if (begins) d += (i > 0 ? "V" + bottom + "Z" : "") + "M" + fixed(axis.at(levels[i].from_s)) + " " + bottom;
    d += "V" + fixed(box.level(levels[i].value / full), 1) + "H" + fixed(axis.at(levels[i].to_s));
  }
  return d.empty() ? d : d + "V" + bottom + "Z";
}

HETPLAN_INLINE std::string clock_text(double s) {
  if (!(s >= 120)) return s >= 1 || s <= 0 ? fixed(s, s < 10 ? 2 : 1) + " s" : engineering(s, "s");
  const auto parts = [](double whole, double each, const char* large, const char* small) {
    const double n = std::floor(whole / each), rest = whole - n * each;
    return fixed(n, 0) + " " + large + (rest > 0 ? " " + fixed(rest, 0) + " " + small : "");
  };
  return s < 3599.5 ? parts(std::round(s), 60, "min", "s") : parts(std::round(s / 60), 60, "h", "min");
}

HETPLAN_INLINE value_band::value_band(const time_axis& axis, std::size_t bins)
    : axis_(axis), least_(bins, infinite), most_(bins, -infinite), sum_(bins, 0), weight_(bins, 0) {}

HETPLAN_INLINE void value_band::add(double start_s, double end_s, double value) {
  for (std::size_t b = first_bin(start_s); b <= last_bin(start_s, end_s); ++b) {
    least_[b] = std::min(least_[b], value);
    most_[b] = std::max(most_[b], value);
    const double part_s = axis_.latency_s / bins(), from = part_s * static_cast<double>(b);
    const double length = std::max(0.0, std::min(end_s, from + part_s) - std::max(start_s, from));
    sum_[b] += value * length;
    weight_[b] += length;
  }
}

HETPLAN_INLINE std::size_t value_band::first_bin(double t) const {
  return static_cast<std::size_t>(std::clamp(std::floor(t / axis_.latency_s * bins()), 0.0, bins() - 1));
}

HETPLAN_INLINE std::size_t value_band::last_bin(double start_s, double end_s) const {
  const double last = std::clamp(std::ceil(end_s / axis_.latency_s * bins()) - 1, 0.0, bins() - 1);
  return std::max(first_bin(start_s), static_cast<std::size_t>(last));
}

HETPLAN_INLINE std::string value_band::range(row_box box, double full) const {
  std::vector<double> top(most_.size()), bottom(most_.size());
  for (std::size_t b = 0; b < most_.size(); ++b) {
    if (!has(b)) continue;
    double least = least_[b], most = most_[b];
    if (b > 0 && has(b - 1)) least = std::min(least, most_[b - 1]), most = std::max(most, least_[b - 1]);
    top[b] = box.level(most / full);
    bottom[b] = box.level(least / full);
  }
  return outline(top, bottom);
}

HETPLAN_INLINE std::string value_band::area(row_box box, double full) const {
  std::vector<double> top(most_.size()), bottom(most_.size(), box.top + box.height);
  for (std::size_t b = 0; b < most_.size(); ++b) top[b] = box.level(std::max(0.0, most_[b]) / full);
  return outline(top, bottom);
}

HETPLAN_INLINE std::string value_band::pen::step(const char* letter, double& from, double to) {
  if (from == to) return {};
  const std::string d = letter + fixed(to - from, 1);
  from = to;
  return d;
}

HETPLAN_INLINE std::string value_band::outline(const std::vector<double>& top, const std::vector<double>& bottom) const {
  const auto edge = [&](std::size_t b) { return axis_.left + axis_.width * static_cast<double>(b) / bins(); };
  pen p;
  for (std::size_t b = 0; b < most_.size();) {
    if (!has(b)) {
      ++b;
      continue;
    }
    std::size_t end = b;
    p.move(edge(b), bottom[b]);
    for (; end < most_.size() && has(end); ++end) {
      if (end > b && fixed(top[end], 1) == fixed(top[end - 1], 1)) continue;
      p.across(edge(end));
      p.up_or_down(top[end]);
    }
    p.across(edge(end));
    for (std::size_t k = end; k-- > b;) {
      if (k + 1 < end && fixed(bottom[k], 1) == fixed(bottom[k + 1], 1)) continue;
      p.across(edge(k + 1));
      p.up_or_down(bottom[k]);
    }
    p.close();
    b = end;
  }
  return std::move(p).text();
}

}  // namespace hetplan::draw::detail
