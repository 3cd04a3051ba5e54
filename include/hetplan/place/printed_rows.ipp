// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/printed_rows.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace HETPLAN_NAMESPACE::place {

namespace detail {

class printed_builder {
 public:
  explicit printed_builder(placement_columns& c) : c_(c), t_(*c.table), n_(t_.size()), d_(t_.devices()), large_(c.limit) {}

  void run() {
    for (std::size_t a = 0; a < c_.nodes(); ++a) {
      if (a >= n_) {
        c_.start[a] = c_.add_column(0, c_.limit);
        choose_channel(c_.transfers[a - n_]);
      }
      end_.push_back(c_.add_column(0, c_.limit));
      row_terms takes{{end_[a], 1}, {c_.start[a], -1}};  // 4b, and the last row of 7
      c_.add_duration(takes, a, -1);
      c_.add_row(std::move(takes), 0, 0);
      if (a < n_) c_.add_row({{c_.makespan, 1}, {end_[a], -1}}, 0);  // 4
    }
    for (std::size_t a = n_; a < c_.nodes(); ++a) precede(a);
    for (std::size_t a = 0; a < c_.nodes(); ++a) {
      for (std::size_t b = a + 1; b < (a < n_ ? n_ : c_.nodes()); ++b) {
        if (c_.precedes(a, b) || c_.precedes(b, a)) continue;
        if (a < n_) share_device(a, b);
        else share_channels(a, b);
      }
    }
  }

 private:
  /// z and u of a transfer, eq. 7.
  void choose_channel(possible_transfer& x) {
    x.needed = c_.add_binary();
    row_terms one{{x.needed, -1}};
    for (auto& w : x.ways) {
      w.column = c_.add_binary();
      one.emplace_back(w.column, 1);
    }
    c_.add_row(std::move(one), 0, 0);
    for (const std::uint32_t e : x.edges) {
      const std::size_t i = x.producer, j = t_.edges()[e].to;
      for (std::size_t k = 0; k < d_; ++k) {
        for (std::size_t l = 0; l < d_; ++l) {
          if (k == l || (c_.rules.copies == transfer_copies::per_device && l != x.to)) continue;
          row_terms chosen{{c_.on(i, k), -1}, {c_.on(j, l), -1}};
          const auto w = std::find_if(x.ways.begin(), x.ways.end(), [&](const auto& way) { return way.from == k && way.to == l; });
          if (w != x.ways.end()) chosen.emplace_back(w->column, 1);
          c_.add_row(std::move(chosen), -1);
        }
        if (c_.rules.copies == transfer_copies::per_device && k != x.to) continue;
        const int here = c_.on(i, k), there = c_.on(j, k);
        if (c_.rules.copies == transfer_copies::per_edge) {
          c_.add_row({{x.needed, 1}, {here, 1}, {there, 1}}, -infinite, 2);
          c_.add_row({{x.needed, 1}, {here, -1}, {there, 1}}, 0);
        }
        c_.add_row({{x.needed, 1}, {there, -1}, {here, 1}}, 0);
      }
    }
  }

  /// Eq. 4a around a transfer.
  void precede(std::size_t a) {
    const possible_transfer& x = c_.transfer(a);
    c_.add_row({{c_.start[a], 1}, {end_[x.producer], -1}}, 0);
    for (const std::uint32_t e : x.edges) {
      const std::size_t reader = t_.edges()[e].to;
      if (c_.rules.copies == transfer_copies::per_edge) {
        c_.add_row({{c_.start[reader], 1}, {end_[a], -1}}, 0);
        continue;
      }
      c_.add_row({{c_.start[reader], 1}, {end_[a], -1}, {c_.on(reader, x.to), -large_}}, -large_);
      // Once for each edge: every device has a transfer of the output.
      if (x.to == 0) c_.add_row({{c_.start[reader], 1}, {end_[x.producer], -1}}, 0);
    }
  }

  /// start of a >= end of b - M delta - M (what is missing), and the other way round with 1 - delta.
  void disjoint(std::size_t a, std::size_t b, int delta, const row_terms& missing, double constant) {
    row_terms a_behind{{c_.start[a], 1}, {end_[b], -1}, {delta, large_}}, b_behind{{c_.start[b], 1}, {end_[a], -1}, {delta, -large_}};
    for (const auto& [column, times] : missing) {
      a_behind.emplace_back(column, large_ * times);
      b_behind.emplace_back(column, large_ * times);
    }
    c_.add_row(std::move(a_behind), -large_ * constant);
    c_.add_row(std::move(b_behind), -large_ * (constant + 1));
  }

  /// delta of two nodes, eqs. 6 and 8.
  [[nodiscard]] int add_delta(std::size_t a, std::size_t b) {
    const int delta = c_.add_binary();
    c_.orders.push_back({a, b, node_order::any_machine, delta, true});
    return delta;
  }

  /// Eq. 6.
  void share_device(std::size_t a, std::size_t b) {
    const int delta = add_delta(a, b);
    for (std::size_t k = 0; k < d_; ++k) disjoint(a, b, delta, {{c_.on(a, k), -1}, {c_.on(b, k), -1}}, 2);
  }

  /// Eq. 8.
  void share_channels(std::size_t q, std::size_t r) {
    if (c_.holds.size() == 0) return;
    const possible_transfer &x = c_.transfer(q), &y = c_.transfer(r);
    const int delta = add_delta(q, r);
    if (c_.rules.contention == contention::one_port && c_.rules.copies == transfer_copies::per_edge) {
      const std::size_t a = x.producer, b = t_.edges()[x.edges[0]].to, c = y.producer, d = t_.edges()[y.edges[0]].to;
      for (std::size_t k = 0; k < d_; ++k) {
        for (const double leaves : {1.0, -1.0}) {
          row_terms missing{{x.needed, -1}, {y.needed, -1}};
          const auto add = [&](std::size_t v, double times) {
            const auto at = std::find_if(missing.begin(), missing.end(), [&](const auto& m) { return m.first == c_.on(v, k); });
            if (at == missing.end()) missing.emplace_back(c_.on(v, k), times);
            else at->second += times;
          };
          add(a, -leaves), add(c, -leaves), add(b, leaves), add(d, leaves);
          disjoint(q, r, delta, missing, 4);
        }
      }
      return;
    }
    for (std::size_t h = 0; h < c_.holds.size(); ++h) {
      row_terms missing;
      bool both = true;
      for (const possible_transfer* p : {&x, &y}) {
        const std::size_t before = missing.size();
        for (const auto& w : p->ways) {
          const auto held = c_.holds.of(w.from, w.to);
          if (std::binary_search(held.begin(), held.end(), h)) missing.emplace_back(w.column, -1);
        }
        both = both && missing.size() > before;
      }
      if (both) disjoint(q, r, delta, missing, 2);
    }
  }

  static constexpr double infinite = std::numeric_limits<double>::infinity();

  placement_columns& c_;
  const placement_table& t_;
  std::size_t n_, d_;
  double large_;          ///< M^s, M^l and M^r
  std::vector<int> end_;  ///< by node
};

}  // namespace detail

HETPLAN_INLINE void add_printed_rows(placement_columns& c) { detail::printed_builder(c).run(); }

}  // namespace HETPLAN_NAMESPACE::place
