// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The door for latency estimators, and the two that ship: dominant step and critical path.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <vector>

#include <hetplan/plan/pipeline_steps.hpp>

namespace hetplan {

template <class E>
concept estimates_latency = requires(const E& e, const pipeline_steps& s) {
  { e.latency(s) } -> std::same_as<seconds>;  // >= 0; infinite where a route is missing; pure
};
/// Seconds of an iteration (training, inference) or between two tokens of a sequence (generation).
template <class E>
concept latency_estimator = estimates_latency<E>;

template <class E>
consteval bool check_latency_estimator() {
  static_assert(estimates_latency<E>, "latency_estimator needs: hetplan::seconds latency(const hetplan::pipeline_steps&) const");
  return latency_estimator<E>;
}

/// The step whose work over all microbatches, begun when the first microbatch reaches it, ends last.
///
/// Stage h with total e_h and collective A_h, links (h,t) with total e_ht, backward b_ht and own traffic own_ht, M
/// microbatches; from the sinks to the sources, the best over all links that leave h:
///
///     training    D(h) = max(M e_h, max_t [e_h + max(own_ht, e_ht + D(t))]),  R(h) = max(A_h, max_t [R(t) - b_ht - b_h]);
///                 T = max D + max R, each over the sources; where every stage holds one microbatch at a time, they take
///                 turns: M e_h and M e_ht in place of the second e_h and of e_ht in D
///     inference   S(h) = e_h + max_t (e_ht + S(t)),
///                 Z(h) = max(M e_h + max_t (e_ht + S(t)), e_h + max_t max(own_ht + S(t), e_ht + Z(t)));  T = max Z
///     generation  D(h) = max(M e_h, max_t max(own_ht, D(t)));  time between tokens = max(D, S): a full pipeline's period
///                 or a token's way, whichever is longer
///
/// D' and R' grow with D, R, e and own: a part of a pipeline that is no worse in both is no worse in any whole.
///
/// Complexity   O(stages + links).
/// Source       Asteroid, section 3.2, eqs. 4-6: on a chain of single devices with own = M e this is its
///              max_s (T_w + T_e + T_a). Deviations: any DAG of stages; latency and full-duplex wires in own; inference
///              and generation, where the token's way back is left out.
struct dominant_step {
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const {
    if (!steps.connected()) return seconds(std::numeric_limits<double>::infinity());
    switch (steps.mode) {
      case mode::training: return seconds(training_s(steps));
      case mode::inference: return seconds(inference_s(steps));
      case mode::generation: return seconds(generation_s(steps));
    }
    return {};
  }

 private:
  [[nodiscard]] static double training_s(const pipeline_steps& steps) {
    const double M = steps.microbatches;
    const bool one_at_a_time = std::all_of(steps.stages.begin(), steps.stages.end(), [](const auto& s) { return s.in_flight == 1; });
    const double turns = one_at_a_time ? M : 1;
    std::vector<double> D(steps.stages.size()), R(steps.stages.size());
    double worst_D = 0, worst_R = 0;
    for (std::size_t h = steps.stages.size(); h-- > 0;) {
      const auto& stage = steps.stages[h];
      D[h] = M * stage.total_s;
      R[h] = stage.collective_s;
      for (const std::size_t l : stage.out) {
        const auto& link = steps.links[l];
        D[h] = std::max(D[h], turns * stage.total_s + std::max(link.own_s, turns * link.total_s + D[link.to]));
        R[h] = std::max(R[h], R[link.to] - link.backward_s - stage.backward_s);
      }
      if (!stage.in.empty()) continue;
      worst_D = std::max(worst_D, D[h]);
      worst_R = std::max(worst_R, R[h]);
    }
    return worst_D + worst_R;
  }

  /// The way of one microbatch from each stage to the end [s].
  [[nodiscard]] static std::vector<double> ways_s(const pipeline_steps& steps) {
    std::vector<double> S(steps.stages.size());
    for (std::size_t h = S.size(); h-- > 0;) {
      double behind = 0;
      for (const std::size_t l : steps.stages[h].out) behind = std::max(behind, steps.links[l].total_s + S[steps.links[l].to]);
      S[h] = steps.stages[h].total_s + behind;
    }
    return S;
  }

