// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/migration.hpp>

#include <algorithm>
#include <string>
#include <tuple>

#include <range/v3/action/sort.hpp>
#include <range/v3/action/unique.hpp>
#include <range/v3/view/sliding.hpp>

#include <hetplan/simulate/evaluate.hpp>
#include <hetplan/simulate/simulator.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE holdings::holdings(const planning_graph& model, std::size_t devices) : devices_(devices), held_(devices * model.size(), 0) {
  std::vector<layer_id> first_of_group(model.weight_groups().size());
  for (const layer& l : model.layers()) {
    tensor_.push_back(l.id);
    if (l.weight_group < 0) continue;
    layer_id& first = first_of_group[static_cast<std::size_t>(l.weight_group)];
    if (!first.valid()) first = l.id;
    tensor_.back() = first;
  }
}

HETPLAN_INLINE std::vector<state_part> holdings::state_of(device_id d, layer_id l) const {
  if (!has(d, l)) return {};
  const auto found = parts_.find(at(d, l));
  return found == parts_.end() ? std::vector<state_part>{{}} : found->second;
}

HETPLAN_INLINE bool holdings::has_parts(layer_id l) const {
  if (parts_.empty()) return false;
  for (std::size_t d = 0; d < devices_; ++d) {
    if (parts_.contains(at(device_id(d), l))) return true;
  }
  return false;
}

HETPLAN_INLINE std::vector<device_id> holdings::holders(layer_id l) const {
  std::vector<device_id> all;
  for (std::size_t d = 0; d < devices_; ++d) {
    if (has(device_id(d), l)) all.emplace_back(d);
  }
  return all;
}

HETPLAN_INLINE void holdings::add(device_id d, layer_id l) {
  held_[at(d, l)] = 1;
  parts_.erase(at(d, l));
}

HETPLAN_INLINE void holdings::add(device_id d, layer_id l, state_part part) {
  std::vector<state_part> all = state_of(d, l), joined;
  all.push_back(part);
  std::sort(all.begin(), all.end(), [](const state_part& a, const state_part& b) { return a.from < b.from; });
  for (const state_part& p : all) {
    if (!joined.empty() && p.from <= joined.back().to) joined.back().to = std::max(joined.back().to, p.to);
    else joined.push_back(p);
  }
  add(d, l);
  if (joined != std::vector<state_part>{{}}) parts_[at(d, l)] = std::move(joined);
}

HETPLAN_INLINE std::size_t holdings::cache_at(layer_id l, long long sequence) const {
  return static_cast<std::size_t>(sequence) * tensor_.size() + l.index();
}

HETPLAN_INLINE std::vector<state_part> state_pieces(layer_id tensor, const std::vector<state_part>& needed, const holdings& held) {
  std::vector<double> cuts;
  const auto cut = [&](const std::vector<state_part>& parts) {
    for (const state_part& p : parts) cuts.insert(cuts.end(), {p.from, p.to});
  };
  cut(needed);
  for (const device_id d : held.holders(tensor)) cut(held.state_of(d, tensor));
  cuts |= ranges::actions::sort | ranges::actions::unique;
  std::vector<state_part> all;
  for (const auto ends : ranges::views::sliding(cuts, 2)) all.push_back({ends[0], ends[1]});
  return all;
}

HETPLAN_INLINE void give_caches(holdings& held, const plan& p) {
  if (p.workload.mode != mode::generation) return;
  held.set_sequences(p.batch());
  std::vector<long long> first(p.pipeline_count() + 1, 0);
  for (std::size_t i = 0; i < p.pipeline_count(); ++i) first[i + 1] = first[i] + p.pipeline_samples(static_cast<int>(i));
  for (const stage& s : p.stages) {
    const auto pipeline = static_cast<std::size_t>(s.pipeline);
    for (const layer_id l : s.layers) {
      for (long long sequence = first[pipeline]; sequence < first[pipeline + 1];) {
        for (const assignment& a : s.devices) {
          for (int i = 0; i < a.samples && sequence < first[pipeline + 1]; ++i) held.set_cache_owner(l, sequence++, a.device);
        }
      }
    }
  }
}

