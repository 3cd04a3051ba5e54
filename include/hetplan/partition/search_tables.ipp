// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/search_tables.hpp>

#include <cstddef>
#include <limits>
#include <numeric>

#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/plan/orders.hpp>

namespace hetplan::partition {

HETPLAN_INLINE std::vector<device_id> device_space::example(std::size_t g) const {
  std::vector<device_id> devices;
  for (const part& p : groups[g]) {
    devices.insert(devices.end(), classes[p.of_class].begin(), classes[p.of_class].begin() + p.devices);
  }
  return devices;
}

namespace detail {

// Checks in order of dependence: each relies on those before it.
HETPLAN_INLINE std::optional<std::string> device_space_fault(const device_space& s, std::size_t all_devices, int largest_group) {
  const auto fault = [](const std::string& where, const std::string& what) {
    return std::optional((where.empty() ? "" : ", " + where) + ": " + what);
  };
  const auto text = [](auto x) { return std::to_string(x); };
  for (std::size_t c = 0; c < s.classes.size(); ++c) {
    for (const device_id d : s.classes[c]) {
      if (!d.valid() || d.index() >= all_devices)
        return fault("class " + text(c), "device " + text(d.value) + "; expected one of the " + text(all_devices) + " of the cluster");
    }
  }
  for (std::size_t g = 0; g < s.groups.size(); ++g) {
    const auto where = [&] { return "group " + text(g); };
    if (s.groups[g].empty()) return fault(where(), "no devices; expected at least one");
    int all = 0;
    for (std::size_t i = 0; i < s.groups[g].size(); ++i) {
      const auto& [of_class, devices] = s.groups[g][i];
      if (of_class >= s.classes.size()) return fault(where(), "class " + text(of_class) + "; expected one of " + text(s.classes.size()));
      if (i > 0 && of_class <= s.groups[g][i - 1].of_class)
        return fault(where(),
                     "class " + text(of_class) + " behind class " + text(s.groups[g][i - 1].of_class) + "; expected ascending classes");
      if (devices < 1 || static_cast<std::size_t>(devices) > s.classes[of_class].size())
        return fault(where(),
                     text(devices) + " devices of class " + text(of_class) + "; expected 1 to " + text(s.classes[of_class].size()));
      all += devices;
    }
    if (all > largest_group) return fault(where(), text(all) + " devices; expected at most " + text(largest_group));
  }
  if (s.moves.empty()) return fault("state 0", "no moves; expected at least one");
  if (s.left.size() != s.states())
    return fault("", "left has " + text(s.left.size()) + " states, moves " + text(s.states()) + "; expected as many");
  for (std::size_t state = 0; state < s.states(); ++state) {
    const auto where = [&] { return "state " + text(state); };
    if (s.left[state].size() != s.classes.size())
      return fault(where(), "left names " + text(s.left[state].size()) + " classes; expected " + text(s.classes.size()));
    for (std::size_t c = 0; c < s.classes.size(); ++c) {
      if (s.left[state][c] < 0 || static_cast<std::size_t>(s.left[state][c]) > s.classes[c].size())
        return fault(where(),
                     text(s.left[state][c]) + " devices of class " + text(c) + " are left; expected 0 to " + text(s.classes[c].size()));
    }
    for (std::size_t m = 0; m < s.moves[state].size(); ++m) {
      const auto& [group, to] = s.moves[state][m];
      const auto move = [&] { return where() + ", move " + text(m); };
      if (group >= s.groups.size()) return fault(move(), "group " + text(group) + "; expected one of " + text(s.groups.size()));
      if (to <= state || to >= s.states()) return fault(move(), "to state " + text(to) + "; expected a later one of " + text(s.states()));
    }
  }
  // No device is taken twice: devices of a group are not left for later moves.
  std::vector<int> left;
  for (std::size_t state = 0; state < s.states(); ++state) {
    for (std::size_t m = 0; m < s.moves[state].size(); ++m) {
      const auto& [group, to] = s.moves[state][m];
      left = s.left[state];
      for (const auto& p : s.groups[group]) left[p.of_class] -= p.devices;
      for (std::size_t c = 0; c < left.size(); ++c) {
        if (left[c] < 0 || s.left[to][c] > left[c])
          return fault("state " + text(state) + ", move " + text(m), "leaves " + text(s.left[to][c]) + " devices of class " + text(c) +
                                                                         " of " + text(s.left[state][c]) + " with group " + text(group) +
                                                                         "; expected at most " + text(std::max(0, left[c])));
      }
    }
  }
  return std::nullopt;
}

}  // namespace detail

HETPLAN_INLINE void require_device_space(const device_space& s, const cluster& c, const char* who) {
  if (const auto fault = detail::device_space_fault(s, c.size(), std::numeric_limits<int>::max()))
    throw invalid_input(std::string(who) + ": device space" + *fault);
}

HETPLAN_INLINE exchange_test::exchange_test(const cluster& c)
    : cluster_(c), uses_(c.network().resources().size(), 0), of_the_two_(uses_), image_(uses_.size()), preimage_(uses_.size()) {
  for (const device& x : c.devices()) {
    const route* r = nullptr;
    for (const device& y : c.devices()) {
      if ((r = c.network().find(x.id, y.id)) == nullptr) continue;
      for (const resource_use& u : r->via) ++uses_[u.resource.index()];
    }
  }
}

HETPLAN_INLINE bool exchange_test::operator()(device_id a, device_id b) {
  if (a == b) return true;
  const bool same = match(a, b);
  for (const resource_id r : seen_) {
    of_the_two_[r.index()] = 0;
    image_[r.index()].reset();
    preimage_[r.index()].reset();
  }
  seen_.clear();
  return same;
}

HETPLAN_INLINE bool exchange_test::match(device_id a, device_id b) {
  const auto trade = [&](device_id from, device_id to, device_id other_from, device_id other_to) {
    return trade_places(cluster_.network().find(from, to), cluster_.network().find(other_from, other_to));
  };
  if (!trade(a, b, b, a)) return false;
  for (const device& x : cluster_.devices()) {
    if (x.id != a && x.id != b && !(trade(a, x.id, b, x.id) && trade(x.id, a, x.id, b))) return false;
  }
  return std::all_of(seen_.begin(), seen_.end(), [&](resource_id r) {
    const std::size_t i = r.index();
    return uses_[i] == of_the_two_[i] || (image_[i].value_or(r) == r && preimage_[i].value_or(r) == r);
  });
}

HETPLAN_INLINE bool exchange_test::trade_places(const route* x, const route* y) {
  if (x == nullptr || y == nullptr) return x == y;
  if (x->latency != y->latency || x->via.size() != y->via.size()) return false;
  for (std::size_t i = 0; i < x->via.size(); ++i) {
    const resource_use &u = x->via[i], &v = y->via[i];
    if (u.weight != v.weight || cluster_.network()[u.resource].capacity != cluster_.network()[v.resource].capacity) return false;
    seen_.push_back(u.resource);
    seen_.push_back(v.resource);
    ++of_the_two_[u.resource.index()];
    ++of_the_two_[v.resource.index()];
    if (!become(u.resource, v.resource) || !become(v.resource, u.resource)) return false;
  }
  return true;
}

HETPLAN_INLINE bool exchange_test::become(resource_id u, resource_id v) {
  auto &image = image_[u.index()], &preimage = preimage_[v.index()];
  if (image.value_or(v) != v || preimage.value_or(u) != u) return false;
  image = v;
  preimage = u;
  return true;
}

namespace detail {

class group_numbers {
 public:
  explicit group_numbers(std::vector<device_space::device_group>& groups) : groups_(groups) {}
  std::size_t of(const device_space::device_group& g) {
    key_parts key;
    for (const device_space::part& p : g) key.insert(key.end(), {p.of_class, p.devices});
    const std::size_t n = known_.number(key);
    if (n == groups_.size()) groups_.push_back(g);
    return n;
  }

