// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Placements that add one instance after the other: greedy by gain (EPARA's), fixed, like caches, and complementary.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include <hetplan/core/error.hpp>
#include <hetplan/serve/deployment.hpp>
#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/fluid_goodput.hpp>
#include <hetplan/serve/parallelism_allocator.hpp>
#include <hetplan/serve/ring_sync.hpp>
#include <hetplan/serve/service_time.hpp>
#include <hetplan/serve/serving_options.hpp>

namespace hetplan::serve {

enum class placement_site { gpus, device, across };

/// A service on GPUs of one kind of a server, on a device of it, or across its ring, led by `server` or, if none, by any.
struct placement_candidate {
  std::size_t ring = 0;
  service_id what;
  server_id server;
  placement_site site = placement_site::gpus;
  std::size_t pool = 0;
};

/// The candidates, with an allocation for each service and pool of GPUs. Equal pools share theirs; services never in time have none.
/// Complexity  O(pools of different kinds x services) allocations, otherwise O(GPUs).
/// Source  EPARA, section 3.3, algorithm 1 (X and its logical server).
class placement_candidates {
 public:
  placement_candidates(const edge_cloud& cloud, const std::vector<service>& services, const any_service_time& times,
                       const parallelism_operators& operators);
  placement_candidates(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, const any_service_time&,
                       const parallelism_operators&) = delete;

  [[nodiscard]] std::size_t rings() const { return rings_.rings(); }
  [[nodiscard]] ring_sync::ring ring(std::size_t r) const { return rings_[r]; }
  [[nodiscard]] std::size_t services() const { return services_; }
  [[nodiscard]] const gpu_pool& pool(std::size_t p) const { return pools_[p].what; }
  /// Returns the allocation; null if the service does not run on such GPUs.
  [[nodiscard]] const allocation* allocated(std::size_t pool, service_id l) const {
    const auto& a = pools_[pool].allocations[l.index()];
    return a ? &*a : nullptr;
  }
  /// Returns the candidates of a server and service, GPUs before devices.
  [[nodiscard]] std::vector<placement_candidate> at(server_id s, service_id l) const;
  /// Returns the candidates of a ring and service: on single servers, or across the ring.
  [[nodiscard]] std::vector<placement_candidate> within(std::size_t ring, service_id l) const;
  [[nodiscard]] std::vector<placement_candidate> across(std::size_t ring, service_id l) const;
  /// Returns the allocations of all candidates.
  [[nodiscard]] std::vector<const allocation*> all() const;

 private:
  struct pool_entry {
    gpu_pool what;
    std::vector<std::optional<allocation>> allocations;  ///< by service
  };
  struct place {
    std::size_t pool;
    placement_site site;
  };
  [[nodiscard]] std::size_t pool_of(const gpu_pool& p);

  const std::vector<service>* of_;
  std::size_t services_;
  ring_sync rings_;
  std::vector<pool_entry> pools_;
  std::vector<std::vector<place>> on_server_;
  std::vector<std::vector<place>> in_ring_;
};

/// The choice of a GPU with room: the fullest, or the one that an instance leaves most balanced in compute and memory.
enum class gpu_fit { best, most_even };

/// Chooses GPUs for one instance after the other, in the room that the earlier ones have left.
/// Complexity  O(GPUs of the server, or of the ring).
/// Source  EPARA, section 3.3: GPUs of a server are chosen like hosts for virtual machines. Here: best fit, the GPU with the least
///         sufficient compute left, then the least memory, then the smallest number; so whole GPUs remain for instances that need several.
class gpu_choice {
 public:
  gpu_choice(const edge_cloud& cloud, const std::vector<service>& services, const cloud_damage& damage, const deployment& present,
             gpu_fit fit = gpu_fit::best);
  gpu_choice(const edge_cloud&& the_cloud_must_outlive_it, const std::vector<service>&, const cloud_damage&, const deployment&,
             gpu_fit = gpu_fit::best) = delete;
  gpu_choice(const edge_cloud&, const std::vector<service>&& the_services_must_outlive_it, const cloud_damage&, const deployment&,
             gpu_fit = gpu_fit::best) = delete;