HETPLAN_INLINE holdings holdings_of(const plan& p, const planning_graph& model, std::size_t devices) {
  holdings held(model, devices);
  for (const stage& s : p.stages) {
    for (const layer_id l : s.layers) {
      const int shards = s.state_shards();
      for (int i = 0; const assignment& a : s.devices) {
        // The quotient i / n is the same number in every stage, so that the boundaries of parts coincide.
        if (shards > 1) held.add(a.device, l, {static_cast<double>(i) / shards, static_cast<double>(i + 1) / shards});
        else held.add(a.device, l);
        ++i;
      }
    }
  }
  give_caches(held, p);
  return held;
}

HETPLAN_INLINE bool moves_nothing(const plan& from, const plan& to) {
  return from.stages == to.stages || (to.workload.mode != mode::generation && same_placement(from, to));
}

HETPLAN_INLINE bytes migration::volume() const {
  bytes total;
  for (const auto& round : rounds) {
    for (const fetch& f : round) total += f.volume;
  }
  return total;
}

HETPLAN_INLINE bool is_open(const route* way, const conditions& now) {
  return way != nullptr && std::none_of(way->via.begin(), way->via.end(),
                                        [&](const resource_use& u) { return now.capacity[u.resource.index()].value() <= 0; });
}

HETPLAN_INLINE std::pair<migration, migration> split_immutable(const migration& m) {
  std::pair<migration, migration> parts{{m.status, {}, {}}, {m.status, {}, m.lost_cache}};
  for (const auto& round : m.rounds) {
    std::vector<fetch> background, stopped;
    for (const fetch& f : round) (f.immutable ? background : stopped).push_back(f);
    if (!background.empty()) parts.first.rounds.push_back(std::move(background));
    if (!stopped.empty()) parts.second.rounds.push_back(std::move(stopped));
  }
  return parts;
}

namespace detail {

/// Collects the missing tensors of one round, then selects a sender for each.
class fetch_round {
 public:
  fetch_round(const planning_graph& model, const cluster& c, const conditions& now, const workload& w)
      : model_(model), cluster_(c), now_(now), workload_(w), load_s_(now.capacity.size(), 0) {}

  /// Adds what `to` lacks of a tensor and of the given parts of its optimizer state: the weights from one of their holders, each
  /// part of the state from one of its holders.
  void need(layer_id tensor, device_id to, const std::vector<state_part>& parts, const holdings& held) {
    const layer& l = model_[tensor];
    const bool whole = parts == std::vector<state_part>{{}} && !held.has_parts(tensor);
    if (whole || moved_state(l, workload_).value() == 0) {
      if (!held.has(to, tensor)) need(tensor, to, moved_bytes(l, workload_), held.holders(tensor));
      return;
    }
    if (!held.has(to, tensor)) need(tensor, to, l.weight, held.holders(tensor));
    for (const state_part& part : state_pieces(tensor, parts, held)) {
      const auto covers = [&](const std::vector<state_part>& all) {
        return std::any_of(all.begin(), all.end(), [&](const state_part& p) { return p.from <= part.from && part.to <= p.to; });
      };
      if (!covers(parts) || covers(held.state_of(to, tensor))) continue;
      std::vector<device_id> holders;
      for (const device_id d : held.holders(tensor)) {
        if (covers(held.state_of(d, tensor))) holders.push_back(d);
      }
      need(tensor, to, moved_state(l, workload_) * part.size(), std::move(holders));
    }
  }
  void need(layer_id tensor, device_id to, bytes volume, std::vector<device_id> holders) {
    const layer& l = model_[tensor];
    if (volume.value() == 0) return;
    std::vector<device_id> sources;
    for (const device_id from : holders) {
      if (now_.present[from.index()] != 0 && open(from, to)) sources.push_back(from);
    }
    if (sources.empty()) return refuse(l, to, holders);
    wanted_.push_back({tensor, to, volume.value(), is_immutable(l, workload_), std::move(sources), {}});
  }
  /// Adds a cache, which has one owner.
  void move_cache(layer_id l, device_id from, device_id to, bytes volume) {
    if (!open(from, to)) return refuse(model_[l], to, {from});
    const request moving{l, to, volume.value(), false, {}, from};
    load(moving, 1);
    pack(moving);
  }

