// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Random models, clusters and valid plans of all kinds, as data that a test can change.

#include <algorithm>
#include <array>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include <hetplan/cluster/topology.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/stage_graph.hpp>
#include <hetplan/plan/validate.hpp>
#include <hetplan/tasks/expand.hpp>

#include "support/random_source.hpp"

namespace hetplan::test {

enum class plan_kind {
  chain,
  dag,
  several_stages,
  pipelines,
  microbatch_sizes,
  tied,
  frozen,
  tensor_parallel,
  inference,
  generation,
  exclusive,
  priority,
  chunks,
  mixed
};
inline constexpr std::array all_plan_kinds{
    plan_kind::chain,     plan_kind::dag,      plan_kind::several_stages,  plan_kind::pipelines, plan_kind::microbatch_sizes,
    plan_kind::tied,      plan_kind::frozen,   plan_kind::tensor_parallel, plan_kind::inference, plan_kind::generation,
    plan_kind::exclusive, plan_kind::priority, plan_kind::chunks,          plan_kind::mixed};

enum class net_kind { shared, mesh, half_mesh, ring, half_ring, star, half_star, hierarchical, table };

struct instance {
  struct edge {
    std::size_t from, to;
    double forward, gradient;
  };
  plan_kind kind = plan_kind::chain;
  std::vector<layer_spec> layers;
  std::vector<edge> edges;
  std::vector<device> devices;
  net_kind net = net_kind::shared;
  double capacity = 1e7, latency_s = 0;
  hetplan::plan plan;

  [[nodiscard]] planning_graph model() const {
    planning_graph_builder b("random");
    for (const layer_spec& l : layers) b.add_layer(l);
    for (const edge& e : edges) b.add_edge(layer_id(e.from), layer_id(e.to), bytes(e.forward), bytes(e.gradient));
    return std::move(b).build();
  }

  [[nodiscard]] hetplan::cluster cluster() const {
    const bytes_per_second c(capacity);
    const seconds l(latency_s);
    switch (net) {
      case net_kind::shared: return {"random", devices, shared_medium{c, l}};
      case net_kind::mesh: return {"random", devices, mesh{c, l}};
      case net_kind::half_mesh: return {"random", devices, mesh{c, l, duplex::half}};
      case net_kind::ring: return {"random", devices, ring{c, l}};
      case net_kind::half_ring: return {"random", devices, ring{c, l, duplex::half}};
      case net_kind::star: return {"random", devices, star{c, l}};
      case net_kind::half_star: return {"random", devices, star{c, l, duplex::half}};
      case net_kind::hierarchical: return {"random", devices, two_groups(c, l)};
      case net_kind::table: return {"random", devices, access_point(c, l)};
    }
    throw std::logic_error("net_kind");
  }

