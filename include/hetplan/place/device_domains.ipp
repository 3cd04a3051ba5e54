// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/device_domains.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <hetplan/place/list_schedule.hpp>
#include <hetplan/place/partial_schedule.hpp>

namespace hetplan::place {

namespace detail {

constexpr int price_rounds = 200;

/// Prices of the devices' bytes, which rise where a relaxed placement exceeds capacity.
class byte_prices {
 public:
  byte_prices(const placement_table& t, double scale_s) : table_(t), scale_s_(scale_s), byte_price_(t.devices(), 0) {
    unit_bytes_ = std::max(t.all_held_bytes(), 1.0);
  }

  [[nodiscard]] const std::vector<double>& byte_price() const { return byte_price_; }
  [[nodiscard]] double paid_for_capacity() const {
    double sum = 0;
    for (std::size_t k = 0; k < byte_price_.size(); ++k) {
      if (byte_price_[k] > 0) sum += byte_price_[k] * table_.capacity_bytes(k);
    }
    return sum;
  }
  /// Moves the prices by the excess of a relaxed placement on each device.
  void step_bytes(const std::vector<double>& held, int round) {
    for (std::size_t k = 0; k < byte_price_.size(); ++k) {
      if (!std::isfinite(table_.capacity_bytes(k))) continue;
      const double excess = (held[k] - table_.capacity_bytes(k)) / unit_bytes_;
      byte_price_[k] = std::max(0.0, byte_price_[k] + 2 * scale_s_ / unit_bytes_ / (1 + 0.2 * round) * excess);
    }
  }