  [[nodiscard]] const hetplan::status& status() const { return status_; }

  /// Returns the fetches. Tensors with one sender come first, then the largest; each takes the sender whose route is free first.
  /// Then each choice is revised while that frees routes sooner: the load of the busiest resource never grows.
  [[nodiscard]] std::vector<fetch> fetches() {
    std::stable_sort(wanted_.begin(), wanted_.end(), [](const request& a, const request& b) {
      return std::tuple(a.sources.size() > 1, -a.volume_bytes, a.to, a.tensor) <
             std::tuple(b.sources.size() > 1, -b.volume_bytes, b.to, b.tensor);
    });
    for (request& w : wanted_) {
      w.from = best_sender(w);
      load(w, 1);
    }
    for (int pass = 0, moved = 1; pass < 8 && moved > 0; ++pass) {
      moved = 0;
      for (request& w : wanted_) {
        if (w.sources.size() < 2) continue;
        load(w, -1);
        const device_id best = best_sender(w);
        if (sooner(w, best, w.from)) {
          w.from = best;
          ++moved;
        }
        load(w, 1);
      }
    }
    for (const request& w : wanted_) pack(w);
    std::vector<fetch> all;
    for (auto& [key, f] : pairs_) {
      f.layers |= ranges::actions::sort | ranges::actions::unique;
      all.push_back(std::move(f));
    }
    return all;
  }

 private:
  struct request {
    layer_id tensor;
    device_id to;
    double volume_bytes;
    bool immutable;
    std::vector<device_id> sources;
    device_id from = {};
  };

  [[nodiscard]] bool open(device_id from, device_id to) const { return is_open(cluster_.network().find(from, to), now_); }
  [[nodiscard]] double work_s(double volume_bytes, const resource_use& u) const {
    return volume_bytes * u.weight / now_.capacity[u.resource.index()].value();
  }
  /// Returns when the last resource of the route finishes its load, and the total load of all its resources.
  [[nodiscard]] std::pair<double, double> busy_with(const request& w, device_id from) const {
    double last = 0, all = 0;
    for (const resource_use& u : cluster_.network().find(from, w.to)->via) {
      const double end = load_s_[u.resource.index()] + work_s(w.volume_bytes, u);
      last = std::max(last, end);
      all += end;
    }
    return {last, all};
  }
  /// Compares up to rounding: the order of summation does not matter.
  [[nodiscard]] bool sooner(const request& w, device_id from, device_id than) const {
    const auto [last, all] = busy_with(w, from);
    const auto [other_last, other_all] = busy_with(w, than);
    return !at_most(other_last, last) || (at_most(last, other_last) && !at_most(other_all, all));
  }
  [[nodiscard]] device_id best_sender(const request& w) const {
    device_id best = w.sources.front();
    for (const device_id from : w.sources) {
      if (sooner(w, from, best)) best = from;
    }
    return best;
  }
  void load(const request& w, int sign) {
    for (const resource_use& u : cluster_.network().find(w.from, w.to)->via)
      load_s_[u.resource.index()] += sign * work_s(w.volume_bytes, u);
  }
  void pack(const request& w) {
    fetch& f = pairs_.try_emplace({w.from, w.to, w.immutable}, fetch{w.from, w.to, {}, w.immutable, {}}).first->second;
    f.volume += bytes(w.volume_bytes);
    f.layers.push_back(w.tensor);
  }
  void refuse(const layer& l, device_id to, const std::vector<device_id>& holders) {
    if (!status_.ok()) return;
    std::string who, there;
    for (const device_id d : holders) {
      std::string& list = now_.present[d.index()] != 0 ? there : who;
      list += (list.empty() ? "" : ", ") + cluster_[d].name;
    }
    const std::string lead = "layer " + std::to_string(l.id.value) + " \"" + l.name + "\" for " + cluster_[to].name + ": ";
    status_ = {outcome::infeasible,
               !there.empty() ? lead + "no way from " + there + (who.empty() ? "" : "; " + who + " is gone")
               : who.empty()  ? lead + "no device holds it"
                              : lead + "no device that is there holds it; " + who + " held it",
               infeasibility_proof{"fetches from one device straight to another", {{"holders with a way", 1, 0}}}};
  }

