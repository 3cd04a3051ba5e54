// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where the weights of a running job are, copies included, and what brings them to where the next plan needs them.

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/coordinator.hpp>
#include <hetplan/adapt/iteration.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/switch_estimate.hpp>
#include <hetplan/plan/same_placement.hpp>

namespace HETPLAN_NAMESPACE::adapt {

/// Backups of what only one device holds, after every so many iterations.
struct backup_routine {
  long long period = 10;
  backup_content content = backup_content::resume;
};

struct storage_options {
  std::optional<backup_routine> backups = {};  ///< none: what trains on a single device is gone with it
  std::optional<device_id> archive = {};       ///< has a copy of all immutable weights in storage
};

/// Keeps the holdings of a job: the running plan's, immutable weights that lie elsewhere and cost nobody memory, backups.
///
/// A backup is good once all of its bytes have come over; until then the one before it is. When weights come back from a
/// backup that training has changed since, the whole model goes back to its iteration: every device keeps a snapshot of its
/// own from then.
/// Source  Asteroid, section 3.4. What a restored model does with newer weights elsewhere is not said there; going back is ours.
template <class Problem>
class weight_keeper {
 public:
  /// Throws  invalid_input (a period below 1, an unknown archive).
  weight_keeper(const Problem& problem, const storage_options& options)
      : problem_(&problem), options_(options), held_(problem.model, problem.cluster.size()) {
    if (options.backups && options.backups->period < 1) {
      throw invalid_input("backup_routine: period = " + std::to_string(options.backups->period) + "; expected iterations >= 1");
    }
    if (options.archive && (!options.archive->valid() || options.archive->index() >= problem.cluster.size())) {
      throw invalid_input("storage_options: archive " + std::to_string(options.archive->value) + "; expected a device of cluster \"" +
                          problem.cluster.name() + "\"");
    }
  }

  /// A plan runs from now on. A device that it leaves alone keeps what does not change. False: who runs which layers is as
  /// before, there is room for the same backups, and they stay good.
  bool use(const plan& p) {
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
  /// Weights have come to where the running plan does not need them.
  void add(const migration& m) {
    for (const auto& round : m.rounds) {
      for (const fetch& f : round) {
        for (const layer_id l : f.layers) held_.add(f.to, l);
      }
    }
  }

  // --- backups ---

  /// Iterations until the next backup is due; nothing if there is none to make.
  [[nodiscard]] std::optional<long long> backup_due_in(long long done) const {
    if (copies_.backups.empty()) return std::nullopt;
    return begun_at_ + options_.backups->period - done;
  }
  /// What a backup after so many iterations sends; the first of a plan also sends what never changes.
  [[nodiscard]] migration begin_backup(long long done) {
    begun_at_ = done;
    migration m = backup_fetches(copies_, problem_->model, problem_->job.workload);
    return std::exchange(sent_once_, true) ? split_immutable(m).second : m;
  }
  void end_backup() { copied_at_ = begun_at_; }

  // --- moving ---

  /// What a migration may fetch from.
  [[nodiscard]] holdings sources(const conditions& now) const {
    return copied_at_ ? with_backups(held_, copies_, problem_->model, problem_->job.workload, now) : held_;
  }

  struct way {
    hetplan::adapt::migration migration;
    std::optional<long long> back_to = {};  ///< the model goes back to this iteration
  };
  /// What has to move for a plan, by the way of a reaction; from backups where nobody else is left.
  [[nodiscard]] way to(const plan& next, switching how, const conditions& now) const {
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
  /// What of that may come while the running plan goes on (split_beside).
  [[nodiscard]] migration beside(const plan& running, const plan& next, const conditions& now) const {
    return split_beside(to(next, switching::delta, now).migration, running, problem_->model, problem_->cluster, problem_->models.memory)
        .first;
  }

 private:
  /// After a switch: what the plan gives its devices; the others keep what does not change.
  void hold_for(const plan& p) {
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

  /// Has nobody who is there what training changes, as it is now?
  [[nodiscard]] bool lost_what_learns(const conditions& now) const {
    const auto& layers = problem_->model.layers();
    return std::any_of(layers.begin(), layers.end(), [&](const layer& l) {
      if (l.weight.value() == 0 || is_immutable(l, problem_->job.workload)) return false;
      const auto holders = held_.holders(l.id);
      return std::none_of(holders.begin(), holders.end(), [&](device_id d) { return now.present[d.index()] != 0; });
    });
  }

  const Problem* problem_;
  storage_options options_;
  plan running_;  ///< or one in the same places; no stages: nothing has run yet
  holdings held_;
  replication copies_;
  long long begun_at_ = 0;
  bool sent_once_ = false;              ///< what never changes has been sent with the first backup
  std::optional<long long> copied_at_;  ///< of the last backup that is whole
};

}  // namespace HETPLAN_NAMESPACE::adapt
