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

namespace hetplan::place {

/// Which transfers may not overlap: none of them; those that share a resource of the network; those that leave one device, and those
/// that enter one.
///
/// `shared` searches as if transfers took turns on each resource, latencies aside, and is judged under fair sharing: where transfers take
/// turns, nobody's share shrinks.
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

/// What a transfer between two devices holds to its end (held_s): one transfer at a time holds a channel. Ports, resources, or nothing; the
/// one form of contention that all searches know.
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

/// The bytes of that transfer.
[[nodiscard]] inline double carried_bytes(const placement_table& t, transfer_copies copies, std::size_t edge) {
  return t.edges()[copies == transfer_copies::per_edge ? edge : t.largest_out(t.edges()[edge].from)].bytes;
}

/// For how long, up to its end, that transfer holds its channels: all of it, or under contention::shared its bytes alone, which flow
/// behind the latency. 0: it holds nothing.
[[nodiscard]] inline double held_s(const placement_table& t, const placement_rules& r, std::size_t edge, std::size_t from, std::size_t to) {
  if (r.contention != contention::shared || from == to || !t.data().edge_time_s.empty()) return carried_s(t, r.copies, edge, from, to);
  const double bytes = carried_bytes(t, r.copies, edge);
  return bytes > 0 ? bytes * t.pair(from, to).s_per_byte : 0;
}

/// How long that transfer keeps a channel of its pair busy, the one at place `at` among them. Under contention::shared a wide resource has
/// room beside it; 0 where the table does not say how much.
[[nodiscard]] inline double busy_s(const placement_table& t, const placement_rules& r, std::size_t edge, std::size_t from, std::size_t to,
                                   std::size_t at) {
  if (r.contention != contention::shared) return carried_s(t, r.copies, edge, from, to);
  const auto& s_per_byte = t.pair(from, to).busy_s_per_byte;
  return s_per_byte.empty() || !t.data().edge_time_s.empty() ? 0 : carried_bytes(t, r.copies, edge) * s_per_byte[at];
}

}  // namespace hetplan::place

#ifndef HETPLAN_COMPILED
#include <hetplan/place/placement_rules.ipp>
#endif
