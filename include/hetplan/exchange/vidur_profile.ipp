// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/vidur_profile.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

namespace detail {

class mean_time {
 public:
  void add(double time_s) {
    sum_s_ += time_s;
    count_ += 1;
  }
  [[nodiscard]] double value() const { return sum_s_ / count_; }

 private:
  double sum_s_ = 0, count_ = 0;
};

[[nodiscard]] HETPLAN_INLINE int small_count(const io::csv_lines& lines, std::size_t column) {
  const auto v = lines.count(column, 1);
  if (v > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) lines.fail(column, "a whole number below 2^31");
  return static_cast<int>(v);
}

/// Checks that columns describing the whole file are equal in all rows.
class same_in_all_rows {
 public:
  void check(const io::csv_lines& lines, std::size_t column) {
    const auto [known, fresh] = first_.emplace(column, lines.field(column));
    if (!fresh && known->second != lines.field(column)) lines.fail(column, io::in_quotes(known->second) + " as in the first row");
  }

 private:
  std::map<std::size_t, std::string> first_;
};

[[nodiscard]] HETPLAN_INLINE double time_between(const std::map<double, double>& times, double size) {
  const auto above = times.lower_bound(size);
  if (above == times.begin() || above->first == size) return above->second;
  const auto below = std::prev(above);
  return below->second + (size - below->first) / (above->first - below->first) * (above->second - below->second);
}

/// The line base + slope x with the least squared relative error.
struct fitted_line {
  double base = 0, slope = 0;
};
[[nodiscard]] HETPLAN_INLINE fitted_line fit_line(const std::vector<int>& x, const std::vector<double>& y) {
  double weights = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  const auto weight = [&](std::size_t i) { return 1 / (y[i] * y[i]); };
  for (std::size_t i = 0; i < x.size(); ++i) {
    weights += weight(i);
    mean_x += weight(i) * x[i];
    mean_y += weight(i) * y[i];
  }
  mean_x /= weights;
  mean_y /= weights;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += weight(i) * (x[i] - mean_x) * (x[i] - mean_x);
    xy += weight(i) * (x[i] - mean_x) * (y[i] - mean_y);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {mean_y - slope * mean_x, slope};
}

}  // namespace detail

HETPLAN_INLINE vidur_compute parse_vidur_compute(std::string_view text, const std::string& file) {
  // Required columns, then one optional column.
  static constexpr std::array<std::string_view, 17> columns{"num_tokens",
                                                            "num_tensor_parallel_workers",
                                                            "n_embd",
                                                            "n_head",
                                                            "n_kv_head",
                                                            "n_expanded_embd",
                                                            "vocab_size",
                                                            "use_gated_mlp",
                                                            "time_stats.input_layernorm.median",
                                                            "time_stats.attn_pre_proj.median",
                                                            "time_stats.attn_rope.median",
                                                            "time_stats.attn_post_proj.median",
                                                            "time_stats.mlp_up_proj.median",
                                                            "time_stats.mlp_act.median",
                                                            "time_stats.mlp_down_proj.median",
                                                            "time_stats.add.median",
                                                            "time_stats.post_attention_layernorm.median"};
  constexpr std::size_t first_part = 8;
  auto lines = foreign_table(text, file, columns, columns.size() - 1);
  vidur_compute read{.file = file, .layer = {}};
  std::map<int, std::map<int, detail::mean_time>> measured;  // by degree, then tokens
  detail::same_in_all_rows model;
  while (lines.next()) {
    for (std::size_t c = 2; c < first_part; ++c) model.check(lines, c);
    read.hidden = detail::small_count(lines, 2);
    double sum_ms = 0;
    for (std::size_t c = first_part; c < columns.size(); ++c) {
      if (c + 1 < columns.size() || lines.has(c)) sum_ms += lines.number(c, "ms >= 0");
    }
    if (!std::isfinite(sum_ms) || sum_ms <= 0) lines.fail(0, "parts of a layer that take time together");
    measured[detail::small_count(lines, 1)][detail::small_count(lines, 0)].add(sum_ms / 1000);
  }
  if (measured.empty()) io::detail::fail_file(file, "expected a row for each number of tokens under the header, got none");
  for (const auto& [degree, times] : measured) {
    auto& curve = read.layer[degree];
    for (const auto& [tokens, time] : times) {
      curve.batch.push_back(tokens);
      curve.seconds_at.push_back(time.value());
    }
  }
  return read;
}

HETPLAN_INLINE vidur_compute read_vidur_compute(const std::string& path) { return parse_vidur_compute(io::read_text(path), path); }