 private:
  const placement_table& table_;
  double scale_s_, unit_bytes_;
  std::vector<double> byte_price_;
};

/// Returns the cheapest device of an operator at prices of seconds and bytes; ties go to the smaller number.
[[nodiscard]] HETPLAN_INLINE std::pair<double, std::size_t> cheapest_device(const placement_table& t, std::size_t v,
                                                                            const std::vector<double>& second_price,
                                                                            const std::vector<double>& byte_price) {
  std::pair<double, std::size_t> best{std::numeric_limits<double>::infinity(), 0};
  for (std::size_t k = 0; k < t.devices(); ++k) {
    if (!std::isfinite(t.time_s(v, k))) continue;
    const double cost = second_price[k] * t.time_s(v, k) + byte_price[k] * t.shared_out_bytes(v);
    if (cost < best.first) best = {cost, k};
  }
  return best;
}

/// Returns a long path: from the operator with the greatest least tail, always on to the reader with the greatest least tail. Any path
/// gives a valid bound.
[[nodiscard]] HETPLAN_INLINE std::vector<std::uint32_t> longest_path(const placement_table& t, const std::vector<double>& least_tail,
                                                                     std::size_t& first) {
  for (std::size_t v = 0; v < t.size(); ++v) {
    if (least_tail[v] > least_tail[first]) first = v;
  }
  std::vector<std::uint32_t> path;
  for (std::size_t v = first; !t.out_edges(v).empty();) {
    const auto out = t.out_edges(v);
    const std::uint32_t next = *std::max_element(out.begin(), out.end(), [&](std::uint32_t a, std::uint32_t b) {
      return least_tail[t.edges()[a].to] < least_tail[t.edges()[b].to];
    });
    path.push_back(next);
    v = t.edges()[next].to;
  }
  return path;
}

[[nodiscard]] HETPLAN_INLINE double path_and_memory_bound_s(const placement_table& t, const std::vector<double>& least_tail,
                                                            double path_s) {
  const std::size_t d = t.devices();
  std::size_t first = 0;
  const std::vector<std::uint32_t> path = longest_path(t, least_tail, first);
  std::vector<char> on_path(t.size(), 0);
  std::vector<std::size_t> nodes{first};
  for (const std::uint32_t e : path) nodes.push_back(t.edges()[e].to);
  for (const std::size_t v : nodes) on_path[v] = 1;
  byte_prices bytes(t, path_s);
  const std::vector<double> free(d, 0);
  std::vector<double> value(d), behind(d);
  std::vector<std::size_t> next(nodes.size() * d, 0);
  double best = 0;
  for (int round = 0; round < price_rounds / 2; ++round) {
    const auto cost = [&](std::size_t v, std::size_t k) { return t.time_s(v, k) + bytes.byte_price()[k] * t.shared_out_bytes(v); };
    for (std::size_t i = nodes.size(); i-- > 0;) {
      for (std::size_t k = 0; k < d; ++k) {
        double rest = 0;
        if (i + 1 < nodes.size()) {
          rest = std::numeric_limits<double>::infinity();
          for (std::size_t j = 0; j < d; ++j) {
            const double way = t.transfer_s(path[i], k, j) + behind[j];
            if (way < rest) rest = way, next[i * d + k] = j;
          }
        }
        value[k] = cost(nodes[i], k) + rest;
      }
      behind = value;
    }
    std::vector<double> held(d, 0);
    auto k = static_cast<std::size_t>(std::min_element(behind.begin(), behind.end()) - behind.begin());
    double total = behind[k] - bytes.paid_for_capacity();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      held[k] += t.shared_out_bytes(nodes[i]);
      k = next[i * d + k];
    }
    for (std::size_t v = 0; v < t.size(); ++v) {
      if (on_path[v] || t.shared_out_bytes(v) <= 0) continue;
      const auto [price, where] = cheapest_device(t, v, free, bytes.byte_price());
      total += price;
      held[where] += t.shared_out_bytes(v);
    }
    best = std::max(best, total);
    bytes.step_bytes(held, round);
  }
  return best;
}

/// @param end_s  a known bound.
[[nodiscard]] HETPLAN_INLINE double interval_bound_s(const placement_table& t, const std::vector<double>& earliest_s,
                                                     const std::vector<double>& least_tail, double end_s) {
  constexpr std::size_t most_points = 48;
  std::vector<double> points;
  for (std::size_t v = 0; v < t.size(); ++v) points.insert(points.end(), {earliest_s[v], end_s - least_tail[v] + t.fastest_s(v)});
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::vector<double> chosen;
  const std::size_t count = std::min(most_points, points.size());
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(points[i * (points.size() - 1) / std::max<std::size_t>(1, count - 1)]);
  const auto devices = static_cast<double>(t.devices());
  double best = end_s;
  for (std::size_t a = 0; a < chosen.size(); ++a) {
    for (std::size_t b = a + 1; b < chosen.size(); ++b) {
      const double from_s = chosen[a], to_s = chosen[b];
      double work = 0;
      for (std::size_t v = 0; v < t.size(); ++v) {
        const double time_s = t.fastest_s(v), latest_start_s = end_s - least_tail[v];
        work += std::max(0.0, std::min({time_s, earliest_s[v] + time_s - from_s, to_s - latest_start_s, to_s - from_s}));
      }
      best = std::max(best, end_s + work / devices - (to_s - from_s));
    }
  }
  return best;
}

}  // namespace detail

HETPLAN_INLINE double placement_bounds::best_s() const { return std::max({path_s, load_s, path_and_memory_s, interval_s}); }

HETPLAN_INLINE load_prices load_prices_of(const placement_table& t) {
  const std::size_t d = t.devices();
  std::vector<double> price(d, 1 / static_cast<double>(d));
  load_prices best{price, std::vector<double>(d, 0)};
  double all_s = 0;
  for (std::size_t v = 0; v < t.size(); ++v) all_s += t.fastest_s(v);
  if (!(all_s > 0) || !std::isfinite(all_s)) return best;
  detail::byte_prices bytes(t, all_s / static_cast<double>(d));
  for (int round = 0; round < detail::price_rounds; ++round) {
    std::vector<double> load(d, 0), held(d, 0);
    double value = -bytes.paid_for_capacity();
    for (std::size_t v = 0; v < t.size(); ++v) {
      const auto [cost, k] = detail::cheapest_device(t, v, price, bytes.byte_price());
      value += cost;
      load[k] += t.time_s(v, k);
      held[k] += t.shared_out_bytes(v);
    }
    if (value > best.bound_s) best = {price, bytes.byte_price(), bytes.paid_for_capacity(), value};
    const double most = *std::max_element(load.begin(), load.end());
    double sum = 0;
    for (std::size_t k = 0; k < d; ++k) sum += price[k] *= std::exp(load[k] / most / (1 + 0.1 * round));
    for (double& p : price) p /= sum;
    bytes.step_bytes(held, round);
  }
  return best;
}

