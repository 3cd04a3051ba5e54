// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What one run of the search works on, whoever works.

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

// Peak traffic between groups of a device space.

/// What links cost between any two groups. Where all pairs of devices are joined alike no group matters.
///
/// Complexity  O(classes^2 * resources on a route^2) to build, O(parts of both groups) to ask.
/// Source      Dora, section 4.1: every pair has its peak bandwidth; Asteroid, section 3.2: the slowest pair is charged for
///             its groups (peak_exchange). Own: by classes instead of devices, which exchange_test allows.
class group_links {
 public:
  group_links(const device_space& space, const network& net, const plan& blank)
      : space_(space), size_(blank.microbatch_size), microbatches_(blank.microbatches), training_(blank.workload.mode == mode::training) {
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

  /// Does every link cost the same?
  [[nodiscard]] bool uniform() const { return uniform_; }
  /// Stands for a group in comparisons: 0 where no group matters.
  [[nodiscard]] std::uint32_t key(std::size_t group) const { return uniform_ ? 0 : static_cast<std::uint32_t>(group); }
  [[nodiscard]] exchange_cost between(std::size_t group, std::size_t other) const {
    if (uniform_) return alike_;
    exchange_cost all;
    for (const auto& a : space_.groups[group]) {
      for (const auto& b : space_.groups[other]) all.cover(by_class_[a.of_class * space_.classes.size() + b.of_class]);
    }
    return all;
  }
  /// A link that all microbatches of the job cross with so many bytes per sample, gradients in training.
  [[nodiscard]] link_times time(const exchange_cost& x, double forward_bytes, double gradient_bytes) const {
    const auto t = time_link(x, size_, microbatches_, forward_bytes, training_ ? gradient_bytes : 0);
    return {t.total_s, t.backward_s, t.own_s};
  }
  /// No link costs less.
  [[nodiscard]] const exchange_cost& best() const { return best_; }

 private:
  const device_space& space_;
  int size_, microbatches_;
  bool training_;
  std::vector<exchange_cost> by_class_;
  exchange_cost alike_, best_;
  bool uniform_ = true;
};

// What a search is asked for, what it answers, and what it tells while it runs.

namespace detail {

[[noreturn]] inline void refuse_score(double response_s, double energy_J) {
  throw invalid_model("objective: score(" + to_text(response_s) + " s, " + to_text(energy_J) + " J) = nan; expected a number");
}
[[nodiscard]] inline double checked_score(const any_objective& o, double response_s, double energy_J) {
  const double score = o.score(seconds(response_s), joules(energy_J));
  if (std::isnan(score)) refuse_score(response_s, energy_J);
  return score;
}

}  // namespace detail

struct search_options {
  int plans = 10;  ///< how many to return
  int max_stages = 16;
  int threads = 1;  ///< that search together; no answer depends on them
  warmup_rule warmup = warmup_rule::hide_communication;
  std::optional<any_step_law> law = {};                               ///< whose latency is minimised; none: the dominant step's
  bool keep_budgets = true;                                           ///< energy and busy share; memory is always kept
  bool prune = true;                                                  ///< by the best plans known and what completions cost at least
  long long most_extensions = std::numeric_limits<long long>::max();  ///< weighed by all runs, about; then it stops with the best so far
  std::size_t coarse_boundaries = 40;                                 ///< of the first run that finds plans to prune with; 0: none
};

/// How many microbatches a stage holds, by its depth.
///
/// Source  Asteroid, section 3.2 (K_p); the other rules: plan/orders.hpp.
class warmup_levels {
 public:
  /// @param blank  must outlive this.
  warmup_levels(const plan& blank, const search_options& o) : blank_(blank), max_stages_(o.max_stages), rule_(o.warmup) {}

