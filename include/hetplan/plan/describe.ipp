// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/describe.hpp>

#include <algorithm>
#include <numeric>

namespace hetplan {

HETPLAN_INLINE std::string readable(seconds t) {
  const double v = t.value();
  if (v >= 1 || v == 0) return format_line("%.4g s", v);
  return v >= 1e-3 ? format_line("%.4g ms", 1e3 * v) : format_line("%.4g us", 1e6 * v);
}

HETPLAN_INLINE std::string readable(bytes b) {
  const double v = b.value();
  if (v >= 1e9) return format_line("%.4g GB", v / 1e9);
  return v >= 1e6 ? format_line("%.4g MB", v / 1e6) : format_line("%.4g kB", v / 1e3);
}

HETPLAN_INLINE std::string readable(joules j) {
  return j.value() >= 1e4 ? format_line("%.4g kJ", j.value() / 1e3) : format_line("%.4g J", j.value());
}

namespace detail {

/// Returns the samples of the passes if all stages run the same ones, forward and backward; else nothing.
[[nodiscard]] HETPLAN_INLINE std::vector<long long> sizes_of_passes(const plan& p) {
  if (p.stages.empty() || p.stages.front().cuts.empty()) return {};
  const pass_cuts& cuts = p.stages.front().cuts;
  const bool same = std::ranges::all_of(p.stages, [&](const stage& s) { return s.cuts == cuts; });
  if (!same || (cuts.backward != cuts.forward && !cuts.backward.empty())) return {};
  std::vector<long long> sizes;
  for (std::size_t i = 1; i < cuts.forward.size(); ++i) sizes.push_back(cuts.forward[i] - cuts.forward[i - 1]);
  return sizes;
}

}  // namespace detail

HETPLAN_INLINE std::string describe_offload(const stage& s, const planning_graph& model) {
  std::vector<std::pair<std::string_view, std::vector<layer_id>>> tiers;
  for (const offloaded_layer& o : s.offload) {
    auto at = std::find_if(tiers.begin(), tiers.end(), [&](const auto& t) { return t.first == o.tier; });
    if (at == tiers.end()) at = tiers.insert(tiers.end(), {o.tier, {}});
    at->second.push_back(o.layer);
  }
  std::string text;
  for (const auto& [tier, layers] : tiers) {
    bytes held;
    for_each_tensor(model, std::span<const layer_id>(layers), [&](const layer& l) { held += l.weight; });
    text += format_line(", %s of weights (%zu %s) in %s", readable(held).c_str(), layers.size(), layers.size() == 1 ? "layer" : "layers",
                        escaped(tier).c_str());
  }
  return text;
}

HETPLAN_INLINE std::string describe_microbatches(const plan& p) {
  const std::vector<long long> sizes = detail::sizes_of_passes(p);
  const std::size_t count = sizes.empty() ? static_cast<std::size_t>(p.microbatches) : sizes.size();
  std::string text = std::to_string(count) + (count == 1 ? " microbatch of " : " microbatches of ");
  if (sizes.empty()) return text + std::to_string(p.microbatch_size);
  const auto [least, most] = std::ranges::minmax(sizes);
  return text + std::to_string(least) + (least == most ? "" : " to " + std::to_string(most));
}

HETPLAN_INLINE std::string describe(const plan& p, const planning_graph& model, const cluster& c) {
  std::string text =
      format_line("%s on %s, %s: %s, %s%s%s\n", escaped(p.model).c_str(), escaped(p.cluster).c_str(), escaped(p.planner).c_str(),
                  std::string(to_string(p.workload.mode)).c_str(), describe_microbatches(p).c_str(),
                  p.transfers == transfer_mode::block ? ", transfers block" : "",
                  p.sharing_policy == sharing::fair_share ? "" : (", network " + std::string(to_string(p.sharing_policy))).c_str());
  const std::vector<long long> sizes = detail::sizes_of_passes(p);
  // Many single-device stages, as in a placement of operators, are summed up in a line per device.
  constexpr std::size_t most_lines = 40;
  const bool single = std::all_of(p.stages.begin(), p.stages.end(), [](const stage& s) { return s.devices.size() == 1; });
  if (single && p.stages.size() > most_lines) {
    for (const device& d : c.devices()) {
      std::size_t stages = 0, layers = 0;
      for (const stage& s : p.stages) {
        if (s.devices.front().device == d.id) ++stages, layers += s.layers.size();
      }
      if (stages > 0) text += format_line("  %zu stages of %zu layers on %s\n", stages, layers, escaped(d.name).c_str());
    }
  }
  for (const stage& s : p.stages) {
    if (single && p.stages.size() > most_lines) break;
    text += format_line("  %-6s %4zu layers  %s .. %s  on", escaped(s.name).c_str(), s.layers.size(),
                        escaped(model[s.layers.front()].name).c_str(), escaped(model[s.layers.back()].name).c_str());
    for (std::size_t i = 0; i < s.devices.size(); ++i) {
      const assignment& a = s.devices[i];
      if (i > 0 && s.column_of(i) == 0 && s.column_count() > 1) text += " |";
      text += " " + escaped(c[a.device].name);
      if (s.column_count() > 1) {
        text += format_line(" (%d, %d/%d)", a.samples, s.columns[s.column_of(i)], std::accumulate(s.columns.begin(), s.columns.end(), 0));
        continue;
      }
      if (s.devices.size() > 1) text += format_line(" (%d)", a.samples);
      if (a.tensor_parallel > 1) text += format_line(" x%d", a.tensor_parallel);
    }
    if (s.recomputes()) text += s.recompute == recomputation::blocks ? ", recomputes blocks" : ", recomputes";
    const char* shared = s.shard == sharding::fsdp ? "weights, gradients and " : s.shard == sharding::zero2 ? "gradients and " : "";
    if (s.state_shards() > 1) text += format_line(", %soptimizer state in %d parts", shared, s.state_shards());
    text += describe_offload(s, model);
    if (!s.cuts.empty() && sizes.empty())
      text += format_line(", in %zu and %zu passes", s.cuts.forward.size() - 1, std::max<std::size_t>(1, s.cuts.backward.size()) - 1);
    text += "\n";
  }
  if (!sizes.empty()) {
    text += "  samples";
    for (const long long size : sizes) text += " " + std::to_string(size);
    text += "\n";
  }
  return text;
}

HETPLAN_INLINE std::string describe(const ranked_plan& r, const planning_graph& model, const cluster& c) {
  std::string text = describe(r.plan, model, c);
  const evaluation& e = r.evaluation;
  for (const device& d : c.devices()) {
    const device_evaluation& x = e.devices[d.id.index()];
    if (!x.used) continue;
    text += format_line("  %-12s busy %5.1f %%   memory %9s of %9s   energy %9s\n", escaped(d.name).c_str(),
                        e.latency.value() > 0 ? 100 * (x.busy / e.latency) : 0.0, readable(x.peak_memory).c_str(),
                        readable(d.usable_memory()).c_str(), readable(x.energy).c_str());
  }
  text += "  latency " + readable(e.latency);
  if (e.ttft) text += ", first token " + readable(*e.ttft);
  if (e.time_between_tokens) text += ", between tokens " + readable(*e.time_between_tokens);
  if (e.tokens_per_second > 0) text += format_line(", %.4g tokens/s", e.tokens_per_second);
  if (e.prompt_tokens_per_second > 0) text += format_line(", prompt %.4g tokens/s", e.prompt_tokens_per_second);
  text += ", energy " + readable(e.energy());
  text += "\n  ";
  if (e.bound.value() > 0) text += format_line("at most %.3g %% slower than the best plan, ", 100 * readable_gap(e.gap));
  if (e.contention_bound.value() <= 0) {
    text += format_line("%.3g %% slower than this plan's own bound\n", 100 * readable_gap(e.schedule_gap));
  } else if (const double gap = e.latency / e.contention_bound - 1; gap > 1e-9) {
    text += format_line("at most %.3g %% slower than with its transfers in the best order\n", 100 * gap);
  } else {
    text += "its transfers in the best order\n";
  }
  if (e.placement_bound.value() > 0) {
    const double gap = readable_gap(e.latency / e.placement_bound - 1);
    const char* one_by_one = "(the whole batch at once, whole transfers by the same rules)";
    text += gap == 0 ? format_line("  proven: no schedule of single operators is faster %s\n", one_by_one)
                     : format_line("  no schedule of single operators is faster than %s %s: it is at most %.3g %% slower\n",
                                   readable(e.placement_bound).c_str(), one_by_one, 100 * gap);
  }
  return text;
}

HETPLAN_INLINE std::string describe(const infeasibility_proof& proof) {
  std::string text = "  proven of " + escaped(proof.of) + ":\n";
  for (const infeasibility_proof::row& r : proof.rows)
    text +=
        "    " + escaped(r.what) + ": " + format_line("%.6g", r.needed) + " needed, " + format_line("%.6g", r.available) + " available\n";
  if (proof.searched > 0) text += "    all of them were excluded, in " + std::to_string(proof.searched) + " steps\n";
  return text;
}

}  // namespace hetplan
