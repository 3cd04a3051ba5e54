// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/several_stages.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/hand_out.hpp>

namespace hetplan::partition {

namespace detail {

/// The model in one stage for each device of a list, in which devices come several times.
HETPLAN_INLINE std::vector<plan> cuts_for(const plan& p, const planning_problem& problem, const std::vector<device_id>& devices) {
  const planning_graph& model = problem.model;
  const layer_sequence sequence = sequence_of(model);
  const prefix_table table(model, sequence, problem.cluster, problem.cost, problem.models.memory, p.workload, p.microbatch_size);
  const sequence_cuts cuts(model, sequence);
  std::vector<double> cut_bytes;
  for (std::size_t l = 0; l < model.size(); ++l) {
    const auto [forward, gradient] = cuts.bytes_in(l, model.size());
    cut_bytes.push_back(forward + gradient);
  }
  const auto positions = cut_positions(cut_bytes);
  if (positions.size() < devices.size()) return {};
  // From the last stage to the first: the longest stage or boundary behind a position; then, among the cuts whose longest is no longer,
  // the least sum of what a stage's seconds weigh, and where the next stage begins.
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::size_t count = positions.size(), stages = devices.size();
  std::vector<std::vector<double>> longest(stages, std::vector<double>(count, inf));
  std::vector<std::vector<std::size_t>> next(stages, std::vector<std::size_t>(count, count));
  const auto stage_s = [&](std::size_t first, std::size_t last, std::size_t k) {
    return table.time(positions[first], last < count ? positions[last] : model.size(), devices[k], p.microbatch_size).total_s;
  };
  std::vector<double> s_per_byte(stages, 0);
  for (std::size_t k = 0; k + 1 < stages; ++k) {
    if (devices[k] != devices[k + 1]) s_per_byte[k] = peak_transfer(problem.cluster.network(), devices[k], devices[k + 1]).s_per_byte;
  }
  const auto sent_s = [&](std::size_t last, std::size_t k) {
    const double sent = p.microbatch_size * cut_bytes[positions[last]] * s_per_byte[k];
    return sent > 0 ? sent : 0.0;
  };
  const auto from_the_last = [&](auto&& stage_alone, auto&& try_end) {
    for (std::size_t k = stages; k-- > 0;) {
      for (std::size_t first = k; first + (stages - k) <= count; ++first) {
        if (k + 1 == stages) {
          stage_alone(k, first, stage_s(first, count, k));
          continue;
        }
        for (std::size_t last = first + 1; last < count; ++last) {
          if (!try_end(k, first, last, stage_s(first, last, k))) break;
        }
      }
    }
  };
  from_the_last([&](std::size_t k, std::size_t first, double mine) { longest[k][first] = mine; },
                [&](std::size_t k, std::size_t first, std::size_t last, double mine) {
                  longest[k][first] = std::min(longest[k][first], std::max({mine, longest[k + 1][last], sent_s(last, k)}));
                  return mine < longest[k][first];
                });
  if (!(longest[0][0] < inf)) return {};
  const double most = longest[0][0] * (1 + 1e-9);
  std::vector<plan> all;
  for (const int power : {0, 1, 2}) {  // small stages first; a short way through all of them; even ones
    std::vector<std::vector<double>> sum(stages, std::vector<double>(count, inf));
    const auto weight = [&](double stage) { return power == 0 ? 1 : power == 1 ? stage : stage * stage; };
    from_the_last(
        [&](std::size_t k, std::size_t first, double mine) {
          if (mine <= most) sum[k][first] = weight(mine);
        },
        [&](std::size_t k, std::size_t first, std::size_t last, double mine) {
          if (mine > most) return false;
          const double whole = weight(mine) + sum[k + 1][last];
          if (sent_s(last, k) <= most && whole < sum[k][first]) sum[k][first] = whole, next[k][first] = last;
          return true;
        });
    plan cut_anew = p;
    cut_anew.stages.clear();
    cut_anew.predicted.reset();
    cut_anew.schedule.warmup.clear();
    cut_anew.schedule.transfers.clear();
    for (std::size_t k = 0, first = 0; k < stages; first = next[k][first], ++k) {
      const std::size_t last = k + 1 < stages ? positions[next[k][first]] : model.size();
      cut_anew.stages.push_back({.name = "s" + std::to_string(k),
                                 .layers = sequence.layers_of(positions[first], last),
                                 .devices = {{devices[k], p.microbatch_size}}});
    }
    if (std::ranges::find(all, cut_anew) == all.end()) all.push_back(std::move(cut_anew));
  }
  return all;
}

HETPLAN_INLINE std::vector<device_id> devices_in_line(const plan& p) {
  std::vector<device_id> devices;
  for (const stage& s : p.stages) {
    const bool plain = s.devices.size() == 1 && s.is_plain() && p.size_of(s) == p.microbatch_size;
    if (!plain || p.pipeline_count() > 1 || std::ranges::find(devices, s.devices.front().device) != devices.end()) return {};
    devices.push_back(s.devices.front().device);
  }
  return devices;
}

}  // namespace detail

HETPLAN_INLINE std::vector<plan> in_a_v(const plan& p, const planning_problem& problem) {
  std::vector<device_id> devices = detail::devices_in_line(p);
  if (devices.size() < 2) return {};
  for (std::size_t i = devices.size(); i-- > 0;) devices.push_back(devices[i]);
  return detail::cuts_for(p, problem, devices);
}

HETPLAN_INLINE std::vector<plan> in_turns(const plan& p, const planning_problem& problem, std::size_t chunks) {
  const std::vector<device_id> once = detail::devices_in_line(p);
  if (once.size() < 2 || chunks < 1) return {};
  std::vector<device_id> devices;
  for (std::size_t c = 0; c < chunks; ++c) devices.insert(devices.end(), once.begin(), once.end());
  return detail::cuts_for(p, problem, devices);
}

}  // namespace hetplan::partition