  [[nodiscard]] int in_flight(int depth) const { return microbatches_in_flight(blank_, warmup_of(rule_, depth)); }
  /// The depth from which in_flight no longer grows, at most max_stages.
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

/// How a search believes that the microbatches of a job pass: in turn where warm-up lets in one at a time.
[[nodiscard]] inline pipelining pipelining_of(const plan& blank, warmup_rule r) {
  const bool in_turn = r == warmup_rule::one && blank.schedule.kind != schedule_kind::gpipe;
  return {blank.microbatches, in_turn ? blank.microbatches : 1};
}

/// A plan as the search sees it: its own estimate, which bounds nothing.
struct found_plan {
  hetplan::plan plan;
  evaluation estimate = {};  ///< no bounds, no bytes by resource
  double score = 0;
};

struct search_counts {
  long long cells = 0;     ///< that kept anything
  long long kept = 0;      ///< partial plans
  long long extended = 0;  ///< extensions weighed, those of coarse runs too
};

/// Plans best first. None found: nothing in the space keeps the limits by the search's estimate. Stopped: the best so far.
struct search_result {
  hetplan::status status;
  std::vector<found_plan> plans;
  search_counts counts;
};

/// A cell is final; for progress, for stopping and for looking at the table.
struct cell_filled {
  std::size_t first_block;  ///< the cell's plans hold the blocks from here on
  std::size_t blocks;       ///< of the sequence
  std::size_t state;        ///< of the device space
  int stages;
  std::span<const partial_plan* const> kept;  ///< by rank
};

// Stages that end at one boundary, worked out when first asked for.

/// A search walks from the last boundary to the first and asks about the stages that end there many times: for every
/// state of the device space and every number of stages behind.
///
/// Source  our own.
class stage_memo {
 public:
  struct entry {
    std::size_t end = 0;  ///< the boundary that this was worked out for; 0: for none
    placed_stage placed = {};
    stage_budget budget = {.energy_J = -1};  ///< < 0: not asked for yet
  };

  /// @param unlimited  by group, then begin: of all who share out the begins among each other.
  stage_memo(const candidate_costs& costs, const std::vector<std::size_t>& boundaries, std::vector<entry>& unlimited)
      : costs_(costs), boundaries_(boundaries), unlimited_(unlimited), limited_(unlimited.size() / boundaries.size()) {}

  /// The stage between two boundaries on a group, with memory for `in_flight` microbatches.
  entry& at(std::size_t begin, std::size_t end, std::size_t group, int in_flight) {
    entry& any = unlimited(begin, end, group);
    if (in_flight <= any.placed.most_in_flight) return any;
    auto& columns = limited_[group];
    auto it = std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return c.first == in_flight; });
    if (it == columns.end()) it = columns.insert(it, {in_flight, std::vector<entry>(boundaries_.size())});
    return filled(it->second[begin], begin, end, group, in_flight);
  }
  /// The same without regard to memory: no shares within memory are faster.
  entry& unlimited(std::size_t begin, std::size_t end, std::size_t group) {
    return filled(unlimited_[group * boundaries_.size() + begin], begin, end, group, 0);
  }
  /// No memory for one microbatch: none for longer stages either.
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
  std::vector<entry>& unlimited_;                                         ///< most questions need no other
  std::vector<std::vector<std::pair<int, std::vector<entry>>>> limited_;  ///< by group, microbatches in flight, begin
};

// How far memory lets a search come, whatever the stages cost.

/// The largest boundary before which all blocks can still be put somewhere, by state of the device space and number of
/// stages behind. Nothing that is feasible lies beyond: a stage that fits also fits without some of its blocks and with
/// fewer microbatches in flight, so of several ways to place what comes first, the one that places most will do.
///
/// @param in_flight  (stages behind and with the stage) -> microbatches that it holds at least; non-decreasing.
/// Complexity        O(moves x stages + states x boundaries) questions whether a stage has room, stages at most the
///                   number of devices.
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

  /// Index of the boundary; 0: no stage can come before so many.
  [[nodiscard]] std::size_t last(std::size_t state, std::size_t following) const {
    return last_[state * rows_ + std::min(following, rows_ - 1)];
  }

 private:
  std::size_t rows_;
  std::vector<std::size_t> last_;  ///< by state, then stages behind
};

// The best whole plans that a search knows: what a partial plan must promise to stay.

/// The options.plans best, or all where the objective is not monotone: those are scored when all are known.
///
/// Source  Dora, section 4.1 (the K best plans). Own: the worst of them prunes.
class incumbents {
 public:
  /// @param known_score  plans as good as this are known already.
  incumbents(const any_objective& objective, const search_options& options, double known_score)
      : objective_(objective), wanted_(static_cast<std::size_t>(options.plans)), threshold_(known_score) {}

