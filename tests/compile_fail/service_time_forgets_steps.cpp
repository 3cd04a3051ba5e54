// SPDX-License-Identifier: BSL-1.0
// expect: service_time needs: hetplan::seconds step(const hetplan::serve::service_run&, int requests) const
#include <hetplan/serve/service_time.hpp>

using namespace hetplan::serve;

struct my_times {
  hetplan::seconds pass(const service_run&, const batch_load& b) const { return hetplan::seconds(0.01 * b.requests); }
  int largest_batch(const service_run&) const { return 8; }
};
const any_service_time times = my_times{};
