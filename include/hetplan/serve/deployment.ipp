// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <hetplan/serve/deployment.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

#include <hetplan/core/error.hpp>
#include <hetplan/plan/describe.hpp>

namespace hetplan::serve {

HETPLAN_INLINE bool instance::spans_servers() const {
  return std::ranges::any_of(gpus, [this](const gpu_slot& g) { return g.server != gpus.front().server; });
}

HETPLAN_INLINE cloud_room::cloud_room(const edge_cloud& cloud) {
  for (const auto& s : cloud.servers) {
    first_gpu_.push_back(gpus_.size());
    first_device_.push_back(devices_.size());
    for (const auto& g : s.gpus) gpus_.push_back({1, g.memory.value()});
    for (const auto& d : s.devices) devices_.push_back({1, d.unit.memory.value()});
  }
}

HETPLAN_INLINE bool cloud_room::fits(const gpu_room& r, const service_variant& v) const {
  return at_most(v.compute_share, r.compute, 1) && at_most(v.memory.value(), r.memory_b);
}

HETPLAN_INLINE void cloud_room::take(const instance& i, const service_variant& v) {
  const auto one = [&](gpu_room& r) {
    r.compute -= v.compute_share;
    r.memory_b -= v.memory.value();
  };
  if (i.device) one(devices_[first_device_[i.device->server.index()] + static_cast<std::size_t>(i.device->number)]);
  for (const auto& g : i.gpus) one(gpus_[first_gpu_[g.server.index()] + static_cast<std::size_t>(g.number)]);
}

HETPLAN_INLINE void validate_fit(const edge_cloud& cloud, const std::vector<service>& services) {
  const auto fits = [&](const service_variant& v) {
    const auto one = [&](const gpu& g) { return g.kind == v.gpu_kind && v.memory <= g.memory; };
    return std::ranges::any_of(cloud.servers, [&](const edge_server& s) {
      return std::ranges::any_of(s.gpus, one) || std::ranges::any_of(s.devices, one, &registered_device::unit);
    });
  };
  for (const auto& s : services) {
    if (std::ranges::any_of(s.variants, fits)) continue;
    std::string needs;
    for (const auto& v : s.variants)
      needs += (needs.empty() ? "" : ", or ") + readable(v.memory) + " on a GPU of kind \"" + escaped(v.gpu_kind) + "\"";
    throw invalid_input("service \"" + escaped(s.name) + "\" fits nowhere in cloud \"" + escaped(cloud.name) + "\": it needs " + needs);
  }
}

namespace detail {

/// Checks instances in order and tracks the room on each GPU.
class deployment_check {
 public:
  deployment_check(const edge_cloud& cloud, const std::vector<service>& services, const any_service_time& times)
      : cloud_(cloud), services_(services), times_(times), room_(cloud) {}

  void next(std::size_t number, const instance& i) {
    where_ = "deployment: instance " + std::to_string(number);
    if (!i.what.valid() || i.what.index() >= services_.size()) refuse("names no service");
    const auto& s = services_[i.what.index()];
    where_ += " (\"" + escaped(s.name) + "\")";
    if (i.variant < 0 || static_cast<std::size_t>(i.variant) >= s.variants.size()) refuse("names no variant");
    const auto& v = s.variants[static_cast<std::size_t>(i.variant)];
    counts(i, s, v);
    if (i.device) {
      on_device(i, v);
    } else {
      on_gpus(i, v);
    }
    room_.take(i, v);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const { throw invalid_input(where_ + ": " + what); }

  void counts(const instance& i, const service& s, const service_variant& v) const {
    const int largest = times_.largest_batch({s, v, i.what, i.variant});
    if (i.batch < 1 || i.batch > largest)
      refuse("batch = " + std::to_string(i.batch) + "; its times are known for 1 to " + std::to_string(largest));
    if (i.frames < 1) refuse("frames = " + std::to_string(i.frames) + "; expected >= 1");
    if (i.groups < 1) refuse("groups = " + std::to_string(i.groups) + "; expected >= 1");
    if (!s.is_stream() && (i.frames > 1 || i.groups > 1)) refuse("frames and groups are for streams; expected 1 of each");
  }

  void server(server_id s) const {
    if (!s.valid() || s.index() >= cloud_.size()) refuse("names no server of cloud \"" + escaped(cloud_.name) + "\"");
  }

  /// Returns the GPUs of an instance, in 64 bits: groups are user input.
  [[nodiscard]] static std::int64_t gpus_of(const instance& i, const service_variant& v) {
    return std::int64_t{v.gpus()} * std::int64_t{i.groups};
  }

  void on_device(const instance& i, const service_variant& v) const {
    if (!i.gpus.empty()) refuse("has GPUs and a device; expected one of the two");
    if (gpus_of(i, v) != 1) refuse("needs " + std::to_string(gpus_of(i, v)) + " GPUs; a device has one");
    server(i.device->server);
    const auto& owner = cloud_[i.device->server];
    if (i.device->number < 0 || static_cast<std::size_t>(i.device->number) >= owner.devices.size())
      refuse("names no device of server \"" + escaped(owner.name) + "\"");
    const auto& device = owner.devices[static_cast<std::size_t>(i.device->number)];
    fits("device \"" + escaped(device.name) + "\"", device.unit, room_.device(*i.device), v);
  }

  void on_gpus(const instance& i, const service_variant& v) const {
    const auto needed = static_cast<std::size_t>(gpus_of(i, v));
    if (i.gpus.size() != needed) refuse("has " + std::to_string(i.gpus.size()) + " GPUs; expected " + std::to_string(needed));
    for (const auto& g : i.gpus) {
      server(g.server);
      const auto& owner = cloud_[g.server];
      if (g.number < 0 || static_cast<std::size_t>(g.number) >= owner.gpus.size())
        refuse("GPU " + std::to_string(g.number) + " of server \"" + escaped(owner.name) + "\", which has " +
               std::to_string(owner.gpus.size()));
      fits("GPU " + std::to_string(g.number) + " of server \"" + escaped(owner.name) + "\"", owner.gpus[static_cast<std::size_t>(g.number)],
           room_.gpu(g), v);
    }
    auto sorted = i.gpus;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) refuse("has a GPU twice");
  }

  void fits(const std::string& what, const gpu& unit, const gpu_room& left, const service_variant& v) const {
    if (unit.kind != v.gpu_kind) refuse("runs on \"" + escaped(v.gpu_kind) + "\"; " + what + " is a \"" + escaped(unit.kind) + "\"");
    if (room_.fits(left, v)) return;
    refuse("needs " + to_text(v.compute_share) + " of the compute and " + to_text(v.memory.value()) + " B; on " + what + " " +
           to_text(left.compute) + " and " + to_text(left.memory_b) + " B are left");
  }

  const edge_cloud& cloud_;
  const std::vector<service>& services_;
  const any_service_time& times_;
  cloud_room room_;
  std::string where_;
};

}  // namespace detail

HETPLAN_INLINE void validate(const deployment& d, const edge_cloud& cloud, const std::vector<service>& services,
                             const any_service_time& times) {
  detail::deployment_check check(cloud, services, times);
  for (std::size_t i = 0; i < d.instances.size(); ++i) check.next(i, d.instances[i]);
}

}  // namespace hetplan::serve
