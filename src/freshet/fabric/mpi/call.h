#pragma once

#include <mpi.h>

#include <string_view>

#include "base/result.h"

namespace freshet::fabric::mpi {

// What an MPI call that returned `code` says; communicators of ours return errors instead of ending the process.
inline Result<void> Called(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return {};
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return Error{Code::kPeerLost, Str(what, ": ", std::string_view(text, static_cast<std::size_t>(length)))};
}

// Has it ended? Never waits.
inline Result<bool> Ended(MPI_Request& request, MPI_Status* status = MPI_STATUS_IGNORE) {
  int flag = 0;
  TRY(Called(MPI_Test(&request, &flag, status), "MPI_Test"));
  return flag != 0;
}

// Takes a receive back; false when MPI does not let go of its memory, since its bytes are half way. A receive can be
// taken back without the other side, but MPI may want to be asked more than once.
inline bool TakeBack(MPI_Request& receive) {
  if (receive == MPI_REQUEST_NULL) return true;
  if (MPI_Cancel(&receive) != MPI_SUCCESS) return false;
  for (int i = 0; i < 100; ++i) {
    const Result<bool> ended = Ended(receive);
    if (!ended.ok() || ended.value()) return ended.ok();
  }
  return false;
}

}  // namespace freshet::fabric::mpi
