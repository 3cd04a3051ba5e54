// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/partition/best_grid.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include <hetplan/cluster/network.hpp>
#include <hetplan/core/error.hpp>
#include <hetplan/core/keyed.hpp>
#include <hetplan/core/sorting.hpp>
#include <hetplan/partition/apportion.hpp>
#include <hetplan/plan/plan_result.hpp>
#include <hetplan/plan/stage_graph.hpp>

namespace hetplan::partition {

namespace detail {

struct grid {
  std::vector<std::size_t> places;  ///< row by row: index of the device
  std::vector<int> rows;            ///< samples by row
  std::vector<int> columns;         ///< weights by column

  [[nodiscard]] key_parts key() const {
    key_parts key{places.size(), rows.size()};
    key.insert(key.end(), places.begin(), places.end());
    key.insert(key.end(), rows.begin(), rows.end());
    key.insert(key.end(), columns.begin(), columns.end());
    return key;
  }
};

class grid_search {
 public:
  grid_search(const planning_problem& problem, const stage& of, const std::vector<device_id>& devices, int size, const grid_judge& judge,
              const grid_options& options)
      : problem_(problem), passes_(problem.job.workload, problem.model), of_(of), devices_(devices), size_(size), judge_(judge),
        options_(options) {
    of_.devices.clear();
    of_.columns.clear();
    of_.microbatch_size = of.microbatch_size > 0 ? size : 0;
    for (const layer_id l : of_.layers) units_ = std::gcd(units_, problem.model[l].is_split() ? problem.model[l].split_units : 0);
    forward_sums_ = all_reduces_of(problem.model, of_, phase::forward);
    if (training()) backward_sums_ = all_reduces_of(problem.model, of_, phase::backward_input);
    for (std::size_t d = 0; d < devices_.size(); ++d) speed_.push_back(1 / std::max(time_s(d, size_, 1, 1), 1e-300));
  }

  std::optional<found_grid> run() {
    for (const auto& [shape, among] : shapes()) propose(shape, among);
    improve();
    if (count() <= options_.all_up_to) {
      most_ = std::numeric_limits<long long>::max();
      try_all();
      exact_ = true;
    }
    if (score_ == inf) return std::nullopt;
    return found_grid{stage_of(best_), score_, judged_, exact_};
  }

 private:
  static constexpr double inf = std::numeric_limits<double>::infinity();
  /// Number of parts into which the local search divides tensors without units.
  static constexpr int fine_parts = 24;
  struct shape_of {
    std::size_t rows, columns;
  };

  [[nodiscard]] bool training() const { return problem_.job.workload.mode == mode::training; }

  /// Returns the time of a microbatch's work on a device, without all-reduces; infinite where a profile forbids splitting.
  [[nodiscard]] double time_s(std::size_t d, int samples, int weight, int all) {
    const int g = std::gcd(weight, all);
    const std::initializer_list<key_part> key{d, samples, weight / g, all / g};
    if (const double* known = times_.find(key)) return *known;
    const auto [part, a] = part_of(d, samples, weight, all);
    const device& at = problem_.cluster[devices_[d]];
    if (weight < all && profiled_on(at)) return times_[key] = inf;
    double total = 0;
    const auto add = [&](phase what) { total += stage_time_s(problem_.cost, problem_.model, part, a, at, what, passes_, 0); };
    add(phase::forward);
    if (training()) add(phase::backward_input), add(phase::backward_weight);
    return times_[key] = total;
  }

  /// Returns true if a layer that columns would split is profiled as a whole on the device's kind.
  [[nodiscard]] bool profiled_on(const device& d) const {
    return std::any_of(of_.layers.begin(), of_.layers.end(),
                       [&](layer_id l) { return problem_.model[l].is_split() && problem_.model[l].profile_for(d.kind) != nullptr; });
  }

  /// Returns a stage whose column 0 has the weight.
  [[nodiscard]] std::pair<stage, assignment> part_of(std::size_t d, int samples, int weight, int all) const {
    stage part = of_;
    if (weight < all) part.columns = {weight, all - weight};
    return {std::move(part), {devices_[d], samples}};
  }

