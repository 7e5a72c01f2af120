#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "fabric/membership/elastic_place.h"
#include "fabric/tcp/tcp_post.h"
#include "place_flags.h"
#include "train/together.h"
#include "worker_view.h"

namespace freshet::cli {

// This process's place in a job whose processes may come and go: where it is reached, and who keeps what it has said
// should it be killed.
//
// FRESHET_JOIN=HOST:PORT,… makes it one that comes, and says where others may be found; FRESHET_NAME is what they call
// it; FRESHET_AGENT_FD is the descriptor by which its agent (who started it) hears what it says.
//
// Ownership: the post; the place borrows from this. Threads: as ElasticGroup uses it.
class ElasticSeat {
 public:
  static Result<std::unique_ptr<ElasticSeat>> Open(const PlaceFlags& flags, const fabric::Place& place,
                                                   const train::Together::Bounds& bounds, Door& door);
  // Is this process one that comes?
  static bool Comes();

  fabric::ElasticPlace place() const;
  WorkerView& view() { return *view_; }
  // May its agent start it again as if nothing had been? So while it has never been of a group.
  bool may_begin_again() const { return agent_.open() && !began_; }

 private:
  ElasticSeat(fabric::TcpOptions options, std::unique_ptr<fabric::TcpPost> post, base::Clock& clock)
      : options_(std::move(options)), post_(std::move(post)), clock_(clock) {}
  std::string Answer(const fabric::Roster& roster, const std::string& order) const;
  Result<std::unique_ptr<fabric::Fabric>> Connect(const fabric::Roster& roster, int rank,
                                                  const std::atomic<bool>& stop) const;
  fabric::Testimony AboutToJoin() const;

  fabric::TcpOptions options_;  // of every generation, but for place and address
  std::unique_ptr<fabric::TcpPost> post_;
  base::Clock& clock_;
  fabric::Seat seat_;
  train::Together::Bounds bounds_;
  int workers_ = 1;
  std::vector<std::string> contacts_;
  base::Descriptor agent_;
  mutable std::atomic<bool> began_{false};
  std::unique_ptr<WorkerView> view_;
};

}  // namespace freshet::cli
