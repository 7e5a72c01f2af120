// What a codec does not deliver at once is delivered later: nothing of what is pushed is lost on its way to a shard.

#include "strategy/server/encoding.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "strategy/worlds_testing.h"

namespace freshet::strategy::server {
namespace {

constexpr std::uint64_t kRows = 300, kWidth = 7;

// Pushes random rows and stretches of one block, and adds up what is read of the letters.
class Pushes {
 public:
  Pushes(const std::string& codec, std::uint64_t seed)
      : random_(seed, "pushes"),
        codec_(fabric::Codec::Make(codec).value()),
        parameters_(optimize::Parameters::Create({{"block", kRows, kWidth}}, memory_).value()),
        encoding_(codec_.get(), parameters_),
        pushed_(kRows * kWidth, 0.0f),
        read_(kRows * kWidth, 0.0f) {}

  void Push() {
    Writer writer(PushHead{.parcels = 1});
    std::vector<std::uint32_t> rows;
    Parcel parcel;
    if (random_.Below(2) == 0) {
      parcel.first = random_.Below(kRows);
      parcel.count = 1 + random_.Below(kRows - parcel.first);
      for (std::uint64_t row = parcel.first; row < parcel.first + parcel.count; ++row)
        rows.push_back(static_cast<std::uint32_t>(row));
    } else {
      for (std::uint32_t row = 0; row < kRows; ++row)
        if (random_.Below(10) == 0) rows.push_back(row);
      parcel.form = random_.Below(2) == 0 ? Parcel::Form::kRows : Parcel::Form::kSame;
      parcel.count = rows.size();
    }
    float* out = encoding_.Begin(writer, parcel, rows);
    for (const std::uint32_t row : rows)
      for (std::uint64_t k = 0; k < kWidth; ++k) {
        const auto value = static_cast<float>(random_.Normal());
        pushed_[row * kWidth + k] += value;
        *out++ = value;
      }
    const std::size_t less = encoding_.End(writer);
    const std::vector<std::byte> letter = writer.Take();
    ReadAll(letter, rows);
    const std::size_t numbers = parcel.form == Parcel::Form::kRows ? (rows.size() + 1) / 2 * 8 : 0;
    const std::size_t plain = sizeof(PushHead) + sizeof(Parcel) + numbers + rows.size() * kWidth * sizeof(float);
    EXPECT_LE(plain, letter.size() + less);
    EXPECT_GT(plain + 16, letter.size() + less);
  }

  void ExpectNothingLost() {
    std::vector<data::Tensor> tensors;
    encoding_.Save(tensors);
    ASSERT_EQ(tensors.size(), codec_->uses_residual() ? 1u : 0u);
    std::vector<float> residual(pushed_.size(), 0.0f);
    if (!tensors.empty()) {
      ASSERT_EQ(tensors[0].bytes.size(), residual.size() * sizeof(float));
      std::memcpy(residual.data(), tensors[0].bytes.data(), tensors[0].bytes.size());
    }
    for (std::size_t i = 0; i < pushed_.size(); ++i)
      ASSERT_NEAR(read_[i] + residual[i], pushed_[i], codec_->uses_residual() ? 1e-3 : 0.1) << i;
  }

 private:
  void ReadAll(std::span<const std::byte> letter, std::span<const std::uint32_t> rows) {
    Reader reader(letter);
    ASSERT_TRUE(reader.Take<PushHead>().ok());
    const Parcel parcel = reader.Take<Parcel>().value();
    ASSERT_EQ(parcel.values, Parcel::Values::kEncoded);
    if (parcel.form == Parcel::Form::kRows) ASSERT_TRUE(reader.Numbers<std::uint32_t>(parcel.count).ok());
    const auto bytes = reader.Bytes(reader.Take<std::uint64_t>().value()).value();
    std::vector<float> values(parcel.count * kWidth);
    ASSERT_TRUE(codec_->Decode(bytes, values, fabric::Codec::Onto::kReplace).ok());
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::uint64_t k = 0; k < kWidth; ++k) read_[rows[i] * kWidth + k] += values[i * kWidth + k];
    EXPECT_EQ(reader.left(), 0u);
  }

  base::Random random_;
  const std::unique_ptr<fabric::Codec> codec_;
  optimize::HeapMemory memory_;
  optimize::Parameters parameters_;
  Encoding encoding_;
  std::vector<float> pushed_, read_;
};

TEST(Encoding, WhatIsReadAndWhatIsHeldBackAreWhatWasPushed) {
  for (const char* const codec : {"fp16", "bf16", "int8", "1bit", "topk", "threshold"})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(Str(codec, " ", seed));
      Pushes pushes(codec, seed);
      for (int i = 0; i < 30; ++i) pushes.Push();
      pushes.ExpectNothingLost();
      if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace freshet::strategy::server
