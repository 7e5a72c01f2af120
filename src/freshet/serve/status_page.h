#pragma once

#include <string_view>

namespace freshet::serve {

// The status page: one HTML file that asks nobody but this server. Made from status_page.html by the build.
std::string_view StatusPage();

}  // namespace freshet::serve