  [[nodiscard]] double score(double response_s, double energy_J) const { return detail::checked_score(objective_, response_s, energy_J); }
  /// The largest score that still matters, with room for rounding.
  [[nodiscard]] double worth_keeping() const { return threshold_ + 1e-9 * std::abs(threshold_); }
  [[nodiscard]] const std::vector<partial_node>& all() const { return whole_; }

  void add(const partial_node& whole) {
    const auto better = [](const partial_node& x, const partial_node& y) {
      return std::pair(x.rank, x.stages) < std::pair(y.rank, y.stages);
    };
    whole_.insert(std::upper_bound(whole_.begin(), whole_.end(), whole, better), whole);
    if (!objective_.monotone()) return;
    if (whole_.size() > wanted_) whole_.pop_back();
    if (whole_.size() == wanted_) threshold_ = std::min(threshold_, whole_.back().rank);
  }

 private:
  const any_objective& objective_;
  std::size_t wanted_;
  double threshold_;
  std::vector<partial_node> whole_;  ///< best first
};

// What the blocks that are still to be placed cost at least, on the devices that are still to be had.

/// Lower bounds on any completion of a partial plan, by boundary and state of the device space.
///
/// busiest_s  the largest step: devices share the work at their best rates, certified by weights (the Lagrangian of
///            the fractional assignment): sum over blocks of B min_d(w_d / r_d) / sum w_d, w_d the device's mean rate.
/// path_s     one microbatch through all these blocks, every block on the group that is fastest for it; serial
///            sequences only. k devices that share B samples have at most B - k + 1 each, so r_d(k) = max over
///            shares up to that of share / time, and sum over blocks of min_k B / (sum of the k largest r_d(k)): a sum
///            of parallel rates is no more than the parallel rate of sums (Milne).
/// stage_s    a stage on one group, in the same way.
/// energy_J   dynamic energy of the work where it is cheapest, whatever the state.
/// Complexity O(blocks x (states x classes x B + groups + shares x classes log classes)), shares those that differ.
/// Source     busiest_s: semantics, section 9 (a), in closed form, for the devices of a state. The others: own.
class completion_bounds {
 public:
  completion_bounds(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, const plan& blank,
                    bool serial);

  [[nodiscard]] double busiest_s(std::size_t state, std::size_t boundary) const { return busiest_[state * columns_ + boundary]; }
  [[nodiscard]] double path_s(std::size_t state, std::size_t boundary) const { return path_[state * columns_ + boundary]; }
  /// A stage between two boundaries on a group, at best rates.
  [[nodiscard]] double stage_s(std::size_t group, std::size_t first, std::size_t last) const;
  [[nodiscard]] double energy_J(std::size_t boundary) const { return energy_[boundary]; }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();

  /// Seconds per sample of a block, without the boundary before it, on a device of a class with shares up to m, at its best degree: 1 / r.
  class block_times {
   public:
    block_times(const search_tables& t, const device_space& space, const std::vector<std::size_t>& boundaries, std::size_t most);
    [[nodiscard]] double operator()(std::size_t block, std::size_t of_class, std::size_t m) const;
    [[nodiscard]] std::size_t most() const { return most_; }
    /// row[i] = the sum of f(block) over all blocks before boundary i.
    template <class F>
    void add_up(double* row, F&& f) const {
      for (std::size_t i = 1; i < boundaries_.size(); ++i) {
        row[i] = row[i - 1];
        for (std::size_t b = boundaries_[i - 1]; b < boundaries_[i]; ++b) row[i] += f(b);
      }
    }
    /// By class: of all blocks; 0 where they take no time.
    [[nodiscard]] std::vector<double> mean_rates() const;
    /// Classes by the time of a block with shares up to m, fastest first; ties: the smaller number. Of rank(), which comes first.
    [[nodiscard]] std::span<const std::uint32_t> fastest(std::size_t block, std::size_t m) const {
      return {&ranked_[at(block, 0, 0) + static_cast<std::size_t>(prefix_table::which_share(static_cast<int>(m))) * classes_], classes_};
    }
    void rank();

   private:
    [[nodiscard]] std::size_t at(std::size_t b, std::size_t c, std::size_t s) const { return (b * classes_ + c) * distinct_ + s; }

