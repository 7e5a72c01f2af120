#pragma once

#include <cstdint>

#include "fabric/fabric.h"

namespace freshet::fabric {

// What one member tells another. Bytes go with kEager, kData and kAbort alone.
enum class NoteType : std::uint8_t {
  kEager = 1,      // a whole short message: tag; id of the send; argument: nothing
  kRequest = 2,    // I have a message for you: tag; id of the send; argument: its bytes
  kClear = 3,      // send it: id of the send; argument: id of the receive
  kData = 4,       // of wires that cut it up, the next piece: id of the receive; argument: its place in the message
  kRefuse = 5,     // it does not fit: id of the send; argument: the room there was
  kCancel = 6,     // the sender gave up: id of the send
  kCredit = 7,     // short messages were taken: argument: bytes
  kHeartbeat = 8,  // I am alive
  kAbort = 9,      // the group is over: argument: the rank that is lost; id: 1 if it gave up or left; the bytes say why
  kGoodbye = 10,   // I leave in order; nothing follows; argument: sums of the engine's own that I took part in
  kWake = 11,      // of wires: look at the shared memory
};

struct Note {
  NoteType type = NoteType::kHeartbeat;
  Tag tag = 0;
  std::uint64_t id = 0;
  std::uint64_t argument = 0;
};

}  // namespace freshet::fabric