 private:
  [[nodiscard]] hierarchical two_groups(bytes_per_second c, seconds l) const {
    hierarchical h{c, l, duplex::full, {{"left", {}, c * 4, l / 2}, {"right", {}, c * 3, l / 4}}};
    for (std::size_t d = 0; d < devices.size(); ++d) h.groups[d % 2].devices.push_back(devices[d].name);
    return h;
  }
  /// Returns routes via an access point: the first device is wired to it, the others share its air (twice where it repeats a frame). The
  /// first two devices also have a wire without limit.
  [[nodiscard]] route_table access_point(bytes_per_second c, seconds l) const {
    const std::string& first = devices.front().name;
    route_table t{{{"air", c}, {"wire", 5 * c}}, {}};
    t.rules.push_back({"*", "*", {l, {{resource_id(0), 2}}}});
    t.rules.push_back({first, "*", {l, {{resource_id(1), 1}, {resource_id(0), 1}}}});
    t.rules.push_back({"*", first, {l * 2, {{resource_id(0), 0.5}, {resource_id(1), 1}}}});
    if (devices.size() > 1) t.rules.push_back({first, devices[1].name, {l, {}}});
    return t;
  }
};

namespace detail {

class instance_maker {
 public:
  instance_maker(random_source& random, plan_kind kind) : random_(random) {
    out_.kind = kind;
    const auto is = [&](plan_kind k) { return kind == k; };
    const auto maybe = [&](bool always, double otherwise) { return always || (kind == plan_kind::mixed && random.chance(otherwise)); };
    hetplan::plan& p = out_.plan;
    if (is(plan_kind::inference)) p.workload.mode = mode::inference;
    if (is(plan_kind::generation)) p.workload.mode = mode::generation;
    if (is(plan_kind::mixed)) p.workload.mode = random.pick(std::vector{mode::training, mode::training, mode::inference, mode::generation});
    if (is(plan_kind::exclusive)) p.sharing_policy = sharing::exclusive;
    if (is(plan_kind::priority) || is(plan_kind::chunks)) p.sharing_policy = sharing::priority;
    if (is(plan_kind::mixed)) p.sharing_policy = random.pick(std::vector{sharing::fair_share, sharing::priority, sharing::exclusive});
    dag_ = maybe(is(plan_kind::dag), 0.5);
    several_ = maybe(is(plan_kind::several_stages), 0.3);
    explicit_ = several_ || random.chance(is(plan_kind::mixed) ? 0.4 : 0.15);
    pipelines_ = maybe(is(plan_kind::pipelines), 0.3);
    sizes_ = maybe(is(plan_kind::microbatch_sizes), 0.4) && p.workload.mode != mode::generation;
    tied_ = maybe(is(plan_kind::tied), 0.4);
    frozen_ = maybe(is(plan_kind::frozen), 0.4);
    tensor_parallel_ = maybe(is(plan_kind::tensor_parallel), 0.4);
    rules_ = is(plan_kind::priority) || is(plan_kind::chunks) || (is(plan_kind::mixed) && random.chance(0.5));
    chunks_ = is(plan_kind::chunks) || is(plan_kind::mixed);
  }

  instance run() {
    add_devices();
    add_layers();
    add_stages();
    add_schedule();
    return std::move(out_);
  }
  [[nodiscard]] bool wants_rules() const { return rules_; }

  /// Adds rules for a random part of the plan's transfers.
  void add_rules(instance& i) {
    const tasks::task_graph g = tasks::expand(i.plan, i.model(), i.cluster(), roofline{});
    std::set<std::tuple<transfer_kind, device_id, device_id, stage_id, stage_id, int>> seen;
    for (const tasks::transfer& t : g.transfers) {
      const int m = t.kind == transfer_kind::sync ? 0 : t.microbatch;
      if (!seen.insert({t.kind, t.from, t.to, t.from_stage, t.to_stage, m}).second || random_.chance(0.5)) continue;
      const int chunks = chunks_ ? random_.integer(1, 4) : 1;
      for (int k = 0; k < chunks; ++k) {
        i.plan.schedule.transfers.push_back({.from = t.from,
                                             .to = t.to,
                                             .from_stage = t.from_stage,
                                             .to_stage = t.to_stage,
                                             .microbatch = t.microbatch,
                                             .kind = t.kind,
                                             .chunk = k,
                                             .chunks = chunks,
                                             .release = seconds(chunks_ && random_.chance(0.4) ? random_.unit() : 0),
                                             .priority = random_.integer(0, 3)});
      }
    }
  }

