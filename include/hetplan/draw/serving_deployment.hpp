// SPDX-License-Identifier: BSL-1.0
#pragma once
/// The deployment as a picture, on the page of serving: servers, their GPUs, and the slices of these that services have.

#include <cstddef>
#include <string>

#include <hetplan/draw/serving_view.hpp>

namespace hetplan::draw::detail {

/// Servers up to which their GPUs are drawn.
inline constexpr std::size_t most_drawn_servers = 64;

/// A bar for each GPU, as long as its compute; an instance on several GPUs is tied together by a line, across servers too.
/// Requires a cloud of at most most_drawn_servers.
[[nodiscard]] std::string deployment_picture(const serving_view& view);

}  // namespace hetplan::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_deployment.ipp>
#endif
