// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The step laws that ship: by dominant step in each mode, by sum and largest, by largest step.

#include <algorithm>
#include <limits>

#include <hetplan/plan/step_law.hpp>

namespace hetplan {

/// 1F1B and GPipe in training, by the dominant step: T = D + R with reach D = max_i (M e_i + sum_{j<i} e_j) and
/// rest R = max_s (A_s - sum_{j<s} b_j), steps i from the head, stages s. Microbatches in turn: D = M sum_i e_i.
///
/// Source     Asteroid, section 3.2, eqs. 4-6, regrouped (docs/concepts.md, "the estimate"). Deviation: a link counts its own whole
///            traffic instead of M e, so that both directions of a full-duplex wire overlap.
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

}  // namespace hetplan
