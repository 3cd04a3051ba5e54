// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/plan/validate.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/plan/expansion_size.hpp>
#include <hetplan/plan/orders.hpp>

namespace hetplan {

HETPLAN_INLINE std::optional<device_id> first_blocked_device(const plan& p, const stage_graph& g, std::size_t devices) {
  const auto orders = device_orders(p, g, devices);
  // The devices of a stage finish separately; a consumer waits for those whose samples overlap its own.
  struct progress {
    std::vector<std::vector<char>> forward, backward;  // [device position][pass]
  };
  std::vector<progress> done(p.stages.size());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const auto none = [&](phase what) {
      return std::vector<std::vector<char>>(p.stages[s].devices.size(),
                                            std::vector<char>(static_cast<std::size_t>(g.nodes[s].passes(what)), 0));
    };
    done[s] = {none(phase::forward), none(phase::backward_input)};
  }
  const auto position_of = [&](stage_id s, std::size_t d) {
    std::size_t i = 0;
    while (p[s].devices[i].device.index() != d) ++i;
    return i;
  };
  const auto interval = [&](stage_id s, std::size_t position, phase what, int m) {
    const auto [begin, end] = g[s].samples(what, m);
    long long offset = 0;
    for (std::size_t row = 0; row < p[s].row_of(position); ++row) offset += p[s].row(row).samples;
    const long long first = begin + offset * (end - begin) / g[s].microbatch_size;
    return std::pair(first, first + p[s].devices[position].samples * (end - begin) / g[s].microbatch_size);
  };
  const auto covered = [&](stage_id producer, phase what, std::pair<long long, long long> need) {
    const auto& finished = what == phase::forward ? done[producer.index()].forward : done[producer.index()].backward;
    const stage_graph::node& node = g[producer];
    for (int m = node.pass_of(what, need.first); m < node.passes(what) && node.samples(what, m).first < need.second; ++m) {
      for (std::size_t i = 0; i < finished.size(); ++i) {
        const auto have = interval(producer, i, what, m);
        if (have.first < need.second && need.first < have.second && !finished[i][static_cast<std::size_t>(m)]) return false;
      }
    }
    return true;
  };
  const auto ready = [&](const order_entry& e, std::size_t position) {
    const auto need = interval(e.stage, position, e.what == phase::forward ? phase::forward : phase::backward_input, e.microbatch);
    if (e.what == phase::forward) {
      for (const std::size_t in : g[e.stage].in) {
        if (!covered(g.edges[in].from, phase::forward, need)) return false;
      }
    } else if (e.what == phase::backward_input) {
      if (!covered(e.stage, phase::forward, need)) return false;  // in a grid: on its whole row
      for (const std::size_t out : g[e.stage].out) {
        if (g.edges[out].backward_cut.value() == 0) continue;
        if (!covered(g.edges[out].to, phase::backward_input, need)) return false;
      }
    }
    return true;
  };

  std::vector<std::size_t> next(devices, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < devices; ++d) {
      while (next[d] < orders[d].size()) {
        const order_entry& e = orders[d][next[d]];
        const std::size_t position = position_of(e.stage, d);
        if (!ready(e, position)) break;
        const auto m = static_cast<std::size_t>(e.microbatch);
        if (e.what == phase::forward) done[e.stage.index()].forward[position][m] = 1;
        if (e.what == phase::backward_input) done[e.stage.index()].backward[position][m] = 1;
        ++next[d];
        moved = true;
      }
    }
  }
  for (std::size_t d = 0; d < devices; ++d) {
    if (next[d] < orders[d].size()) return device_id(d);
  }
  return std::nullopt;
}

namespace detail {

class plan_validator {
 public:
  plan_validator(const plan& p, const planning_graph& model, const cluster& c) : p_(p), model_(model), cluster_(c) {}

  /// Returns the first broken rule in reading order, or nothing.
  [[nodiscard]] std::optional<violation> run() {
    try {
      check_scalars();
      check_pipelines();
      for (std::size_t s = 0; s < p_.stages.size(); ++s) check_stage(s);
      check_cover();
      const bool all_plain = std::all_of(p_.stages.begin(), p_.stages.end(), [](const stage& st) { return st.is_plain(); });
      if (!all_plain) check_own_tensors();
      check_tiers_fit();
      graph_ = make_stage_graph(p_, model_);
      check_graph(graph_);
      check_schedule(graph_);
      check_transfers(graph_);
    } catch (const violation& v) {
      return v;
    }
    return std::nullopt;
  }
  /// Returns the stage graph of a valid plan.
  [[nodiscard]] stage_graph graph() && { return std::move(graph_); }

 private:
  static void fail(std::string where, std::string what) { throw violation{std::move(where), std::move(what)}; }
  static void refuse(const std::string& where, const std::string& expected, const std::string& got) {
    fail(where, "expected " + expected + ", got " + got);
  }
  [[nodiscard]] const std::string& device_name(device_id d) const { return cluster_[d].name; }