  /// Returns the fraction of a device's memory that its state, caches and share of one microbatch take; at most 1 if it fits.
  [[nodiscard]] double load(std::size_t d, int samples, int weight, int all) {
    const std::initializer_list<key_part> key{d, samples, weight, all};
    if (const double* known = loads_.find(key)) return *known;
    const auto [part, a] = part_of(d, samples, weight, all);
    const workload& w = problem_.job.workload;
    const double needed = stage_static_bytes(problem_.models.memory, problem_.model, part, a, w, problem_.job.batch / size_) +
                          stage_share_memory(problem_.models.memory, problem_.model, part, a, w, 0).at_most(1);
    const double limit = memory_limit_bytes(problem_.cluster[devices_[d]]);
    return loads_[key] = needed <= limit ? std::min(1.0, needed / std::max(limit, 1e-300))
                                         : std::nextafter(std::max(1.0, needed / std::max(limit, 1e-300)), inf);
  }
  [[nodiscard]] bool holds(std::size_t d, int samples, int weight, int all) { return load(d, samples, weight, all) <= 1; }
  /// Returns the load of the fullest device.
  [[nodiscard]] double load(const grid& g) {
    const int all = std::accumulate(g.columns.begin(), g.columns.end(), 0);
    double most = 0;
    for (std::size_t i = 0; i < g.places.size(); ++i)
      most = std::max(most, load(g.places[i], g.rows[i / g.columns.size()], g.columns[i % g.columns.size()], all));
    return most;
  }

  /// Returns the time of a row's all-reduces; see semantics, section 4.
  [[nodiscard]] double sums_s(const std::size_t* row, std::size_t columns, int samples) const {
    if (columns < 2 || (forward_sums_.empty() && backward_sums_.empty())) return 0;
    const auto steps = static_cast<double>(2 * (columns - 1));
    double worst_s = 0;
    for (std::size_t c = 0; c < columns; ++c) {
      const transfer_cost link = peak_transfer(problem_.cluster.network(), devices_[row[c]], devices_[row[(c + 1) % columns]]);
      double s = 0;
      for (const auto* sums : {&forward_sums_, &backward_sums_}) {
        for (const double per_sample : *sums) s += steps * link.latency_s + ring_share(columns) * per_sample * samples * link.s_per_byte;
      }
      worst_s = std::max(worst_s, s);
    }
    return worst_s;
  }

  [[nodiscard]] bool may_help(double busy_s) const { return busy_s < inf && (!judge_.at_least || judge_.at_least(busy_s) < score_); }

  /// Returns the time of the busiest device of a row.
  [[nodiscard]] double row_s(const grid& g, std::size_t row, int samples) {
    const std::size_t columns = g.columns.size();
    const int all = std::accumulate(g.columns.begin(), g.columns.end(), 0);
    double busiest_s = 0;
    for (std::size_t c = 0; c < columns; ++c)
      busiest_s = std::max(busiest_s, time_s(g.places[row * columns + c], samples, g.columns[c], all));
    return busiest_s + sums_s(&g.places[row * columns], columns, samples);
  }

  [[nodiscard]] stage stage_of(const grid& g) const {
    stage s = of_;
    for (std::size_t i = 0; i < g.places.size(); ++i) s.devices.push_back({devices_[g.places[i]], g.rows[i / g.columns.size()]});
    if (g.columns.size() > 1) s.columns = g.columns;
    return s;
  }

  /// Judges a grid; returns true if it is the best so far.
  bool judge(const grid& g) {
    if (judged_ >= most_) return false;
    if (load(g) > 1) return false;
    double busiest_s = 0;
    for (std::size_t r = 0; r < g.rows.size(); ++r) busiest_s = std::max(busiest_s, row_s(g, r, g.rows[r]));
    if (!may_help(busiest_s) || !seen_.insert(g.key())) return false;
    ++judged_;
    const double score = judge_.score(stage_of(g));
    if (!(score < score_)) return false;
    score_ = score;
    best_ = g;
    return true;
  }

  [[nodiscard]] static std::vector<int> reduced(std::vector<int> weights) {
    int g = 0;
    for (const int w : weights) g = std::gcd(g, w);
    for (int& w : weights) w /= g;
    return weights;
  }

  [[nodiscard]] int parts() const { return units_ > 0 ? units_ : fine_parts; }

  /// Returns the shapes, each with its number of devices, the fastest ones if not all.
  [[nodiscard]] std::vector<std::pair<shape_of, std::size_t>> shapes() const {
    std::vector<std::pair<shape_of, std::size_t>> all;
    for (std::size_t n = devices_.size(); n >= (options_.subsets ? 1 : devices_.size()); --n) {
      for (std::size_t c = 1; c <= n; ++c) {
        if (n % c != 0 || n / c > static_cast<std::size_t>(size_) || c > static_cast<std::size_t>(parts())) continue;
        all.push_back({{n / c, c}, n});
      }
    }
    return all;
  }