  const planning_graph& model_;
  const cluster& cluster_;
  const conditions& now_;
  const workload& workload_;
  hetplan::status status_;
  std::vector<request> wanted_;
  std::map<std::tuple<device_id, device_id, bool>, fetch> pairs_;
  std::vector<double> load_s_;  ///< by resource
};

/// Adds, in generation, the cache of every sequence whose device changes. Returns the bytes of lost caches.
HETPLAN_INLINE bytes add_caches(fetch_round& round, const holdings& held, const holdings& needed, const planning_graph& model,
                                const conditions& now, const workload& w) {
  bytes lost;
  if (w.mode != mode::generation || held.sequences() == 0) return lost;
  for (const layer& l : model.layers()) {
    const bytes each = l.kv_bytes_per_token * l.sequence.kept(w.length(l));
    if (each.value() == 0) continue;
    std::map<std::pair<device_id, device_id>, long long> moves;
    for (long long s = 0; s < needed.sequences(); ++s) {
      const device_id from = held.cache_owner(l.id, s), to = needed.cache_owner(l.id, s);
      if (from == to) continue;
      if (!from.valid() || now.present[from.index()] == 0) lost += each;
      else ++moves[{from, to}];
    }
    for (const auto& [ends, count] : moves) round.move_cache(l.id, ends.first, ends.second, each * static_cast<double>(count));
  }
  return lost;
}

HETPLAN_INLINE migration finished(migration m, const hetplan::status& found, std::vector<fetch> fetches) {
  if (m.status.ok()) m.status = found;
  if (!m.status.ok()) m.rounds.clear();
  else if (!fetches.empty()) m.rounds.push_back(std::move(fetches));
  return m;
}

/// Throws invalid_input if the arguments of a switch do not match.
HETPLAN_INLINE void check_switch(const char* who, const holdings& held, const plan& next, const planning_graph& model, const cluster& c,
                                 const conditions& now) {
  const auto require = [&](bool ok, const std::string& what) {
    if (!ok) throw invalid_input(std::string(who) + ": " + what);
  };
  require(held.devices() == c.size() && held.layers() == model.size(),
          "holdings of " + std::to_string(held.devices()) + " devices and " + std::to_string(held.layers()) + " layers; expected " +
              std::to_string(c.size()) + " and " + std::to_string(model.size()));
  require(now.present.size() == c.size() && now.capacity.size() == c.network().resources().size(),
          "the conditions are those of another cluster");
  for (const stage& s : next.stages) {
    for (const assignment& a : s.devices) {
      require(a.device.valid() && a.device.index() < c.size(), "the plan names no device of cluster \"" + c.name() + "\"");
      require(now.present[a.device.index()] != 0,
              "the plan uses \"" + c[a.device].name + "\", which is gone; expected devices that are there");
    }
  }
  require(
      held.sequences() == 0 || next.workload.mode != mode::generation || held.sequences() == next.batch(),
      "caches of " + std::to_string(held.sequences()) + " sequences for a plan of " + std::to_string(next.batch()) + "; expected as many");
}

}  // namespace detail

HETPLAN_INLINE migration delta_migration(const holdings& held, const plan& next, const planning_graph& model, const cluster& c,
                                         const conditions& now) {
  detail::check_switch("delta_migration", held, next, model, c, now);
  const holdings needed = holdings_of(next, model, c.size());
  detail::fetch_round round(model, c, now, next.workload);
  migration m;
  m.lost_cache = detail::add_caches(round, held, needed, model, now, next.workload);
  for (const layer& l : model.layers()) {
    if (held.tensor_of(l.id) != l.id) continue;
    for (const device_id to : needed.holders(l.id)) {
      round.need(l.id, to, needed.state_of(to, l.id), held);
    }
  }
  std::vector<fetch> fetches = round.fetches();
  return detail::finished(std::move(m), round.status(), std::move(fetches));
}