    const std::vector<std::size_t>& boundaries_;
    std::size_t blocks_, classes_, most_, distinct_;  ///< distinct shares up to the most samples
    std::vector<double> per_sample_;
    std::vector<std::uint32_t> ranked_ = {};  ///< by block, distinct share, then rank
  };

  void add_energy(const search_tables& t, const device_space& space, const block_times& times, double samples);
  /// What one of k devices has of a microbatch at most.
  [[nodiscard]] std::size_t largest_of(std::size_t k, const block_times& times) const;
  void add_group(std::size_t g, const device_space::device_group& group, const block_times& times);
  /// @param there  classes of which devices are left.
  void add_busiest(std::size_t state, const std::vector<int>& left, const std::vector<std::size_t>& there, const block_times& times,
                   const std::vector<double>& weight);
  void add_path(std::size_t state, const std::vector<int>& left, const block_times& times);

  std::size_t columns_;
  double size_;                         ///< samples of a microbatch
  std::vector<double> busiest_, path_;  ///< by state, then boundary
  std::vector<double> energy_;          ///< by boundary
  std::vector<double> stage_;           ///< by group, then boundary: prefix sums
};

// The partial plans that one more stage can be put before, seen through the link to that stage.

/// The closed cells of one boundary and state, a range each, and the best that any of their partial plans has of each
/// figure: what no extension can beat.
///
/// Source  own: Dora's recurrence (section 4.1, eqs. 3-5) pushed from finished cells, so that one look rules out many
///         extensions.
struct closed_cells {
  struct range {
    std::size_t begin, end;
    int stages;
    pipeline_tail best = {};  ///< behind the link to the group at hand
    partial_plan ideal = {};
  };
  std::vector<range> ranges;
  std::vector<pipeline_tail> suffixes;  ///< by member of the ranges, which follow one another
  pipeline_tail best;
  double best_energy_J = 0, best_idle_W = 0;

  /// Serial sequences: what each partial plan amounts to behind the link to a group. False if no link is possible.
  ///
  /// @param link_to  the link to the group at hand from the group of a partial plan.
  /// @param uniform  all links are alike.
  /// Complexity      O(partial plans of the ranges).
  template <step_law Law, class Store, class LinkTo>
  bool look_through_links(const Store& store, const Law& law, const pipelining& p, bool uniform, LinkTo&& link_to) {
    constexpr double inf = std::numeric_limits<double>::infinity();
    suffixes.clear();
    best = {inf, inf};
    best_energy_J = best_idle_W = inf;
    for (range& r : ranges) {
      r.best = {inf, inf};
      r.ideal = store[r.begin];
      link_times step;
      for (std::size_t n = r.begin; n < r.end; ++n) {
        const partial_node& old = store[n];
        if (r.stages > 0 && (n == r.begin || (!uniform && old.group != store[n - 1].group))) step = link_to(old.group);
        suffixes.push_back(r.stages > 0 ? law.extend(p, step, pipeline_tail{old.finished.reach_s, old.finished.rest_s}) : pipeline_tail{});
        r.best = {std::min(r.best.reach_s, suffixes.back().reach_s), std::min(r.best.rest_s, suffixes.back().rest_s)};
        r.ideal.energy_J = std::min(r.ideal.energy_J, old.energy_J);
        r.ideal.idle_W = std::min(r.ideal.idle_W, old.idle_W);
        r.ideal.limit_s = std::max(r.ideal.limit_s, old.limit_s);
        r.ideal.stretch_s = std::min(r.ideal.stretch_s, old.stretch_s);
        r.ideal.stages = std::min(r.ideal.stages, old.stages);
      }
      best = {std::min(best.reach_s, r.best.reach_s), std::min(best.rest_s, r.best.rest_s)};
      best_energy_J = std::min(best_energy_J, r.ideal.energy_J);
      best_idle_W = std::min(best_idle_W, r.ideal.idle_W);
    }
    return best.reach_s < inf;
  }
  [[nodiscard]] const pipeline_tail& suffix_of(std::size_t member) const { return suffixes[member - ranges.front().begin]; }
};

}  // namespace hetplan::partition

