// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The running plan in smaller or larger passes as links get slower or faster. Nothing moves.

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

// The size of a pass that takes a pipeline's samples through it soonest, in closed form.

/// What a stage, or a link, takes for a pass: so long for each, and so long for each of its samples.
struct pass_time {
  double fixed_s = 0;
  double each_s = 0;

  [[nodiscard]] double of(double samples) const { return fixed_s + each_s * samples; }
};

/// One pass through all of them, and the others behind it at the pace of the slowest: sum (a + b m) + (N/m - 1) max (a + b m).
[[nodiscard]] double pipeline_time_s(std::span<const pass_time> parts, long long samples, double pass_samples);

/// The size, from 1 to N samples, for which that is least: where one part is the slowest for all sizes sqrt(N a_max / (sum b - b_max)),
/// else that of some part, or the size at which two parts are equally slow.
///
/// Complexity  O(P^3) for P parts.
/// Source      ours.
[[nodiscard]] double best_pass_size(std::span<const pass_time> parts, long long samples);

// The same plan in smaller passes: each of a stage's passes halved once or more.

/// How often the passes of a stage are halved.
struct pass_halvings {
  int forward = 0;
  int backward = 0;
  bool fill = false;                                             ///< the first forward once more
  long long drain_from = std::numeric_limits<long long>::max();  ///< backwards from this sample of the pipeline on once more

  friend bool operator==(const pass_halvings&, const pass_halvings&) = default;
};

/// How often a pass of so many samples can be halved: its samples, and each device's share of them, stay whole.
///
/// @param size  the stage's microbatch size, of which its devices have shares.
[[nodiscard]] int most_halvings(const stage& s, int size, long long samples);

/// Cuts for the stages that are halved; a pass that cannot be halved so often is halved as often as it can be. Explicit orders speak of
/// other passes then: they have to be made anew.
///
/// In training devices that share samples go back over those that they went over: both phases of their stage are halved as the one that
/// is halved more often, and its drain is no smaller. Where they are cut apart already the stage stays as it is.
///
/// @param by_stage  by stage id.
/// Complexity       O(stages + layers + passes).
/// Source           DeepCEE, section 3.4; semantics, section 5 (cuts).
[[nodiscard]] plan split_passes(plan p, const planning_graph& model, std::span<const pass_halvings> by_stage);

// What a plan's messages take of the links between its stages, beside what their receivers compute on them; and the last of them.

/// One direction between two stages, in an iteration.
struct link_load {
  transfer_kind kind = transfer_kind::forward;
  stage_id from = {};
  stage_id to = {};
  long long messages = 0;  ///< passes of the sender
  double comm_s = 0;       ///< of all messages, each alone on the network
  double comp_s = 0;       ///< of the receiver, its slowest device, in the phase of the messages
};

struct iteration_load {
  std::vector<link_load> links;               ///< forward before backward, then by stages
  std::vector<double> forward_s, backward_s;  ///< by stage: its slowest device, all passes
  std::vector<int> forwards, backwards;       ///< by stage: passes
};

/// A message takes the largest latency of its transfers and then what the resource takes that they need longest, all of them together:
/// for a single transfer its peak bandwidth. Stages on one device send none.
///
/// @param s    under the conditions that count: of a present_problem, say.
/// Complexity  that of tasks::expand.   Throws  as it.
/// Source      DeepCEE, section 3.4, whose monitors measure the latency of each message; here it follows from capacities and cost model.
[[nodiscard]] iteration_load load_of(const stage_costs& s);

/// The last messages of a link, over as many iterations as it takes to send so many.
class message_window {
 public:
  explicit message_window(long long length) : length_(length) {}

  void add(double comm_s, double comp_s, long long messages);
  /// Have so many come since the last restart?
  [[nodiscard]] bool is_full() const { return fresh_ >= length_; }
  [[nodiscard]] long long missing() const { return is_full() ? 0 : length_ - fresh_; }
  void restart() { fresh_ = 0; }
  /// Communication over computation of the last `length` messages; 0 where there is neither.
  [[nodiscard]] double ratio() const;

