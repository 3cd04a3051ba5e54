// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/partial_schedule.hpp>

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <hetplan/core/sorting.hpp>

namespace hetplan::place {

namespace detail {

/// Depth-first search over the devices of operators, in the order of falling size.
class fitting_search {
 public:
  fitting_search(const placement_table& t, long long most_nodes) : table_(t), memory_(t), left_(most_nodes) {
    const auto size = [&](std::size_t v) { return memory_.bytes_with(v, 0); };
    order_ = sorted_indices(t.size(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
    behind_.assign(t.size() + 1, 0);
    // A tied tensor counts with the first operator that holds it, since the device of a later one may hold it already.
    device_memory one_device(t);
    for (std::size_t i = 0; i < t.size(); ++i) {
      behind_[i] = one_device.added_bytes(order_[i], 0);
      one_device.add(order_[i], 0);
    }
    for (std::size_t i = t.size(); i-- > 0;) behind_[i] += behind_[i + 1];
  }

  [[nodiscard]] fitting run() {
    const long long most = left_;
    std::vector<choice> path;
    path.push_back(open(0));
    while (!path.empty()) {
      choice& c = path.back();
      if (c.placed) memory_.remove(order_[path.size() - 1], c.devices[c.next - 1]), c.placed = false;
      if (c.next == c.devices.size() || left_ <= 0) {
        path.pop_back();
        continue;
      }
      --left_;
      memory_.add(order_[path.size() - 1], c.devices[c.next++]);
      c.placed = true;
      if (path.size() == table_.size()) return found(path);
      path.push_back(open(path.size()));
    }
    if (left_ <= 0) {
      return {.status = {outcome::none_found, "memory: no placement was found that fits; whether there is one is not known after " +
                                                  std::to_string(most) + " choices of devices"}};
    }
    return {.status = {outcome::infeasible, "memory: every way to share the operators out leaves a device over its capacity",
                       infeasibility_proof{named_problem(table_) + " within memory", {}, most - left_ + 1}}};
  }

 private:
  struct choice {
    std::vector<std::size_t> devices;  ///< most room first
    std::size_t next = 0;
    bool placed = false;
  };

  [[nodiscard]] choice open(std::size_t at) const {
    choice c;
    double room = 0;
    for (std::size_t k = 0; k < table_.devices(); ++k) {
      room += std::max(0.0, memory_.free_bytes(k));
      const std::size_t v = order_[at];
      if (std::isfinite(table_.time_s(v, k)) && memory_.fits(v, k) && !has_twin(c.devices, v, k)) c.devices.push_back(k);
    }
    if (behind_[at] > room) c.devices.clear();
    const auto left = [&](std::size_t k) { return memory_.free_bytes(k) - memory_.added_bytes(order_[at], k); };
    std::stable_sort(c.devices.begin(), c.devices.end(), [&](std::size_t a, std::size_t b) { return left(a) > left(b); });
    return c;
  }
  /// Returns true if an earlier choice is an empty device that is interchangeable with this empty device.
  [[nodiscard]] bool has_twin(const std::vector<std::size_t>& devices, std::size_t v, std::size_t k) const {
    if (memory_.bytes(k) > 0) return false;
    return std::any_of(devices.begin(), devices.end(), [&](std::size_t other) {
      return memory_.bytes(other) == 0 && table_.capacity_bytes(other) == table_.capacity_bytes(k) &&
             std::isfinite(table_.time_s(v, other)) && runs_all_alike(other, k);
    });
  }
  [[nodiscard]] bool runs_all_alike(std::size_t a, std::size_t b) const {
    for (std::size_t v = 0; v < table_.size(); ++v) {
      if (std::isfinite(table_.time_s(v, a)) != std::isfinite(table_.time_s(v, b))) return false;
    }
    return true;
  }
  [[nodiscard]] fitting found(const std::vector<choice>& path) const {
    fitting f{.device = std::vector<std::size_t>(table_.size())};
    for (std::size_t i = 0; i < path.size(); ++i) f.device[order_[i]] = path[i].devices[path[i].next - 1];
    return f;
  }

  const placement_table& table_;
  device_memory memory_;
  std::vector<std::size_t> order_;
  std::vector<double> behind_;  ///< lower bound on the held bytes of the operators from here on
  long long left_;
};

/// Returns the seconds that a move adds: the operator's own time and its transfers', contention aside.
[[nodiscard]] HETPLAN_INLINE double cost_of_move(const placement_table& t, const std::vector<std::size_t>& device, std::size_t v,
                                                 std::size_t to) {
  double cost = t.time_s(v, to) - t.time_s(v, device[v]);
  for (const std::uint32_t e : t.in_edges(v)) {
    const std::size_t from = device[t.edges()[e].from];
    cost += t.transfer_s(e, from, to) - t.transfer_s(e, from, device[v]);
  }
  for (const std::uint32_t e : t.out_edges(v)) {
    const std::size_t reader = device[t.edges()[e].to];
    cost += t.transfer_s(e, to, reader) - t.transfer_s(e, device[v], reader);
  }
  return cost;
}

class memory_repair {
 public:
  memory_repair(const placement_table& t, std::vector<std::size_t> device) : table_(t), memory_(t), device_(std::move(device)) {
    for (const std::size_t v : t.order()) memory_.add(v, device_[v]);
  }

  /// Returns the repaired placement; empty if the repair is stuck.
  [[nodiscard]] std::vector<std::size_t> run() {
    for (std::size_t moves = 0; moves <= 4 * table_.size(); ++moves) {
      std::size_t over = 0;
      while (over < table_.devices() && memory_.free_bytes(over) >= 0) ++over;
      if (over == table_.devices()) return std::move(device_);
      if (!move_from(over) && !move_tied_from(over) && !swap_from(over)) return {};
    }
    return {};
  }

 private:
  [[nodiscard]] bool move_from(std::size_t over) {
    double best = std::numeric_limits<double>::infinity();
    std::pair<std::size_t, std::size_t> chosen{table_.size(), 0};
    const double excess = -memory_.free_bytes(over);
    for (std::size_t v = 0; v < table_.size(); ++v) {
      if (device_[v] != over) continue;
      const double frees = std::min(excess, memory_.freed_bytes(v, over) + table_.working_bytes(v));
      if (frees <= 0) continue;
      for (std::size_t to = 0; to < table_.devices(); ++to) {
        if (to == over || !std::isfinite(table_.time_s(v, to)) || !memory_.fits(v, to)) continue;
        const double cost = cost_of_move(table_, device_, v, to) / frees;
        if (cost < best) best = cost, chosen = {v, to};
      }
    }
    if (chosen.first == table_.size()) return false;
    put(chosen.first, chosen.second);
    return true;
  }

  /// Moves all operators of a device that hold one tied tensor to the cheapest other device; false if there is none.
  [[nodiscard]] bool move_tied_from(std::size_t over) {
    double best = std::numeric_limits<double>::infinity();
    std::pair<std::vector<std::size_t>, std::size_t> chosen;
    for (const tied_tensor& x : table_.tied()) {
      std::vector<std::size_t> all;
      std::copy_if(x.operators.begin(), x.operators.end(), std::back_inserter(all), [&](std::size_t v) { return device_[v] == over; });
      if (all.size() < 2 || x.bytes <= 0) continue;
      for (std::size_t to = 0; to < table_.devices(); ++to) {
        if (to == over) continue;
        double cost = 0;
        bool fits = true;
        for (const std::size_t v : all) {
          cost += cost_of_move(table_, device_, v, to);
          memory_.add(v, to);
          fits = fits && memory_.free_bytes(to) >= 0 && std::isfinite(table_.time_s(v, to));
        }
        for (const std::size_t v : all) memory_.remove(v, to);
        if (fits && cost / x.bytes < best) best = cost / x.bytes, chosen = {all, to};
      }
    }
    for (const std::size_t v : chosen.first) put(v, chosen.second);
    return !chosen.first.empty();
  }

  /// Swaps an operator with a smaller one of a device that keeps its capacity; false if there is none.
  [[nodiscard]] bool swap_from(std::size_t over) {
    constexpr std::size_t most = 200;
    double best = std::numeric_limits<double>::infinity();
    std::pair<std::size_t, std::size_t> chosen{table_.size(), 0};
    std::size_t tried = 0;
    for (std::size_t v = 0; v < table_.size() && tried < most; ++v) {
      if (device_[v] != over || memory_.freed_bytes(v, over) <= 0) continue;
      ++tried;
      std::size_t others = 0;
      for (std::size_t w = 0; w < table_.size() && others < most; ++w) {
        const std::size_t to = device_[w];
        const double frees = memory_.freed_bytes(v, over) - memory_.added_bytes(w, over);
        if (to == over || frees <= 0 || !std::isfinite(table_.time_s(v, to)) || !std::isfinite(table_.time_s(w, over))) continue;
        ++others;
        memory_.remove(w, to);
        const bool fits = memory_.fits(v, to);
        memory_.add(w, to);
        if (!fits) continue;
        const double cost =
            (cost_of_move(table_, device_, v, to) + cost_of_move(table_, device_, w, over)) / std::min(frees, -memory_.free_bytes(over));
        if (cost < best) best = cost, chosen = {v, w};
      }
    }
    if (chosen.first == table_.size()) return false;
    const std::size_t to = device_[chosen.second];
    put(chosen.second, over);
    put(chosen.first, to);
    return true;
  }

  void put(std::size_t v, std::size_t to) {
    memory_.remove(v, device_[v]);
    memory_.add(v, to);
    device_[v] = to;
  }

  const placement_table& table_;
  device_memory memory_;
  std::vector<std::size_t> device_;
};

/// Returns bytes as text, rounded so that the tolerance of a budget does not show: to whole bytes from 1e6 on.
[[nodiscard]] HETPLAN_INLINE std::string bytes_text(double b) {
  constexpr double many = 1e6, exact = 9e15;
  if (b < many) return to_text(std::round(b * 1e3) / 1e3) + " B";
  return (b < exact ? std::to_string(std::llround(b)) : to_text(b)) + " B";
}

}  // namespace detail

HETPLAN_INLINE std::string named_problem(const placement_table& t) {
  return "placements of " + std::to_string(t.size()) + (t.size() == 1 ? " operator on " : " operators on ") + std::to_string(t.devices()) +
         (t.devices() == 1 ? " device" : " devices");
}

HETPLAN_INLINE status refute_placements(const placement_table& t) {
  const auto refuted = [&](std::string reason, infeasibility_proof::row row) {
    return status{outcome::infeasible, std::move(reason), infeasibility_proof{named_problem(t), {std::move(row)}, 0}};
  };
  const device_memory empty(t);
  double room = 0;
  for (std::size_t v = 0; v < t.size(); ++v) {
    const std::string name = "operator \"" + escaped(t.data().operators[v]) + "\"";
    double most = -1;
    for (std::size_t k = 0; k < t.devices(); ++k) {
      if (std::isfinite(t.time_s(v, k))) most = std::max(most, t.capacity_bytes(k));
    }
    if (most < 0) return refuted(name + " can run on no device", {"devices that can run " + name, 1, 0});
    if (const double needed = empty.bytes_with(v, 0); needed > most) {
      return refuted("memory: " + name + " fits no device: " + detail::bytes_text(needed - most) + " too much",
                     {"bytes of " + name + " on the device with most memory that can run it", needed, most});
    }
  }
  for (std::size_t k = 0; k < t.devices(); ++k) room += t.capacity_bytes(k);
  if (const double held = t.all_held_bytes(); held > room) {
    return refuted("memory: the operators hold " + detail::bytes_text(held) + " and the devices " + detail::bytes_text(room) + ": " +
                       detail::bytes_text(held - room) + " too much",
                   {"bytes that all operators hold, on all devices together", held, room});
  }
  return {};
}

HETPLAN_INLINE status infeasible_after(const placement_table& t, long long searched) {
  std::vector<std::size_t> device(t.size());
  bool roomy = true, joined = true;
  for (std::size_t k = 0; k < t.devices(); ++k) {
    std::fill(device.begin(), device.end(), k);
    roomy = roomy && largest_overflow_bytes(t, device) <= 0;
    for (std::size_t to = 0; to < t.devices(); ++to) {
      for (std::size_t e = 0; joined && e < t.edges().size(); ++e) joined = std::isfinite(t.transfer_s(e, k, to));
    }
  }
  const char* what = joined ? "memory" : roomy ? "routes" : "memory and routes";
  return {outcome::infeasible,
          std::string(what) + ": no choice of devices for all operators keeps to " + (joined ? "it" : "them") + "; all were tried",
          infeasibility_proof{named_problem(t), {}, searched}};
}

HETPLAN_INLINE fitting find_fitting_placement(const placement_table& t, long long most_nodes) {
  if (status none = refute_placements(t); !none.ok()) return {.status = std::move(none)};
  return detail::fitting_search(t, most_nodes).run();
}

HETPLAN_INLINE fitting repair_memory(const placement_table& t, std::vector<std::size_t> device) {
  if (status none = refute_placements(t); !none.ok()) return {.status = std::move(none)};
  std::vector<std::size_t> repaired = detail::memory_repair(t, std::move(device)).run();
  if (!repaired.empty()) return {.device = std::move(repaired)};
  return find_fitting_placement(t);
}

HETPLAN_INLINE partial_schedule::partial_schedule(const placement_table& t, const placement_rules& r)
    : table_(t), rules_(r), holds_(t, r.contention), memory_(t), end_s_(t.size(), 0), busy_(t.devices()), channel_busy_(holds_.size()),
      last_(t.devices(), none) {
  schedule_.device.assign(t.size(), none);
  schedule_.start_s.assign(t.size(), 0);
  if (r.copies == transfer_copies::per_device) sent_s_.assign(t.size() * t.devices(), -1);
}

HETPLAN_INLINE trial partial_schedule::try_on(std::size_t op, std::size_t device) {
  const double time_s = table_.time_s(op, device);
  const double data_s = bring_data(op, device);
  if (!std::isfinite(time_s) || !std::isfinite(data_s)) {
    constexpr double never = std::numeric_limits<double>::infinity();
    return {never, never, never};
  }
  const double start_s = busy_[device].earliest(data_s, time_s);
  return {data_s, start_s, start_s + time_s};
}

HETPLAN_INLINE void partial_schedule::place(std::size_t op, std::size_t device) {
  const trial at = try_on(op, device);
  HETPLAN_ASSERT(std::isfinite(at.end_s) && !placed(op));
  for (std::size_t i = 0; i < arriving_.size(); ++i) {
    const scheduled_transfer& x = arriving_[i];
    for (const std::size_t c : held_by(x.from, x.to, x.end_s > held_from_s_[i])) channel_busy_[c].add(held_from_s_[i], x.end_s);
    if (!sent_s_.empty()) sent_s_[table_.edges()[x.edge].from * table_.devices() + device] = x.end_s;
  }
  schedule_.transfers.insert(schedule_.transfers.end(), arriving_.begin(), arriving_.end());
  schedule_.device[op] = device;
  schedule_.start_s[op] = at.start_s;
  end_s_[op] = at.end_s;
  busy_[device].add(at.start_s, at.end_s);
  if (last_[device] == none || end_s_[last_[device]] <= at.end_s) last_[device] = op;
  memory_.add(op, device);
  makespan_s_ = std::max(makespan_s_, at.end_s);
}

HETPLAN_INLINE double partial_schedule::bring_data(std::size_t op, std::size_t device) {
  arriving_.clear();
  held_from_s_.clear();
  double data_s = 0;
  for (const std::uint32_t e : table_.in_edges(op)) {
    const std::size_t producer = table_.edges()[e].from, from = schedule_.device[producer];
    if (from == device) {
      data_s = std::max(data_s, end_s_[producer]);
      continue;
    }
    if (!sent_s_.empty()) {
      if (const double there_s = sent_s_[producer * table_.devices() + device]; there_s >= 0) {
        data_s = std::max(data_s, there_s);
        continue;
      }
    }
    const double takes_s = carried_s(table_, rules_.copies, e, from, device);
    if (!std::isfinite(takes_s)) return takes_s;
    // The part that holds no channel comes first.
    const double holds_s = held_s(table_, rules_, e, from, device), alone_s = takes_s - holds_s;
    const auto held = held_by(from, device, holds_s > 0);
    double from_s = earliest_in_all(held, channel_busy_, end_s_[producer] + alone_s, holds_s);
    // The other transfers of this operator are not in the channels yet, so they are avoided here.
    for (bool moved = !held.empty(); moved;) {
      moved = false;
      for (std::size_t i = 0; i < arriving_.size(); ++i) {
        const scheduled_transfer& x = arriving_[i];
        const auto theirs = held_by(x.from, x.to, x.end_s > held_from_s_[i]);
        const bool apart =
            x.end_s <= from_s || from_s + holds_s <= held_from_s_[i] ||
            std::none_of(theirs.begin(), theirs.end(), [&](std::size_t c) { return std::binary_search(held.begin(), held.end(), c); });
        if (apart) continue;
        from_s = earliest_in_all(held, channel_busy_, x.end_s, holds_s);
        moved = true;
      }
    }
    arriving_.push_back({e, from, device, std::max(end_s_[producer], from_s - alone_s), from_s + holds_s});
    held_from_s_.push_back(from_s);
    data_s = std::max(data_s, from_s + holds_s);
  }
  return data_s;
}

HETPLAN_INLINE operator_schedule partial_schedule::result() && {
  schedule_.makespan_s = makespan_s_;
  sort_transfers(schedule_.transfers);
  return std::move(schedule_);
}

HETPLAN_INLINE operator_schedule schedule_in_order(const placement_table& t, const placement_rules& r,
                                                   const std::vector<std::size_t>& order, const std::vector<std::size_t>& device) {
  partial_schedule s(t, r);
  for (const std::size_t op : order) {
    if (!std::isfinite(s.try_on(op, device[op]).end_s)) return {};
    s.place(op, device[op]);
  }
  return std::move(s).result();
}

}  // namespace hetplan::place