HETPLAN_INLINE placement_bounds bounds_of(const placement_table& t) {
  placement_bounds b;
  b.status = refute_placements(t);
  if (!b.status.ok()) return b;
  const std::size_t d = t.devices();
  const std::vector<double> head = heads_s(t), tail = tails_s(t);
  std::vector<double> earliest_s(t.size(), std::numeric_limits<double>::infinity()), least_tail = earliest_s;
  for (std::size_t v = 0; v < t.size(); ++v) {
    double through_s = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < d; ++k) {
      if (!std::isfinite(t.time_s(v, k))) continue;
      earliest_s[v] = std::min(earliest_s[v], head[v * d + k]);
      least_tail[v] = std::min(least_tail[v], tail[v * d + k]);
      through_s = std::min(through_s, head[v * d + k] + tail[v * d + k]);
    }
    if (!std::isfinite(through_s)) {
      b.status = {outcome::infeasible, "no routes join the devices that could run the operators",
                  infeasibility_proof{named_problem(t),
                                      {{"devices that can run operator \"" + escaped(t.data().operators[v]) +
                                            "\" and are joined by routes to some device for each operator before and behind it",
                                        1, 0}},
                                      0}};
      b.path_s = 0;
      return b;
    }
    b.path_s = std::max(b.path_s, through_s);
  }
  b.load_s = load_prices_of(t).bound_s;
  b.path_and_memory_s = detail::path_and_memory_bound_s(t, least_tail, b.path_s);
  b.interval_s = detail::interval_bound_s(t, earliest_s, least_tail, std::max({b.path_s, b.load_s, b.path_and_memory_s}));
  return b;
}

namespace detail {

constexpr double never_s = std::numeric_limits<double>::infinity();

}  // namespace detail

HETPLAN_INLINE std::size_t only(device_set s) { return static_cast<std::size_t>(std::countr_zero(s)); }

HETPLAN_INLINE device_domains::device_domains(const placement_table& t, const placement_rules& r)
    : table_(t), rules_(r), holds_(t, r.contention), devices_(t.devices()), prices_(load_prices_of(t)), window_price_(prices_.of_second),
      window_s_(devices_), window_load_(devices_), end_s_(t.size() * t.devices()), tail_s_(t.size() * t.devices()), first_end_s_(t.size()),
      tied_on_(t.tied().size()) {
  HETPLAN_ASSERT(devices_ <= 64);
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    for (std::size_t from = 0; from < devices_; ++from) {
      for (std::size_t to = 0; to < devices_; ++to) carried_s_.push_back(place::carried_s(t, r.copies, e, from, to));
    }
  }
}

HETPLAN_INLINE std::vector<device_set> device_domains::all() const {
  std::vector<device_set> sets(table_.size(), 0);
  for (std::size_t v = 0; v < sets.size(); ++v) {
    for (std::size_t k = 0; k < devices_; ++k) {
      if (std::isfinite(table_.time_s(v, k))) sets[v] |= device_set{1} << k;
    }
  }
  return sets;
}

HETPLAN_INLINE double device_domains::narrow(std::vector<device_set>& sets, double limit_s) {
  for (bool changed = true; changed;) {
    changed = false;
    if (!filter_memory(sets, changed) || !measure_ends(sets)) return detail::never_s;
    measure_tails(sets);
    if (!filter(sets, limit_s, changed)) return detail::never_s;
  }
  double bound_s = load_s(sets);
  if (bound_s >= limit_s || (std::isfinite(limit_s) && overfull(sets, limit_s))) return detail::never_s;
  for (std::size_t v = 0; v < sets.size(); ++v) {
    double least_s = detail::never_s;
    each_device(sets[v], [&](std::size_t k) { least_s = std::min(least_s, through_s(v, k)); });
    bound_s = std::max(bound_s, least_s);
  }
  bound_s = std::max({bound_s, devices_s(sets), channels_s(sets)});
  return bound_s >= limit_s ? detail::never_s : bound_s;
}

