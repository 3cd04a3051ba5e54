// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The ways of requests that were passed on.

#include <cstdint>
#include <span>
#include <vector>

#include <hetplan/core/prefetch.hpp>
#include <hetplan/serve/ended_request.hpp>
#include <hetplan/serve/service.hpp>

namespace HETPLAN_NAMESPACE::serve {

/// Servers at which requests have been handled. A request that has stayed where it entered takes four bytes and no more.
/// Source  EPARA, section 3.2 (offloading paths).
class request_tracks {
 public:
  explicit request_tracks(std::size_t requests) : track_of_(requests) {}

  [[nodiscard]] int offloads(request_number r) const { return track_of_[r] == 0 ? 0 : static_cast<int>(tracks_[track_of_[r]].size()) - 1; }
  /// Where it is now, or was handled last.
  [[nodiscard]] server_id here(request_number r, server_id entered) const {
    return track_of_[r] == 0 ? entered : tracks_[track_of_[r]].back();
  }
  /// All servers so far, the first is where it entered; good until the next call.
  [[nodiscard]] std::span<const server_id> path(request_number r, server_id entered) {
    if (track_of_[r] != 0) return tracks_[track_of_[r]];
    tracks_[0].assign(1, entered);
    return tracks_[0];
  }

  /// Fetches the way of a request into the cache.
  void fetch(request_number r) const { prefetch(&track_of_[r]); }

  void go(request_number r, server_id entered, server_id to) {
    auto& t = track_of_[r];
    if (t == 0) {
      if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(tracks_.size()));
        tracks_.emplace_back();
      }
      t = free_.back();
      free_.pop_back();
      tracks_[t].assign(1, entered);
    }
    tracks_[t].push_back(to);
  }
  void end(request_number r) {
    if (track_of_[r] == 0) return;
    free_.push_back(track_of_[r]);
    track_of_[r] = 0;
  }

 private:
  std::vector<std::uint32_t> track_of_;  ///< 0: none
  std::vector<std::vector<server_id>> tracks_ = std::vector<std::vector<server_id>>(1);
  std::vector<std::uint32_t> free_;
};

}  // namespace HETPLAN_NAMESPACE::serve
