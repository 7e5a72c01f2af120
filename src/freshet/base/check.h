#pragma once

// CHECK states what our own logic relies on. It stays on in release builds and aborts with the place and the condition.
// What the world can get wrong (files, peers, users) is a Result, never a CHECK.
#define CHECK(condition) ((condition) ? static_cast<void>(0) : ::freshet::CheckFailed(__FILE__, __LINE__, #condition))

namespace freshet {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}