HETPLAN_INLINE bool device_domains::measure_ends(const std::vector<device_set>& sets) {
  for (const std::size_t v : table_.order()) {
    first_end_s_[v] = detail::never_s;
    each_device(sets[v], [&](std::size_t k) {
      double start_s = rules_.contention == contention::one_port ? ports_in_s(sets, v, k) : 0;
      for (const std::uint32_t e : table_.in_edges(v)) {
        const std::size_t u = table_.edges()[e].from;
        double there_s = detail::never_s;
        each_device(sets[u], [&](std::size_t j) { there_s = std::min(there_s, end_s_[u * devices_ + j] + carried_s(e, j, k)); });
        start_s = std::max(start_s, there_s);
      }
      const double end_s = end_s_[v * devices_ + k] = start_s + table_.time_s(v, k);
      first_end_s_[v] = std::min(first_end_s_[v], end_s);
    });
    if (!std::isfinite(first_end_s_[v])) return false;
  }
  return true;
}

HETPLAN_INLINE void device_domains::measure_tails(const std::vector<device_set>& sets) {
  for (std::size_t i = table_.size(); i-- > 0;) {
    const std::size_t v = table_.order()[i];
    each_device(sets[v], [&](std::size_t k) {
      double rest_s = rules_.contention == contention::one_port ? ports_out_s(sets, v, k) : 0;
      for (const std::uint32_t e : table_.out_edges(v)) {
        const std::size_t w = table_.edges()[e].to;
        double least_s = detail::never_s;
        each_device(sets[w], [&](std::size_t j) { least_s = std::min(least_s, carried_s(e, k, j) + tail_s_[w * devices_ + j]); });
        rest_s = std::max(rest_s, least_s);
      }
      tail_s_[v * devices_ + k] = table_.time_s(v, k) + rest_s;
    });
  }
}

HETPLAN_INLINE double device_domains::ports_in_s(const std::vector<device_set>& sets, std::size_t op, std::size_t device) {
  jobs_.clear();
  for (const std::uint32_t e : table_.in_edges(op)) {
    const std::size_t u = table_.edges()[e].from;
    if (has(sets[u], device)) continue;
    double least_s = detail::never_s;
    each_device(sets[u], [&](std::size_t j) { least_s = std::min(least_s, carried_s(e, j, device)); });
    jobs_.push_back({first_end_s_[u], least_s, 0});
  }
  return jobs_.size() < 2 ? 0 : preemptive_machine_bound(jobs_);
}

HETPLAN_INLINE double device_domains::ports_out_s(const std::vector<device_set>& sets, std::size_t op, std::size_t device) {
  jobs_.clear();
  device_set served = 0;  // with copies per device, an output is one transfer to a device, however many read it there
  for (const std::uint32_t e : table_.out_edges(op)) {
    const std::size_t w = table_.edges()[e].to;
    if (has(sets[w], device)) continue;
    if (rules_.copies == transfer_copies::per_device) {
      if (!is_one(sets[w]) || (served & sets[w]) != 0) continue;
      served |= sets[w];
    }
    machine_job job{0, detail::never_s, detail::never_s};
    each_device(sets[w], [&](std::size_t j) {
      job.work_s = std::min(job.work_s, carried_s(e, device, j));
      job.tail_s = std::min(job.tail_s, tail_s_[w * devices_ + j]);
    });
    jobs_.push_back(job);
  }
  return jobs_.size() < 2 ? 0 : preemptive_machine_bound(jobs_);
}