namespace hetplan::partition::detail {

/// The tables of a run. Extenders write to cells and stages that begin at boundaries of their own, the one with boundary 0 to the
/// incumbents; all else changes between their rounds alone.
///
/// Source  the tables of Dora, section 4.1 (DP by boundary, devices and substate). Deviations: see two_substate_dp.
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
  group_links links;
  std::vector<stage_memo::entry> stages;  ///< by group, then begin
  partial_store<Policy> store;
  memory_reach reach;
  std::vector<std::size_t> start;                       ///< by state: stages that lead to it begin here or before
  std::vector<link_times> least_links;                  ///< by boundary
  std::vector<std::vector<closed_cells::range>> ready;  ///< by state: of the boundary at hand
  double worth;                                         ///< best.worth_keeping() when the round began

  search_context(const search_tables& t, const device_space& s, const plan& b, const any_objective& objective, const Policy& policy,
                 const search_options& o, std::vector<std::size_t> where, double known_score)
      : tables(t), space(s), blank(b), options(o), boundaries(std::move(where)), serial(t.cuts.serial()), warmup(blank, options),
        levels(warmup.levels()), best(objective, options, known_score), energy_matters(asks_for_energy()),
        law(options.law.value_or(any_step_law(blank.workload.mode))), job(pipelining_of(blank, options.warmup)),
        costs(t.table, space, t.cluster, t.slopes, blank, options.keep_budgets), bounds(t, space, boundaries, blank, serial),
        links(space, t.cluster.network(), blank), stages(space.groups.size() * boundaries.size()),
        store(policy, boundaries.size() * space.states() * levels),
        reach(costs, space, boundaries, options.max_stages, [&](int depth) { return in_flight(serial ? depth : 1); }),
        start(space.states()), ready(space.states()), worth(best.worth_keeping()) {
    for (std::size_t state = 0; state < start.size(); ++state) start[state] = reach.last(state, 1);
    for (const std::size_t block : boundaries) least_links.push_back(block == 0 ? link_times{} : serial_link(links.best(), block));
  }
  search_context(const search_context&) = delete;
  search_context& operator=(const search_context&) = delete;

  [[nodiscard]] int in_flight(int depth) const { return warmup.in_flight(depth); }
  [[nodiscard]] std::size_t cell(std::size_t boundary, std::size_t state, int stages_of) const {
    return (state * boundaries.size() + boundary) * levels + std::min(static_cast<std::size_t>(stages_of), levels) - 1;
  }
  /// A link that everything crosses which crosses the boundary before a block.
  [[nodiscard]] link_times serial_link(const exchange_cost& x, std::size_t block) const {
    double forward = 0, gradient = 0;
    for (const crossing& c : tables.crossings.crossings(block)) {
      forward += c.forward_bytes;
      gradient += c.gradient_bytes;
    }
    return links.time(x, forward, gradient);
  }

  /// T at least, when these are to come before a tail: see tells_bound.
  template <step_law Law>
  [[nodiscard]] double bound_s(const Law& l, const pipeline_tail& x, const link_times& least, double path_s, double busiest_s) const {
    if constexpr (tells_bound<Law>) return l.bound_s(job, x, least, path_s, busiest_s);
    else return l.response_s(job, x);
  }
  /// Beyond its start, what is left for a state costs too much whatever lies behind.
  void lower_starts() {
    if (!options.prune) return;
    law.visit([&](const auto& l) {
      for (std::size_t state = 0; state < start.size(); ++state) {
        std::size_t& a = start[state];
        while (a > 0 && best.score(bound_s(l, {}, {}, 0, bounds.busiest_s(state, a)), bounds.energy_J(a)) > best.worth_keeping()) --a;
      }
    });
  }

 private:
  /// Without an objective that reads energy, budgets or busy caps, energy is worked out for the plans found only.
  [[nodiscard]] bool asks_for_energy() const {
    for (const device& d : tables.cluster.devices()) {
      if (options.keep_budgets && (d.energy_budget || d.max_busy < 1)) return true;
    }
    for (const double t : {0.0, 1e-3, 1.0, 1e3, 1e6, 1e9}) {
      if (best.score(t, 0) != best.score(t, 1e30)) return true;
    }
    return false;
  }
};

}  // namespace hetplan::partition::detail

#ifndef HETPLAN_SEPARATE
#include <hetplan/partition/search_context.ipp>
#endif