  /// Returns the JSON pointer "/stages/3", or "/pipelines/1/stages/0" if there are several pipelines.
  [[nodiscard]] std::string at(std::size_t s) const {
    if (p_.pipelines.empty()) return "/stages/" + std::to_string(s);
    std::size_t first = s;
    while (first > 0 && p_.stages[first - 1].pipeline == p_.stages[s].pipeline) --first;
    return "/pipelines/" + std::to_string(p_.stages[s].pipeline) + "/stages/" + std::to_string(s - first);
  }

  /// Requires a value of an enumeration that begins with 0 and ends with `last`; casts make others.
  template <class E>
  static void require_named(const std::string& where, E given, E last) {
    if (!(static_cast<int>(given) >= 0 && given <= last))
      refuse(where, "a value with a name (0 to " + std::to_string(static_cast<int>(last)) + ")", std::to_string(static_cast<int>(given)));
  }

  void check_scalars() const {
    require_named("/workload/mode", p_.workload.mode, mode::generation);
    require_named("/schedule/kind", p_.schedule.kind, schedule_kind::explicit_orders);
    require_named("/network", p_.sharing_policy, sharing::unlimited);
    require_named("/transfers", p_.transfers, transfer_mode::block);
    require_named("/copies", p_.copies, transfer_copies::per_device);
    if (!(p_.microbatch_size >= 1)) refuse("/microbatch_size", "an integer >= 1", std::to_string(p_.microbatch_size));
    if (!(p_.microbatches >= 1)) refuse("/microbatches", "an integer >= 1", std::to_string(p_.microbatches));
    if (!(std::isfinite(p_.workload.optimizer_factor) && p_.workload.optimizer_factor >= 0))
      refuse("/workload/optimizer_factor", "a finite number >= 0", to_text(p_.workload.optimizer_factor));
    if (!(p_.workload.context >= 0)) refuse("/workload/context", "an integer >= 0", std::to_string(p_.workload.context));
    if (p_.workload.mode == mode::generation) {
      const workload& w = p_.workload;
      const int prompt = w.prompt_tokens(model_.tokens_per_sample());
      if (!(w.tokens >= 1)) refuse("/workload/tokens", "an integer >= 1", std::to_string(w.tokens));
      if (!(prompt >= 0)) refuse("/workload/prompt", "an integer >= 0", std::to_string(prompt));
      if (!(w.prompt_chunk >= 0)) refuse("/workload/prompt_chunk", "an integer >= 0", std::to_string(w.prompt_chunk));
      if (!(w.chunks_in_flight >= 0)) refuse("/workload/chunks_in_flight", "an integer >= 0", std::to_string(w.chunks_in_flight));
      const double length = static_cast<double>(w.context) + prompt + w.all_tokens();
      if (!(length <= most_tokens))
        refuse("/workload/tokens", "context, prompt and tokens of at most " + to_text(most_tokens), to_text(length));
      if (const auto fault = mode_fault(model_, w)) fail("/workload", *fault);
    }
    if (p_.stages.empty()) refuse("/stages", "at least one stage", "none");
    if (p_.parameter_server) {
      if (!(p_.parameter_server->valid() && p_.parameter_server->index() < cluster_.size()))
        refuse("/sync/parameter_server", "a device of the cluster", "id " + std::to_string(p_.parameter_server->value));
    }
  }

  void check_pipelines() const {
    long long total = 0;
    for (std::size_t i = 0; i < p_.pipelines.size(); ++i) {
      const std::string where = "/pipelines/" + std::to_string(i) + "/samples";
      if (!(p_.pipelines[i] >= 1)) refuse(where, "an integer >= 1", std::to_string(p_.pipelines[i]));
      if (!(p_.pipelines[i] <= p_.batch() - total))
        refuse(where, "at most the " + std::to_string(p_.batch() - total) + " samples that are left", std::to_string(p_.pipelines[i]));
      total += p_.pipelines[i];
    }
    if (!p_.pipelines.empty()) {
      if (!(total == p_.batch()))
        refuse("/pipelines", "samples that sum to microbatch_size * microbatches = " + std::to_string(p_.batch()), std::to_string(total));
    }
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      const int mine = p_.stages[s].pipeline, before = s == 0 ? 0 : p_.stages[s - 1].pipeline;
      if (!(mine >= before && mine >= 0 && static_cast<std::size_t>(mine) < p_.pipeline_count()))
        refuse("/stages/" + std::to_string(s), "pipelines in ascending order", "pipeline " + std::to_string(mine));
    }
  }

