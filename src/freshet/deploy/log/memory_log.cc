#include <algorithm>

#include "deploy/log/record_log.h"

namespace freshet::deploy {

std::uint64_t MemoryLog::Append(RecordKind kind, std::string_view payload, std::uint64_t, std::int64_t) {
  records_.push_back(bytes_.size());
  if (kind == RecordKind::kObservation) observations_.push_back(bytes_.size());
  AppendRecord(bytes_, records_.size(), kind, payload);
  return records_.size();
}

Result<void> MemoryLog::Scan(std::uint64_t from, const std::function<Result<void>(const Record& record)>& visit) const {
  for (std::uint64_t sequence = std::max<std::uint64_t>(from, 1); sequence <= records_.size(); ++sequence)
    TRY(visit(*ParseRecord(std::string_view(bytes_).substr(records_[sequence - 1]))));
  return {};
}

Result<void> MemoryLog::Read(std::span<const std::uint64_t> numbers, data::Rows& rows) const {
  Slip slip;
  for (const std::uint64_t number : numbers) {
    if (number >= observations_.size()) continue;
    const Record record = *ParseRecord(std::string_view(bytes_).substr(observations_[number]));
    if (!discarded_.Holds(record.sequence)) TRY(UnpackRow(record.payload, rows, slip));
  }
  return {};
}

}  // namespace freshet::deploy
