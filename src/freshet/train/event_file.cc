#include "train/event_file.h"

#include <cstring>

#include "base/crc32c.h"
#include "model/onnx/wire.h"

namespace freshet::train {
namespace {

using model::onnx::WireWriter;

// Fields of tensorflow.Event, Summary and Summary.Value.
constexpr std::uint32_t kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr char kWallTime = 1 << 3 | 1;  // field 1, eight bytes
constexpr std::uint32_t kValue = 1, kTag = 1, kSimpleValue = 2;

template <class T>
void AppendBytes(T value, std::string& out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

// So that a sum of bytes that hold sums is no sum of them.
std::uint32_t Masked(std::string_view bytes) {
  const std::uint32_t crc = base::Crc32cOf(std::span(bytes));
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

Result<std::unique_ptr<EventFile>> EventFile::Open(base::Files& files, const base::Clock& clock,
                                                   const std::string& directory, std::string_view run) {
  TRY(files.MakeDirectory(directory));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(clock.Wall()).count();
  const std::string path = Str(directory, "/events.out.tfevents.", seconds, ".freshet.", run);
  std::unique_ptr<EventFile> made(new EventFile(TRY(files.OpenAppend(path)), clock, path));
  WireWriter version;
  version.Bytes(kFileVersion, "brain.Event:2");
  made->Write(version.message());
  TRY(made->written_);
  return made;
}

void EventFile::Write(std::string_view rest) {
  if (!written_.ok()) return;
  std::string event(1, kWallTime), record;
  AppendBytes(base::Seconds(clock_.Wall()), event);
  event += rest;
  AppendBytes(static_cast<std::uint64_t>(event.size()), record);
  AppendBytes(Masked(record), record);
  record += event;
  AppendBytes(Masked(event), record);
  written_ = file_->Append(std::as_bytes(std::span(record)));
}

void EventFile::Add(std::string_view tag, double value, std::uint64_t rows) {
  WireWriter scalar, summary, event;
  scalar.Bytes(kTag, tag);
  scalar.Float(kSimpleValue, static_cast<float>(value));
  summary.Bytes(kValue, scalar.message());
  event.Int(kStep, static_cast<std::int64_t>(rows));
  event.Bytes(kSummary, summary.message());
  Write(event.message());
}

void EventFile::Add(const Progress& progress) {
  if (progress.rows == rows_) return;
  if (progress.weight < weight_) loss_ = weight_ = 0;  // another epoch
  const double weight = progress.weight - weight_;
  Add("loss/epoch", progress.mean_loss, progress.rows);
  if (weight > 0) Add("loss/lately", (progress.total_loss - loss_) / weight, progress.rows);
  if (progress.error_rate) Add("error_rate", *progress.error_rate, progress.rows);
  if (progress.rmse) Add("rmse", *progress.rmse, progress.rows);
  if (progress.seconds > seconds_)
    Add("rows_per_second", static_cast<double>(progress.rows - rows_) / (progress.seconds - seconds_), progress.rows);
  loss_ = progress.total_loss;
  weight_ = progress.weight;
  seconds_ = progress.seconds;
  rows_ = progress.rows;
}

Result<void> EventFile::End(const Report& report) {
  const auto epochs = static_cast<std::uint64_t>(std::max(report.epochs, 1));
  for (std::size_t e = 0; e < report.held_out_losses.size(); ++e)
    Add("loss/held_out", report.held_out_losses[e], report.rows * (e + 1) / epochs);
  TRY(written_);
  return file_->Sync();
}

}  // namespace freshet::train
