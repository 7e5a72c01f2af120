#include "data/images/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/option.h"
#include "base/random.h"
#include "base/thread_pool.h"

namespace freshet::data {
namespace {

// Rows of images in which every value says where it stands: row r, channel c, y, x.
constexpr std::uint64_t kChannels = 3, kHeight = 6, kWidth = 8, kPlane = kHeight * kWidth, kSize = kChannels * kPlane;
float At(std::size_t r, std::size_t c, std::size_t y, std::size_t x) {
  return static_cast<float>(r * 1000 + c * 100 + y * 10 + x);
}

Rows Images(std::size_t count) {
  Rows rows;
  rows.Clear();
  rows.width = kSize;
  for (std::size_t r = 0; r < count; ++r) {
    rows.labels.Append(0);
    rows.samples.Append(r);
    for (std::size_t c = 0; c < kChannels; ++c)
      for (std::size_t y = 0; y < kHeight; ++y)
        for (std::size_t x = 0; x < kWidth; ++x) rows.dense.Append(At(r, c, y, x));
  }
  return rows;
}

Description Described(View view) {
  Description description;
  description.format = "images";
  description.dense = true;
  description.shape = {kChannels, kHeight, kWidth};
  description.features = kSize;
  description.view = std::move(view);
  return description;
}

Augment Made(const View& view, Augment::Options options = {}) {
  auto made = Augment::Make(Described(view), options);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}

// Which part of an image was shown, read off its values.
struct Part {
  std::size_t top, left;
  bool mirrored;
  auto operator<=>(const Part&) const = default;
};
Part PartOf(const float* shown, std::size_t row, std::size_t side) {
  const float first = shown[0] - At(row, 0, 0, 0), last = shown[side - 1] - At(row, 0, 0, 0);
  const auto corner = static_cast<std::size_t>(std::min(first, last));
  return {corner / 10, corner % 10, first > last};
}

TEST(Augment, ShowsPredictionsTheMiddle) {
  const Rows rows = Images(3);
  const Augment augment = Made({.crop = 4}, {.mirror = true});
  EXPECT_EQ(augment.shape(), (std::vector<std::uint64_t>{3, 4, 4}));
  ASSERT_EQ(augment.width(), 48u);
  std::vector<float> out(3 * 48);
  augment.ForPrediction(rows.batch(), out.data());
  for (std::size_t r = 0; r < 3; ++r)
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t y = 0; y < 4; ++y)
        for (std::size_t x = 0; x < 4; ++x) ASSERT_EQ(out[r * 48 + (c * 4 + y) * 4 + x], At(r, c, y + 1, x + 2));
}

TEST(Augment, ShowsTheSameInPlace) {
  for (const std::uint64_t crop : {0, 1, 3, 6}) {
    View view{.crop = crop, .means = std::vector<float>(kSize), .deviations = {1, 2, 4}};
    for (std::size_t i = 0; i < kSize; ++i) view.means[i] = static_cast<float>(i % 7);
    const Augment augment = Made(view);
    Rows rows = Images(5);
    std::vector<float> out(5 * augment.width());
    augment.ForPrediction(rows.batch(), out.data());
    augment.ForPrediction(rows);
    EXPECT_EQ(rows.width, augment.width());
    EXPECT_EQ(std::vector<float>(rows.dense.span().begin(), rows.dense.span().end()), out);
  }
}

TEST(Augment, ShowsTrainingEveryPartInBothDirections) {
  constexpr std::size_t kRows = 600, kSide = 4;
  const Rows rows = Images(kRows);
  const Augment augment = Made({.crop = kSide}, {.seed = 5, .mirror = true});
  std::vector<float> out(kRows * augment.width());
  std::set<Part> parts;
  augment.ForTraining(rows.batch(), 0, out.data());
  for (std::size_t r = 0; r < kRows; ++r) {
    const float* const shown = out.data() + r * augment.width();
    const Part part = PartOf(shown, r, kSide);
    for (std::size_t c = 0; c < kChannels; ++c)
      for (std::size_t y = 0; y < kSide; ++y)
        for (std::size_t x = 0; x < kSide; ++x)
          ASSERT_EQ(shown[(c * kSide + y) * kSide + x],
                    At(r, c, part.top + y, part.left + (part.mirrored ? kSide - 1 - x : x)));
    parts.insert(part);
  }
  EXPECT_EQ(parts.size(), 3u * 5 * 2) << "of 3 rows, 5 columns and 2 directions";
}

TEST(Augment, DependsOnSeedEpochAndSampleAlone) {
  const Rows rows = Images(40);
  const Augment augment = Made({.crop = 2}, {.seed = 9, .mirror = true});
  const std::size_t width = augment.width();
  const auto shown = [&](const Augment& by, const Batch& batch, std::uint64_t epoch) {
    std::vector<float> out(batch.rows * width);
    by.ForTraining(batch, epoch, out.data());
    return out;
  };
  const auto all = shown(augment, rows.batch(), 3);
  EXPECT_EQ(shown(augment, rows.batch(), 3), all);
  EXPECT_NE(shown(augment, rows.batch(), 4), all);
  EXPECT_NE(shown(Made({.crop = 2}, {.seed = 10, .mirror = true}), rows.batch(), 3), all);
  const auto some = shown(augment, rows.batch().Slice(7, 19), 3);
  EXPECT_EQ(some, std::vector<float>(all.begin() + 7 * static_cast<long>(width),
                                     all.begin() + 19 * static_cast<long>(width)));
}

TEST(Augment, SubtractsMeansOfTheShownPlacesAlsoWhenMirrored) {
  View view{.crop = 4, .means = std::vector<float>(kSize), .deviations = {1, 1, 1}};
  for (std::size_t i = 0; i < kSize; ++i) view.means[i] = At(0, i / kPlane, i % kPlane / kWidth, i % kWidth);
  const Augment augment = Made(view, {.mirror = true});
  const Rows rows = Images(30);
  std::vector<float> out(30 * augment.width());
  augment.ForTraining(rows.batch(), 1, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], static_cast<float>(i / augment.width() * 1000));
}

