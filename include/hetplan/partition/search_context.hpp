// SPDX-License-Identifier: BSL-1.0
#pragma once
/// State of one run of the search, shared by its threads.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/cost/cost_model.hpp>
#include <hetplan/cost/energy_model.hpp>
#include <hetplan/cost/memory_model.hpp>
#include <hetplan/cost/prefix_table.hpp>
#include <hetplan/estimate/pipeline_steps.hpp>
#include <hetplan/estimate/step_law.hpp>
#include <hetplan/graph/layer_sequence.hpp>
#include <hetplan/partition/candidate_costs.hpp>
#include <hetplan/partition/partial_store.hpp>
#include <hetplan/partition/search_tables.hpp>
#include <hetplan/plan/orders.hpp>
#include <hetplan/plan/plan.hpp>
#include <hetplan/plan/plan_result.hpp>

namespace hetplan::partition {

/// Link costs between any two groups, at peak bandwidth. The groups do not matter if all pairs of devices have equal links.
///
/// Complexity  O(classes^2 * resources on a route^2) to build, O(parts of both groups) per query.
/// Source      Dora, section 4.1: every pair has its peak bandwidth; Asteroid, section 3.2: two groups are charged their slowest pair
///             (peak_exchange). Own: classes in place of devices, justified by exchange_test.
class group_links {
 public:
  group_links(const device_space& space, const network& net, const plan& blank, const pipelining& job)
      : space_(space), size_(blank.microbatch_size), microbatches_(blank.microbatches), first_passes_(job.first_passes),
        mode_(blank.workload.mode) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const std::size_t n = space.classes.size();
    by_class_.resize(n * n);
    best_ = {{inf, inf}, {inf, inf}, true};
    bool any = false;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        if (a == b && space.classes[a].size() < 2) continue;
        const device_id one[] = {space.classes[a].front()}, other[] = {space.classes[b][a == b ? 1 : 0]};
        const exchange_cost x = by_class_[a * n + b] = peak_exchange(net, one, other);
        if (!any) alike_ = x;
        any = true;
        uniform_ = uniform_ && x == alike_;
        best_.forward = {std::min(best_.forward.latency_s, x.forward.latency_s), std::min(best_.forward.s_per_byte, x.forward.s_per_byte)};
        best_.backward = {std::min(best_.backward.latency_s, x.backward.latency_s),
                          std::min(best_.backward.s_per_byte, x.backward.s_per_byte)};
        best_.half_duplex = best_.half_duplex && x.half_duplex;
      }
    }
    if (!any) best_ = {};
  }

  /// Returns true if all links cost the same.
  [[nodiscard]] bool uniform() const { return uniform_; }
  /// Returns the key of a group for comparisons of partial plans: 0 if the groups do not matter.
  [[nodiscard]] std::uint32_t key(std::size_t group) const { return uniform_ ? 0 : static_cast<std::uint32_t>(group); }
  [[nodiscard]] exchange_cost between(std::size_t group, std::size_t other) const {
    if (uniform_) return alike_;
    exchange_cost all;
    for (const auto& a : space_.groups[group]) {
      for (const auto& b : space_.groups[other]) all.cover(by_class_[a.of_class * space_.classes.size() + b.of_class]);
    }
    return all;
  }
  /// Returns the times of a link that all microbatches of the job cross, given bytes per sample; gradients count in training only.
  [[nodiscard]] link_times time(const exchange_cost& x, const crossing& bytes) const {
    auto t = time_link(x, size_, microbatches_, bytes.forward_bytes, mode_ == mode::training ? bytes.gradient_bytes : 0);
    if (mode_ == mode::generation) add_passes(t, x, size_, microbatches_, first_passes_, bytes.first_bytes, bytes.later_bytes);
    return link_of(t);
  }
  /// Returns a lower bound on the cost of every link.
  [[nodiscard]] const exchange_cost& best() const { return best_; }

 private:
  const device_space& space_;
  int size_, microbatches_, first_passes_;
  mode mode_;
  std::vector<exchange_cost> by_class_;
  exchange_cost alike_, best_;
  bool uniform_ = true;
};

