// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/place/alike_operators.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include <hetplan/core/linkage.hpp>

namespace hetplan::place {

namespace detail {

/// Numbers keys by first occurrence.
template <class Key>
class numbering {
 public:
  [[nodiscard]] std::size_t operator()(Key key) { return numbers_.try_emplace(std::move(key), numbers_.size()).first->second; }
  [[nodiscard]] std::size_t size() const { return numbers_.size(); }

 private:
  std::map<Key, std::size_t> numbers_;
};

}  // namespace detail

HETPLAN_INLINE alike_operators find_alike_operators(const placement_table& t, const std::vector<device_set>& sets) {
  const std::size_t n = t.size(), d = t.devices();
  alike_operators a;
  // What an edge is like, but for its ends.
  detail::numbering<std::vector<double>> edge_kinds;
  std::vector<std::size_t> edge_kind;
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    std::vector<double> key{t.edges()[e].bytes};
    if (!t.data().edge_time_s.empty()) {
      const auto first = t.data().edge_time_s.begin() + static_cast<std::ptrdiff_t>(e * d * d);
      key.insert(key.end(), first, first + static_cast<std::ptrdiff_t>(d * d));
    }
    edge_kind.push_back(edge_kinds(std::move(key)));
  }
  std::size_t classes = 0;
  {
    detail::numbering<std::pair<device_set, std::vector<double>>> kinds;
    for (std::size_t v = 0; v < n; ++v) {
      std::vector<double> key{t.shared_out_bytes(v), t.working_bytes(v)};
      for (std::size_t k = 0; k < d; ++k) key.push_back(t.time_s(v, k));
      a.class_of.push_back(kinds({sets[v], std::move(key)}));
    }
    classes = kinds.size();
  }
  for (bool refined = true; refined;) {
    using neighbour = std::tuple<bool, std::size_t, std::size_t>;  // behind, edge kind, class
    detail::numbering<std::pair<std::size_t, std::vector<neighbour>>> kinds;
    std::vector<std::size_t> next;
    for (std::size_t v = 0; v < n; ++v) {
      std::vector<neighbour> around;
      for (const std::uint32_t e : t.in_edges(v)) around.emplace_back(false, edge_kind[e], a.class_of[t.edges()[e].from]);
      for (const std::uint32_t e : t.out_edges(v)) around.emplace_back(true, edge_kind[e], a.class_of[t.edges()[e].to]);
      std::sort(around.begin(), around.end());
      next.push_back(kinds({a.class_of[v], std::move(around)}));
    }
    refined = kinds.size() > classes;
    classes = kinds.size();
    a.class_of = std::move(next);
  }
  a.like.assign(classes, n);
  a.size.assign(classes, 0);
  for (std::size_t v = 0; v < n; ++v) {
    a.like[a.class_of[v]] = std::min(a.like[a.class_of[v]], v);
    ++a.size[a.class_of[v]];
  }
  detail::numbering<std::tuple<std::size_t, std::size_t, std::size_t>> edge_classes;
  for (std::size_t e = 0; e < t.edges().size(); ++e) {
    const std::size_t from = a.class_of[t.edges()[e].from], to = a.class_of[t.edges()[e].to];
    const std::size_t c = edge_classes({from, to, edge_kind[e]});
    if (c == a.edges.size()) a.edges.push_back({from, to, e, 0});
    ++a.edges[c].size;
  }
  return a;
}

}  // namespace hetplan::place