  void check_stage(std::size_t s) const {
    const stage& st = p_.stages[s];
    if (!(st.microbatch_size >= 0)) refuse(at(s) + "/microbatch_size", "an integer >= 1", std::to_string(st.microbatch_size));
    const long long samples = p_.pipeline_samples(st.pipeline);
    const int size = p_.size_of(st);
    if (!(samples % size == 0))
      refuse(at(s) + "/microbatch_size", "a size that divides the pipeline's " + std::to_string(samples) + " samples",
             std::to_string(size));
    if (!(samples / size <= std::numeric_limits<int>::max()))
      refuse(at(s) + "/microbatch_size", "a size that gives at most 2147483647 microbatches", std::to_string(size));
    const bool training = p_.workload.mode == mode::training;
    require_named(at(s) + "/recompute", st.recompute, recomputation::stage);
    if (!training && st.recomputes())
      refuse(at(s) + "/recompute", "false outside training", st.recompute == recomputation::blocks ? "\"blocks\"" : "true");
    if (!(training || st.shard != sharding::state)) refuse(at(s) + "/shard_state", "false outside training", "true");
    if (st.layers.empty()) refuse(at(s) + "/layers", "at least one layer", "none");
    if (st.devices.empty()) refuse(at(s) + "/devices", "at least one device", "none");
    if (!st.columns.empty()) check_grid(s);
    check_shard(s);
    if (!st.cuts.empty()) check_cuts(s, samples, size);
    long long sum = 0;
    for (std::size_t i = 0; i < st.devices.size(); ++i) {
      const assignment& a = st.devices[i];
      const std::string where = at(s) + "/devices/" + std::to_string(i);
      if (!(a.device.valid() && a.device.index() < cluster_.size()))
        refuse(where, "a device of the cluster", "id " + std::to_string(a.device.value));
      for (std::size_t j = 0; j < i; ++j) {
        if (st.devices[j].device == a.device) fail(where, "device \"" + device_name(a.device) + "\" appears twice in the stage");
      }
      if (!(a.samples >= 1)) refuse(where + "/samples", "an integer >= 1", std::to_string(a.samples));
      if (st.column_of(i) == 0) sum += a.samples;
      check_tensor_parallel(st, a, where + "/tensor_parallel");
    }
    check_offload(s);
    if (!(sum == size) && !st.columns.empty())
      refuse(at(s) + "/grid/rows", "samples that sum to the microbatch size " + std::to_string(size), std::to_string(sum));
    if (!(sum == size)) refuse(at(s) + "/devices", "samples that sum to the microbatch size " + std::to_string(size), std::to_string(sum));
  }

  void check_offload(std::size_t s) const {
    const stage& st = p_.stages[s];
    const bool in_units = st.devices.size() > 1 && (st.shard == sharding::zero2 || st.shard == sharding::fsdp);
    if (in_units && !st.offload.empty())
      fail(at(s) + "/offload", "stage \"" + st.name + "\" is under " + std::string(name_of(st.shard)) +
                                   ", which moves its state; expected weights in the devices' memory");
    if (p_.transfers == transfer_mode::block && reads_over_network(st, cluster_))
      fail("/transfers", "stage \"" + st.name + "\" reads weights from a tier with a resource; expected transfers that overlap");
    for (std::size_t i = 0; i < st.offload.size(); ++i) {
      const auto& [l, tier] = st.offload[i];
      if (!l.valid() || l.index() >= model_.size() || std::find(st.layers.begin(), st.layers.end(), l) == st.layers.end())
        refuse(at(s) + "/offload", "layers of the stage",
               l.valid() && l.index() < model_.size() ? "\"" + model_[l].name + "\"" : "id " + std::to_string(l.value));
      const std::string where = at(s) + "/offload/" + model_[l].name;
      if (i > 0 && l <= st.offload[i - 1].layer) fail(where, "expected each layer once, in ascending order");
      for (const assignment& a : st.devices) {
        const device& d = cluster_[a.device];
        if (d.find_tier(tier) != nullptr) continue;
        std::string known;
        for (const memory_tier& t : d.tiers) known += (known.empty() ? "\"" : ", \"") + t.name + "\"";
        refuse(where, "a tier of device \"" + d.name + "\" (" + (known.empty() ? "it has none" : known) + ")", "\"" + tier + "\"");
      }
      if (p_.workload.mode == mode::training && model_[l].trainable && model_[l].weight.value() > 0)
        fail(where, "layer \"" + model_[l].name + "\" is trained; expected its weights in the devices' memory");
    }
  }

