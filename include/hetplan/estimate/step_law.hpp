// SPDX-License-Identifier: BSL-1.0
#pragma once
/// How the steps of a pipeline add up to its latency: the door for step laws.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <hetplan/core/error.hpp>
#include <hetplan/estimate/latency_estimator.hpp>
#include <hetplan/estimate/pipeline_steps.hpp>

namespace hetplan {

/// An iteration of a pipeline, as far as a law knows it.
struct pipelining {
  int microbatches = 1;
  int in_turn = 1;  ///< microbatches that go the whole way before the next one starts: all where warm-up lets in one, else 1
};

/// Seconds of a stage.
struct stage_times {
  double total_s = 0;       ///< e: forward and backward of a microbatch
  double backward_s = 0;    ///< b: of it, the way back; 0 outside training
  double collective_s = 0;  ///< A: once an iteration
};

/// Seconds of a link between two stages.
struct link_times {
  double total_s = 0;     ///< e: a microbatch there and its gradients back
  double backward_s = 0;  ///< b: of it, the way back
  double own_s = 0;       ///< the whole traffic of an iteration, latency once each way
};

/// What stages and the links between them, from somewhere to the end of the pipeline, amount to. Two numbers, whose meaning is the
/// law's; both 0 behind the last stage.
struct pipeline_tail {
  double reach_s = 0;
  double rest_s = 0;

  friend bool operator==(const pipeline_tail&, const pipeline_tail&) = default;
};

template <class L>
concept extends_by_a_stage = requires(const L& l, const pipelining& p, const stage_times& s, const pipeline_tail& behind) {
  { l.extend(p, s, behind) } -> std::same_as<pipeline_tail>;  // pure, as all of them
};
template <class L>
concept extends_by_a_link = requires(const L& l, const pipelining& p, const link_times& c, const pipeline_tail& behind) {
  { l.extend(p, c, behind) } -> std::same_as<pipeline_tail>;
};
template <class L>
concept tells_response = requires(const L& l, const pipelining& p, const pipeline_tail& whole) {
  { l.response_s(p, whole) } -> std::same_as<double>;  // of all stages; >= 0
};
/// Optional: no less than what is certain when a link with at least these times and then one or more stages come before the tail,
/// that take path_s for one microbatch together and busiest_s in the slowest of them. Without it: response_s(p, behind).
template <class L>
concept tells_bound =
    requires(const L& l, const pipelining& p, const pipeline_tail& behind, const link_times& least, double path_s, double busiest_s) {
      { l.bound_s(p, behind, least, path_s, busiest_s) } -> std::same_as<double>;
    };

/// How the steps of a pipeline add up, from its end: extend a tail by a stage, by the link before it, by the next stage, ..., then the
/// response. What a search minimises; `recipes::dora`, `view_search` and `search_options` take one.
///
/// * All answers are non-decreasing in both numbers of the tail and in every time but backward_s, in which they must not increase (more
///   of the same total on the way back): then a tail that is no worse in both numbers is no worse in any whole, and a search may drop the
///   other. `check_law` finds a law that is not so, with the two points: `invalid_model`, before anything is searched.
/// * Two tails behind one stage of a DAG count as the larger of both numbers.
/// * A law of one's own costs the search one virtual call per question. An answer that is no number, or a response below 0, is
///   `invalid_model`.
/// * The better the optional bound, the faster the search. Any number will do, one below 0 too.
/// * Called from several threads at once where a search has threads.
///
/// Ships: `training_pipeline` (1F1B and GPipe), `inference_pipeline` and `generation_pipeline`, all by the dominant step;
/// `sum_and_largest` (Alpa, Metis); `largest_step` (PipeDream); `any_step_law` (chosen at run time). The recurrence that laws serve, with
/// nothing pruned: partition/brute_force.hpp.
template <class L>
concept step_law = extends_by_a_stage<L> && extends_by_a_link<L> && tells_response<L>;

namespace detail {
struct bound_s_call {
  template <class M, class... A>
  auto operator()(M& m, const A&... a) const -> decltype(m.bound_s(a...));
  template <class M>
  static auto address() -> decltype(&M::bound_s);
};
}  // namespace detail

namespace detail {
/// Likely slips in the optional members' names.
template <class L>
concept nearly_names_bound_s = HETPLAN_HAS_FUNCTION(L, bounds_s) || HETPLAN_HAS_FUNCTION(L, bound_S) || HETPLAN_HAS_FUNCTION(L, boundS) ||
                               HETPLAN_HAS_FUNCTION(L, lower_bound_s) || HETPLAN_HAS_FUNCTION(L, bound_seconds);
}  // namespace detail

template <class L>
consteval bool check_step_law() {
  static_assert(extends_by_a_stage<L>,
                "step_law needs: hetplan::pipeline_tail extend(const hetplan::pipelining&, const hetplan::stage_times&, const "
                "hetplan::pipeline_tail& behind) const");
  static_assert(extends_by_a_link<L>,
                "step_law needs: hetplan::pipeline_tail extend(const hetplan::pipelining&, const hetplan::link_times&, const "
                "hetplan::pipeline_tail& behind) const");
  static_assert(tells_response<L>, "step_law needs: double response_s(const hetplan::pipelining&, const hetplan::pipeline_tail&) const");
  static_assert(tells_bound<L> || !names_member<L, detail::bound_s_call, pipelining, pipeline_tail, link_times, double>,
                "step_law's optional bound is: double bound_s(const hetplan::pipelining&, const hetplan::pipeline_tail& behind, const "
                "hetplan::link_times& least, double path_s, double busiest_s) const");
  static_assert(tells_bound<L> || !detail::nearly_names_bound_s<L>,
                "a step_law's optional member is called bound_s; this law has one of nearly that name");
  return step_law<L>;
}

// The step laws that ship: by dominant step in each mode, by sum and largest, by largest step.

/// 1F1B and GPipe in training, by the dominant step: T = D + R with reach D = max_i (M e_i + sum_{j<i} e_j) and
/// rest R = max_s (A_s - sum_{j<s} b_j), steps i from the head, stages s. Microbatches in turn: D = M sum_i e_i.
///
/// A stage h and its link c before a pipeline with (D, R) give
///
///     D' = max(M e_h, e_h + M e_c, e_h + e_c + D),    R' = max(A_h, R - b_h - b_c)
///
/// so the pair is all that a search needs to know of the stages behind. On a graph of stages there is one pair for each place where the
/// part that is planned reads from the part that is not (a port), sums follow the longest way, and T is that of the worst source.
///
/// Source     Asteroid, section 3.2, eqs. 4-6, regrouped. Deviation: a link counts its own whole traffic instead of M e, so that both
///            directions of a full-duplex wire overlap.
struct training_pipeline {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max(p.microbatches * s.total_s, p.in_turn * s.total_s + behind.reach_s),
            std::max(s.collective_s, behind.rest_s - s.backward_s)};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, p.in_turn * c.total_s + behind.reach_s), behind.rest_s - c.backward_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const {
    return whole.reach_s + std::max(0.0, whole.rest_s);
  }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    return std::max(std::max(p.in_turn * path_s + std::max(c.own_s, p.in_turn * c.total_s + t.reach_s), response_s(p, t)),
                    p.microbatches * busiest_s);
  }
};