 private:
  std::vector<device_space::device_group>& groups_;
  key_index known_;
};

}  // namespace detail

HETPLAN_INLINE double moves_of_every_order(const std::vector<std::vector<device_id>>& classes) {
  double moves = 1;
  for (const auto& members : classes) moves *= static_cast<double>((members.size() + 1) * (members.size() + 2)) / 2;
  return moves;
}

HETPLAN_INLINE device_space every_order(std::vector<std::vector<device_id>> classes, int largest_group) {
  if (classes.empty() || std::any_of(classes.begin(), classes.end(), [](const auto& members) { return members.empty(); })) {
    throw invalid_input("every_order: a class without devices, or no class; expected at least one device in each");
  }
  if (const double moves = moves_of_every_order(classes); moves > most_moves_of_every_order) {
    throw invalid_input("every_order: " + std::to_string(classes.size()) + " classes of devices make " + to_text(moves) +
                        " moves; expected at most " + to_text(most_moves_of_every_order) + ", or in_class_order, which takes one order");
  }
  device_space space{.classes = std::move(classes), .groups = {}, .left = {}, .moves = {}};
  detail::group_numbers numbers(space.groups);
  const std::size_t n = space.classes.size();
  std::vector<std::size_t> stride(n, 1);
  for (std::size_t c = 1; c < n; ++c) stride[c] = stride[c - 1] * (space.classes[c - 1].size() + 1);
  const std::size_t states = stride[n - 1] * (space.classes[n - 1].size() + 1);
  for (std::size_t s = 0; s < states; ++s) {
    std::vector<int> left(n);
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t size = space.classes[c].size();
      left[c] = static_cast<int>(size - s / stride[c] % (size + 1));
    }
    std::vector<device_space::move> moves;
    std::vector<int> take(n, 0);
    for (;;) {  // mixed-radix counter: digit c runs from 0 to left[c]
      std::size_t c = 0;
      while (c < n && take[c] == left[c]) take[c++] = 0;
      if (c == n) break;
      ++take[c];
      if (std::accumulate(take.begin(), take.end(), 0) > largest_group) continue;
      device_space::device_group g;
      std::size_t to = s;
      for (std::size_t i = 0; i < n; ++i) {
        if (take[i] == 0) continue;
        g.push_back({i, take[i]});
        to += static_cast<std::size_t>(take[i]) * stride[i];
      }
      moves.push_back({numbers.of(g), to});
    }
    space.left.push_back(std::move(left));
    space.moves.push_back(std::move(moves));
  }
  return space;
}