 private:
  void add_devices() {
    const int n = random_.integer(pipelines_ ? 2 : 1, 6);
    for (int i = 0; i < n; ++i) {
      device d;
      d.name = "device" + std::to_string(i);
      d.memory = 1_GB * 1000;
      d.compute = flops_per_second(random_.spread(1e10, 5));
      if (random_.chance(0.5)) d.memory_bandwidth = bytes_per_second(random_.spread(1e9, 5));
      d.half_batch = random_.chance(0.3) ? random_.between(0, 3) : 0;
      d.launch = seconds(random_.chance(0.3) ? random_.between(0, 1e-3) : 0);
      if (tensor_parallel_ && random_.chance(0.7)) {
        d.accelerators = random_.integer(2, 4);
        d.interconnect = bytes_per_second(random_.spread(1e9, 3));
      }
      d.power.idle = watts(random_.between(1, 10));
      d.power.active = d.power.idle + watts(random_.between(0, 50));
      d.power.send = joules_per_byte(random_.between(0, 1e-7));
      d.power.receive = joules_per_byte(random_.between(0, 1e-7));
      out_.devices.push_back(d);
    }
    out_.net = static_cast<net_kind>(random_.integer(0, 8));
    out_.capacity = random_.spread(1e7, 5);
    out_.latency_s = random_.chance(0.3) ? 0 : random_.spread(1e-4, 6);
  }

  void add_layers() {
    const int n = random_.integer(1, 9);
    for (int i = 0; i < n; ++i) {
      layer_spec l;
      l.name = "layer" + std::to_string(i);
      l.forward_flops = flops(random_.chance(0.1) ? 0 : random_.spread(1e8, 5));
      if (random_.chance(0.3)) l.backward_input_flops = flops(random_.chance(0.2) ? 0 : random_.spread(1e8, 5));
      if (random_.chance(0.2)) l.backward_weight_flops = flops(random_.spread(1e8, 5));
      l.weight = bytes(random_.chance(0.2) ? 0 : random_.spread(1e5, 6));
      l.trainable = !(frozen_ && random_.chance(0.5));
      l.activation = bytes(random_.chance(0.2) ? 0 : random_.spread(1e5, 5));
      l.kv_bytes_per_token = bytes(random_.between(0, 1e4));
      if (random_.chance(0.2)) l.weight_traffic = l.weight / 3;
      out_.layers.push_back(l);
    }
    if (tied_) {
      const double weight = random_.spread(1e5, 5);
      for (std::size_t i = 0; i < out_.layers.size(); ++i) {
        if (i != 0 && i + 1 != out_.layers.size() && !random_.chance(0.2)) continue;
        out_.layers[i].weight = bytes(weight);
        out_.layers[i].trainable = true;
        out_.layers[i].weight_group = "shared";
        out_.layers[i].weight_traffic.reset();
      }
    }
    for (std::size_t i = 1; i < out_.layers.size(); ++i) {
      std::set<std::size_t> from{dag_ ? random_.index(i) : i - 1};
      if (random_.chance(dag_ ? 0.5 : 0.1)) from.insert(random_.index(i));
      for (const std::size_t f : from) {
        const double amount = random_.chance(0.1) ? 0 : random_.spread(1e4, 6);
        const double gradient = frozen_ && random_.chance(0.4) ? 0 : random_.chance(0.1) ? amount / 2 : amount;
        out_.edges.push_back({f, i, amount, gradient});
      }
    }
  }

  void add_stages() {
    hetplan::plan& p = out_.plan;
    p.workload.optimizer_factor = random_.integer(0, 2);
    p.workload.context = random_.integer(0, 100);
    p.workload.tokens = random_.integer(2, 4);
    p.microbatch_size = random_.integer(1, 5);
    p.microbatches = random_.integer(1, 7);
    if (sizes_) {
      p.microbatch_size = random_.pick(std::vector{2, 4, 6});
      p.microbatches = random_.integer(2, 4);
    }
    const int devices = static_cast<int>(out_.devices.size());
    int pipelines = 1;
    if (pipelines_) pipelines = std::min({random_.integer(2, 3), p.microbatches, devices});
    std::vector<int> order(static_cast<std::size_t>(devices));
    for (int d = 0; d < devices; ++d) order[static_cast<std::size_t>(d)] = d;
    random_.shuffle(order);
    const std::vector<int> batches = random_.split(p.microbatches, pipelines), groups = random_.split(devices, pipelines);
    std::size_t used = 0;
    for (int i = 0; i < pipelines; ++i) {
      const long long samples = static_cast<long long>(batches[static_cast<std::size_t>(i)]) * p.microbatch_size;
      if (pipelines_) p.pipelines.push_back(samples);
      const auto mine = static_cast<std::size_t>(groups[static_cast<std::size_t>(i)]);
      add_stages(i, samples, {order.begin() + static_cast<std::ptrdiff_t>(used), order.begin() + static_cast<std::ptrdiff_t>(used + mine)});
      used += mine;
    }
    if (random_.chance(0.4)) p.parameter_server = device_id(random_.integer(0, devices - 1));
  }