  /// Checks that the weights in each tier fit there.
  void check_tiers_fit() const {
    if (std::all_of(p_.stages.begin(), p_.stages.end(), [](const stage& st) { return st.offload.empty(); })) return;
    const auto held = tier_bytes(p_, model_, cluster_);
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      for (const assignment& a : p_.stages[s].devices) {
        const device& d = cluster_[a.device];
        for (std::size_t t = 0; t < d.tiers.size() && !p_.stages[s].offload.empty(); ++t) {
          if (at_most(held[d.id.index()][t], d.tiers[t].memory.value())) continue;
          refuse(at(s) + "/offload",
                 "weights that fit into tier \"" + d.tiers[t].name + "\" of device \"" + d.name + "\", " +
                     to_text(d.tiers[t].memory.value()) + " bytes",
                 to_text(held[d.id.index()][t]));
        }
      }
    }
  }

  void check_grid(std::size_t s) const {
    const stage& st = p_.stages[s];
    const std::string where = at(s) + "/grid";
    long long all = 0;
    for (std::size_t c = 0; c < st.columns.size(); ++c) {
      if (!(st.columns[c] >= 1)) refuse(where + "/columns/" + std::to_string(c), "an integer >= 1", std::to_string(st.columns[c]));
      all += st.columns[c];
    }
    if (!(st.devices.size() % st.columns.size() == 0))
      refuse(at(s) + "/devices", "whole rows of " + std::to_string(st.columns.size()) + " devices", std::to_string(st.devices.size()));
    if (p_.transfers == transfer_mode::block) fail("/transfers", "stage \"" + st.name + "\" is a grid; expected transfers that overlap");
    for (std::size_t i = 0; i < st.devices.size(); ++i) {
      const assignment& a = st.devices[i];
      if (a.tensor_parallel != 1)
        refuse(at(s) + "/devices/" + std::to_string(i) + "/tensor_parallel", "1 in a grid", std::to_string(a.tensor_parallel));
      if (a.samples != st.row(st.row_of(i)).samples)
        refuse(at(s) + "/devices/" + std::to_string(i) + "/samples", "those of its row, " + std::to_string(st.row(st.row_of(i)).samples),
               std::to_string(a.samples));
    }
    if (st.columns.size() == 1) return;
    for (const layer_id l : st.layers) {
      if (!l.valid() || l.index() >= model_.size() || !model_[l].is_split()) continue;
      const layer& x = model_[l];
      for (const assignment& a : st.devices) {
        if (!(a.device.valid() && a.device.index() < cluster_.size()) || x.profile_for(cluster_[a.device].kind) == nullptr) continue;
        fail(where, "layer \"" + x.name + "\" is profiled on kind \"" + cluster_[a.device].kind +
                        "\" as a whole; expected layers without a profile where columns share them");
      }
      for (const int weight : st.columns) {
        if (static_cast<long long>(x.split_units) * weight % all == 0) continue;
        fail(where + "/columns", "layer \"" + x.name + "\" has " + std::to_string(x.split_units) +
                                     " units; expected a whole number of them in each column, got " + std::to_string(weight) + " of " +
                                     std::to_string(all) + " parts");
      }
    }
    for (const layer_id l : st.layers) {
      for (const layer_id other : st.layers) {
        if (!l.valid() || !other.valid() || l.index() >= model_.size() || other.index() >= model_.size()) continue;
        if (tensor_of(model_[l]) == tensor_of(model_[other]) && model_[l].is_split() != model_[other].is_split())
          fail(where, "layers \"" + model_[l].name + "\" and \"" + model_[other].name + "\" share a tensor that only one of them splits");
      }
    }
  }

  void check_shard(std::size_t s) const {
    const stage& st = p_.stages[s];
    require_named(at(s) + "/shard", st.shard, sharding::fsdp);
    const bool in_units = st.shard == sharding::zero2 || st.shard == sharding::fsdp;
    if (in_units && p_.workload.mode != mode::training) refuse(at(s) + "/shard", "none outside training", name_of(st.shard));
    if (in_units && !st.columns.empty()) refuse(at(s) + "/shard", "none in a grid", name_of(st.shard));
    if (in_units && st.devices.size() > 1 && p_.transfers == transfer_mode::block)
      fail("/transfers", "stage \"" + st.name + "\" shares out its state (" + name_of(st.shard) + "); expected transfers that overlap");
    if (st.units.empty()) return;
    if (!in_units) refuse(at(s) + "/units", "units with shard \"zero2\" or \"fsdp\" only", name_of(st.shard));
    std::size_t listed = 0;
    for (std::size_t u = 0; u < st.units.size(); ++u) {
      const std::string where = at(s) + "/units/" + std::to_string(u);
      if (st.units[u].empty()) refuse(where, "at least one layer", "none");
      for (std::size_t i = 0; i < st.units[u].size(); ++i, ++listed) {
        const layer_id l = st.units[u][i];
        if (listed < st.layers.size() && l == st.layers[listed]) continue;
        refuse(where + "/" + std::to_string(i),
               (listed < st.layers.size() ? name_of(st.layers[listed]) : "no more layers") + " (the stage's, each once and in their order)",
               name_of(l));
      }
    }
    if (listed < st.layers.size()) refuse(at(s) + "/units", "all layers of the stage", "none with " + name_of(st.layers[listed]));
  }
  [[nodiscard]] std::string name_of(layer_id l) const {
    return l.valid() && l.index() < model_.size() ? "layer \"" + model_[l].name + "\"" : "id " + std::to_string(l.value);
  }
  [[nodiscard]] static std::string name_of(sharding s) {
    return s == sharding::none ? "none" : s == sharding::state ? "shard_state" : s == sharding::zero2 ? "zero2" : "fsdp";
  }

  void check_cuts(std::size_t s, long long samples, int size) const {
    const stage& st = p_.stages[s];
    const bool training = p_.workload.mode == mode::training;
    const std::string where = at(s) + "/cuts";
    if (p_.workload.mode == mode::generation) fail(where, "expected none in generation");
    if (training && p_.schedule.kind == schedule_kind::one_f_one_b) fail(where, "expected none with schedule \"1f1b\"");
    if (!training && !st.cuts.backward.empty()) fail(where + "/backward", "expected none outside training");
    for (const bool forward : {true, false}) {
      if (!forward && !training) continue;
      const auto& cuts = forward ? st.cuts.forward : st.cuts.backward;
      const std::string here = where + (forward ? "/forward" : "/backward");
      if (cuts.size() < 2) refuse(here, "0, ..., " + std::to_string(samples), "a list of " + std::to_string(cuts.size()));
      if (cuts.front() != 0) refuse(here + "/0", "0", std::to_string(cuts.front()));
      if (cuts.back() != samples)
        refuse(here + "/" + std::to_string(cuts.size() - 1), "the pipeline's " + std::to_string(samples) + " samples",
               std::to_string(cuts.back()));
      for (std::size_t k = 1; k < cuts.size(); ++k) {
        const long long taken = cuts[k] - cuts[k - 1];
        const std::string given = std::to_string(cuts[k]) + " after " + std::to_string(cuts[k - 1]);
        if (!(taken >= 1)) refuse(here + "/" + std::to_string(k), "ascending samples", given);
        if (!(taken <= std::numeric_limits<int>::max()))
          refuse(here + "/" + std::to_string(k), "passes of at most 2147483647 samples", given);
        for (const assignment& a : st.devices) {
          if (a.samples * taken % size == 0) continue;
          fail(here + "/" + std::to_string(k), "a pass of " + std::to_string(taken) + " samples gives device \"" + device_name(a.device) +
                                                   "\", with " + std::to_string(a.samples) + " of " + std::to_string(size) +
                                                   ", no whole number of samples");
        }
      }
    }
  }

  /// Checks tensors that are cut into parts: only one stage may hold them.
  void check_own_tensors() const {
    keyed<std::vector<std::size_t>> holders;
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      for_each_tensor(model_, p_.stages[s], [&](const layer& l) {
        const auto [shared, number] = tensor_of(l);
        if (l.weight.value() > 0) holders[{shared, number}].push_back(s);
      });
    }
    for (const std::size_t i : holders.keys().in_order()) {
      const std::vector<std::size_t>& stages = holders.values()[i];
      if (stages.size() < 2) continue;
      for (const std::size_t s : stages) {
        const stage& st = p_.stages[s];
        const bool grid = st.column_count() > 1;
        if (!grid && (st.devices.size() < 2 || (st.shard != sharding::zero2 && st.shard != sharding::fsdp))) continue;
        const std::size_t other = stages.front() == s ? stages[1] : stages.front();
        fail(at(s) + (grid ? "/grid" : "/shard"), "stage \"" + st.name + "\" holds parts of a tensor that stage \"" +
                                                      p_.stages[other].name + "\" has, too; expected tensors of its own");
      }
    }
  }

  void check_tensor_parallel(const stage& st, const assignment& a, const std::string& where) const {
    const device& d = cluster_[a.device];
    if (!(a.tensor_parallel >= 1 && a.tensor_parallel <= d.accelerators))
      refuse(where, "1 to the " + std::to_string(d.accelerators) + " accelerators of device \"" + d.name + "\"",
             std::to_string(a.tensor_parallel));
    if (a.tensor_parallel == 1) return;
    if (!d.interconnect) fail(where, "tensor parallelism on device \"" + d.name + "\" needs its interconnect, which is not given");
    for (const layer_id l : st.layers) {
      if (!l.valid() || l.index() >= model_.size()) continue;
      if (!model_[l].allows(a.tensor_parallel)) {
        std::string allowed = "1";
        for (const int g : model_[l].degrees) allowed += g > 1 ? ", " + std::to_string(g) : "";
        refuse(where, "one of the degrees of layer \"" + model_[l].name + "\": " + allowed, std::to_string(a.tensor_parallel));
      }
      if (model_[l].profile_for(d.kind) != nullptr) {
        fail(where, "layer \"" + model_[l].name + "\" is profiled on kind \"" + d.kind +
                        "\" for one accelerator; expected tensor_parallel 1, got " + std::to_string(a.tensor_parallel));
      }
    }
  }

  void check_cover() const {
    std::vector<int> seen(model_.size() * p_.pipeline_count(), 0);
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      for (std::size_t i = 0; i < p_.stages[s].layers.size(); ++i) {
        const layer_id l = p_.stages[s].layers[i];
        // Texts are built only on failure: searches validate thousands of plans.
        const auto where = [&] { return at(s) + "/layers/" + std::to_string(i); };
        if (!l.valid() || l.index() >= model_.size()) fail(where(), "expected a layer of the model, got id " + std::to_string(l.value));
        if (++seen[static_cast<std::size_t>(p_.stages[s].pipeline) * model_.size() + l.index()] > 1) {
          fail(where(), "layer \"" + model_[l].name + "\" is in two stages of one pipeline");
        }
      }
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] == 0) {
        const std::string where = p_.pipelines.empty() ? "/stages" : "/pipelines/" + std::to_string(i / model_.size()) + "/stages";
        fail(where, "layer \"" + model_.layers()[i % model_.size()].name + "\" is in no stage");
      }
    }
  }

  void check_graph(const stage_graph& g) const {
    if (!g.acyclic()) {
      std::vector<bool> done(p_.stages.size(), false);
      for (const stage_id s : g.topological) done[s.index()] = true;
      const auto s = static_cast<std::size_t>(std::find(done.begin(), done.end(), false) - done.begin());
      fail(at(s), "stage \"" + p_.stages[s].name + "\" is on or behind a cycle of stages; the stages of a pipeline must form a DAG");
    }
    if (!too_large_an_expansion(p_, model_)) return;
    const expansion_size size = size_of_expansion(p_, model_, g);
    const bool tokens_alone =
        p_.workload.mode == mode::generation && size.total() / pass_count(p_.workload, model_.tokens_per_sample()) * 2 <= max_expansion;
    if (!(size.total() <= max_expansion))
      refuse(tokens_alone ? "/workload/tokens" : "/microbatches",
             "a plan of at most " + to_text(max_expansion) + " tasks and transfers, which take " +
                 to_text(max_expansion * expansion_bytes / 1e9) + " GB",
             to_text(size.tasks) + " tasks and " + to_text(size.transfers) + " transfers");
  }

  void check_schedule(const stage_graph& g) const {
    const plan_schedule& sched = p_.schedule;
    std::vector<int> holds(cluster_.size(), 0);
    for (const stage& st : p_.stages) {
      for (const assignment& a : st.devices) ++holds[a.device.index()];
    }
    if (sched.kind == schedule_kind::explicit_orders) {
      check_orders(g, holds);
      return;
    }
    for (std::size_t d = 0; d < holds.size(); ++d) {
      if (holds[d] > 1) {
        fail("/schedule/kind", "device \"" + cluster_.devices()[d].name + "\" holds " + std::to_string(holds[d]) +
                                   " stages; expected explicit orders, got \"" + std::string(to_string(sched.kind)) + "\"");
      }
    }
    if (sched.kind != schedule_kind::one_f_one_b) return;
    if (!sched.warmup.empty()) {
      if (!(sched.warmup.size() == p_.stages.size()))
        refuse("/schedule/warmup", "one entry per stage (" + std::to_string(p_.stages.size()) + ")", std::to_string(sched.warmup.size()));
      for (std::size_t s = 0; s < sched.warmup.size(); ++s) {
        if (!(sched.warmup[s] >= 1)) refuse("/schedule/warmup/" + std::to_string(s), "an integer >= 1", std::to_string(sched.warmup[s]));
      }
    }
    if (p_.workload.mode != mode::training) return;
    const std::vector<int> k = resolve_warmup(p_, g);
    for (const stage_edge& e : g.edges) {
      if (e.backward_cut.value() == 0) continue;
      if (warmup_suffices(g[e.from], k[e.from.index()], g[e.to], k[e.to.index()])) continue;
      fail("/schedule/warmup", "cyclic order at device \"" + device_name(p_[e.from].devices.front().device) + "\": stage \"" +
                                   p_[e.from].name + "\" (warm-up " + std::to_string(k[e.from.index()]) + ") waits for stage \"" +
                                   p_[e.to].name + "\" (warm-up " + std::to_string(k[e.to.index()]) +
                                   "), which waits for more of its forwards");
    }
    // With unequal sizes, an edge without gradient can close a circular wait that no edge's rule sees.
    const auto same_size = [&](const stage_graph::node& n) { return n.microbatch_size == g.nodes.front().microbatch_size; };
    if (!std::all_of(g.nodes.begin(), g.nodes.end(), same_size)) check_runnable(g, "/schedule/warmup");
  }

  void check_orders(const stage_graph& g, const std::vector<int>& holds) const {
    const auto& orders = p_.schedule.orders;
    for (std::size_t d = 0; d < cluster_.size(); ++d) {
      const std::string where = "/schedule/orders/" + cluster_.devices()[d].name;
      const bool given = d < orders.size() && !orders[d].empty();
      if (holds[d] > 0)
        if (!(given)) refuse(where, "an order for a device that holds a stage", "none");
      if (given) check_order(g, device_id(d), where);
    }
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      if (p_.stages[s].shard == sharding::fsdp) check_one_order(s);
    }
    check_runnable(g, "/schedule/orders");
    check_chunks();
  }

  /// Checks that no device holds two stages of a pipeline that work in every chunk of a prompt, where few chunks may be in flight: all
  /// chunks of an entry follow each other, and a later one waits for the first to leave the sinks, through the device's next stage.
  void check_chunks() const {
    if (!limits_chunks(p_.workload, model_)) return;
    for (const stage& one : p_.stages) {
      for (const stage& other : p_.stages) {
        if (&one >= &other || one.pipeline != other.pipeline || !works_in_chunks(one) || !works_in_chunks(other)) continue;
        for (const assignment& a : one.devices) {
          if (std::none_of(other.devices.begin(), other.devices.end(), [&](const assignment& b) { return b.device == a.device; })) continue;
          fail("/workload/chunks_in_flight", "cyclic order at device \"" + device_name(a.device) + "\": chunks of stage \"" + one.name +
                                                 "\" wait for chunks in flight that stage \"" + other.name +
                                                 "\" has to pass behind them; expected one stage of a pipeline on each device, or any "
                                                 "number of chunks in flight");
        }
      }
    }
  }
  [[nodiscard]] bool works_in_chunks(const stage& s) const {
    return std::any_of(s.layers.begin(), s.layers.end(), [&](layer_id l) { return model_[l].runs_in_every_chunk(); });
  }

  /// Checks that devices that gather weights for each other run their passes in one order.
  void check_one_order(std::size_t s) const {
    const auto of = [&](const assignment& a) {
      std::vector<order_entry> mine;
      for (const order_entry& e : p_.schedule.orders[a.device.index()]) {
        if (e.stage.index() == s) mine.push_back(e);
      }
      return mine;
    };
    const auto& devices = p_.stages[s].devices;
    const auto first = of(devices.front());
    for (const assignment& a : devices) {
      if (of(a) == first) continue;
      fail("/schedule/orders/" + device_name(a.device), "stage \"" + p_.stages[s].name +
                                                            "\" gathers its weights (fsdp); expected the order of "
                                                            "device \"" +
                                                            device_name(devices.front().device) + "\"");
    }
  }

  void check_runnable(const stage_graph& g, const std::string& where) const {
    if (const auto stuck = first_blocked_device(p_, g, cluster_.size())) {
      fail(where, "cyclic order at device \"" + device_name(*stuck) + "\": it waits for work that can never be done");
    }
  }

  void check_order(const stage_graph& g, device_id d, const std::string& where) const {
    const auto& order = p_.schedule.orders[d.index()];
    keyed<std::size_t> position;
    key_index split;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const order_entry& e = order[i];
      const std::string here = where + "/" + std::to_string(i);
      if (!(e.stage.valid() && e.stage.index() < p_.stages.size())) refuse(here, "a stage of the plan", std::to_string(e.stage.value));
      const auto& devices = p_[e.stage].devices;
      if (std::none_of(devices.begin(), devices.end(), [&](const assignment& a) { return a.device == d; })) {
        fail(here, "stage \"" + p_[e.stage].name + "\" is not on device \"" + device_name(d) + "\"");
      }
      require_named(here, e.what, phase::optimizer_step);
      if (const int passes = g[e.stage].passes(e.what); !(e.microbatch >= 0 && e.microbatch < passes))
        refuse(here, "a microbatch from 0 to " + std::to_string(passes - 1), std::to_string(e.microbatch));
      if (e.what == phase::optimizer_step) fail(here, "expected phase F, B or W; the optimizer's step follows by itself");
      if (p_.workload.mode != mode::training && e.what != phase::forward) fail(here, "expected phase F outside training");
      if (!position.insert({e.stage, e.what, e.microbatch}, i)) fail(here, "this piece of work is listed twice");
      if (e.what == phase::backward_weight) split.insert({e.stage});
    }
    for (std::size_t s = 0; s < p_.stages.size(); ++s) {
      const auto& devices = p_.stages[s].devices;
      if (std::none_of(devices.begin(), devices.end(), [&](const assignment& a) { return a.device == d; })) continue;
      const stage_id stage(s);
      const auto name = [&](phase what, int m) {
        return std::string(to_string(what)) + " of stage \"" + p_.stages[s].name + "\", microbatch " + std::to_string(m);
      };
      const auto place_of = [&](phase what, int m) {
        const std::size_t* place = position.find({stage, what, m});
        if (place == nullptr) fail(where, "missing: " + name(what, m));
        return *place;
      };
      const auto require_before = [&](phase first, int f, phase what, int m) {
        const std::size_t place = place_of(what, m);
        if (place < place_of(first, f))
          fail(where + "/" + std::to_string(place), name(what, m) + " comes before the phase that it needs (F before B before W)");
      };
      const stage_graph::node& node = g.nodes[s];
      for (int m = 0; m < node.passes(phase::forward); ++m) static_cast<void>(place_of(phase::forward, m));
      if (p_.workload.mode != mode::training) continue;
      for (int m = 0; m < node.passes(phase::backward_input); ++m) {
        const auto [begin, end] = node.samples(phase::backward_input, m);
        for (int f = node.pass_of(phase::forward, begin); f < node.passes(phase::forward) && node.samples(phase::forward, f).first < end;
             ++f)
          require_before(phase::forward, f, phase::backward_input, m);
        if (split.contains({stage})) require_before(phase::backward_input, m, phase::backward_weight, m);
      }
    }
  }

  void check_transfers(const stage_graph& g) const {
    const auto& rules = p_.schedule.transfers;
    struct group {
      std::size_t chunks = 0, first = 0;  ///< the rule of its lowest chunk
    };
    keyed<group> groups;
    key_index listed;
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const transfer_rule& r = rules[i];
      const std::string where = "/schedule/flows/" + std::to_string(i);
      const auto known = [&](device_id d) { return d.valid() && d.index() < cluster_.size(); };
      const auto stage = [&](stage_id s) { return s.valid() && s.index() < p_.stages.size(); };
      if (!(known(r.from) && known(r.to) && r.from != r.to))
        refuse(where, "two different devices of the cluster", std::to_string(r.from.value) + " and " + std::to_string(r.to.value));
      if (!(stage(r.from_stage) && stage(r.to_stage)))
        refuse(where, "stages of the plan", std::to_string(r.from_stage.value) + " and " + std::to_string(r.to_stage.value));
      require_named(where + "/phase", r.kind, transfer_kind::token);
      if (const int passes = g[r.from_stage].passes(r.kind == transfer_kind::backward ? phase::backward_input : phase::forward);
          !(r.microbatch >= 0 && r.microbatch < passes))
        refuse(where + "/microbatch", "0 to " + std::to_string(passes - 1), std::to_string(r.microbatch));
      const bool beside = p_.transfers == transfer_mode::overlap || r.kind == transfer_kind::sync || r.kind == transfer_kind::token;
      if (!beside)
        fail(where,
             "a " + std::string(to_string(r.kind)) +
                 " transfer is part of its devices' work, because transfers block; expected rules for sync and token transfers only");
      if (!(r.chunks >= 1 && r.chunks <= most_chunks))
        refuse(where + "/of", "1 to " + std::to_string(most_chunks), std::to_string(r.chunks));
      if (!(r.chunk >= 0 && r.chunk < r.chunks)) refuse(where + "/chunk", "0 to " + std::to_string(r.chunks - 1), std::to_string(r.chunk));
      if (!(is_finite(r.release) && r.release.value() >= 0)) refuse(where + "/release", "finite seconds >= 0", to_text(r.release.value()));
      key_parts name = name_of_transfer(r);
      group& g_of = groups[name];
      name.emplace_back(r.chunk);
      if (!listed.insert(name))
        fail(where, "chunk " + std::to_string(r.chunk) + " of this flow is listed twice" +
                        std::string(r.kind == transfer_kind::sync ? "; a reduction has no microbatch" : ""));
      if (g_of.chunks++ == 0 || r.chunk < rules[g_of.first].chunk) g_of.first = i;
      if (!(rules[g_of.first].chunks == r.chunks))
        refuse(where + "/of", "the same number in every chunk of a flow", std::to_string(r.chunks));
    }
    for (const std::size_t n : groups.keys().in_order()) {
      const auto [chunks, index] = groups.values()[n];
      if (!(chunks == static_cast<std::size_t>(rules[index].chunks)))
        refuse("/schedule/flows/" + std::to_string(index), "every chunk 0 to " + std::to_string(rules[index].chunks - 1) + " of this flow",
               std::to_string(chunks) + " of them");
    }
  }

  const plan& p_;
  const planning_graph& model_;
  const cluster& cluster_;
  stage_graph graph_;
};

}  // namespace detail