/// Inference, by the dominant step: T = max_i (M e_i + sum_{j != i} e_j) is the reach; the rest is the sum, one microbatch's way.
///
/// Source     Asteroid, eqs. 4-6, without the way back.
struct inference_pipeline {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max(p.microbatches * s.total_s + behind.rest_s, s.total_s + behind.reach_s), s.total_s + behind.rest_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s + behind.rest_s, c.total_s + behind.reach_s), c.total_s + behind.rest_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    return std::max(std::max(path_s + c.total_s + t.reach_s, p.microbatches * busiest_s + t.rest_s), c.own_s + t.rest_s);
  }
};

/// Generation, between two tokens of a sequence: T = max(M max_i e_i, sum_i e_i) is the reach, a full pipeline's period or a
/// token's way, whichever is longer; the rest is the sum.
///
/// Source     ours (semantics, section 4). Deviation: the token's way back is left out.
struct generation_pipeline {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const double way_s = s.total_s + behind.rest_s;
    return {std::max({p.microbatches * s.total_s, behind.reach_s, way_s}), way_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, behind.reach_s), c.total_s + behind.rest_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    return std::max(std::max(t.reach_s, path_s + c.total_s + t.rest_s), std::max(p.microbatches * busiest_s, c.own_s));
  }
};

/// T = sum_i e_i + (M - 1) max_i e_i over the steps, links among them: fill once, then wait for the slowest. A stage's
/// collective A is spread over the microbatches, e + A / M. The reach is the second term, the rest the first.
///
/// Source     Alpa (Zheng et al., 2022), section 5.1, eq. 2: its latency of a pipeline; Metis takes the same. Deviation: links
///            are steps.
struct sum_and_largest {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const double step_s = s.total_s + s.collective_s / p.microbatches;
    return {std::max((p.microbatches - 1) * step_s, behind.reach_s), step_s + behind.rest_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const {
    return {std::max((p.microbatches - 1) * c.total_s, behind.reach_s), c.total_s + behind.rest_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s + whole.rest_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    return std::max(t.reach_s, (p.microbatches - 1) * std::max(busiest_s, c.total_s)) + std::max(path_s, busiest_s) + c.total_s + t.rest_s;
  }
};

/// T = the largest of all stages' work, collectives and links' traffic of an iteration, the reach: a pipeline that never fills
/// or drains, whose reductions hide behind work.
///
/// Source     PipeDream (Narayanan et al., 2019), section 3.1: the slowest stage of its optimizer, where synchronisation
///            overlaps with computation.
struct largest_step {
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    return {std::max({p.microbatches * s.total_s, s.collective_s, behind.reach_s}), 0};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, behind.reach_s), 0};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double, double busiest_s) const {
    return std::max({t.reach_s, p.microbatches * busiest_s, c.own_s});
  }
};

