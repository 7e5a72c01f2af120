#include "train/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/crc32c.h"
#include "data/world_testing.h"
#include "model/onnx/wire.h"

namespace freshet::train {
namespace {

using model::onnx::Field;
using model::onnx::WireReader;

template <class T>
T Number(const std::string& bytes, std::size_t at) {
  T value{};
  EXPECT_LE(at + sizeof value, bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint32_t Unmasked(std::uint32_t masked) {
  const std::uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The events of a file, whose sums are right.
std::vector<std::string> EventsIn(const std::string& bytes) {
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = Number<std::uint64_t>(bytes, at);
    EXPECT_EQ(Unmasked(Number<std::uint32_t>(bytes, at + 8)), base::Crc32cOf(std::span(bytes).subspan(at, 8)));
    events.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(Unmasked(Number<std::uint32_t>(bytes, at + 12 + length)), base::Crc32cOf(std::span(events.back())));
    at += length + 16;
  }
  return events;
}

std::map<std::uint32_t, Field> FieldsOf(std::string_view message) {
  std::map<std::uint32_t, Field> fields;
  WireReader reader(message);
  for (auto field = reader.Next(); field.ok() && field.value(); field = reader.Next())
    fields[field.value()->number] = *field.value();
  return fields;
}

TEST(EventFile, HoldsWhatWasToldAsRecordsWithSums) {
  data::World world;
  const std::string folder = world.Path("runs/first");
  {
    const auto file = EventFile::Open(world.posix, world.env().clock, folder, "1");
    ASSERT_TRUE(file.ok()) << file.error().text;
    Progress progress;
    progress.rows = 100;
    progress.mean_loss = 0.5;
    progress.total_loss = 50;
    progress.weight = 100;
    progress.error_rate = 0.25;
    progress.seconds = 2;
    file.value()->Add(progress);
    file.value()->Add(progress);  // nothing new
    Report report;
    report.rows = 200;
    report.epochs = 2;
    report.held_out_losses = {0.4, 0.3};
    ASSERT_TRUE(file.value()->End(report).ok());
  }
  const auto names = std::filesystem::directory_iterator(folder);
  const auto events = EventsIn(world.Read(names->path().string()));
  ASSERT_EQ(events.size(), 1 + 4 + 2u);
  EXPECT_EQ(FieldsOf(events[0])[3].bytes, "brain.Event:2");
  std::map<std::string, std::vector<std::pair<std::uint64_t, float>>> scalars;
  for (std::size_t e = 1; e < events.size(); ++e) {
    auto event = FieldsOf(events[e]);
    auto summary = FieldsOf(event[5].bytes);
    auto value = FieldsOf(summary[1].bytes);
    const auto bits = static_cast<std::uint32_t>(value[2].value);
    float scalar = 0;
    std::memcpy(&scalar, &bits, sizeof scalar);
    scalars[std::string(value[1].bytes)].emplace_back(event[2].value, scalar);
  }
  using Points = std::vector<std::pair<std::uint64_t, float>>;
  EXPECT_EQ(scalars["loss/epoch"], (Points{{100, 0.5f}}));
  EXPECT_EQ(scalars["loss/lately"], (Points{{100, 0.5f}}));
  EXPECT_EQ(scalars["error_rate"], (Points{{100, 0.25f}}));
  EXPECT_EQ(scalars["rows_per_second"], (Points{{100, 50.0f}}));
  EXPECT_EQ(scalars["loss/held_out"], (Points{{100, 0.4f}, {200, 0.3f}}));
}

TEST(EventFile, IsRefusedWhereThereCannotBeAFolder) {
  data::World world;
  const std::string path = world.Write("taken", "a file, not a folder");
  EXPECT_FALSE(EventFile::Open(world.posix, world.env().clock, path, "1").ok());
}

}  // namespace
}  // namespace freshet::train