HETPLAN_INLINE std::optional<violation> validate(const plan& p, const planning_graph& model, const cluster& c) {
  return detail::plan_validator(p, model, c).run();
}

HETPLAN_INLINE std::optional<violation> broken_pin(const plan& p, const planning_problem& problem) {
  if (problem.pinned.empty()) return std::nullopt;
  std::size_t first = 0;  // of the pipeline
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const stage& st = p.stages[s];
    if (s > 0 && st.pipeline != p.stages[s - 1].pipeline) first = s;
    for (std::size_t i = 0; i < st.layers.size(); ++i) {
      const device_id wanted = problem.pinned[st.layers[i].index()];
      if (!wanted.valid() || (st.devices.size() == 1 && st.devices.front().device == wanted)) continue;
      const std::string pipeline = p.pipelines.empty() ? "" : "/pipelines/" + std::to_string(st.pipeline);
      std::string on;
      for (const assignment& a : st.devices) on += (on.empty() ? "\"" : ", \"") + problem.cluster[a.device].name + "\"";
      return violation{pipeline + "/stages/" + std::to_string(s - first) + "/layers/" + std::to_string(i),
                       "layer \"" + problem.model[st.layers[i]].name + "\" is pinned to device \"" + problem.cluster[wanted].name +
                           "\"; expected a stage on that device alone, got " + on};
    }
  }
  return std::nullopt;
}

HETPLAN_INLINE std::optional<violation> validate(const plan& p, const planning_problem& problem) {
  if (auto v = validate(p, problem.model, problem.cluster)) return v;
  return broken_pin(p, problem);
}

HETPLAN_INLINE stage_graph require_valid(const plan& p, const planning_graph& model, const cluster& c) {
  detail::plan_validator validator(p, model, c);
  if (const auto v = validator.run()) throw invalid_input("plan: " + v->where + ": " + v->what);
  return std::move(validator).graph();
}

}  // namespace hetplan
