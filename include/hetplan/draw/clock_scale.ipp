// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/draw/clock_scale.hpp>

#include <algorithm>

namespace hetplan::draw::detail {

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

HETPLAN_INLINE std::string grouped(long long n) {
  std::string text = std::to_string(n);
  for (std::size_t i = text.size(); i > 3 && text[i - 4] != '-';) text.insert(i -= 3, "\xE2\x80\xAF");
  return text;
}

HETPLAN_INLINE std::string short_number(double v) {
  if (v >= 99'999.5) {
    std::string text = engineering(v, "");
    while (text.back() == ' ') text.pop_back();
    return text;
  }
  return v == std::floor(v) || v >= 100 ? grouped(std::llround(v)) : fixed(v, v < 10 ? 2 : 1);
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
