// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/exchange/zeus_power.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/exchange/foreign_model.hpp>
#include <hetplan/io/json_document.hpp>

namespace hetplan::exchange {

HETPLAN_INLINE std::vector<zeus_measurement> parse_zeus_power(std::string_view text, const std::string& file) {
  static constexpr std::array<std::string_view, 7> columns{"dataset",     "network",        "optimizer",    "batch_size",
                                                           "power_limit", "time_per_epoch", "average_power"};
  auto lines = foreign_table(text, file, columns, columns.size());
  const auto above_zero = [&](std::size_t column, const char* expected) {
    const double v = lines.number(column, expected);
    if (v == 0) lines.fail(column, expected);
    return v;
  };
  std::vector<zeus_measurement> all;
  while (lines.next()) {
    const auto batch = lines.count(3, 1);
    if (batch > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) lines.fail(3, "a batch size below 2^31");
    all.push_back({.dataset = std::string(lines.field(0)),
                   .network = std::string(lines.field(1)),
                   .optimizer = std::string(lines.field(2)),
                   .batch = static_cast<int>(batch),
                   .power_limit = watts(above_zero(4, "W > 0")),
                   .epoch = seconds(above_zero(5, "seconds > 0")),
                   .average_power = watts(above_zero(6, "W > 0"))});
  }
  if (all.empty()) io::detail::fail_file(file, "expected a row for each measurement under the header, got none");
  return all;
}

HETPLAN_INLINE std::vector<zeus_measurement> read_zeus_power(const std::string& path) {
  return parse_zeus_power(io::read_text(path), path);
}

HETPLAN_INLINE serve::variant_times zeus_times(std::span<const zeus_measurement> rows, const zeus_selection& meant) {
  const auto refuse = [](const std::string& what) { throw invalid_input("zeus_times: " + what); };
  if (!std::isfinite(meant.samples_per_epoch) || meant.samples_per_epoch < 1)
    refuse("samples_per_epoch = " + to_text(meant.samples_per_epoch) + "; expected a finite number >= 1");
  if (!(meant.forward_share > 0 && meant.forward_share <= 1))
    refuse("forward_share = " + to_text(meant.forward_share) + "; expected a share > 0, at most 1");
  std::map<int, const zeus_measurement*> by_batch;
  for (const auto& r : rows) {
    const bool wanted = r.network == meant.network && r.power_limit == meant.power_limit &&
                        (meant.dataset.empty() || r.dataset == meant.dataset) &&
                        (meant.optimizer.empty() || r.optimizer == meant.optimizer);
    if (!wanted) continue;
    const auto [known, fresh] = by_batch.emplace(r.batch, &r);
    if (!fresh) {
      const auto& other = *known->second;
      refuse("expected one row of " + io::in_quotes(r.network) + " at a batch of " + std::to_string(r.batch) + ", got those of " +
             io::in_quotes(other.dataset) + " by " + io::in_quotes(other.optimizer) + " and of " + io::in_quotes(r.dataset) + " by " +
             io::in_quotes(r.optimizer));
    }
  }
  if (by_batch.empty())
    refuse("expected rows of " + io::in_quotes(meant.network) + " at " + to_text(meant.power_limit.value()) + " W, got none");

  serve::batch_curve pass;
  double most_s = 0;
  for (const auto& [batch, row] : by_batch) {
    const double iterations = std::ceil(meant.samples_per_epoch / batch);
    most_s = std::max(most_s, meant.forward_share * row->epoch.value() / iterations);
    if (pass.batch.empty() && batch > 1) pass = {{1}, {most_s}};
    pass.batch.push_back(batch);
    pass.seconds_at.push_back(most_s);
  }
  return {.pass = std::move(pass)};
}

}  // namespace hetplan::exchange