  void add_stages(int pipeline, long long samples, const std::vector<int>& devices) {
    hetplan::plan& p = out_.plan;
    const int layers = static_cast<int>(out_.layers.size());
    const int stages = random_.integer(1, std::min(layers, several_ ? 5 : static_cast<int>(devices.size())));
    const std::vector<int> lengths = random_.split(layers, stages);
    const std::vector<int> widths = several_ ? std::vector<int>(static_cast<std::size_t>(stages), 0)
                                             : random_.split(random_.integer(stages, static_cast<int>(devices.size())), stages);
    int layer = 0;
    std::size_t taken = 0;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      stage st;
      st.name = "stage" + std::to_string(p.stages.size());
      st.pipeline = pipeline;
      for (int l = 0; l < lengths[s]; ++l) st.layers.push_back(layer_id(layer++));
      if (sizes_) {
        do st.microbatch_size = random_.integer(1, 6);
        while (samples % st.microbatch_size != 0);
      }
      const int size = p.size_of(st);
      std::vector<int> mine;
      if (several_) {
        mine = devices;
        random_.shuffle(mine);
        mine.resize(random_.index(std::min<std::size_t>(mine.size(), 3)) + 1);
      } else {
        for (int w = 0; w < widths[s]; ++w) mine.push_back(devices[taken++]);
      }
      mine.resize(std::min(mine.size(), static_cast<std::size_t>(size)));
      const std::vector<int> shares = random_.split(size, static_cast<int>(mine.size()));
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const device& d = out_.devices[static_cast<std::size_t>(mine[i])];
        st.devices.push_back({device_id(mine[i]), shares[i], random_.integer(1, d.accelerators)});
      }
      p.stages.push_back(std::move(st));
    }
  }

  void add_schedule() {
    hetplan::plan& p = out_.plan;
    p.schedule.kind = random_.chance(0.6) ? schedule_kind::one_f_one_b : schedule_kind::gpipe;
    const planning_graph model = out_.model();
    const stage_graph g = make_stage_graph(p, model);
    if (explicit_) {
      p.schedule.kind = schedule_kind::explicit_orders;
      list_orders(g);
    } else if (p.schedule.kind == schedule_kind::one_f_one_b && !sizes_ && random_.chance(0.4)) {
      std::vector<int>& k = p.schedule.warmup;
      k.assign(p.stages.size(), 1);
      for (auto it = g.topological.rbegin(); it != g.topological.rend(); ++it) {
        for (const std::size_t e : g[*it].out) k[it->index()] = std::max(k[it->index()], k[g.edges[e].to.index()]);
        k[it->index()] += random_.integer(0, 2);
      }
    }
  }