  [[nodiscard]] static double inference_s(const pipeline_steps& steps) {
    const double M = steps.microbatches;
    const std::vector<double> S = ways_s(steps);
    std::vector<double> Z(S.size());
    double worst = 0;
    for (std::size_t h = S.size(); h-- > 0;) {
      const auto& stage = steps.stages[h];
      Z[h] = M * stage.total_s + (S[h] - stage.total_s);
      for (const std::size_t l : stage.out) {
        const auto& link = steps.links[l];
        Z[h] = std::max(Z[h], stage.total_s + std::max(link.own_s + S[link.to], link.total_s + Z[link.to]));
      }
      if (stage.in.empty()) worst = std::max(worst, Z[h]);
    }
    return worst;
  }

  [[nodiscard]] static double generation_s(const pipeline_steps& steps) {
    const std::vector<double> S = ways_s(steps);
    double worst = 0;
    for (std::size_t h = 0; h < S.size(); ++h) {  // every stage and link lies behind some source
      worst = std::max(worst, steps.microbatches * steps.stages[h].total_s);
      if (steps.stages[h].in.empty()) worst = std::max(worst, S[h]);
    }
    for (const auto& link : steps.links) worst = std::max(worst, link.own_s);
    return worst;
  }
};

/// Warm-up, steady state and drain of a 1F1B pipeline around its dominant step d.
///
/// Steps 1..S of a chain are its stages and links in turn, K_i microbatches in flight at step i: the plan's at a stage
/// (2 depth - 1 by default), one more than at its consumer at a link, at most the producer's. With f and b the times of a
/// step and f^, b^ what keeps its next microbatch waiting (a link's latency left out),
///
///     start  = max_{p >= d} [ sum_{i <= p} f_i + (K_p - 1) max_{i <= p} f^_i + sum_{d < i <= p} b_i ]
///     end(s) = max_{p >= max(s,d)} [ sum_{s <= i <= p} b_i + (K_p - 1) max_{i <= p} b^_i + sum_{d < i <= p} f_i ]
///     T      = max( start + (M - K_d) period_d + max_s [ end(s) + collective_s ],
///                   max over stages i of [ sum_{j < i} total_j + ceil(M / K_i) sum_{j >= i} total_j ] )
///
/// where the second line says that K_i microbatches at a time go from i to the end and back (with K = 1 everything waits).
/// The period of a stage is its total, that of a link its wire time (own - total) / (M - 1); d is the step whose own
/// work, begun when the first microbatch reaches it, ends last. On a DAG T is the largest over the stages v of the value
/// along the longest way from a source to a sink through v. Inference and generation: as dominant_step.
/// Not monotone (a pipeline better in every step can score worse): re-score with it, prune nothing.
///
/// Complexity   O(stages^2 * (stages + links)) at most.
/// Determinism  ties between ways: the smaller stage.
/// Source       Dora, appendix A, Algorithm 2. Deviations: as printed it counts warm-up and drain twice; latency and
///              full-duplex wires; other warm-ups than 2 depth - 1 and, for them, the round trips; DAGs.
struct critical_path {
  [[nodiscard]] seconds latency(const pipeline_steps& steps) const {
    if (steps.mode != mode::training || !steps.connected()) return dominant_step{}.latency(steps);
    const extent ways = longest_ways(steps);
    double worst = 0;
    for (std::size_t v = 0; v < steps.stages.size(); ++v) {
      worst = std::max(worst, chain_s(way_through(steps, ways, v), steps.microbatches));
    }
    return seconds(worst);
  }

 private:
  struct step {
    double forward_s, backward_s;            ///< of a microbatch
    double next_forward_s, next_backward_s;  ///< what the next microbatch waits
    double total_s, period_s, own_s;
    double collective_s;
    int in_flight;
  };
  /// By stage: the link by which the longest way enters and leaves it (number of links: none).
  struct extent {
    std::vector<std::size_t> before, after;
  };

  [[nodiscard]] static extent longest_ways(const pipeline_steps& steps) {
    const std::size_t n = steps.stages.size(), none = steps.links.size();
    extent way{std::vector<std::size_t>(n, none), std::vector<std::size_t>(n, none)};
    std::vector<double> to(n, 0), from(n, 0);  // without the stage itself
    for (std::size_t v = 0; v < n; ++v) {
      for (const std::size_t l : steps.stages[v].in) {
        const auto& link = steps.links[l];
        const double length = to[link.from] + steps.stages[link.from].total_s + link.total_s;
        if (way.before[v] != none && length <= to[v]) continue;
        to[v] = length;
        way.before[v] = l;
      }
    }
    for (std::size_t v = n; v-- > 0;) {
      for (const std::size_t l : steps.stages[v].out) {
        const auto& link = steps.links[l];
        const double length = link.total_s + steps.stages[link.to].total_s + from[link.to];
        if (way.after[v] != none && length <= from[v]) continue;
        from[v] = length;
        way.after[v] = l;
      }
    }
    return way;
  }

