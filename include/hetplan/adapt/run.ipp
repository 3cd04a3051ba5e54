// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/adapt/run.hpp>

namespace hetplan::adapt {

HETPLAN_INLINE weight_keeper::weight_keeper(const planning_problem& problem, const storage_options& options)
    : problem_(&problem), options_(options), held_(problem.model, problem.cluster.size()) {
  if (options.backups && options.backups->period < 1) {
    throw invalid_input("backup_routine: period = " + std::to_string(options.backups->period) + "; expected iterations >= 1");
  }
  if (options.archive && (!options.archive->valid() || options.archive->index() >= problem.cluster.size())) {
    throw invalid_input("storage_options: archive " + std::to_string(options.archive->value) + "; expected a device of cluster \"" +
                        problem.cluster.name() + "\"");
  }
}

HETPLAN_INLINE bool weight_keeper::use(const plan& p) {
  const bool moved = !same_placement(p, running_);
  running_ = p;
  if (moved) hold_for(p);
  else give_caches(held_, p);
  replication copies;
  if (options_.backups)
    copies = replicate_by_topology(p, problem_->model, problem_->cluster, options_.backups->content, problem_->models.memory);
  if (!moved && copies == copies_) return false;
  copies_ = std::move(copies);
  copied_at_.reset();
  sent_once_ = false;
  return true;
}

HETPLAN_INLINE void weight_keeper::add(const migration& m) {
  for (const auto& round : m.rounds) {
    for (const fetch& f : round) {
      for (const layer_id l : f.layers) held_.add(f.to, l);
    }
  }
}

HETPLAN_INLINE std::optional<long long> weight_keeper::backup_due_in(long long done) const {
  if (copies_.backups.empty()) return std::nullopt;
  return begun_at_ + options_.backups->period - done;
}

HETPLAN_INLINE migration weight_keeper::begin_backup(long long done) {
  begun_at_ = done;
  migration m = backup_fetches(copies_, problem_->model, problem_->job.workload);
  return std::exchange(sent_once_, true) ? split_immutable(m).second : m;
}

HETPLAN_INLINE holdings weight_keeper::sources(const conditions& now) const {
  return copied_at_ ? with_backups(held_, copies_, problem_->model, problem_->job.workload, now) : held_;
}

HETPLAN_INLINE weight_keeper::way weight_keeper::to(const plan& next, switching how, const conditions& now) const {
  if (how == switching::at_no_cost) return {};
  const auto from = [&](const holdings& sources) {
    const auto& [model, cluster] = std::tie(problem_->model, problem_->cluster);
    if (how != switching::through_coordinator) return delta_migration(sources, next, model, cluster, now);
    return through_coordinator(sources, next, elect_coordinator(cluster, now), model, cluster, now);
  };
  way found{from(held_)};
  if (found.migration.status.ok() || !copied_at_) return found;
  found.migration = from(sources(now));
  if (lost_what_learns(now)) found.back_to = copied_at_;
  return found;
}

HETPLAN_INLINE migration weight_keeper::beside(const plan& running, const plan& next, const conditions& now) const {
  return split_beside(to(next, switching::delta, now).migration, running, problem_->model, problem_->cluster, problem_->models.memory)
      .first;
}

HETPLAN_INLINE void weight_keeper::hold_for(const plan& p) {
  holdings held = holdings_of(p, problem_->model, problem_->cluster.size());
  std::vector<char> leaves_alone;
  for (const device& d : problem_->cluster.devices()) leaves_alone.push_back(adapt::uses(p, d.id) ? 0 : 1);
  for (const layer& l : problem_->model.layers()) {
    if (!is_immutable(l, problem_->job.workload)) continue;
    if (options_.archive) held.add(*options_.archive, l.id);
    for (const device& d : problem_->cluster.devices()) {
      if (leaves_alone[d.id.index()] != 0 && held_.has(d.id, l.id)) held.add(d.id, l.id);
    }
  }
  held_ = std::move(held);
}

HETPLAN_INLINE bool weight_keeper::lost_what_learns(const conditions& now) const {
  const auto& layers = problem_->model.layers();
  return std::any_of(layers.begin(), layers.end(), [&](const layer& l) {
    if (l.weight.value() == 0 || is_immutable(l, problem_->job.workload)) return false;
    const auto holders = held_.holders(l.id);
    return std::none_of(holders.begin(), holders.end(), [&](device_id d) { return now.present[d.index()] != 0; });
  });
}

HETPLAN_INLINE std::size_t ledger::number_of(const plan& p, const std::optional<evaluation>& predicted) {
  const auto it = std::find(out_.plans.begin(), out_.plans.end(), p);
  if (it != out_.plans.end()) return static_cast<std::size_t>(it - out_.plans.begin());
  if (predicted) out_.predictions.emplace(out_.plans.size(), *predicted);
  out_.plans.push_back(p);
  return out_.plans.size() - 1;
}

HETPLAN_INLINE void ledger::ran(double start_s, std::size_t plan, long long count, const iteration& each, bool violates) {
  enter({activity::running, start_s, start_s + static_cast<double>(count) * each.took_s, plan, count, each.response_s, 0, violates},
        each.device_J, static_cast<double>(count), each.took_s);
  out_.iterations += count;
  if (violates) out_.violations += count;
}

HETPLAN_INLINE void ledger::passed(activity what, double start_s, double end_s, std::size_t plan, std::span<const double> device_J) {
  enter({what, start_s, end_s, plan, 0, 0, 0, false}, device_J, 1);
  if (what == activity::stalled || what == activity::migrating) out_.stall_s += end_s - start_s;
  if (what == activity::cut_off) ++out_.cut_off;
}

HETPLAN_INLINE void ledger::lose(long long count) {
  out_.iterations -= count;
  out_.lost += count;
}

HETPLAN_INLINE void ledger::moved(double volume_bytes, std::span<const double> device_J) {
  out_.moved_bytes += volume_bytes;
  charge(device_J, 1, nullptr);
}

HETPLAN_INLINE void ledger::enter(stretch s, std::span<const double> device_J, double times, double each_s) {
  if (s.end_s <= s.start_s) return charge(device_J, times, nullptr);
  charge(device_J, times, &s);
  if (!out_.stretches.empty() && alike(out_.stretches.back(), s) && each_s == each_s_) {
    stretch& last = out_.stretches.back();
    last.end_s = s.end_s;
    last.iterations += s.iterations;
    last.energy_J += s.energy_J;
  } else {
    out_.stretches.push_back(s);
    each_s_ = each_s;
  }
}

HETPLAN_INLINE void ledger::charge(std::span<const double> device_J, double times, stretch* s) {
  for (std::size_t d = 0; d < device_J.size(); ++d) {
    out_.device_energy_J[d] += times * device_J[d];
    out_.energy_J += times * device_J[d];
    if (s != nullptr) s->energy_J += times * device_J[d];
  }
}

HETPLAN_INLINE bool ledger::alike(const stretch& a, const stretch& b) {
  return a.what == b.what && a.what != activity::cut_off && a.plan == b.plan && a.response_s == b.response_s && a.violates == b.violates;
}

}  // namespace hetplan::adapt
