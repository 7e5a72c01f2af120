#include "train/members.h"

#include "fabric/collectives/collectives.h"

namespace freshet::train {

Result<std::vector<std::string>> Members::Tell(std::string_view about, const std::string& mine) {
  const std::string said = Str(about, "\n", mine);
  const auto blocks = TRY(fabric::Collectives(*fabric_).Gather(std::as_bytes(std::span(said.data(), said.size()))));
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    const std::string_view text(reinterpret_cast<const char*>(blocks[rank].data()), blocks[rank].size());
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || text.substr(0, end) != about)
      return Error{Code::kInvalid, Str(Name(rank), " speaks of ", Quoted(text.substr(0, end)), ", expected ",
                                       Quoted(about), ": do all workers run the same program with the same flags?")};
    all.emplace_back(text.substr(end + 1));
  }
  return all;
}

std::string Members::Name(std::size_t rank) const {
  return Str("rank ", rank, " (", fabric_->host(static_cast<int>(rank)), ")");
}

Error Members::Refuse(std::string why) {
  refused_ = true;
  return {Code::kInvalid, std::move(why)};
}

void Members::Leave(const Error& why) {
  if (fabric_ != nullptr && !refused_ && why.code != Code::kStopped) fabric_->Abort(why);
}

}  // namespace freshet::train