HETPLAN_INLINE vidur_network parse_vidur_network(std::string_view text, const std::string& file) {
  static constexpr std::array<std::string_view, 6> columns{
      "num_workers", "devices_per_node", "size", "collective", "time_stats.all_reduce.median", "time_stats.send_recv.median"};
  auto lines = foreign_table(text, file, columns, 4);
  vidur_network read{.file = file, .collective = {}, .times = {}};
  std::map<std::pair<int, int>, std::map<double, detail::mean_time>> measured;
  detail::same_in_all_rows whole;
  while (lines.next()) {
    whole.check(lines, 3);
    read.collective = lines.field(3);
    const std::size_t time = read.collective == "all_reduce" ? 4 : 5;
    if (time == 5 && read.collective != "send_recv") lines.fail(3, "all_reduce or send_recv");
    const double time_ms = lines.number(time, "ms >= 0");
    measured[{detail::small_count(lines, 0), detail::small_count(lines, 1)}][lines.number(2, "bytes >= 0")].add(time_ms / 1000);
  }
  if (measured.empty()) io::detail::fail_file(file, "expected a row for each size under the header, got none");
  for (const auto& [workers, times] : measured) {
    for (const auto& [size, time] : times) read.times[workers].emplace(size, time.value());
  }
  return read;
}

HETPLAN_INLINE vidur_network read_vidur_network(const std::string& path) { return parse_vidur_network(io::read_text(path), path); }

HETPLAN_INLINE serve::variant_times vidur_times(const vidur_compute& compute, const vidur_setting& setting,
                                                const vidur_network* all_reduce) {
  const auto refuse = [&](const std::string& what) { io::detail::fail_file(compute.file, what); };
  if (setting.layers < 1 || setting.tensor_parallel < 1 || setting.largest_batch < 1)
    refuse("expected layers, tensor_parallel and largest_batch of at least 1, got " + std::to_string(setting.layers) + ", " +
           std::to_string(setting.tensor_parallel) + " and " + std::to_string(setting.largest_batch));
  const auto of_degree = compute.layer.find(setting.tensor_parallel);
  if (of_degree == compute.layer.end())
    refuse("expected a degree of tensor parallelism that was measured, got " + std::to_string(setting.tensor_parallel));
  const auto& layer = of_degree->second;
  if (layer.batch.front() != 1 || layer.batch.back() < setting.largest_batch)
    refuse("expected times of 1 to " + std::to_string(setting.largest_batch) + " tokens, got " + std::to_string(layer.batch.front()) +
           " to " + std::to_string(layer.batch.back()));

  const std::map<double, double>* reduced = nullptr;
  if (setting.tensor_parallel > 1) {
    const std::string wanted = "all-reduces of " + std::to_string(setting.tensor_parallel) + " workers in one node";
    if (all_reduce == nullptr || all_reduce->collective != "all_reduce") refuse("expected " + wanted + " beside it, got none");
    const auto found = all_reduce->times.find({setting.tensor_parallel, setting.tensor_parallel});
    const double most = 2.0 * compute.hidden * layer.batch.back();
    if (found == all_reduce->times.end() || found->second.rbegin()->first < most)
      io::detail::fail_file(all_reduce->file, "expected " + wanted + " up to " + to_text(most) + " bytes, got " +
                                                  (found == all_reduce->times.end() ? "none" : to_text(found->second.rbegin()->first)));
    reduced = &found->second;
  }

  std::vector<double> time_s;
  for (std::size_t i = 0; i < layer.batch.size(); ++i) {
    const double reduce_s = reduced == nullptr ? 0 : 2 * detail::time_between(*reduced, 2.0 * compute.hidden * layer.batch[i]);
    time_s.push_back(setting.layers * (layer.seconds_at[i] + reduce_s));
  }
  const auto line = detail::fit_line(layer.batch, time_s);
  if (!(line.base > 0) || !(line.slope >= 0))
    refuse("expected times near to a line that ascends from above 0, got " + to_text(line.base) + " s and " + to_text(line.slope) +
           " s a token");

  const serve::batch_curve exact{layer.batch, time_s};
  serve::variant_times t{.pass = {{1}, {line.base}}, .per_token_s = line.slope};
  if (setting.largest_batch > 1) t.pass = {{1, setting.largest_batch}, {line.base, line.base}};
  const auto step_at = [&](int b) {
    t.step.batch.push_back(b);
    t.step.seconds_at.push_back(std::max(exact.at(b), t.step.seconds_at.empty() ? 0 : t.step.seconds_at.back()));
  };
  for (const int b : layer.batch) {
    if (b < setting.largest_batch) step_at(b);
  }
  step_at(setting.largest_batch);
  return t;
}

}  // namespace hetplan::exchange