  /// Returns an instance on GPUs of one server or on one of its devices; empty if there are not enough.
  [[nodiscard]] std::optional<instance> on_server(const placement_candidate& c, const allocation& a, const gpu& unit) const {
    return c.site == placement_site::device ? on_device(c.server, a, unit) : on_gpus(c.server, a, unit);
  }
  /// Returns an instance on GPUs of a ring, those of the leader and the nearest ones first.
  [[nodiscard]] std::optional<instance> across(server_id leader, ring_sync::ring ring, const allocation& a, const gpu& unit) const;
  /// Takes the room of an instance. An identical instance of the present deployment stays and keeps its weights.
  void take(const instance& i, const allocation& a);

 private:
  struct fitting_gpu {
    gpu_slot slot;
    gpu_room left;
  };
  [[nodiscard]] std::optional<instance> on_gpus(server_id s, const allocation& a, const gpu& unit) const;
  [[nodiscard]] std::optional<instance> on_device(server_id s, const allocation& a, const gpu& unit) const;
  [[nodiscard]] const service_variant& variant(const allocation& a) const;
  [[nodiscard]] bool is_free(const gpu_room& left, const allocation& a, const gpu& unit) const;
  /// Returns the GPUs of a server that an instance could use, best fit first.
  [[nodiscard]] std::vector<gpu_slot> fitting(server_id s, const allocation& a, const gpu& unit) const;
  /// Returns an instance of the present deployment that equals the allocation and whose place is free.
  [[nodiscard]] const instance* standing(server_id leader, const allocation& a, const gpu& unit, placement_site where) const;

  const edge_cloud* cloud_;
  const std::vector<service>* services_;
  cloud_room room_;
  gpu_fit fit_;
  std::vector<std::vector<instance>> present_;  ///< by leader: instances not taken yet
};

/// A placement_policy that returns its deployments one after the other, from the initial one on, and then always the last.
/// Source  ours: the content of a deployments file.
class fixed_placement {
 public:
  /// An empty list makes `place` throw invalid_input.
  explicit fixed_placement(std::vector<deployment> in_turn) : in_turn_(std::move(in_turn)) {}
  [[nodiscard]] deployment place(const placement_question& q) const {
    if (in_turn_.empty()) throw invalid_input("fixed_placement: holds no deployment; expected one at least");
    return in_turn_[std::min(static_cast<std::size_t>(q.number), in_turn_.size() - 1)];
  }

 private:
  std::vector<deployment> in_turn_;
};
static_assert(check_placement_policy<fixed_placement>());

/// What a full server evicts: the service requested longest ago, least often, or most often.
enum class cache_eviction { least_recently_used, least_frequently_used, most_frequently_used };

/// A placement_policy that treats servers as caches. A server holds the services requested there that an eviction rule would keep: one
/// instance of each in that order, repeatedly while one fits. Instances never span servers. Without requests the deployment stays.
/// Complexity   O(requests + instances). Determinism  ties: the smaller service.
/// Source       EPARA, section 5.3.1 and figure 17b (LRU, LFU, MFU). Deviation: how caches are filled, which the paper does not say.
class cache_placement {
 public:
  explicit cache_placement(cache_eviction rule, parallelism_operators operators = {}) : rule_(rule), operators_(operators) {}
  [[nodiscard]] deployment place(const placement_question& q) const;

 private:
  cache_eviction rule_;
  parallelism_operators operators_;
};
static_assert(check_placement_policy<cache_placement>());

/// A placement_policy for servers that pass nothing on. Each server has as many instances of a service as its requests need. The service
/// with the smallest covered share comes next, on the GPUs that it leaves most balanced in compute and memory. Without requests the
/// deployment stays.
/// Complexity   O(requests + instances x (services + GPUs of a server)). Determinism  ties: the smaller service, the smaller GPU.
/// Source       USHER (Shubha et al., 2024), as EPARA compares itself with it: replicas by demand, compute-heavy models beside
///              memory-heavy ones. Deviations: interference is a matter of the service times; graphs are not merged.
class complementary_placement {
 public:
  explicit complementary_placement(parallelism_operators operators = {}) : operators_(operators) {}
  [[nodiscard]] deployment place(const placement_question& q) const;