HETPLAN_INLINE bool device_domains::filter(std::vector<device_set>& sets, double limit_s, bool& changed) {
  for (std::size_t v = 0; v < sets.size(); ++v) {
    const device_set before = sets[v];
    each_device(before, [&](std::size_t k) {
      if (!(through_s(v, k) < limit_s)) sets[v] &= ~(device_set{1} << k);
    });
    if (sets[v] == 0) return false;
    changed |= sets[v] != before;
  }
  return true;
}

HETPLAN_INLINE bool device_domains::filter_memory(std::vector<device_set>& sets, bool& changed) {
  std::array<double, 64> held{}, working{};
  double open = 0, room = 0;
  for (std::size_t x = 0; x < table_.tied().size(); ++x) {
    tied_on_[x] = 0;
    for (const std::size_t v : table_.tied()[x].operators) tied_on_[x] |= is_one(sets[v]) ? sets[v] : 0;
    if (tied_on_[x] == 0) open += table_.tied()[x].bytes;
    each_device(tied_on_[x], [&](std::size_t k) { held[k] += table_.tied()[x].bytes; });
  }
  for (std::size_t v = 0; v < sets.size(); ++v) {
    if (!is_one(sets[v])) {
      open += table_.held_bytes(v);
      continue;
    }
    const std::size_t k = only(sets[v]);
    held[k] += table_.held_bytes(v);
    working[k] = std::max(working[k], table_.working_bytes(v));
  }
  for (std::size_t k = 0; k < devices_; ++k) {
    const double left = table_.capacity_bytes(k) - held[k] - working[k];
    if (left < 0) return false;
    room += left;
  }
  if (open > room) return false;
  for (std::size_t v = 0; v < sets.size(); ++v) {
    if (is_one(sets[v])) continue;
    const device_set before = sets[v];
    each_device(before, [&](std::size_t k) {
      double with = held[k] + table_.held_bytes(v);
      for (const std::uint32_t x : table_.tied_of(v)) with += has(tied_on_[x], k) ? 0 : table_.tied()[x].bytes;
      if (with + std::max(working[k], table_.working_bytes(v)) > table_.capacity_bytes(k)) sets[v] &= ~(device_set{1} << k);
    });
    if (sets[v] == 0) return false;
    changed |= sets[v] != before;
  }
  return true;
}

HETPLAN_INLINE double device_domains::load_s(const std::vector<device_set>& sets) const {
  double sum = -prices_.paid_for_capacity;
  for (std::size_t v = 0; v < sets.size(); ++v) {
    double least = detail::never_s;
    each_device(sets[v], [&](std::size_t k) {
      least = std::min(least, prices_.of_second[k] * table_.time_s(v, k) + prices_.of_byte[k] * table_.shared_out_bytes(v));
    });
    sum += least;
  }
  return sum;
}

HETPLAN_INLINE bool device_domains::overfull(const std::vector<device_set>& sets, double limit_s) {
  // A device that no operator may use has an empty window, and its price is not used.
  std::vector<double>&first_s = window_s_, &behind_s = window_load_;
  std::fill(first_s.begin(), first_s.end(), detail::never_s);
  std::fill(behind_s.begin(), behind_s.end(), detail::never_s);
  for (std::size_t v = 0; v < sets.size(); ++v) {
    each_device(sets[v], [&](std::size_t k) {
      const std::size_t at = v * devices_ + k;
      const double time_s = table_.time_s(v, k);
      first_s[k] = std::min(first_s[k], end_s_[at] - time_s);
      behind_s[k] = std::min(behind_s[k], tail_s_[at] - time_s);
    });
  }
  for (std::size_t k = 0; k < devices_; ++k) window_s_[k] = std::max(0.0, limit_s - first_s[k] - behind_s[k]);
  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round) {
    std::fill(window_load_.begin(), window_load_.end(), 0.0);
    double work = 0, room = 0;
    for (std::size_t v = 0; v < sets.size(); ++v) {
      double least = detail::never_s;
      std::size_t where = 0;
      each_device(sets[v], [&](std::size_t k) {
        const double price = window_price_[k] * table_.time_s(v, k);
        if (price < least) least = price, where = k;
      });
      work += least;
      window_load_[where] += table_.time_s(v, where);
    }
    for (std::size_t k = 0; k < devices_; ++k) room += window_price_[k] * window_s_[k];
    if (work > room * (1 + 1e-12)) return true;
    double sum = 0;
    for (std::size_t k = 0; k < devices_; ++k) {
      // A price rises if the work exceeds the room; the price of a device without window and work stays.
      const double asked = window_s_[k] > 0 ? std::min(2.0, window_load_[k] / window_s_[k]) : window_load_[k] > 0 ? 2.0 : 1.0;
      sum += window_price_[k] *= std::exp(0.3 * (asked - 1));
    }
    for (double& p : window_price_) p = std::max(1e-9, p / sum);
  }
  return false;
}