  [[nodiscard]] static std::vector<step> way_through(const pipeline_steps& steps, const extent& ways, std::size_t v) {
    const std::size_t none = steps.links.size();
    std::vector<std::size_t> links;
    for (std::size_t l = ways.before[v]; l != none; l = ways.before[steps.links[l].from]) links.insert(links.begin(), l);
    for (std::size_t l = ways.after[v]; l != none; l = ways.after[steps.links[l].to]) links.push_back(l);

    const double M = steps.microbatches;
    const auto stage_step = [&](std::size_t s) {
      const auto& x = steps.stages[s];
      return step{x.forward_s, x.backward_s, x.forward_s, x.backward_s, x.total_s, x.total_s, M * x.total_s, x.collective_s, x.in_flight};
    };
    std::vector<step> way{stage_step(links.empty() ? v : steps.links[links.front()].from)};
    for (const std::size_t l : links) {
      const auto& x = steps.links[l];
      const double period = M > 1 ? (x.own_s - x.total_s) / (M - 1) : 0;
      const int in_flight = std::min(steps.stages[x.to].in_flight + 1, steps.stages[x.from].in_flight);
      way.push_back({x.forward_s, x.backward_s, x.forward_wire_s, x.backward_wire_s, x.total_s, period, x.own_s, 0, in_flight});
      way.push_back(stage_step(x.to));
    }
    return way;
  }

  [[nodiscard]] static double chain_s(const std::vector<step>& way, int microbatches) {
    std::size_t d = 0;
    double reached = 0, latest = -1;
    for (std::size_t i = 0; i < way.size(); ++i) {
      if (reached + way[i].own_s > latest) {
        latest = reached + way[i].own_s;
        d = i;
      }
      reached += way[i].total_s;
    }
    double worst_end = 0;
    for (std::size_t s = 0; s < way.size(); ++s) worst_end = std::max(worst_end, end_s(way, d, s) + way[s].collective_s);
    const double around_d = start_s(way, d) + (microbatches - way[d].in_flight) * way[d].period_s + worst_end;
    return std::max(around_d, round_trips_s(way, microbatches));
  }

  [[nodiscard]] static double round_trips_s(const std::vector<step>& way, int microbatches) {
    double worst = 0, trip = 0, before = 0;
    for (const step& x : way) before += x.total_s;
    for (std::size_t i = way.size(); i-- > 0;) {
      const bool link = i % 2 == 1;
      before -= way[i].total_s;
      trip = link && way[i].backward_s == 0 ? 0 : trip + way[i].total_s;  // nobody waits for what does not come back
      const int rounds = (microbatches + way[i].in_flight - 1) / way[i].in_flight;
      if (!link) worst = std::max(worst, before + rounds * trip);
    }
    return worst;
  }

  [[nodiscard]] static double start_s(const std::vector<step>& way, std::size_t d) {
    double worst = 0, there = 0, slowest = 0, back = 0;
    for (std::size_t p = 0; p < way.size(); ++p) {
      there += way[p].forward_s;
      slowest = std::max(slowest, way[p].next_forward_s);
      if (p > d) back += way[p].backward_s;
      if (p >= d) worst = std::max(worst, there + (way[p].in_flight - 1) * slowest + back);
    }
    return worst;
  }

  [[nodiscard]] static double end_s(const std::vector<step>& way, std::size_t d, std::size_t s) {
    double worst = 0, back = 0, slowest = 0, there = 0;
    for (std::size_t p = 0; p < way.size(); ++p) {
      if (p >= s) back += way[p].backward_s;
      slowest = std::max(slowest, way[p].next_backward_s);
      if (p > d) there += way[p].forward_s;
      if (p >= std::max(s, d)) worst = std::max(worst, back + (way[p].in_flight - 1) * slowest + there);
    }
    return worst;
  }
};

static_assert(check_latency_estimator<dominant_step>() && check_latency_estimator<critical_path>());

}  // namespace hetplan