  /// Sets weights and samples in proportion to the speeds of columns and rows.
  void share_out(grid& g, shape_of shape) {
    struct column_taker : sample_taker {
      double speed = 0;
    };
    std::vector<column_taker> columns(shape.columns, column_taker{{.cap = parts(), .taken = 1}});
    for (std::size_t i = 0; i < g.places.size(); ++i) columns[i % shape.columns].speed += speed_[g.places[i]];
    static_cast<void>(
        apportion(parts() - static_cast<int>(shape.columns), columns, [](const column_taker& t, int n) { return n / t.speed; }));
    g.columns.clear();
    for (const column_taker& t : columns) g.columns.push_back(t.taken);
    g.columns = reduced(std::move(g.columns));
    struct row_taker : sample_taker {
      std::size_t row = 0;
    };
    std::vector<row_taker> rows(shape.rows, row_taker{{.cap = size_, .taken = 1}});
    for (std::size_t r = 0; r < shape.rows; ++r) rows[r].row = r;
    static_cast<void>(apportion(size_ - static_cast<int>(shape.rows), rows, [&](const row_taker& t, int n) {
      return std::min(row_s(g, t.row, n), std::numeric_limits<double>::max());
    }));
    g.rows.clear();
    for (const row_taker& t : rows) g.rows.push_back(t.taken);
  }

  /// Steps to grids with lower peak load until every device fits.
  void make_room(grid& g) {
    for (double most = load(g); most > 1;) {
      const bool better = neighbours(g, [&](const grid& near) {
        const double now = load(near);
        if (!(now < most)) return false;
        most = now;
        grid next = near;
        g = std::move(next);
        return true;
      });
      if (!better) return;
    }
  }

  void propose(shape_of shape, std::size_t among) {
    std::vector<std::size_t> fast = sorted_indices(devices_.size(), [&](std::size_t a, std::size_t b) { return speed_[a] > speed_[b]; });
    fast.resize(among);
    std::vector<std::size_t> by_columns(among), listed = fast, near;
    for (std::size_t i = 0; i < among; ++i) by_columns[(i % shape.rows) * shape.columns + i / shape.rows] = fast[i];
    std::sort(listed.begin(), listed.end());
    for (std::vector<std::size_t> left = fast; !left.empty();) {
      const auto next = near.size() % shape.columns == 0 ? left.begin() : std::min_element(left.begin(), left.end(), [&](auto a, auto b) {
        return link_s(near.back(), a) < link_s(near.back(), b);
      });
      near.push_back(*next);
      left.erase(next);
    }
    for (const auto& places : {listed, fast, by_columns, near}) {
      grid g{.places = places, .rows = {}, .columns = {}};
      share_out(g, shape);
      make_room(g);
      static_cast<void>(judge(g));
    }
  }

  [[nodiscard]] double link_s(std::size_t a, std::size_t b) const {
    constexpr double message = 1e4;
    return peak_transfer(problem_.cluster.network(), devices_[a], devices_[b]).time_s(message);
  }

  void improve() {
    while (score_ < inf && judged_ < most_ && step()) {
    }
  }

  bool step() {
    return neighbours(best_, [&](const grid& g) {
      if (judge(g)) return true;
      grid shared = g;
      if (g.places == best_.places) return false;
      share_out(shared, {g.rows.size(), g.columns.size()});
      return judge(shared);
    });
  }