HETPLAN_INLINE double device_domains::devices_s(const std::vector<device_set>& sets) {
  double bound_s = 0;
  for (std::size_t k = 0; k < devices_; ++k) {
    jobs_.clear();
    for (std::size_t v = 0; v < sets.size(); ++v) {
      if (sets[v] != device_set{1} << k) continue;
      const double time_s = table_.time_s(v, k);
      jobs_.push_back({end_s_[v * devices_ + k] - time_s, time_s, tail_s_[v * devices_ + k] - time_s});
    }
    if (jobs_.size() > 1) bound_s = std::max(bound_s, preemptive_machine_bound(jobs_));
  }
  return bound_s;
}

HETPLAN_INLINE double device_domains::channels_s(const std::vector<device_set>& sets) {
  if (holds_.size() == 0) return 0;
  const bool ports = rules_.contention == contention::one_port, once = rules_.copies == transfer_copies::per_device;
  sure_.clear();
  for (std::size_t e = 0; e < table_.edges().size(); ++e) {
    const auto [u, v, size] = table_.edges()[e];
    if ((sets[u] & sets[v]) != 0) continue;
    const bool sender = is_one(sets[u]), receiver = is_one(sets[v]);
    if (!ports && !(sender && receiver)) continue;
    machine_job job{first_end_s_[u], detail::never_s, detail::never_s};
    each_device(sets[v], [&](std::size_t k) {
      job.tail_s = std::min(job.tail_s, tail_s_[v * devices_ + k]);
      each_device(sets[u], [&](std::size_t j) { job.work_s = std::min(job.work_s, carried_s(e, j, k)); });
    });
    if (ports) {
      // With copies per device, transfers of one producer are distinguished by their receivers.
      if (receiver) sure_.push_back({devices_ + only(sets[v]), once ? u : e, job});
      if (sender && (receiver || !once)) sure_.push_back({only(sets[u]), once ? u * devices_ + only(sets[v]) : e, job});
    } else {
      const std::size_t from = only(sets[u]), to = only(sets[v]);
      const double carried = job.work_s;
      if (rules_.contention == contention::shared) job.head_s += carried - held_s(table_, rules_, e, from, to);
      const auto held = holds_.of(from, to);
      for (std::size_t i = 0; i < held.size(); ++i) {
        if (rules_.contention == contention::shared) job.work_s = busy_s(table_, rules_, e, from, to, i);
        sure_.push_back({held[i], once ? u * devices_ + to : e, job});
      }
    }
  }
  std::sort(sure_.begin(), sure_.end(),
            [](const sure_transfer& a, const sure_transfer& b) { return std::tie(a.channel, a.key) < std::tie(b.channel, b.key); });
  double bound_s = 0;
  for (std::size_t i = 0; i < sure_.size();) {
    const std::size_t channel = sure_[i].channel;
    jobs_.clear();
    for (std::size_t key = ~std::size_t{0}; i < sure_.size() && sure_[i].channel == channel; ++i) {
      if (sure_[i].key == key) {
        jobs_.back().tail_s = std::max(jobs_.back().tail_s, sure_[i].job.tail_s);
      } else {
        jobs_.push_back(sure_[i].job);
        key = sure_[i].key;
      }
    }
    if (jobs_.size() > 1) bound_s = std::max(bound_s, preemptive_machine_bound(jobs_));
  }
  return bound_s;
}

}  // namespace hetplan::place
