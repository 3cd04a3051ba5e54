// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Where the weights of a running job are, copies included, and what brings them to where the next plan needs them.

#include <optional>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/migration.hpp>
#include <hetplan/adapt/replication.hpp>
#include <hetplan/problem/planning_problem.hpp>

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
class weight_keeper {
 public:
  /// Throws  invalid_input (a period below 1, an unknown archive).
  weight_keeper(const planning_problem& problem, const storage_options& options);
  weight_keeper(const planning_problem&& the_problem_must_outlive_it, const storage_options&) = delete;

  /// A plan runs from now on. A device that it leaves alone keeps what does not change. False: who runs which layers is as
  /// before, there is room for the same backups, and they stay good.
  bool use(const plan& p);
  /// Weights have come to where the running plan does not need them.
  void add(const migration& m);

  // --- backups ---

  /// Iterations until the next backup is due; nothing if there is none to make.
  [[nodiscard]] std::optional<long long> backup_due_in(long long done) const;
  /// What a backup after so many iterations sends; the first of a plan also sends what never changes.
  [[nodiscard]] migration begin_backup(long long done);
  void end_backup() { copied_at_ = begun_at_; }

  // --- moving ---

  /// What a migration may fetch from.
  [[nodiscard]] holdings sources(const conditions& now) const;

  struct way {
    hetplan::adapt::migration migration;
    std::optional<long long> back_to = {};  ///< the model goes back to this iteration
  };
  /// What has to move for a plan, by the way of a reaction; from backups where nobody else is left.
  [[nodiscard]] way to(const plan& next, switching how, const conditions& now) const;
  /// What of that may come while the running plan goes on (split_beside).
  [[nodiscard]] migration beside(const plan& running, const plan& next, const conditions& now) const;

 private:
  /// After a switch: what the plan gives its devices; the others keep what does not change.
  void hold_for(const plan& p);

  /// Has nobody who is there what training changes, as it is now?
  [[nodiscard]] bool lost_what_learns(const conditions& now) const;

  const planning_problem* problem_;
  storage_options options_;
  plan running_;  ///< or one in the same places; no stages: nothing has run yet
  holdings held_;
  replication copies_;
  long long begun_at_ = 0;
  bool sent_once_ = false;              ///< what never changes has been sent with the first backup
  std::optional<long long> copied_at_;  ///< of the last backup that is whole
};

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/weight_keeper.ipp>
#endif