 private:
  parallelism_operators operators_;
};
static_assert(check_placement_policy<complementary_placement>());

template <class V>
concept bounds_gain = requires(const V& v, server_id leader, const allocation& a) {
  { v.most(leader, a) } -> std::same_as<placement_gain>;  // an upper bound of every gain with this leader; need not be tight
};
template <class V>
concept tells_gain = requires(const V& v, const instance& i, const allocation& a) {
  { v.gain(i, a) } -> std::same_as<placement_gain>;  // the gain of one more instance; 0 if it is only rounding
};
template <class V>
concept takes_instances = requires(V& v, const instance& i, const allocation& a) {
  v.add(i, a);  // an instance that has been placed
};

/// The value of a growing deployment: phi, the requests per second that it serves. `greedy_placement` places the best candidate.
///
/// * A `placement_gain` is `credit`, the requests (or frames) per second that are served because of the instance, and `at_home`, those
///   of them served where they enter, which breaks ties.
/// * `most` saves work: a candidate that cannot be the best is skipped. Infinity is always valid.
/// * If gains shrink as more is placed (a submodular value), `greedy_search::lazy` places what `plain` does, only sooner. `incremental`
///   also requires that an instance changes only the gains of its own service and ring.
///
/// Ships: `fluid_goodput` (min of demand and capacity, by ring and service, less for bursty arrivals; used by `submodular_placement`),
/// `simulated_goodput` (simulates the requests for every gain, as the paper defines it; for small clouds).
template <class V>
concept placement_value = bounds_gain<V> && tells_gain<V> && takes_instances<V>;

template <class V>
consteval bool check_placement_value() {
  static_assert(bounds_gain<V>,
                "placement_value needs: hetplan::serve::placement_gain most(hetplan::serve::server_id leader, const "
                "hetplan::serve::allocation&) const");
  static_assert(tells_gain<V>,
                "placement_value needs: hetplan::serve::placement_gain gain(const hetplan::serve::instance&, const "
                "hetplan::serve::allocation&) const");
  static_assert(takes_instances<V>, "placement_value needs: void add(const hetplan::serve::instance&, const hetplan::serve::allocation&)");
  return placement_value<V>;
}

/// The search for the best candidate of a step. All three place the same if gains do not grow as more is placed.
enum class greedy_search {
  plain,       ///< every candidate in every step
  lazy,        ///< earlier gains are upper bounds: the best one after re-evaluation is chosen (Minoux 1978)
  incremental  ///< only candidates of the changed service and ring, or of taken GPUs; for values with no other changes
};

/// The criterion of a step: the most gain, as in EPARA, or the most per GPU.
enum class greedy_order { gain, gain_per_gpu };

/// A service to be placed first, on a server or where it gains most.
struct prioritised_service {
  service_id what;
  std::optional<server_id> where = {};
};

/// Places instances step by step in the room of the GPUs.
/// Complexity   per step: plain O(all candidates), lazy O(re-evaluated ones x log all), incremental O(changed candidates + rings x
///              services). Across servers a candidate tries every leader for GPUs of its ring.
/// Determinism  ties: more served where it enters, then ring, service, server, GPUs before devices.
/// Source       EPARA, section 3.3, algorithm 2. A set allows repeated placements, a list each once.
template <placement_value Value>
class greedy_placement {
 public:
  greedy_placement(const placement_candidates& candidates, gpu_choice gpus, Value& value, greedy_search how, greedy_order order)
      : candidates_(&candidates), gpus_(std::move(gpus)), value_(std::addressof(value)), how_(how), order_(order) {}

