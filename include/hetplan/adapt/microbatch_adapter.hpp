// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The microbatch adapter: smaller or larger passes of the running plan as links get slower or faster. No weights move.

#include <compare>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hetplan/adapt/adaptation_policy.hpp>
#include <hetplan/adapt/environment.hpp>
#include <hetplan/adapt/known_plans.hpp>
#include <hetplan/core/version.hpp>
#include <hetplan/graph/planning_graph.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/stage_costs.hpp>
#include <hetplan/problem/planning_problem.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace hetplan::adapt {

/// The time of a stage or link per pass: a fixed part and a part for each sample.
struct pass_time {
  double fixed_s = 0;
  double each_s = 0;

  [[nodiscard]] double of(double samples) const { return fixed_s + each_s * samples; }
};

/// Returns the time of one pass through all parts and of the others at the slowest pace: sum (a + b m) + (N/m - 1) max (a + b m).
[[nodiscard]] double pipeline_time_s(std::span<const pass_time> parts, long long samples, double pass_samples);

/// Returns the pass size from 1 to N samples with the least pipeline_time_s. If one part is the slowest for all sizes, it is sqrt(N
/// a_max / (sum b - b_max)); otherwise that of some part, or the size at which two parts are equally slow.
///
/// Complexity  O(P^3) for P parts.
/// Source      ours.
[[nodiscard]] double best_pass_size(std::span<const pass_time> parts, long long samples);

/// The number of halvings of a stage's passes.
struct pass_halvings {
  int forward = 0;
  int backward = 0;
  bool fill = false;                                             ///< true to halve the first forward pass once more
  long long drain_from = std::numeric_limits<long long>::max();  ///< first sample of the backward passes that are halved once more

  friend bool operator==(const pass_halvings&, const pass_halvings&) = default;
};

/// Returns how often a pass of so many samples can be halved such that its samples and each device's share stay integral.
/// @param size  the stage's microbatch size, which its devices share.
[[nodiscard]] int most_halvings(const stage& s, int size, long long samples);

/// Returns the plan with cuts for the halved stages; passes are halved as often as they can be. Explicit orders have to be made anew.
///
/// In training, devices that share samples run backward over the samples of their forward. So both phases of their stage are halved as
/// often as the more halved one, and its drain is not smaller. A stage with different cuts in the two phases stays as it is.
///
/// @param by_stage  by stage id.
/// Complexity       O(stages + layers + passes).
/// Source           DeepCEE, section 3.4; semantics, section 5 (cuts).
[[nodiscard]] plan split_passes(plan p, const planning_graph& model, std::span<const pass_halvings> by_stage);

/// The load of one direction between two stages in an iteration.
struct link_load {
  transfer_kind kind = transfer_kind::forward;
  stage_id from = {};
  stage_id to = {};
  long long messages = 0;  ///< passes of the sender
  double comm_s = 0;       ///< of all messages, each alone on the network
  double comp_s = 0;       ///< of the receiver's slowest device in the phase of the messages
};

struct iteration_load {
  std::vector<link_load> links;               ///< forward before backward, then by stages
  std::vector<double> forward_s, backward_s;  ///< by stage: slowest device, all passes
  std::vector<int> forwards, backwards;       ///< by stage: number of passes
};

/// Returns the loads of an iteration. A message takes the largest latency of its transfers plus the time of its most loaded resource;
/// for a single transfer that is the time at peak bandwidth. Stages on one device send no messages.
///
/// @param s    under the conditions of interest: for example of a present_problem.
/// Complexity  that of tasks::expand.   Throws  as tasks::expand.
/// Source      DeepCEE, section 3.4, whose monitors measure the latency of each message; here capacities and the cost model give it.
[[nodiscard]] iteration_load load_of(const stage_costs& s);

/// The last messages of a link, over as many iterations as it takes to fill the window.
class message_window {
 public:
  explicit message_window(long long length) : length_(length) {}

  void add(double comm_s, double comp_s, long long messages);
  /// True if a full window of messages has come since the last restart.
  [[nodiscard]] bool is_full() const { return fresh_ >= length_; }
  [[nodiscard]] long long missing() const { return is_full() ? 0 : length_ - fresh_; }
  void restart() { fresh_ = 0; }
  /// Returns communication over computation for the last `length` messages; 0 without communication.
  [[nodiscard]] double ratio() const;

 private:
  struct alike {
    double comm_s, comp_s;  ///< per message
    long long messages;
  };
  long long length_, fresh_ = 0, held_ = 0;
  std::deque<alike> last_;
};

