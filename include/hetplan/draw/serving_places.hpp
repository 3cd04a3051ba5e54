// SPDX-License-Identifier: BSL-1.0
#pragma once
/// Who served what where, on the page of serving: services against servers.

#include <string>

#include <hetplan/draw/serving_view.hpp>

namespace HETPLAN_NAMESPACE::draw::detail {

/// A row for each service, a column for each server in the order of the rings: the credit of the requests that it was the last to handle.
[[nodiscard]] std::string credit_matrix(const serving_view& view);

/// The same rows and columns: GPUs that the first deployment gives to the service there.
[[nodiscard]] std::string gpu_matrix(const serving_view& view);

}  // namespace HETPLAN_NAMESPACE::draw::detail

#ifndef HETPLAN_COMPILED
#include <hetplan/draw/serving_places.ipp>
#endif
