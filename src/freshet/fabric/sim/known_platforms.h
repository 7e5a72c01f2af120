#pragma once

#include <span>
#include <string_view>

namespace freshet::fabric::sim {

// The files of platforms/, which travel inside the program.
struct KnownPlatform {
  std::string_view name, toml;
};
extern const std::span<const KnownPlatform> kKnownPlatforms;

}  // namespace freshet::fabric::sim
