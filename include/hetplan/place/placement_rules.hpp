// SPDX-License-Identifier: BSL-1.0
#pragma once
/// What transfers of a placement hold while they run, and how often an output is sent.

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <hetplan/place/placement_table.hpp>
#include <hetplan/plan/plan.hpp>

namespace HETPLAN_NAMESPACE::place {

/// Which transfers may not overlap: none of them; those that share a resource of the network; those that leave one device, and those
/// that enter one.
///
/// `shared` searches like per_link and is judged under fair sharing: where transfers take turns, nobody's share shrinks.
/// Source  `none`, `one_port`: Moirai, eq. 7 and eq. 8. `per_link`, `shared`: ours, for networks whose wires are known.
enum class contention { none, per_link, one_port, shared };

inline constexpr std::array all_contentions{contention::none, contention::per_link, contention::one_port, contention::shared};

/// The rules of a schedule beside its table.
struct placement_rules {
  place::contention contention = contention::none;
  transfer_copies copies = transfer_copies::per_edge;

  friend bool operator==(const placement_rules&, const placement_rules&) = default;
};

[[nodiscard]] constexpr std::string_view to_string(contention c) {
  switch (c) {
    case contention::none: return "none";
    case contention::per_link: return "per_link";
    case contention::one_port: return "one_port";
    case contention::shared: break;
  }
  return "shared";
}

/// The network policy under which the simulator runs such a schedule.
[[nodiscard]] constexpr sharing policy_of(contention c) {
  switch (c) {
    case contention::none: return sharing::unlimited;
    case contention::per_link: return sharing::per_link;
    case contention::one_port: return sharing::exclusive;
    case contention::shared: break;
  }
  return sharing::fair_share;
}

/// What a transfer between two devices holds from its start to its end: one transfer at a time holds a channel. Ports, resources, or
/// nothing; the one form of contention that all searches know.
///
/// Complexity  O(devices^2 x resources of a route).
class channels {
 public:
  channels(const placement_table& t, contention c);

  /// 0 ... size() - 1 are the channels.
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Ascending.
  [[nodiscard]] std::span<const std::size_t> of(std::size_t from, std::size_t to) const {
    return std::span(all_).subspan(first_[from * devices_ + to], first_[from * devices_ + to + 1] - first_[from * devices_ + to]);
  }

 private:
  std::size_t devices_, size_ = 0;
  std::vector<std::size_t> first_, all_;
};

/// Seconds of the transfer that carries an edge's data. With copies per device, an operator's output goes once to each device that
/// reads it, as long as its longest edge.
[[nodiscard]] inline double carried_s(const placement_table& t, transfer_copies copies, std::size_t edge, std::size_t from,
                                      std::size_t to) {
  if (from == to) return 0;
  return copies == transfer_copies::per_edge ? t.transfer_s(edge, from, to) : t.output_s(t.edges()[edge].from, from, to);
}

}  // namespace HETPLAN_NAMESPACE::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/placement_rules.ipp>
#endif
