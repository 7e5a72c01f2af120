#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/descriptor.h"
#include "fabric/tcp/handshake.h"
#include "fabric/tcp/shared_ring.h"
#include "fabric/tcp/socket.h"

namespace freshet::fabric::tcp {

// A connection to a member that has proven itself.
struct Link {
  Conduit conduit;
  Home home;
  std::unique_ptr<SharedMemory> shared;  // none: everything goes through the socket
};

Nonce NewNonce();

// Listens, and lets in who holds the token; the others are out within a second, and cost at most kHandshakeBytes each,
// under TLS what OpenSSL needs for a handshake (some 40 kB).
//
// Threads: one. Blocking: Turn waits until the given moment. Failure: strangers are counted, never an error.
class Door {
 public:
  static constexpr std::chrono::milliseconds kPatience{1000};
  static constexpr std::size_t kGuests = 256;                 // at a time; more wait outside
  static constexpr std::chrono::milliseconds kCourtesy{100};  // then a guest who proved nothing goes if others wait

  struct Settings {
    const Badge& badge;
    const Home& home;
    std::size_t ring_bytes = 0;                    // of shared memory for those of the same host; 0: none
    std::shared_ptr<const TlsKeys> tls = nullptr;  // none: in the clear
  };
  Door(base::Descriptor listener, Settings settings, const base::Clock& clock);

  // Looks at the listener and all guests once, when there is something, or at the `end`. `wanted` says why a rank is
  // not welcome ("" if it is); `entered` gets each that is in.
  void Turn(base::Clock::Duration end, const std::function<std::string(int rank)>& wanted,
            const std::function<void(int rank, Link link)>& entered, const std::vector<int>& watched);

  const base::Descriptor& listener() const { return listener_; }
  std::uint64_t strangers() const { return strangers_; }
  std::uint64_t mismatched() const { return mismatched_; }  // of these, who came without our TLS, or with one of theirs

 private:
  enum class Stage { kKnock, kTls, kHello, kProof, kJoined };
  struct Guest {
    Guest(Conduit its, const Badge& badge, Deadline until, Deadline till)
        : conduit(std::move(its)), accepting(badge, NewNonce()), deadline(until), courtesy(till) {}
    Conduit conduit;
    Accepting accepting;
    Deadline deadline;
    Deadline courtesy;
    Stage stage = Stage::kKnock;
    std::string said;
    int rank = -1;
    Home home;
    std::unique_ptr<SharedMemory> shared;
    bool refused = false;
    bool in = false;
  };
  void AcceptAll();
  bool IsJoining(int rank) const;
  bool MakeRoom();  // false when nobody can be asked to go yet
  Result<bool> Hear(Guest& guest,
                    const std::function<std::string(int)>& wanted);  // true: something new was complete
  Result<bool> HearKnock(Guest& guest);
  Result<std::string> Answer(Guest& guest, const std::function<std::string(int)>& wanted);
  static Result<std::size_t> Expected(const Guest& guest);

  base::Descriptor listener_;
  const Settings settings_;
  const base::Clock& clock_;
  std::list<Guest> guests_;
  std::uint64_t strangers_ = 0, mismatched_ = 0;
};

}  // namespace freshet::fabric::tcp