namespace detail {

[[noreturn]] inline void refuse_score(const run_times& t, double energy_J) {
  throw invalid_model("objective: score(" + to_text(t.response().value()) + " s, " + to_text(energy_J) + " J) = nan; expected a number");
}
[[nodiscard]] inline double checked_score(const any_objective& o, const run_times& t, double energy_J) {
  const double score = o.score(t, joules(energy_J));
  if (std::isnan(score)) refuse_score(t, energy_J);
  return score;
}

}  // namespace detail

struct search_options {
  int plans = 10;  ///< number of plans to return
  int max_stages = 16;
  int threads = 1;  ///< threads of the search; they do not affect the result
  warmup_rule warmup = warmup_rule::hide_communication;
  std::optional<any_step_law> law = {};  ///< step law whose latency is minimised; none: the mode's dominant-step law
  bool keep_budgets = true;              ///< true if energy budgets and busy caps must hold; memory limits always hold
  bool prune = true;                     ///< true to prune by the best known plans and lower bounds on completions
  long long most_extensions = std::numeric_limits<long long>::max();  ///< approximate, over all runs; the best so far is then returned
  std::size_t coarse_boundaries = 40;  ///< boundaries of the first coarse run, which finds plans to prune with; 0: none
};

/// Number of microbatches that a stage holds, by its depth.
/// Source  Asteroid, section 3.2 (K_p); other rules: plan/orders.hpp.
class warmup_levels {
 public:
  /// @param blank  must outlive this.
  warmup_levels(const plan& blank, const search_options& o) : blank_(blank), max_stages_(o.max_stages), rule_(o.warmup) {}

  [[nodiscard]] int in_flight(int depth) const { return microbatches_in_flight(blank_, warmup_of(rule_, depth)); }
  /// Returns the depth from which in_flight no longer grows, at most max_stages.
  [[nodiscard]] std::size_t levels() const {
    int saturated = 1;
    while (saturated < max_stages_ && in_flight(saturated + 1) > in_flight(saturated)) ++saturated;
    return static_cast<std::size_t>(saturated);
  }

 private:
  const plan& blank_;
  int max_stages_;
  warmup_rule rule_;
};

/// Returns how the microbatches of a job pass the pipeline: one after the other if the warm-up admits one at a time, else overlapping.
[[nodiscard]] inline pipelining pipelining_of(const plan& blank, const planning_graph& model, warmup_rule r) {
  const bool in_turn = r == warmup_rule::one && blank.schedule.kind != schedule_kind::gpipe;
  const token_passes passes(blank.workload, model);
  return {blank.microbatches, in_turn ? blank.microbatches : 1, passes.size(run_part::first_token), passes.size(run_part::later_tokens),
          blank.workload.chunks_in_flight};
}

/// A plan with the search's own estimate, which is no bound.
struct found_plan {
  hetplan::plan plan;
  evaluation estimate = {};  ///< without bounds and bytes by resource
  double score = 0;
};

struct search_counts {
  long long cells = 0;     ///< non-empty cells
  long long kept = 0;      ///< partial plans kept
  long long extended = 0;  ///< extensions evaluated, coarse runs included
};

/// Plans, best first. none_found: no plan of the space keeps the limits by the search's estimate. stopped: the best so far.
struct search_result {
  hetplan::status status;
  std::vector<found_plan> plans;
  search_counts counts;
};

/// Event of a cell becoming final, for progress reports, for stopping and for inspecting the table.
struct cell_filled {
  std::size_t first_block;  ///< first block of the cell's partial plans, which reach to the end
  std::size_t blocks;       ///< number of blocks of the sequence
  std::size_t state;        ///< state of the device space
  int stages;
  std::span<const partial_plan* const> kept;  ///< by rank
};