  /// S1: places each entry of the list once while one fits, also without gain; across servers what fits on none.
  void place_prioritised(std::vector<prioritised_service> list, bool across_servers) {
    while (!list.empty()) {
      std::optional<scored> best;
      std::size_t which = 0;
      for (std::size_t n = 0; n < list.size(); ++n) {
        auto next = best_of_list_entry(list[n], across_servers);
        if (next && (!best || *next > *best)) std::tie(best, which) = std::pair(std::move(next), n);
      }
      if (!best) return;
      place(*best);
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  /// S2: places whole instances within a server or on a device while one gains.
  void place_within_servers() { run(false); }
  /// S3: places instances across the servers of a ring.
  void place_across_servers() { run(true); }

  [[nodiscard]] const deployment& placed() const { return placed_; }
  /// Returns the number of evaluated gains.
  [[nodiscard]] std::uint64_t evaluated() const { return evaluated_; }

 private:
  struct scored {
    double score = 0;
    placement_gain gain;
    std::size_t number = 0;  ///< breaks ties
    placement_candidate where;
    const allocation* as = nullptr;
    std::optional<instance> placed = {};

    friend bool operator>(const scored& a, const scored& b) {
      return std::tuple(a.score, a.gain.at_home, b.number) > std::tuple(b.score, b.gain.at_home, a.number);
    }
    friend bool operator<(const scored& a, const scored& b) { return b > a; }
  };
  using group = std::vector<placement_candidate>;

  [[nodiscard]] scored score(const placement_candidate& c, const placement_gain& g, std::size_t number) const {
    const auto* a = candidates_->allocated(c.pool, c.what);
    return {order_ == greedy_order::gain ? g.credit : g.credit / a->gpus, g, number, c, a};
  }

  /// Returns the gain of a candidate; empty if it does not fit or gains nothing.
  [[nodiscard]] std::optional<scored> look_at(const placement_candidate& c, std::size_t number, bool also_without_gain = false) {
    const auto* a = candidates_->allocated(c.pool, c.what);
    const auto& unit = candidates_->pool(c.pool).unit;
    auto i = c.site == placement_site::across ? across(c, *a, unit) : gpus_.on_server(c, *a, unit);
    if (!i) return std::nullopt;
    ++evaluated_;
    auto s = score(c, value_->gain(*i, *a), number);
    if (!also_without_gain && s.gain.credit <= 0) return std::nullopt;
    s.placed = std::move(i);
    return s;
  }

  /// Returns an instance led by the candidate's server or, without one, by the most unserved server that has a GPU.
  [[nodiscard]] std::optional<instance> across(const placement_candidate& c, const allocation& a, const gpu& unit) const {
    const auto ring = candidates_->ring(c.ring);
    if (c.server.valid()) return gpus_.across(c.server, ring, a, unit);
    std::vector<std::pair<double, std::int32_t>> leaders;
    for (std::int32_t p = 0; p < ring.count; ++p) {
      const server_id s(ring.first + p);
      leaders.emplace_back(-value_->most(s, a).at_home, s.value);
    }
    std::ranges::sort(leaders);
    for (const auto& [unserved, s] : leaders) {
      if (auto i = gpus_.across(server_id(s), ring, a, unit)) return i;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<scored> best_of(const group& all, bool also_without_gain = false) {
    std::optional<scored> best;
    for (std::size_t n = 0; n < all.size(); ++n) {
      const auto* a = candidates_->allocated(all[n].pool, all[n].what);
      if (best && all[n].site != placement_site::across && !(score(all[n], value_->most(all[n].server, *a), n) > *best)) continue;
      auto next = look_at(all[n], n, also_without_gain);
      if (next && (!best || *next > *best)) best = std::move(next);
    }
    return best;
  }

  [[nodiscard]] std::optional<scored> best_of_list_entry(const prioritised_service& p, bool across_servers) {
    group within;
    group across;
    for (std::size_t r = 0; r < candidates_->rings(); ++r) {
      const auto ring = candidates_->ring(r);
      if (p.where && (p.where->value < ring.first || p.where->value >= ring.first + ring.count)) continue;
      std::ranges::copy_if(candidates_->within(r, p.what), std::back_inserter(within),
                           [&](const auto& c) { return !p.where || c.server == *p.where; });
      std::ranges::copy(candidates_->across(r, p.what), std::back_inserter(across));
    }
    if (p.where) {
      for (auto& c : across) c.server = *p.where;
    }
    auto best = best_of(within, true);
    return best || !across_servers ? std::move(best) : best_of(across, true);
  }

  void place(const scored& s) {
    gpus_.take(*s.placed, *s.as);
    value_->add(*s.placed, *s.as);
    placed_.instances.push_back(*s.placed);
  }

  void run(bool across) {
    std::vector<group> groups;  // [ring][service]
    for (std::size_t r = 0; r < candidates_->rings(); ++r) {
      for (std::size_t l = 0; l < candidates_->services(); ++l)
        groups.push_back(across ? candidates_->across(r, service_id(l)) : candidates_->within(r, service_id(l)));
    }
    if (how_ == greedy_search::lazy) {
      run_lazily(groups);
    } else {
      run_by_groups(groups);
    }
  }

  /// Keeps the best candidate of each ring and service; plain evaluates all anew after every step.
  void run_by_groups(const std::vector<group>& groups) {
    std::vector<std::optional<scored>> best(groups.size());
    for (std::size_t g = 0; g < groups.size(); ++g) best[g] = best_of(groups[g]);
    for (;;) {
      std::size_t first = groups.size();
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (best[g] && (first == groups.size() || comes_before(*best[g], *best[first]))) first = g;
      }
      if (first == groups.size()) return;
      const scored chosen = *best[first];
      place(chosen);
      for (std::size_t g = 0; g < groups.size(); ++g) {
        if (best[g] && (how_ == greedy_search::plain || g == first || is_touched(*best[g]->placed, *chosen.placed)))
          best[g] = best_of(groups[g]);
      }
    }
  }
  /// Compares groups in order, so that the first of equal ones stays.
  [[nodiscard]] static bool comes_before(const scored& a, const scored& b) {
    return std::pair(a.score, a.gain.at_home) > std::pair(b.score, b.gain.at_home);
  }
  /// True if the instances share a server.
  [[nodiscard]] static bool is_touched(const instance& a, const instance& b) {
    if (a.device || b.device) return a.leader() == b.leader();
    return std::ranges::any_of(
        a.gpus, [&](const gpu_slot& x) { return std::ranges::any_of(b.gpus, [&](const gpu_slot& y) { return x.server == y.server; }); });
  }

  void run_lazily(const std::vector<group>& groups) {
    std::priority_queue<scored> best;
    std::size_t number = 0;
    for (const auto& g : groups) {
      for (const auto& c : g) {
        if (auto s = look_at(c, number++)) best.push(std::move(*s));
      }
    }
    while (!best.empty()) {
      const auto before = best.top();
      best.pop();
      auto now = look_at(before.where, before.number);
      if (!now) continue;
      if (best.empty() || *now > best.top()) {
        place(*now);
        now = look_at(before.where, before.number);  // the next one, for a smaller gain
      }
      if (now) best.push(std::move(*now));
    }
  }

  const placement_candidates* candidates_;
  gpu_choice gpus_;
  Value* value_;
  greedy_search how_;
  greedy_order order_;
  deployment placed_;
  std::uint64_t evaluated_ = 0;
};

struct submodular_options {
  parallelism_operators operators = {};
  handling_reach reach = handling_reach::ring;
  arrival_model arrivals = arrival_model::by_chance;
  std::vector<prioritised_service> first = {};  ///< S1
  bool across_servers = true;                   ///< S3
  greedy_search search = greedy_search::lazy;
  std::optional<greedy_order> order = {};  ///< empty: both, also S3 before S2; the best is taken
};

/// A placement and what is known of its quality.
struct submodular_report {
  deployment placed = {};
  double value = 0;                        ///< phi by the fluid estimate: requests (frames) per second
  double bound = 0;                        ///< upper bound over all placements with these allocations
  double guarantee = 0;                    ///< 1 / (1 + P) of the optimum (eq. 3), under the paper's assumptions
  std::array<std::size_t, 4> stages = {};  ///< instances placed by S1, S2, S3, and then for bursty arrivals
  std::uint64_t evaluated = 0;             ///< evaluated gains
};

/// Places what serves most of a demand: S1 the list, S2 within servers, S3 across servers. For uneven arrivals it tries that model alone,
/// and even arrivals followed by that model on the remaining GPUs; the better result is taken.
///
/// The bound is that of a knapsack with all GPUs as one and divisible instances, each service by its best allocation. The guarantee assumes
/// that phi is submodular (not proven for the fluid estimate), that no service spans servers, and at most one unfilled GPU per server.
/// Complexity   see greedy_placement. Throws  invalid_model for a service time not finite and above 0; invalid_input for unknown names in
///              the list.
/// Determinism  see greedy_placement.
/// Source       EPARA, section 3.3, algorithms 1 and 2, eq. 3. Deviations: phi is the fluid estimate; gain per GPU, bursty arrivals
///              and S3 before S2 are tried beside gain, even arrivals and S2 before S3.
[[nodiscard]] submodular_report place_submodular(const placement_question& q, const service_demand& demand,
                                                 const submodular_options& options = {});

/// A placement_policy that places services anew for the requests of the window; what still fits stays in place. Without requests
/// the deployment stays, or at the beginning the list is placed.
/// Source  EPARA, sections 3.3 and 3.4 (coarse granularity).
class submodular_placement {
 public:
  explicit submodular_placement(submodular_options options = {}) : options_(std::move(options)) {}
  [[nodiscard]] deployment place(const placement_question& q) const;

 private:
  submodular_options options_;
};
static_assert(check_placement_policy<submodular_placement>());

}  // namespace hetplan::serve

#ifndef HETPLAN_SEPARATE
#include <hetplan/serve/greedy_placement.ipp>
#endif