/// Zero-bubble pipelines, whose gradients of weights fill what gaps there are: T = max_s (M e_s + max(0, w_s - min(M, K) f_s) + A_s), with
/// the window w_s = f_s + b_{s+1} + c_s + w_{s+1} between a stage's first forward and the end of the gradient that follows from it, and f
/// and b the shares of forward and input gradient in a stage's time e, c a microbatch there and back. The reach is the largest term, the
/// rest the window with the stage's own b. Links' whole traffic counts as a stage does.
///
/// Source     the bound on the longest span of Qi et al., Zero Bubble Pipeline Parallelism, 2023, for stages that differ
/// (docs/semantics.md,
///            section 7). Deviation: one split of e for all stages; the best order of a pipeline may take longer, and transfers share
///            links.
struct split_backward {
  double forward_share = 1.0 / 3;                        ///< f / e of the model
  double input_share = 1.0 / 3;                          ///< b / e
  int most_in_flight = std::numeric_limits<int>::max();  ///< K: microbatches whose activations a stage holds at once

  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const double forward_s = forward_share * s.total_s, window_s = forward_s + behind.rest_s;
    const double idle_s = std::max(0.0, window_s - std::min(p.microbatches, most_in_flight) * forward_s);
    return {std::max(behind.reach_s, p.microbatches * s.total_s + idle_s + s.collective_s), window_s + input_share * s.total_s};
  }
  [[nodiscard]] pipeline_tail extend(const pipelining&, const link_times& c, const pipeline_tail& behind) const {
    return {std::max(c.own_s, behind.reach_s), c.total_s + behind.rest_s};
  }
  [[nodiscard]] double response_s(const pipelining&, const pipeline_tail& whole) const { return whole.reach_s; }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double, double busiest_s) const {
    return std::max({t.reach_s, p.microbatches * busiest_s, c.own_s});
  }
};

static_assert(check_step_law<training_pipeline>() && check_step_law<inference_pipeline>() && check_step_law<generation_pipeline>() &&
              check_step_law<sum_and_largest>() && check_step_law<largest_step>() && check_step_law<split_backward>());

// A step law chosen at run time, and what it says of a whole plan.

namespace detail {

[[nodiscard]] std::string law_text(const pipeline_tail& t);
[[nodiscard]] std::string law_text(const stage_times& s);
[[nodiscard]] std::string law_text(const link_times& c);
[[noreturn]] void refuse_law(const pipelining& p, const std::string& what);
[[noreturn]] void refuse_tail(const pipelining& p, const std::string& step, const pipeline_tail& behind, const pipeline_tail& given);
[[noreturn]] void refuse_seconds(const pipelining& p, const char* member, const pipeline_tail& t, double given, const char* expected);

/// A user's law: one virtual call per question. Answers that are no numbers, or a response below 0, are invalid_model.
class erased_step_law {
 public:
  erased_step_law() = default;
  template <class L>
  explicit erased_step_law(L law) : law_(std::make_shared<holder<L>>(std::move(law))) {}