HETPLAN_INLINE migration through_coordinator(const holdings& held, const plan& next, device_id coordinator, const planning_graph& model,
                                             const cluster& c, const conditions& now) {
  detail::check_switch("through_coordinator", held, next, model, c, now);
  if (!coordinator.valid() || coordinator.index() >= c.size() || now.present[coordinator.index()] == 0) {
    throw invalid_input("through_coordinator: coordinator " + std::to_string(coordinator.value) + "; expected a device that is there");
  }
  const holdings needed = holdings_of(next, model, c.size());
  detail::fetch_round gathering(model, c, now, next.workload), handing_out(model, c, now, next.workload);
  for (const layer& l : model.layers()) {
    if (held.tensor_of(l.id) != l.id) continue;
    gathering.need(l.id, coordinator, {{}}, held);
    for (const device_id to : needed.holders(l.id)) {
      if (to != coordinator) handing_out.need(l.id, to, moved_bytes(l, next.workload, needed.state_of(to, l.id)), {coordinator});
    }
  }
  migration m;
  m.lost_cache = detail::add_caches(handing_out, held, needed, model, now, next.workload);
  std::vector<fetch> first = gathering.fetches();
  m = detail::finished(std::move(m), gathering.status(), std::move(first));
  std::vector<fetch> second = handing_out.fetches();
  return detail::finished(std::move(m), handing_out.status(), std::move(second));
}

HETPLAN_INLINE std::optional<tasks::task_graph_builder::handle> add_migration(tasks::task_graph_builder& b, const migration& m,
                                                                              const cluster& c,
                                                                              std::optional<tasks::task_graph_builder::handle> start,
                                                                              int fetch_priority) {
  if (!m.status.ok()) throw invalid_input("add_migration: the migration is infeasible: " + m.status.reason);
  auto before = start;
  for (const auto& round : m.rounds) {
    if (round.empty()) continue;
    const auto after = b.add_barrier();
    for (const fetch& f : round) {
      const route* way = c.network().find(f.from, f.to);
      if (way == nullptr) throw invalid_input("add_migration: no route from \"" + c[f.from].name + "\" to \"" + c[f.to].name + "\"");
      const auto moving = b.add(tasks::transfer{.from = f.from,
                                                .to = f.to,
                                                .priority = fetch_priority,
                                                .route = b.add_route(*way),
                                                .volume_bytes = f.volume.value(),
                                                .latency_s = way->latency.value()});
      if (before) b.depend(*before, moving);
      b.depend(moving, after);
    }
    before = after;
  }
  return before;
}

HETPLAN_INLINE migration_run run_migration(const migration& m, const cluster& c, const simulator_options& options,
                                           const any_energy_model& energy) {
  tasks::task_graph_builder b(c.size());
  static_cast<void>(add_migration(b, m, c));
  const tasks::task_graph g = std::move(b).build();
  const trace t = simulate(g, c.network(), policy_of_plan{sharing::fair_share}, options);
  const evaluation e = measure(g, t, c, energy);
  migration_run run{.ended = t.status.ok(), .time = t.latency, .moved = m.volume()};
  run.carried = e.resource_bytes;
  run.background_left = t.background_left;
  for (std::size_t d = 0; d < c.size(); ++d) {
    run.sent.emplace_back(t.sent_bytes[d]);
    run.received.emplace_back(t.received_bytes[d]);
    run.energy.push_back(e.devices[d].energy);
  }
  return run;
}

HETPLAN_INLINE migration_run run_migration(const migration& m, const cluster& c, const conditions& now, const any_energy_model& energy) {
  return run_migration(m, c, from_the_start(now, c), energy);
}

}  // namespace hetplan::adapt