/// Cache of the stages that end at one boundary, which a search queries for every state of the device space and every number of stages
/// behind. Source: own.
class stage_memo {
 public:
  struct entry {
    std::size_t end = 0;  ///< boundary for which the entry is valid; 0: none
    placed_stage placed = {};
    stage_budget budget = {.energy_J = -1};  ///< negative energy: not computed yet
  };

  /// @param unlimited  by group, then begin; shared by all caches, each of which uses other begins.
  stage_memo(const candidate_costs& costs, const std::vector<std::size_t>& boundaries, std::vector<entry>& unlimited)
      : costs_(costs), boundaries_(boundaries), unlimited_(unlimited), limited_(unlimited.size() / boundaries.size()) {}

  /// Returns the stage between two boundaries on a group whose memory holds `in_flight` microbatches.
  entry& at(std::size_t begin, std::size_t end, std::size_t group, int in_flight) {
    entry& any = unlimited(begin, end, group);
    if (in_flight <= any.placed.most_in_flight) return any;
    auto& columns = limited_[group];
    auto it = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.first == in_flight; });
    if (it == columns.end()) it = columns.insert(it, {in_flight, std::vector<entry>(boundaries_.size())});
    return filled(it->second[begin], begin, end, group, in_flight);
  }
  /// Returns the same stage without memory limits, a lower bound on the time of all shares.
  entry& unlimited(std::size_t begin, std::size_t end, std::size_t group) {
    return filled(unlimited_[group * boundaries_.size() + begin], begin, end, group, 0);
  }
  /// Returns true if that stage is cached.
  [[nodiscard]] bool has(std::size_t begin, std::size_t end, std::size_t group) const {
    return unlimited_[group * boundaries_.size() + begin].end == end;
  }
  /// Returns false if memory holds no microbatch, for this stage and thus for every longer one.
  bool may_hold(std::size_t begin, std::size_t end, std::size_t group) {
    return unlimited(begin, end, group).placed.most_in_flight >= 1 || costs_.has_room(boundaries_[begin], boundaries_[end], group, 1);
  }

 private:
  entry& filled(entry& e, std::size_t begin, std::size_t end, std::size_t group, int in_flight) {
    if (e.end != end) e = {end, costs_.place(boundaries_[begin], boundaries_[end], group, in_flight)};
    return e;
  }

  const candidate_costs& costs_;
  const std::vector<std::size_t>& boundaries_;
  std::vector<entry>& unlimited_;                                         ///< enough for most queries
  std::vector<std::vector<std::pair<int, std::vector<entry>>>> limited_;  ///< by group, microbatches in flight, begin
};

/// The furthest boundary that memory permits, by state of the device space and number of stages behind: all blocks before it can still be
/// placed. No feasible plan goes beyond: a stage that fits also fits without some of its blocks and with fewer microbatches in flight, so
/// of several placements of the first blocks the one with most blocks suffices.
///
/// @param in_flight  (stages from this one to the end) -> lower bound on the microbatches that it holds; non-decreasing.
/// Complexity        O(moves x stages + states x boundaries) memory tests, with at most as many stages as devices.
/// Source            own; the memory of a stage is Asteroid's, eq. 3.
class memory_reach {
 public:
  template <class InFlight>
  memory_reach(const candidate_costs& costs, const device_space& space, const std::vector<std::size_t>& boundaries, int max_stages,
               InFlight&& in_flight)
      : rows_(1 + static_cast<std::size_t>(std::min(max_stages, std::accumulate(space.left[0].begin(), space.left[0].end(), 0)))),
        last_(space.states() * rows_, 0) {
    for (std::size_t state = space.states(); state-- > 0;) {
      for (std::size_t following = rows_ - 1; following-- > 0;) {
        std::size_t& end = last_[state * rows_ + following] = last(state, following + 1);
        const int held = in_flight(static_cast<int>(following) + 1);
        for (const device_space::move& m : space.moves[state]) {
          const std::size_t begin = last(m.to, following + 1);
          end = std::max(end, begin);
          while (end + 1 < boundaries.size() && costs.has_room(boundaries[begin], boundaries[end + 1], m.group, held)) ++end;
        }
      }
    }
  }

