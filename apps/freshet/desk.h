#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread.h"
#include "fabric/tcp/tcp_post.h"
#include "place_flags.h"
#include "worker_view.h"

namespace freshet::cli {

// Where a process of a job whose members stay is asked how it goes, by who has the job's token.
//
// Threads: answers on one of its own. Ownership: borrows the clock.
class Desk {
 public:
  static Result<std::unique_ptr<Desk>> Open(const PlaceFlags& flags, const fabric::Place& place, Door& door);
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  // Name and address of this process, for the others; and those of all, by rank.
  std::string card() const;
  void Meet(const std::vector<std::string>& cards);
  const std::string& address() const { return post_->address(); }
  WorkerView& view() { return view_; }

 private:
  Desk(WorkerView::Who who, int size, std::unique_ptr<fabric::TcpPost> post, const base::Clock& clock);
  void Serve();

  const std::string name_;
  WorkerView view_;
  std::unique_ptr<fabric::TcpPost> post_;
  base::Mutex mutex_;
  WorkerView::Group group_ GUARDED_BY(mutex_);
  bool ending_ GUARDED_BY(mutex_) = false;
  base::Thread clerk_;
};

}  // namespace freshet::cli
