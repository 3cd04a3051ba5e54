// SPDX-License-Identifier: BSL-1.0
// expect: request_handler needs: hetplan::serve::decision handle(const hetplan::serve::pending_request&, const
// hetplan::serve::server_view& here)
#include <hetplan/serve/request_handlers.hpp>

using namespace hetplan::serve;

struct my_handler {
  server_id handle(const pending_request& r, const server_view&) { return r.entered; }
};
static_assert(check_request_handler<my_handler>());