  /// Returns the index of the boundary; 0 if no stage fits before `following` stages.
  [[nodiscard]] std::size_t last(std::size_t state, std::size_t following) const {
    return last_[state * rows_ + std::min(following, rows_ - 1)];
  }

 private:
  std::size_t rows_;
  std::vector<std::size_t> last_;  ///< by state, then number of stages behind
};

/// The best complete plans so far: options.plans, or all if the objective is not monotone, as these are scored at the end.
/// Source  Dora, section 4.1 (the K best plans). Own: the worst of them prunes.
class incumbents {
 public:
  /// @param known_score  score of plans that are known already; worse plans are not needed.
  incumbents(const any_objective& objective, const search_options& options, double known_score)
      : objective_(objective), wanted_(static_cast<std::size_t>(options.plans)), threshold_(known_score) {}

  [[nodiscard]] double score(const run_times& t, double energy_J) const { return detail::checked_score(objective_, t, energy_J); }
  /// Returns the largest score that still matters, with a margin for rounding.
  [[nodiscard]] double worth_keeping() const { return threshold_ + 1e-9 * std::abs(threshold_); }
  struct complete : partial_node {
    run_times times;
  };
  [[nodiscard]] const std::vector<complete>& all() const { return whole_; }

  void add(const complete& whole) {
    const auto better = [](const complete& x, const complete& y) { return std::pair(x.rank, x.stages) < std::pair(y.rank, y.stages); };
    whole_.insert(std::upper_bound(whole_.begin(), whole_.end(), whole, better), whole);
    if (!objective_.monotone()) return;
    if (whole_.size() > wanted_) whole_.pop_back();
    if (whole_.size() == wanted_) threshold_ = std::min(threshold_, whole_.back().rank);
  }

 private:
  const any_objective& objective_;
  std::size_t wanted_;
  double threshold_;
  std::vector<complete> whole_;  ///< best first
};

/// Lower bounds on all completions of a partial plan, by boundary and state of the device space: the cost of the blocks that are not placed
/// yet on the devices that are left.
///
/// busiest_s   the largest step, with devices that share the work at their best rates, certified by weights (the Lagrangian of the
///             fractional assignment): sum over blocks of B min_d(w_d / r_d) / sum w_d, with the device's mean rate as w_d.
/// path_s      one microbatch through all these blocks, each block on its fastest group; serial sequences only. Each of k devices that
///             share B samples has at most B - k + 1 of them. So r_d(k) is the maximum of share / time over shares up to that, and the
///             bound is the sum over blocks of min_k B / (sum of the k largest r_d(k)): a sum of parallel rates is at most the parallel
///             rate of sums (Milne).
/// stage_s     a stage on one group, in the same way.
/// energy_J    dynamic energy of the work where it is cheapest, in any state.
/// Complexity  O(blocks x (states x classes x B + groups + shares x classes log classes)), with distinct shares.
/// Source      busiest_s: semantics, section 9 (a), in closed form, for the devices of a state. The others: own.
class completion_bounds {
 public:
  /// @param part  of a run of generation, whose passes the bounds are for.
  completion_bounds(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, const plan& blank,
                    bool serial, run_part part = run_part::whole);