  /// Lists the tasks in a random order that respects all dependencies, sample by sample.
  void list_orders(const stage_graph& g) {
    hetplan::plan& p = out_.plan;
    const bool training = p.workload.mode == mode::training;
    struct piece {
      phase what;
      std::size_t stage, position;
      int microbatch;
      long long first, last;
    };
    std::vector<piece> left;
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      long long offset = 0;
      for (std::size_t i = 0; i < p.stages[s].devices.size(); ++i) {
        const bool split = training && random_.chance(0.4);
        const int samples = p.stages[s].devices[i].samples;
        for (int m = 0; m < g.nodes[s].microbatches; ++m) {
          const long long first = static_cast<long long>(m) * g.nodes[s].microbatch_size + offset;
          for (const phase what : {phase::forward, phase::backward_input, phase::backward_weight}) {
            if (what != phase::forward && !training) continue;
            if (what == phase::backward_weight && !split) continue;
            left.push_back({what, s, i, m, first, first + samples});
          }
        }
        offset += samples;
      }
    }
    // done[phase][stage][sample]
    std::array<std::vector<std::vector<char>>, 3> done;
    for (auto& d : done) {
      for (const auto& n : g.nodes) d.emplace_back(static_cast<std::size_t>(n.microbatches * n.microbatch_size), 0);
    }
    const auto all = [&](phase what, std::size_t s, const piece& x) {
      const auto& d = done[static_cast<std::size_t>(what)][s];
      for (long long i = x.first; i < x.last; ++i) {
        if (d[static_cast<std::size_t>(i)] == 0) return false;
      }
      return true;
    };
    const auto ready = [&](const piece& x) {
      if (x.what == phase::backward_weight) return all(phase::backward_input, x.stage, x);
      if (x.what == phase::forward) {
        return std::all_of(g.nodes[x.stage].in.begin(), g.nodes[x.stage].in.end(),
                           [&](std::size_t e) { return all(phase::forward, g.edges[e].from.index(), x); });
      }
      return all(phase::forward, x.stage, x) && std::all_of(g.nodes[x.stage].out.begin(), g.nodes[x.stage].out.end(), [&](std::size_t e) {
               return g.edges[e].backward_cut.value() == 0 || all(phase::backward_input, g.edges[e].to.index(), x);
             });
    };
    p.schedule.orders.assign(out_.devices.size(), {});
    while (!left.empty()) {
      std::size_t i = random_.index(left.size());
      while (!ready(left[i])) i = (i + 1) % left.size();
      const piece x = left[i];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
      auto& d = done[static_cast<std::size_t>(x.what)][x.stage];
      for (long long n = x.first; n < x.last; ++n) d[static_cast<std::size_t>(n)] = 1;
      const device_id device = p.stages[x.stage].devices[x.position].device;
      p.schedule.orders[device.index()].push_back({x.what, stage_id(x.stage), x.microbatch});
    }
  }

  random_source& random_;
  instance out_;
  bool dag_ = false, several_ = false, explicit_ = false, pipelines_ = false, sizes_ = false, tied_ = false, frozen_ = false,
       tensor_parallel_ = false, rules_ = false, chunks_ = false;
};

}  // namespace detail

/// Returns a valid instance, determined by seed and kind.
inline instance random_instance(std::uint64_t seed, plan_kind kind) {
  random_source random(seed * all_plan_kinds.size() + static_cast<std::uint64_t>(kind));
  for (int attempt = 0; attempt < 20; ++attempt) {
    detail::instance_maker maker(random, kind);
    instance i = maker.run();
    // With unequal sizes, an edge without gradient can close a cycle of default warm-ups: draws again.
    if (validate(i.plan, i.model(), i.cluster())) continue;
    if (maker.wants_rules()) maker.add_rules(i);
    return i;
  }
  throw std::logic_error("random_instance: twenty invalid plans in a row");
}

/// Calls f(instance) for `count` seeds of every kind; failures name seed and kind.
template <class F>
void for_random_instances(int count, F&& f) {
  for (const plan_kind kind : all_plan_kinds) {
    for (std::uint64_t seed = first_seed(); seed < first_seed() + static_cast<std::uint64_t>(count); ++seed) {
      INFO("random_instance(" << seed << ", plan_kind(" << static_cast<int>(kind) << "))");
      f(random_instance(seed, kind));
    }
  }
}

}  // namespace hetplan::test