HETPLAN_INLINE device_space in_class_order(std::vector<std::vector<device_id>> classes, std::span<const std::size_t> order,
                                           int largest_group) {
  device_space space{.classes = std::move(classes), .groups = {}, .left = {}, .moves = {}};
  detail::group_numbers numbers(space.groups);
  std::vector<std::size_t> row, run_begin;  // by device, tail stage first: its class, and where the class begins
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t begin = row.size();
    row.insert(row.end(), space.classes[order[i]].size(), order[i]);
    run_begin.resize(row.size(), begin);
  }
  const std::size_t n = row.size();
  for (std::size_t s = 0; s <= n; ++s) {
    std::vector<int> left(space.classes.size(), 0);
    for (std::size_t i = s; i < n; ++i) ++left[row[i]];
    std::vector<device_space::move> moves;
    for (std::size_t first = s; first < n; ++first) {
      if (first != s && first != run_begin[first]) continue;
      device_space::device_group g;
      const std::size_t end = std::min(n, first + static_cast<std::size_t>(largest_group));
      for (std::size_t last = first + 1; last <= end; ++last) {
        const std::size_t taken = row[last - 1];
        auto it = g.begin();
        while (it != g.end() && it->of_class < taken) ++it;
        if (it == g.end() || it->of_class != taken) g.insert(it, {taken, 1});
        else ++it->devices;
        moves.push_back({numbers.of(g), last});
      }
    }
    space.left.push_back(std::move(left));
    space.moves.push_back(std::move(moves));
  }
  return space;
}

namespace detail {

/// Returns the crossings of a sequence, in generation with those of the parts of the run.
[[nodiscard]] HETPLAN_INLINE crossing_table crossings_of(const planning_graph& m, const layer_sequence& s, const sequence_cuts& cuts,
                                                         const workload& w) {
  if (w.mode != mode::generation) return crossing_table(cuts);
  const token_passes passes(w, m);
  const auto part = [&](run_part p) { return sequence_cuts(m, s, mean_edge_shares(m, passes, p)); };
  return {cuts, part(run_part::first_token), part(run_part::later_tokens)};
}

}  // namespace detail

HETPLAN_INLINE block_pins::block_pins(const layer_sequence& sequence, std::span<const device_id> pinned) {
  if (pinned.empty()) return;
  for (const device_id d : pinned) {
    if (d.valid() && d.index() >= on_.size()) on_.resize(d.index() + 1);
    if (d.valid()) on_[d.index()].assign(sequence.size() + 1, 0);
  }
  of_block_.resize(sequence.size());
  pinned_.assign(sequence.size() + 1, 0);
  for (std::size_t b = 0; b < sequence.size(); ++b) {
    pinned_[b + 1] = pinned_[b];
    for (std::vector<std::uint32_t>& mine : on_) {
      if (!mine.empty()) mine[b + 1] = mine[b];
    }
    for (const layer_id l : sequence.blocks[b]) {
      const device_id d = pinned[l.index()];
      if (!d.valid()) continue;
      ++pinned_[b + 1];
      ++on_[d.index()][b + 1];
      of_block_[b] = d;
    }
    if (of_block_[b].valid() && !allow(b, b + 1, of_block_[b])) of_block_[b] = device_id();
  }
}