  [[nodiscard]] double busiest_s(std::size_t state, std::size_t boundary) const { return busiest_[state * columns_ + boundary]; }
  [[nodiscard]] double path_s(std::size_t state, std::size_t boundary) const { return path_[state * columns_ + boundary]; }
  [[nodiscard]] double stage_s(std::size_t group, std::size_t first, std::size_t last) const;
  [[nodiscard]] double energy_J(std::size_t boundary) const { return energy_[boundary]; }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// Least seconds per sample (1 / r) of a block, without the boundary before it, on a device class, over shares up to m and all degrees.
  class block_times {
   public:
    block_times(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, std::size_t most,
                run_part part);
    [[nodiscard]] double operator()(std::size_t block, std::size_t of_class, std::size_t m) const;
    [[nodiscard]] std::size_t most() const { return most_; }
    /// Sets row[i] to the sum of f(block) over all blocks before boundary i.
    template <class F>
    void add_up(double* row, F&& f) const {
      for (std::size_t i = 1; i < boundaries_.size(); ++i) {
        row[i] = row[i - 1];
        for (std::size_t b = boundaries_[i - 1]; b < boundaries_[i]; ++b) row[i] += f(b);
      }
    }
    /// Returns, by class, the rate for all blocks together; 0 if they take no time.
    [[nodiscard]] std::vector<double> mean_rates() const;
    /// Returns the classes by the time of a block with shares up to m, fastest first; ties: the smaller index. Requires rank().
    [[nodiscard]] std::span<const std::uint32_t> fastest(std::size_t block, std::size_t m) const {
      return {&ranked_[at(block, 0, 0) + static_cast<std::size_t>(prefix_table::which_share(static_cast<int>(m))) * classes_], classes_};
    }
    void rank();

   private:
    [[nodiscard]] std::size_t at(std::size_t b, std::size_t c, std::size_t s) const { return (b * classes_ + c) * distinct_ + s; }

    const std::vector<std::size_t>& boundaries_;
    std::size_t blocks_, classes_, most_, distinct_;  ///< distinct_: number of distinct shares up to most_
    std::vector<double> per_sample_;
    std::vector<std::uint32_t> ranked_ = {};  ///< by block, distinct share, then rank
  };

  void add_energy(const search_tables& t, const device_space& space, const block_times& times, double samples);
  /// Returns the largest share of a microbatch that one of k devices can have.
  [[nodiscard]] std::size_t largest_of(std::size_t k, const block_times& times) const;
  void add_group(std::size_t g, const device_space::device_group& group, const block_times& times);
  /// @param there  classes with devices left.
  void add_busiest(std::size_t state, const std::vector<int>& left, const std::vector<std::size_t>& there, const block_times& times,
                   const std::vector<double>& weight);
  void add_path(std::size_t state, const std::vector<int>& left, const block_times& times);

  std::size_t columns_;
  double size_;                         ///< samples of a microbatch
  std::vector<double> busiest_, path_;  ///< by state, then boundary
  std::vector<double> energy_;          ///< by boundary
  std::vector<double> stage_;           ///< by group, then boundary: prefix sums
};

/// What the stages before a partial plan still have to do, at least.
struct work_to_come {
  bool none;                        ///< true: the plan is complete
  const link_times& least_link;     ///< to the next stage
  stages_ahead mean, first, later;  ///< of the mean pass; in generation also of the parts of the run
  double energy_J;
};

/// The closed cells of one boundary and state, a range of partial plans each, with the best of each figure, which no extension can beat.
/// Source  own, Dora's recurrence (section 4.1, eqs. 3-5) as a push from finished cells, so that one test rules out many extensions.
struct closed_cells {
  struct range {
    std::size_t begin, end;
    int stages, in_flight;    ///< behind the next stage; microbatches that this one holds
    pipeline_tail best = {};  ///< behind the link to the current group
    partial_plan ideal = {};
  };
  std::vector<range> ranges;
  struct suffix {
    pipeline_tail tail;
    int stages;
  };
  std::vector<suffix> suffixes;  ///< by member of the ranges, which are contiguous
  pipeline_tail best;
  double best_energy_J = 0, best_idle_W = 0;

