#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace freshet::serve {

// What all the bodies of a server that do not fit a connection's own buffers may take together.
struct BodyBudget {
  explicit BodyBudget(std::size_t limit) : limit_bytes(limit) {}
  const std::size_t limit_bytes;
  std::atomic<std::size_t> used_bytes{0};
};

// A request's body while it arrives. Memory grows with what has come, never with what was announced, and is charged to
// the budget once it exceeds kKept, for as long as it is held.
//
// Threads: one at a time. Ownership: shares the budget, so that a body may outlive its server.
class HttpBody {
 public:
  static constexpr std::size_t kKept = 64 << 10;

  explicit HttpBody(std::shared_ptr<BodyBudget> budget) : budget_(std::move(budget)) {}
  ~HttpBody() { Refund(); }
  HttpBody(const HttpBody&) = delete;
  HttpBody& operator=(const HttpBody&) = delete;

  std::string_view view() const { return {bytes_.get(), size_}; }
  std::size_t size() const { return size_; }

  // At least one byte and at most `most` bytes to write to, behind what is there; empty when the budget is spent.
  std::span<char> Room(std::size_t most);
  void Add(std::size_t written) { size_ += written; }
  bool Append(std::string_view piece);  // false when the budget is spent
  void Clear();                         // keeps a small buffer, gives a large one back

 private:
  bool Grow();
  void Refund();

  const std::shared_ptr<BodyBudget> budget_;
  std::unique_ptr<char[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::size_t charged_ = 0;
};

}  // namespace freshet::serve