HETPLAN_INLINE search_tables::search_tables(const planning_graph& m, const layer_sequence& s, const hetplan::cluster& c,
                                            const any_cost_model& cost, const any_memory_model& memory, const any_energy_model& energy,
                                            const workload& w, int max_share, memory_savers use, std::span<const device_id> pinned)
    : model(m), sequence(s), cluster(c), table(m, s, c, cost, memory, w, max_share, use.recompute),
      cuts(m, s, mean_edge_shares(m, token_passes(w, m))), crossings(detail::crossings_of(m, s, cuts, w)), savers(use),
      offload(m, s, c, cost, memory, w, table), pins(s, pinned) {
  for (const device& d : c.devices()) slopes.push_back(slopes_of(energy, d));
  classes = device_classes(c, [&](const device& a, const device& b) {
    if (pins.is_pinned_to(a.id) || pins.is_pinned_to(b.id) || a.tiers != b.tiers) return false;
    if (a.memory_for_layers() != b.memory_for_layers() || a.energy_budget != b.energy_budget || a.max_busy != b.max_busy ||
        a.send_overhead != b.send_overhead || slopes[a.id.index()] != slopes[b.id.index()] || !table.same_degrees(a.id, b.id)) {
      return false;
    }
    if (table.optimizer_s(0, s.size(), a.id) != table.optimizer_s(0, s.size(), b.id)) return false;
    for (int g = 1; g <= table.degrees(a.id); ++g) {
      for (std::size_t i = 0; i < table.distinct_shares(); ++i) {
        const int share = table.samples_of(i);
        const auto alike = [&](const double* x, const double* y) { return std::equal(x, x + s.size() + 1, y); };
        for (const run_part part : {run_part::whole, run_part::first_token, run_part::later_tokens}) {
          if (part != run_part::whole && !table.has_parts()) continue;
          if (!alike(table.totals(a.id, share, g, part), table.totals(b.id, share, g, part)) ||
              !alike(table.entries(a.id, share, g, part), table.entries(b.id, share, g, part))) {
            return false;
          }
        }
      }
    }
    return true;
  });
  sort_stably(classes, [&](const auto& a, const auto& b) {
    const device &x = c[a.front()], &y = c[b.front()];
    if (x.usable_memory() != y.usable_memory()) return x.usable_memory() > y.usable_memory();
    return whole_model_s(x.id) < whole_model_s(y.id);
  });
}

HETPLAN_INLINE std::vector<layer_id> search_tables::layers_of(std::size_t first, std::size_t last) const {
  std::vector<layer_id> layers = sequence.layers_of(first, last);
  if (!table.times_boundaries()) sort_stably(layers);
  return layers;
}

HETPLAN_INLINE double search_tables::whole_model_s(device_id d) const {
  return table.time(0, sequence.size(), d, table.max_share()).total_s / table.max_share();
}

HETPLAN_INLINE device_space by_memory(const search_tables& t, int largest_group) {
  std::vector<std::size_t> order(t.classes.size());  // search_tables::classes is sorted by memory, largest first
  std::iota(order.begin(), order.end(), std::size_t{0});
  return in_class_order(t.classes, order, largest_group);
}

HETPLAN_INLINE std::vector<device_space> orders_to_search(const search_tables& t, int largest_group, double most_moves) {
  if (moves_of_every_order(t.classes) <= most_moves) return {every_order(t.classes, largest_group)};
  std::vector<std::size_t> roomiest(t.classes.size());
  std::iota(roomiest.begin(), roomiest.end(), std::size_t{0});
  std::vector<std::size_t> fastest = roomiest;
  sort_by(fastest, [&](std::size_t k) { return t.whole_model_s(t.classes[k].front()); });
  const std::vector<std::size_t> slowest(fastest.rbegin(), fastest.rend());
  std::vector<device_space> spaces;
  std::vector<std::vector<std::size_t>> seen;
  for (const auto& order : {roomiest, fastest, slowest}) {
    if (std::find(seen.begin(), seen.end(), order) != seen.end()) continue;
    seen.push_back(order);
    spaces.push_back(in_class_order(t.classes, order, largest_group));
  }
  return spaces;
}

HETPLAN_INLINE std::vector<device_space> any_device_ordering::operator()(const search_tables& t, int largest_group) const {
  std::vector<device_space> spaces = orders_(t, largest_group);
  if (spaces.empty()) throw invalid_model("device ordering: no device space; expected at least one");
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    const device_space& s = spaces[i];
    if (s.classes != t.classes)
      throw invalid_model("device ordering: a device space of " + std::to_string(s.classes.size()) +
                          " classes that are not those of the search tables; expected search_tables::classes");
    if (!users_) continue;
    const std::string name = "device ordering: space " + std::to_string(i);
    if (const auto fault = detail::device_space_fault(s, t.cluster.size(), largest_group)) throw invalid_model(name + *fault);
    if (s.moves.front().empty()) throw invalid_model(name + ", state 0: no moves; expected at least one");
  }
  return spaces;
}

}  // namespace hetplan::partition