  [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const {
    const pipeline_tail x = law_->extend(p, s, behind);
    if (std::isnan(x.reach_s) || std::isnan(x.rest_s)) refuse_tail(p, law_text(s), behind, x);
    return x;
  }
  [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const {
    const pipeline_tail x = law_->extend(p, c, behind);
    if (std::isnan(x.reach_s) || std::isnan(x.rest_s)) refuse_tail(p, law_text(c), behind, x);
    return x;
  }
  [[nodiscard]] double response_s(const pipelining& p, const pipeline_tail& whole) const {
    const double r = law_->response_s(p, whole);
    if (!(r >= 0)) refuse_seconds(p, "response_s", whole, r, "a number >= 0");
    return r;
  }
  [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, const link_times& c, double path_s, double busiest_s) const {
    const double b = law_->bound_s(p, t, c, path_s, busiest_s);
    if (std::isnan(b)) refuse_seconds(p, "bound_s", t, b, "a number");
    return b;
  }

 private:
  struct interface {
    virtual ~interface() = default;
    [[nodiscard]] virtual pipeline_tail extend(const pipelining&, const stage_times&, const pipeline_tail&) const = 0;
    [[nodiscard]] virtual pipeline_tail extend(const pipelining&, const link_times&, const pipeline_tail&) const = 0;
    [[nodiscard]] virtual double response_s(const pipelining&, const pipeline_tail&) const = 0;
    [[nodiscard]] virtual double bound_s(const pipelining&, const pipeline_tail&, const link_times&, double, double) const = 0;
  };
  template <class L>
  struct holder final : interface {
    explicit holder(L l) : law(std::move(l)) {}
    [[nodiscard]] pipeline_tail extend(const pipelining& p, const stage_times& s, const pipeline_tail& behind) const override {
      return law.extend(p, s, behind);
    }
    [[nodiscard]] pipeline_tail extend(const pipelining& p, const link_times& c, const pipeline_tail& behind) const override {
      return law.extend(p, c, behind);
    }
    [[nodiscard]] double response_s(const pipelining& p, const pipeline_tail& whole) const override { return law.response_s(p, whole); }
    [[nodiscard]] double bound_s(const pipelining& p, const pipeline_tail& t, [[maybe_unused]] const link_times& c,
                                 [[maybe_unused]] double path_s, [[maybe_unused]] double busiest_s) const override {
      if constexpr (tells_bound<L>) return law.bound_s(p, t, c, path_s, busiest_s);
      else return law.response_s(p, t);
    }
    L law;
  };
  std::shared_ptr<const interface> law_;
};

static_assert(check_step_law<erased_step_law>());

}  // namespace detail

/// Holds any step law by value; copies share a user's. A search asks those that ship by their own types, any other by one virtual
/// call per question: nothing of the search is compiled anew for it.
class any_step_law {
 public:
  /// The dominant step's law of a mode.
  explicit any_step_law(mode m) : number_(m == mode::training ? 0 : m == mode::inference ? 1 : 2) {}
  template <class L>
    requires(!std::same_as<L, any_step_law> && !std::same_as<L, mode>)
  any_step_law(L law) : number_(number_of<L>(shipped{})) {
    static_assert(check_step_law<L>());
    if constexpr (step_law<L>) {
      if (is_users()) users_ = detail::erased_step_law(std::move(law));
    }
  }

  /// Is it none of those that ship?
  [[nodiscard]] bool is_users() const { return number_ == std::tuple_size_v<shipped>; }
  /// Calls f with the law.
  template <class F>
  decltype(auto) visit(F&& f) const {
    switch (number_) {
      case 0: return f(training_pipeline{});
      case 1: return f(inference_pipeline{});
      case 2: return f(generation_pipeline{});
      case 3: return f(sum_and_largest{});
      case 4: return f(largest_step{});
      default: return f(users_);
    }
  }

  /// Of a whole plan: a latency_estimator. Tails behind one stage, and at last all sources, count as the larger of both numbers.
  ///
  /// Complexity  O(stages + links).
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const;

 private:
  using shipped = std::tuple<training_pipeline, inference_pipeline, generation_pipeline, sum_and_largest, largest_step>;
  /// The law's place among those that ship; their number for any other.
  template <class L, class... Laws>
  static constexpr std::size_t number_of(std::tuple<Laws...>) {
    std::size_t n = 0;
    static_cast<void>(((std::same_as<L, Laws> || (++n, false)) || ...));
    return n;
  }

  std::size_t number_;
  detail::erased_step_law users_ = {};
};

static_assert(check_latency_estimator<any_step_law>());

/// How a plan's microbatches pass: all in turn where every stage holds one at a time.
[[nodiscard]] pipelining pipelining_of(const pipeline_steps& steps);

/// Throws invalid_model where, on a grid of points, an answer is not a number, falls where it must not (see step_law), or the bound
/// exceeds the response of a pipeline that it should bound: with the two points.
///
/// Complexity  some thousand questions.
void check_law(const any_step_law& law, const pipelining& p);

}  // namespace hetplan

#ifndef HETPLAN_SEPARATE
#include <hetplan/estimate/step_law.ipp>
#endif