TEST(Augment, CopiesRowsOfAnyShapeWhenThereIsNothingToDo) {
  Description description;
  description.dense = true;
  description.features = 4;
  Rows rows;
  rows.Clear();
  rows.width = 4;
  for (int i = 0; i < 8; ++i) rows.dense.Append(static_cast<float>(i));
  for (int i = 0; i < 2; ++i) rows.labels.Append(0);
  const auto augment = Augment::Make(description, {});
  ASSERT_TRUE(augment.ok());
  std::vector<float> out(8);
  augment.value().ForTraining(rows.batch(), 1, out.data());
  EXPECT_EQ(out, (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Augment, IsRefusedForWhatIsNoImageAndForTooLargeAPart) {
  const auto large = Augment::Make(Described({.crop = 7}), {});
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().text, Str(Option("crop"), " 7: images of 6x8, expected at most 6"));
  Description table;
  table.format = "csv";
  table.dense = true;
  const auto mirrored = Augment::Make(table, {.mirror = true});
  ASSERT_FALSE(mirrored.ok());
  EXPECT_EQ(mirrored.error().code, Code::kInvalid);
}

// Random images in blocks of 7.
class Source final : public RowSource {
 public:
  explicit Source(std::uint64_t rows) : rows_(rows) {}
  Result<bool> Next(Rows& rows) override {
    const std::uint64_t mine = next_++;
    if (mine * 7 >= rows_) return false;
    rows.Clear();
    rows.sequence = mine;
    rows.width = kSize;
    for (std::uint64_t r = mine * 7; r < std::min(rows_, mine * 7 + 7); ++r) {
      rows.labels.Append(0);
      for (std::size_t i = 0; i < kSize; ++i) rows.dense.Append(Value(r, i));
    }
    return true;
  }
  static float Value(std::uint64_t row, std::size_t place) {
    if (place / kPlane == 2) return 0.5f;  // the last channel does not vary
    const auto bits = base::Philox(1, row, place);
    return static_cast<float>(bits[0] % 256) / 255 * (place < kPlane ? 1.0f : 0.25f);
  }
  Result<void> Finish(Rows&) override { return {}; }
  Result<void> Seek(const Position&) override {
    next_ = 0;
    return {};
  }
  std::optional<double> Fraction(const Position&) const override { return std::nullopt; }
  std::uint64_t next() const { return next_; }

 private:
  const std::uint64_t rows_;
  std::atomic<std::uint64_t> next_{0};
};

TEST(EstimateMeans, CentresAndScalesWhatItHasSeen) {
  for (const Means which : {Means::kChannel, Means::kPixel})
    for (const std::uint64_t most : {20u, 1000u}) {
      base::ThreadPool pool(3);
      Source source(100);
      Description description = Described({});
      ASSERT_TRUE(EstimateMeans(pool, source, which, most, description).ok());
      EXPECT_EQ(source.next(), 0u) << "the source is back at its beginning";
      const std::size_t seen = std::min<std::uint64_t>(most, 100);
      const View& view = description.view;
      ASSERT_EQ(view.means.size(), which == Means::kChannel ? kChannels : kSize);
      ASSERT_EQ(view.deviations.size(), kChannels);
      const Augment augment = Made(view);
      Rows rows;
      rows.Clear();
      rows.width = kSize;
      for (std::size_t r = 0; r < seen; ++r) {
        rows.labels.Append(0);
        for (std::size_t i = 0; i < kSize; ++i) rows.dense.Append(Source::Value(r, i));
      }
      augment.ForPrediction(rows);
      for (std::size_t c = 0; c < kChannels; ++c) {
        double sum = 0, squares = 0;
        for (std::size_t r = 0; r < seen; ++r)
          for (std::size_t i = 0; i < kPlane; ++i) {
            const double value = rows.dense[r * kSize + c * kPlane + i];
            sum += value;
            squares += value * value;
          }
        const auto count = static_cast<double>(seen * kPlane);
        EXPECT_NEAR(sum / count, 0, 1e-5);
        EXPECT_NEAR(squares / count, c == 2 ? 0 : 1, 1e-4);
      }
    }
}

TEST(EstimateMeans, NeedsRowsAndImages) {
  base::InlineExecutor executor;
  Source none(0), some(5);
  Description images = Described({});
  const auto empty = EstimateMeans(executor, none, Means::kChannel, 10, images);
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().code, Code::kBadInput);
  Description table;
  EXPECT_FALSE(EstimateMeans(executor, some, Means::kChannel, 10, table).ok());
}

}  // namespace
}  // namespace freshet::data
