#pragma once

#include <string>

#include "base/result.h"

namespace freshet::fabric::tcp {

// The address, in numbers, by which this machine reaches another ("host:port"). Looks up its name.
Result<std::string> AddressTowards(const std::string& where);

}  // namespace freshet::fabric::tcp
