// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What a plan's messages take of the links between its stages, beside what their receivers compute on them; and the last of them.

#include <deque>
#include <vector>

#include <hetplan/plan/staged.hpp>
#include <hetplan/tasks/task_graph.hpp>

namespace HETPLAN_NAMESPACE::adapt {

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
[[nodiscard]] iteration_load load_of(const staged& s);

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

}  // namespace HETPLAN_NAMESPACE::adapt

#ifndef HETPLAN_COMPILED
#include <hetplan/adapt/link_load.ipp>
#endif
