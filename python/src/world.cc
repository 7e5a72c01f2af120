#include "world.h"

namespace freshet::python {
namespace {

constexpr std::size_t kMostLines = 1000;  // that wait for somebody to take them

}  // namespace

World::World()
    : log_(
          clock_,
          [this](std::string_view line) {
            const std::lock_guard lock(mutex_);
            if (lines_.size() < kMostLines) lines_.emplace_back(line);
          },
          base::Level::kWarn) {}

World& World::Get() {
  static World world;
  return world;
}

std::vector<std::string> World::TakeLines() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lines_, {});
}

}  // namespace freshet::python
