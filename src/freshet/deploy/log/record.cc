#include "deploy/log/record.h"

#include <array>
#include <cstring>

#include "base/crc32c.h"

namespace freshet::deploy {
namespace {

template <class T>
void Put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes values from the front of bytes that may be too few.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T Take() {
    T value{};
    const std::string_view taken = Bytes(sizeof value);
    if (taken.size() == sizeof value) std::memcpy(&value, taken.data(), sizeof value);
    return value;
  }
  std::string_view Bytes(std::uint64_t size) {
    if (size > bytes_.size()) {
      ok_ = false;
      bytes_ = {};
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && bytes_.empty(); }

 private:
  std::string_view bytes_;
  bool ok_ = true;
};

std::vector<data::NewName> TakeNames(Cursor& cursor) {
  std::vector<data::NewName> names;
  for (auto left = cursor.Take<std::uint32_t>(); left > 0 && cursor.ok(); --left) {
    data::NewName name;
    name.entry = cursor.Take<std::uint32_t>();
    name.space = cursor.Take<std::uint32_t>();
    name.name = cursor.Bytes(cursor.Take<std::uint32_t>());
    names.push_back(std::move(name));
  }
  return names;
}

enum Flag : std::uint8_t { kDense = 1, kWeighted = 2, kId = 4, kScores = 8, kNames = 16, kOwner = 32 };

constexpr std::array<std::string_view, 13> kNamesOfKinds = {
    "",      "observation", "prediction", "iteration start", "iteration end", "version",       "data set",
    "drift", "roll-back",   "pin",        "names",           "class",         "deployed model"};

constexpr std::size_t kKindAt = 16;
std::uint32_t MarkOf(std::uint64_t salt) { return static_cast<std::uint32_t>(salt >> 40) << 8; }

std::uint32_t ChecksumOf(std::string_view bytes, std::uint64_t salt) {
  const std::uint32_t before = salt == 0 ? 0 : base::Crc32cOf(std::span(&salt, 1));
  return base::Crc32cOf(std::span(bytes), before);
}

template <class T>
void AppendFloats(const std::string_view bytes, T& to) {
  const std::size_t count = bytes.size() / sizeof(float), before = to.size();
  to.Resize(before + count);
  bytes.copy(reinterpret_cast<char*>(to.data() + before), count * sizeof(float));
}

}  // namespace

bool IsKnown(RecordKind kind) { return kind > RecordKind{} && static_cast<std::size_t>(kind) < kNamesOfKinds.size(); }

std::string_view Name(RecordKind kind) { return kNamesOfKinds[static_cast<std::size_t>(kind)]; }

void AppendRecord(std::string& out, std::uint64_t sequence, RecordKind kind, std::string_view payload,
                  std::uint64_t salt) {
  CHECK(payload.size() <= kMostPayload);
  const std::size_t start = out.size();
  Put<std::uint32_t>(out, 0);
  Put(out, static_cast<std::uint32_t>(payload.size()));
  Put(out, sequence);
  Put(out, static_cast<std::uint32_t>(kind) | MarkOf(salt));
  out += payload;
  const std::uint32_t crc = ChecksumOf(std::string_view(out).substr(start + 4), salt);
  std::memcpy(out.data() + start, &crc, sizeof crc);
}

bool HasMark(std::string_view header, std::uint64_t salt) {
  std::uint32_t kind = 0;
  std::memcpy(&kind, header.data() + kKindAt, sizeof kind);
  return (kind & ~0xffu) == MarkOf(salt) && (kind & 0xff) != 0;
}

std::optional<Record> ParseRecord(std::string_view bytes, std::uint64_t salt) {
  Cursor cursor(bytes);
  const auto crc = cursor.Take<std::uint32_t>();
  const auto size = cursor.Take<std::uint32_t>();
  const auto sequence = cursor.Take<std::uint64_t>();
  const auto kind = cursor.Take<std::uint32_t>();
  if (!cursor.ok() || size > kMostPayload || !HasMark(bytes, salt)) return std::nullopt;
  const std::string_view payload = cursor.Bytes(size);
  if (!cursor.ok() || ChecksumOf(bytes.substr(4, kRecordHeader - 4 + size), salt) != crc) return std::nullopt;
  return Record{sequence, static_cast<RecordKind>(kind & 0xff), payload};
}

void PackRow(const data::Batch& batch, std::size_t row, const Slip& slip, std::string& out) {
  std::uint8_t flags = 0;
  if (!batch.sparse()) flags |= kDense;
  if (batch.weights != nullptr) flags |= kWeighted;
  if (!slip.id.empty()) flags |= kId;
  if (!slip.scores.empty()) flags |= kScores;
  if (!slip.names.empty()) flags |= kNames;
  if (!slip.owner.empty()) flags |= kOwner;
  Put(out, flags);
  Put(out, slip.time);
  Put(out, batch.labels[row]);
  if (flags & kWeighted) Put(out, batch.weights[row]);
  const auto put_floats = [&](const float* values, std::size_t count) {
    out.append(reinterpret_cast<const char*>(values), count * sizeof(float));
  };
  if (flags & kDense) {
    Put(out, static_cast<std::uint32_t>(batch.width));
    put_floats(batch.dense + row * batch.width, batch.width);
  } else {
    const std::uint32_t begin = batch.offsets[row], count = batch.offsets[row + 1] - begin;
    Put(out, count);
    out.append(reinterpret_cast<const char*>(batch.indices + begin), count * sizeof(std::uint32_t));
    put_floats(batch.values + begin, count);
  }
  if (flags & kId) {
    Put(out, static_cast<std::uint32_t>(slip.id.size()));
    out += slip.id;
  }
  if (flags & kOwner) {
    Put(out, static_cast<std::uint32_t>(slip.owner.size()));
    out += slip.owner;
  }
  if (flags & kScores) {
    Put(out, static_cast<std::uint32_t>(slip.scores.size()));
    put_floats(slip.scores.data(), slip.scores.size());
  }
  if (flags & kNames) PackNames(slip.names, out);
}

void PackNames(std::span<const data::NewName> names, std::string& out) {
  Put(out, static_cast<std::uint32_t>(names.size()));
  for (const data::NewName& name : names) {
    Put(out, name.entry);
    Put(out, name.space);
    Put(out, static_cast<std::uint32_t>(name.name.size()));
    out += name.name;
  }
}

Result<std::vector<data::NewName>> UnpackNames(std::string_view payload) {
  Cursor cursor(payload);
  std::vector<data::NewName> names = TakeNames(cursor);
  if (!cursor.done()) return Error{Code::kCorrupt, "a packed list of names does not hold together"};
  return names;
}

Result<void> UnpackRow(std::string_view payload, data::Rows& rows, Slip& slip) {
  const Error damaged{Code::kCorrupt, "a packed row does not hold together"};
  Cursor cursor(payload);
  const auto flags = cursor.Take<std::uint8_t>();
  if (flags >= 2 * kOwner)
    return Error{Code::kInvalid,
                 "a packed row has parts that this program does not know; use the freshet that wrote it"};
  slip.time = cursor.Take<std::int64_t>();
  const auto label = cursor.Take<float>();
  const auto weight = flags & kWeighted ? cursor.Take<float>() : 1.0f;
  const std::uint64_t count = cursor.Take<std::uint32_t>();
  const bool dense = (flags & kDense) != 0;
  const std::string_view indices = dense ? std::string_view() : cursor.Bytes(count * sizeof(std::uint32_t));
  const std::string_view values = cursor.Bytes(count * sizeof(float));
  slip.id = flags & kId ? cursor.Bytes(cursor.Take<std::uint32_t>()) : std::string_view();
  slip.owner = flags & kOwner ? cursor.Bytes(cursor.Take<std::uint32_t>()) : std::string_view();
  const std::string_view scores =
      flags & kScores ? cursor.Bytes(std::uint64_t{cursor.Take<std::uint32_t>()} * sizeof(float)) : std::string_view();
  slip.scores.resize(scores.size() / sizeof(float));
  scores.copy(reinterpret_cast<char*>(slip.scores.data()), scores.size());
  slip.names.clear();
  if (flags & kNames) slip.names = TakeNames(cursor);
  for (const data::NewName& name : slip.names)
    if (name.entry >= count) return damaged;
  if (!cursor.done() || (dense ? count == 0 || rows.width != count : rows.width != 0)) return damaged;

  if (rows.size() > 0 && rows.weights.empty() && (flags & kWeighted))
    while (rows.weights.size() < rows.size()) rows.weights.Append(1.0f);
  if (!rows.weights.empty() || (flags & kWeighted)) rows.weights.Append(weight);
  rows.labels.Append(label);
  rows.times.Append(slip.time);
  if (dense) {
    AppendFloats(values, rows.dense);
  } else {
    const std::size_t before = rows.indices.size();
    rows.indices.Resize(before + count);
    indices.copy(reinterpret_cast<char*>(rows.indices.data() + before), indices.size());
    AppendFloats(values, rows.values);
    rows.offsets.Append(static_cast<std::uint32_t>(rows.indices.size()));
  }
  return {};
}

void PeekSlip(std::string_view payload, Slip& slip) {
  Cursor cursor(payload);
  const auto flags = cursor.Take<std::uint8_t>();
  slip.time = cursor.Take<std::int64_t>();
  cursor.Bytes(sizeof(float) * (flags & kWeighted ? 2 : 1));
  const std::uint64_t count = cursor.Take<std::uint32_t>();
  cursor.Bytes(count * sizeof(float) * (flags & kDense ? 1 : 2));
  slip.id = flags & kId ? cursor.Bytes(cursor.Take<std::uint32_t>()) : std::string_view();
  slip.owner = flags & kOwner ? cursor.Bytes(cursor.Take<std::uint32_t>()) : std::string_view();
}

}  // namespace freshet::deploy