/// Options of `microbatch_adapter`. The paper has a "predefined threshold" and 20 messages; the other numbers are ours.
struct microbatch_options {
  double halve_above = 1;       ///< communication over the receiver's computation above which a link's passes are halved
  double double_below = 0.5;    ///< ratio below which they are doubled, up to the planned size
  long long window = 20;        ///< messages of a link between two decisions
  int most_halvings = 3;        ///< of a planned pass, in addition to filling and draining
  bool fill = true;             ///< true to halve the pass that fills the pipeline while any link is above
  bool drain = true;            ///< true to halve backward passes behind the last forward
  bool judged = true;           ///< true to adopt only what serves the job better; other candidates compete
  seconds thinking = {};        ///< decision time, in which the old sizes continue; nothing moves, and comparing 20 numbers takes no time
  std::size_t most_plans = 40;  ///< remembered at most
};

/// Runs one plan with passes (stage::cuts) that are halved and merged again: each stage at the pass size of its slowest link.
///
/// A link's ratio is a message's time alone on the network, at the noticed capacities less foreign traffic (link_load), over the cost
/// model's time of its receiver for these samples. Messages are counted by the iterations that ended since the last call, under the
/// conditions known then; a window spans iterations.
///
/// Sizes belong to links, separately for forward and backward, and change by one halving per window. `dispatch` (compact or eager,
/// whichever serves better) makes explicit orders, and 1F1B in training, anew for the rounded conditions within the usable memory; GPipe
/// stays GPipe. If dispatch finds no orders, the plan stays. Transfer rules apply only while passes are as planned: they name microbatches.
///
/// `judged`: the simulator decides under current conditions whether the answer serves better than the running plan. The answer without its
/// drain, the plan as given, and the size of best_pass_size for stages and links compete. Not judged: the paper's rule decides.
///
/// The adapter waits for a device that leaves. Passes of a split backward may begin inside a forward pass. Frameworks whose autograd takes
/// a forward pass as a whole cannot run that; they need `drain` off and no slow backward link.
///
/// Throws      invalid_input: an option out of range; a plan for generation; a plan with sharded gradients or weights whose orders would
///             have to be made anew; the errors of `stage_costs` for the plan.
/// Complexity  a call: one expansion of the plan; a decision: at most eight dispatches and simulations, fewer if remembered.
/// Determinism yes.
/// Source      DeepCEE, section 3.4 and Fig 8. Ours: the judge, the closed form, and what the paper leaves open: thresholds, the size of a
///             message for its receiver (it could not begin sooner otherwise), the first planned pass as the fill.
class microbatch_adapter {
 public:
  microbatch_adapter(const planning_problem& problem, plan first, microbatch_options options = {});
  microbatch_adapter(const planning_problem&& the_problem_must_outlive_it, plan, microbatch_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  /// The halvings of a plan's passes.
  struct sizes {
    std::vector<int> halved;  ///< by link
    bool fill = false, drain = false;
    friend auto operator<=>(const sizes&, const sizes&) = default;
  };
  struct candidate {
    sizes of;
    hetplan::plan plan;
  };
  struct watched_link {
    link_load name;  ///< under nominal conditions
    int most_halvings = 0;
    message_window window;
    long long under_this = 0;  ///< messages under the current conditions and plan
    bool poor = false, settled = false;
  };

  [[nodiscard]] iteration_load load_under(const conditions& now, const situation& s, const plan& p) const;
  void watch(const situation& s);
  [[nodiscard]] std::optional<seconds> next_question(const situation& s) const;
  [[nodiscard]] std::optional<sizes> decide();

  [[nodiscard]] std::vector<pass_halvings> halvings(const sizes& z) const;
  [[nodiscard]] const std::vector<plan>& plans_of(const sizes& z, const present_problem& there, const std::vector<double>& moment);
  [[nodiscard]] std::vector<plan> made(const sizes& z, const present_problem& there) const;
  [[nodiscard]] std::optional<sizes> closed_form(const situation& s, const present_problem& there, const std::vector<double>& moment);
  [[nodiscard]] std::string text_of(const sizes& z) const;

  const planning_problem* problem_;
  plan first_;
  microbatch_options options_;
  bool dispatches_ = false, splits_backward_ = false;
  known_plans known_;
  std::map<std::pair<sizes, std::vector<double>>, std::vector<plan>> made_;
  std::vector<watched_link> links_;
  sizes running_;
  std::optional<candidate> coming_;
  std::optional<conditions> seen_;  ///< at the last call
  iteration_load load_;             ///< of the running plan at the last call
  long long done_ = 0;
  seconds since_ = {};  ///< time of the event that is being answered
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/microbatch_adapter.ipp>
#endif
