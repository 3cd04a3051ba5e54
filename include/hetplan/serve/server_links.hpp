// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The links of servers: one transfer at a time on each, in order.

#include <cstdint>
#include <vector>

#include <hetplan/serve/edge_cloud.hpp>
#include <hetplan/serve/request_stream.hpp>
#include <hetplan/serve/serving_faults.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// Complexity  O(1) a transfer, and O(times that the link was slow).
/// Source  semantics, section 11 (the way).
class server_links {
 public:
  /// @param clock   whose first arrival is 0 here.
  /// @param span_s  what the tolerance is a part of with which a transfer begins in the time of a fault.
  server_links(const edge_cloud& cloud, const std::vector<serving_fault>& faults, const request_stream& clock, double span_s);

  /// When the last byte of a request that leaves `from` has come to the downlink of `to`, if it is sent now.
  [[nodiscard]] double send_s(server_id from, server_id to, double now_s, double size_b);
  /// When a request that has come to the downlink now is at the server.
  [[nodiscard]] double receive_s(server_id to, double now_s, double size_b);
  /// What an answer that begins at that time takes to the server where its request entered; it waits for nobody.
  [[nodiscard]] double answer_s(server_id from, server_id to, double size_b, double at_s) const;
  /// To a registered device of a server, or back; 0 for device -1, which is none. Nobody waits there.
  [[nodiscard]] double device_s(server_id owner, std::int32_t device, double size_b) const {
    if (device < 0) return 0;
    const auto& d = (*cloud_)[owner].devices[static_cast<std::size_t>(device)];
    return d.latency.value() + size_b / d.bandwidth.value();
  }

 private:
  struct link {
    double up, down, latency_s;
    double up_free_s = 0, down_free_s = 0;
    std::int32_t slow = -1;  ///< row of slow_
  };
  struct slow_time {
    double from_s, until_s, factor;
  };
  [[nodiscard]] double factor(const link& l, double at_s) const;

  const edge_cloud* cloud_;
  double span_s_;
  std::vector<link> links_;
  std::vector<std::vector<slow_time>> slow_;
};

}  // namespace HETPLAN_NAMESPACE::serve

#ifndef HETPLAN_COMPILED
#include <hetplan/serve/server_links.ipp>
#endif