 private:
  struct alike {
    double comm_s, comp_s;  ///< of each
    long long messages;
  };
  long long length_, fresh_ = 0, held_ = 0;
  std::deque<alike> last_;
};

/// The paper has a "predefined threshold" and 20 messages; the other numbers are ours.
struct microbatch_options {
  double halve_above = 1;       ///< communication over the receiver's computation: a link above it gets passes of half the size,
  double double_below = 0.5;    ///< one below it of twice the size, up to the planned one
  long long window = 20;        ///< messages of a link between two decisions about it
  int most_halvings = 3;        ///< of a planned pass, beside those of filling and draining
  bool fill = true;             ///< the pass that fills the pipeline has half the size while any link is above
  bool drain = true;            ///< so have backward passes behind the last forward
  bool judged = true;           ///< an answer must serve the job better than what runs does; others compete with it
  seconds thinking = {};        ///< the old sizes go on until this has passed; nothing moves, and looking at 20 numbers takes no time
  std::size_t most_plans = 40;  ///< that are remembered
};

/// Runs one plan, its passes (stage::cuts) halved and merged again: every stage at the size of the poorest link at its ends.
///
/// What it measures: a message's time alone on the network at the capacities that were noticed, less what foreign traffic takes of them
/// (link_load), over the time that the cost model gives its receiver for these samples. So many messages are seen as the iterations had
/// that ended since it was asked last, under the conditions that it knew then; a window goes on over iterations.
///
/// Sizes belong to links, forward and backward apart, and change by one halving a window. Explicit orders and 1F1B in training are made
/// anew by `dispatch` (compact or eager, what serves better) for the conditions, rounded, within the usable memory; GPipe stays GPipe.
/// Where dispatch finds no orders the plan stays. Transfer rules of the plan hold only while its passes are as planned: they name
/// microbatches.
///
/// `judged`: the simulator says under the conditions of the moment whether the answer serves better than what runs, and with it compete the
/// answer without its drain, the plan as given, and the size of best_pass_size for stages and links alike. Not judged, as in the paper, the
/// rule is followed whatever comes of it.
///
/// A device that leaves is waited for. Passes of a split backward may begin inside a forward pass: frameworks whose autograd takes a
/// forward pass whole cannot run that (`drain` off, and no slow link backwards, is theirs).
///
/// Throws      invalid_input: an option out of range; a plan for generation; one with gradients or weights shared out whose orders would
///             have to be made anew; what `stage_costs` throws of the plan.
/// Complexity  a question: an expansion of the plan; a decision: at most eight dispatches and simulations, those that are remembered less.
/// Determinism yes.
/// Source      DeepCEE, section 3.4 and Fig 8. Ours: the judge, the closed form, and what the paper leaves open: thresholds,
///             that a receiver takes the size of its message (it could not begin sooner else), that the fill is the first planned pass.
class microbatch_adapter {
 public:
  microbatch_adapter(const planning_problem& problem, plan first, microbatch_options options = {});
  microbatch_adapter(const planning_problem&& the_problem_must_outlive_it, plan, microbatch_options = {}) = delete;

  [[nodiscard]] reaction react(const situation& s);

 private:
  /// What the passes of a plan are made from.
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
    link_load name;  ///< under the cluster's own conditions
    int most_halvings = 0;
    message_window window;
    long long under_this = 0;  ///< messages under the conditions and the plan of the moment
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
  std::optional<conditions> seen_;  ///< at the last question
  iteration_load load_;             ///< of the running plan, then
  long long done_ = 0;
  seconds since_ = {};  ///< the event that is being answered
};

}  // namespace hetplan::adapt

#ifndef HETPLAN_SEPARATE
#include <hetplan/adapt/microbatch_adapter.ipp>
#endif