  /// Calls f with every neighbouring grid until it returns true; returns whether it did.
  template <class F>
  bool neighbours(const grid at, const F& f) {
    const auto between = [](std::size_t n, const auto& with) {
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
          if (i != j && with(i, j)) return true;
        }
      }
      return false;
    };
    const auto move_one = [](std::vector<int>& amounts, std::size_t i, std::size_t j) {
      return --amounts[i], ++amounts[j], amounts[i] > 0;
    };
    const auto row = [&](std::size_t i, std::size_t j) {
      grid g = at;
      return move_one(g.rows, i, j) && f(g);
    };
    const int all = std::accumulate(at.columns.begin(), at.columns.end(), 0);
    const auto column = [&](std::size_t i, std::size_t j) {
      grid g = at;
      for (int& w : g.columns) w *= parts() / all;
      if (!move_one(g.columns, i, j)) return false;
      g.columns = reduced(std::move(g.columns));
      return f(g);
    };
    if (between(at.rows.size(), row) || (parts() % all == 0 && between(at.columns.size(), column))) return true;
    for (std::size_t i = 0; i < at.places.size(); ++i) {
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        const auto place = static_cast<std::size_t>(std::find(at.places.begin(), at.places.end(), d) - at.places.begin());
        if (place <= i || (place == at.places.size() && !options_.subsets)) continue;
        grid g = at;
        if (place < at.places.size()) g.places[place] = at.places[i];
        g.places[i] = d;
        if (f(g)) return true;
      }
    }
    return false;
  }

  /// Returns the reduced column weights that give whole units.
  [[nodiscard]] std::vector<std::vector<int>> weights_of(std::size_t columns) const {
    std::vector<std::vector<int>> all;
    std::vector<int> w(columns, 1);
    while (true) {
      const int sum = std::accumulate(w.begin(), w.end(), 0);
      const bool whole = std::all_of(w.begin(), w.end(), [&](int x) { return static_cast<long long>(units_) * x % sum == 0; });
      if (whole && reduced(w) == w) all.push_back(w);
      std::size_t c = 0;
      while (c < columns && w[c] == options_.largest_weight) w[c++] = 1;
      if (c == columns) return all;
      ++w[c];
    }
  }

  /// Returns an upper bound on the number of grids.
  [[nodiscard]] double count() const {
    double total = 0;
    for (const auto& [shape, n] : shapes()) {
      double orders = 1, cuts = 1, weights = 1;
      for (std::size_t i = 0; i < n; ++i) orders *= static_cast<double>(devices_.size() - i);
      for (std::size_t r = 1; r < shape.rows; ++r) cuts *= static_cast<double>(size_ - static_cast<int>(r)) / static_cast<double>(r);
      if (shape.columns > 1)
        for (std::size_t c = 0; c < shape.columns; ++c) weights *= options_.largest_weight;
      total += orders * cuts * weights;
    }
    return total;
  }

  void try_all() {
    for (const auto& [shape, n] : shapes()) {
      for (const auto& weights : weights_of(shape.columns)) {
        grid g{.places = {}, .rows = {}, .columns = weights};
        place(g, shape, size_, 0);
      }
    }
  }

  /// Places the next device of a grid whose last row may be incomplete.
  void place(grid& g, shape_of shape, int left, double busiest_s) {
    const std::size_t at = g.places.size(), row = at / shape.columns, column = at % shape.columns;
    if (at == shape.rows * shape.columns) {
      static_cast<void>(judge(g));
      return;
    }
    const int rows_behind = static_cast<int>(shape.rows - row) - 1, all = std::accumulate(g.columns.begin(), g.columns.end(), 0);
    const auto with = [&](int samples) {
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        if (std::find(g.places.begin(), g.places.end(), d) != g.places.end()) continue;
        if (options_.alone && at > 0 && d < g.places.front()) continue;  // equivalent to a ring with another begin
        if (!holds(d, samples, g.columns[column], all)) continue;
        g.places.push_back(d);
        double now_s = std::max(busiest_s, time_s(d, samples, g.columns[column], all));
        if (column + 1 == shape.columns) now_s = std::max(now_s, row_s(g, row, samples));
        if (may_help(now_s)) place(g, shape, left - (column + 1 == shape.columns ? samples : 0), now_s);
        g.places.pop_back();
      }
    };
    if (column > 0) return with(g.rows.back());
    for (int samples = rows_behind == 0 ? left : 1; samples <= left - rows_behind; ++samples) {
      g.rows.push_back(samples);
      with(samples);
      g.rows.pop_back();
    }
  }

  const planning_problem& problem_;
  token_passes passes_;
  stage of_;
  const std::vector<device_id>& devices_;
  int size_;
  const grid_judge& judge_;
  const grid_options& options_;
  int units_ = 0;  ///< unit of column widths; 0: any width
  std::vector<double> forward_sums_, backward_sums_;
  std::vector<double> speed_;  ///< by device, for all layers
  keyed<double> times_;
  keyed<double> loads_;
  key_index seen_;
  grid best_;
  double score_ = inf;
  long long judged_ = 0, most_ = options_.judged;
  bool exact_ = false;
};

}  // namespace detail

HETPLAN_INLINE std::optional<found_grid> best_grid(const planning_problem& problem, const stage& of, const std::vector<device_id>& devices,
                                                   int microbatch_size, const grid_judge& judge, const grid_options& options) {
  if (devices.empty()) throw invalid_input("best_grid: no devices; expected at least one");
  if (microbatch_size < 1)
    throw invalid_input("best_grid: microbatch_size = " + std::to_string(microbatch_size) + "; expected an integer >= 1");
  if (options.largest_weight < 1)
    throw invalid_input("best_grid: largest_weight = " + std::to_string(options.largest_weight) + "; expected an integer >= 1");
  key_index seen;
  if (!std::ranges::all_of(devices, [&](device_id d) { return seen.insert({d}); }))
    throw invalid_input("best_grid: a device twice; expected each once");
  return detail::grid_search(problem, of, devices, microbatch_size, judge, options).run();
}

}  // namespace hetplan::partition