  /// Extends each partial plan of a serial sequence by the link to a group. The best reach is infinite if no link exists.
  ///
  /// @param link_to  (group of a partial plan) -> link to it from the current group.
  /// @param uniform  true if all links are equal.
  /// Complexity      O(partial plans of the ranges).
  template <step_law Law, class Store, class LinkTo>
  void look_through_links(const Store& store, const Law& law, const pipelining& p, bool uniform, LinkTo&& link_to) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    suffixes.clear();
    best = {inf, inf, inf, inf};
    best_energy_J = best_idle_W = inf;
    for (range& r : ranges) {
      r.best = {inf, inf, inf, inf};
      link_times step;
      r.ideal = {.stages = store[r.begin].stages};
      if (store.whole()) r.ideal = store.plan(r.begin);
      for (std::size_t n = r.begin; n < r.end; ++n) {
        const partial_node& old = store[n];
        if (r.stages > 0 && (n == r.begin || (!uniform && old.group != store[n - 1].group))) step = link_to(old.group);
        const pipeline_tail x = r.stages > 0 ? law.extend(p, step, old.tail) : pipeline_tail{};
        suffixes.push_back({x, old.stages});
        r.best = smaller_of(r.best, x);
        r.ideal.stages = std::min(r.ideal.stages, old.stages);
        if (!store.whole()) continue;
        const partial_plan& whole = store.plan(n);
        r.ideal.energy_J = std::min(r.ideal.energy_J, whole.energy_J);
        r.ideal.idle_W = std::min(r.ideal.idle_W, whole.idle_W);
        r.ideal.limit_s = std::max(r.ideal.limit_s, whole.limit_s);
        r.ideal.stretch_s = std::min(r.ideal.stretch_s, whole.stretch_s);
      }
      best = smaller_of(best, r.best);
      best_energy_J = std::min(best_energy_J, r.ideal.energy_J);
      best_idle_W = std::min(best_idle_W, r.ideal.idle_W);
    }
  }
  [[nodiscard]] const suffix& suffix_of(std::size_t member) const { return suffixes[member - ranges.front().begin]; }
};

}  // namespace hetplan::partition

namespace hetplan::partition::detail {

/// Tables of a run. An extender writes only to cells and stages that begin at its own boundaries, and the owner of boundary 0 to the
/// incumbents; all else changes only between rounds.
/// Source  Dora, section 4.1 (DP by boundary, devices and substate); see two_substate_dp.
template <cell_policy Policy>
struct search_context {
  const search_tables& tables;
  const device_space& space;
  const plan& blank;
  const search_options& options;
  std::vector<std::size_t> boundaries;
  bool serial;
  warmup_levels warmup;
  std::size_t levels;
  incumbents best;
  bool energy_matters;
  any_step_law law;
  pipelining job;
  candidate_costs costs;
  completion_bounds bounds;
  std::vector<completion_bounds> bounds_of_parts;  ///< generation: until the first token, and behind it
  group_links links;
  std::vector<stage_memo::entry> stages;  ///< by group, then begin
  partial_store<Policy> store;
  memory_reach reach;
  std::vector<std::size_t> start;                       ///< by state: last boundary at which a stage that leads to it may begin
  std::vector<link_times> least_links;                  ///< by boundary: lower bound
  std::vector<std::vector<closed_cells::range>> ready;  ///< by state, at the current boundary
  double worth;                                         ///< best.worth_keeping() at the start of the round

  search_context(const search_tables& t, const device_space& s, const plan& b, const any_objective& objective, const Policy& policy,
                 const search_options& o, std::vector<std::size_t> where, double known_score)
      : tables(t), space(s), blank(b), options(o), boundaries(std::move(where)), serial(t.cuts.serial()), warmup(blank, options),
        levels(warmup.levels()), best(objective, options, known_score), energy_matters(asks_for_energy()),
        law(options.law.value_or(any_step_law(blank.workload.mode))), job(pipelining_of(blank, t.model, options.warmup)),
        costs(t, space, blank, options.keep_budgets), bounds(t, space, boundaries, blank, serial),
        links(space, t.cluster.network(), blank, job), stages(space.groups.size() * boundaries.size()),
        store(policy, boundaries.size() * space.states() * levels, energy_matters || !serial),
        reach(costs, space, boundaries, options.max_stages, [&](int depth) { return in_flight(serial ? depth : 1); }),
        start(space.states()), ready(space.states()), worth(best.worth_keeping()) {
    for (std::size_t state = 0; state < start.size(); ++state) start[state] = reach.last(state, 1);
    if (t.table.has_parts()) {
      for (const run_part part : {run_part::first_token, run_part::later_tokens})
        bounds_of_parts.emplace_back(t, space, boundaries, blank, serial, part);
    }
    for (const std::size_t block : boundaries) least_links.push_back(block == 0 ? link_times{} : serial_link(links.best(), block));
  }
  search_context(const search_context&) = delete;
  search_context& operator=(const search_context&) = delete;

