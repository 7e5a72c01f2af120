#include "fabric/threads/threads_fabric.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/jobs.h"
#include "fabric/threads/group.h"
#include "fabric/threads/mailroom.h"
#include "fabric/threads/shared_sum.h"

namespace freshet::fabric {
namespace {

class ThreadsFabric final : public Fabric {
 public:
  ThreadsFabric(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)), rank_(rank), mail_(group_->mail(rank)) {
    jobs_.emplace(group_->clock());
  }
  ThreadsFabric(const ThreadsFabric&) = delete;
  ThreadsFabric& operator=(const ThreadsFabric&) = delete;
  ~ThreadsFabric() override {
    group_->Leave(rank_);  // jobs that are left fail at once
    jobs_.reset();
    mail_.Close();
  }

  std::string_view name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }
  std::uint64_t generation() const override { return group_->options().generation; }
  const std::string& host(int rank) const override { return group_->host(rank); }
  const base::Clock& clock() const override { return group_->clock(); }

  Result<Transfer> StartSend(int to, Tag tag, std::span<const std::byte> bytes) override {
    return mail_.Send(to, tag, bytes);
  }
  Result<Transfer> StartReceive(From from, Tag tag, std::span<std::byte> into) override {
    return mail_.Receive(from, tag, into, Mailroom::Use::kCopy);
  }
  Result<Transfer> StartReceiveAdd(From from, Tag tag, std::span<float> into) override {
    return mail_.Receive(from, tag, AsBytes(into), Mailroom::Use::kAdd);
  }
  Result<Transfer> StartBorrow(From from, Tag tag) override {
    return mail_.Receive(from, tag, {}, Mailroom::Use::kLend);
  }
  void Release(Transfer borrowed) override { mail_.Release(borrowed); }
  Result<Arrived> Wait(Transfer transfer, base::Clock::Duration timeout) override {
    return mail_.Wait(transfer, timeout);
  }
  bool Done(Transfer transfer) override { return mail_.Done(transfer); }
  Result<std::size_t> WaitAny(std::span<const Transfer> transfers, base::Clock::Duration timeout) override {
    return mail_.WaitAny(transfers, timeout);
  }

  std::vector<Loss> Lost(std::size_t known) const override {
    if (!group_->reports()) return {};
    std::vector<Loss> losses = group_->LossesBut(rank_);
    losses.erase(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(std::min(known, losses.size())));
    return losses;
  }
  Result<Transfer> StartLoss(From of, std::size_t known) override { return mail_.StartLoss(of, known); }

  void Post(std::function<void()> job) override {
    if (jobs_->Post(std::move(job))) group_->AddThread(1);
  }

  void Abort(const Error& why) override {
    Error gave_up{Code::kPeerLost, Str(group_->Who(rank_), " gave up: ", why.text)};
    if (!group_->reports()) return (void)group_->Fail(std::move(gave_up));
    group_->Lose({.rank = rank_, .left = false, .why = std::move(gave_up)});
  }

  std::uint64_t bytes_sent() const override { return mail_.bytes_sent(); }

  bool has_native() const override { return true; }
  bool prefers_native() const override { return true; }
  Result<void> NativeAllReduce(std::span<float> values) override {
    if (group_->sums_failed()) return group_->sums_failure();
    const auto others = static_cast<std::uint64_t>(size() - 1);
    if (others == 0) return {};
    TRY(group_->sum().Run(rank_, values));
    mail_.CountSent(2 * values.size_bytes() * others / (others + 1));
    return {};
  }

 private:
  const std::shared_ptr<Group> group_;
  const int rank_;
  Mailroom& mail_;  // in group_
  std::optional<base::JobThread> jobs_;
};

}  // namespace

ThreadsGroup::ThreadsGroup(int size, const base::Clock& clock, ThreadsOptions options) {
  CHECK(size >= 1);
  const auto group = std::make_shared<Group>(size, clock, std::move(options));
  for (int rank = 0; rank < size; ++rank) members_.push_back(std::make_unique<ThreadsFabric>(group, rank));
}

}  // namespace freshet::fabric
