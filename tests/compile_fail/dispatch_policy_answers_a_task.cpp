// SPDX-License-Identifier: BSL-1.0
// expect: dispatch_policy needs: std::optional<std::size_t> next(const hetplan::dispatch_view&) const
#include <hetplan/simulate/dispatch.hpp>

struct my_policy {
  hetplan::ready_task next(const hetplan::dispatch_view& v) const { return v.ready.front(); }
};
static_assert(hetplan::check_dispatch_policy<my_policy>());