  [[nodiscard]] int in_flight(int depth) const { return warmup.in_flight(depth); }
  [[nodiscard]] std::size_t cell(std::size_t boundary, std::size_t state, int stages_of) const {
    return (state * boundaries.size() + boundary) * levels + std::min(static_cast<std::size_t>(stages_of), levels) - 1;
  }
  /// Returns the link that carries everything that crosses the boundary before a block.
  [[nodiscard]] link_times serial_link(const exchange_cost& x, std::size_t block) const {
    return links.time(x, sum_of(tables.crossings.crossings(block)));
  }

  /// Returns lower bounds on the times of all pipelines that put such links and stages before a tail; see tells_bound.
  template <step_law Law>
  [[nodiscard]] run_times bound(const Law& l, const pipeline_tail& x, const link_times& least, const stages_ahead& mean,
                                const stages_ahead& first, const stages_ahead& later) const {
    if constexpr (tells_times<Law>) return l.bounds(job, x, least, first, later);
    else if constexpr (tells_bound<Law>) return times_of_pass(job, l.bound_s(job, x, least, mean.path_s, mean.busiest_s));
    else return times_of_pass(job, l.response_s(job, x));
  }
  [[nodiscard]] work_to_come work_to_come_before(std::size_t boundary, std::size_t state) const {
    const auto ahead = [&](const completion_bounds& b) { return stages_ahead{b.path_s(state, boundary), b.busiest_s(state, boundary)}; };
    work_to_come w{boundary == 0, least_links[boundary], ahead(bounds), {}, {}, bounds.energy_J(boundary)};
    if (!bounds_of_parts.empty()) w.first = ahead(bounds_of_parts[0]), w.later = ahead(bounds_of_parts[1]);
    return w;
  }
  /// Returns lower bounds on the times of a stage between two boundaries on a group.
  [[nodiscard]] stage_times least_stage(std::size_t group, std::size_t a, std::size_t p) const {
    const double s = bounds.stage_s(group, a, p);
    if (bounds_of_parts.empty()) return {s, s, 0};
    return {s, s, 0, bounds_of_parts[0].stage_s(group, a, p), bounds_of_parts[1].stage_s(group, a, p)};
  }
  /// Lowers the starts past boundaries at which the blocks left for a state already cost too much.
  void lower_starts() {
    if (!options.prune) return;
    law.visit([&](const auto& l) {
      for (std::size_t state = 0; state < start.size(); ++state) {
        std::size_t& a = start[state];
        const auto least = [&](std::size_t boundary) {
          const work_to_come w = work_to_come_before(boundary, state);
          return best.score(bound(l, {}, {}, {0, w.mean.busiest_s}, {0, w.first.busiest_s}, {0, w.later.busiest_s}), w.energy_J);
        };
        while (a > 0 && least(a) > best.worth_keeping()) --a;
      }
    });
  }

 private:
  /// Returns true if the search must track energy, for the objective or for limits. If not, energy is computed for the found plans only.
  [[nodiscard]] bool asks_for_energy() const {
    for (const device& d : tables.cluster.devices()) {
      if (options.keep_budgets && (d.energy_budget || d.max_busy < 1)) return true;
    }
    for (const double t : {0.0, 1e-3, 1.0, 1e3, 1e6, 1e9}) {
      if (best.score(seconds(t), 0) != best.score(seconds(t), 1e30)) return true;
    }
    return false;
  }
};

}  // namespace hetplan::partition::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/search_context.ipp>
#endif
